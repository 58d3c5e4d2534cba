#include "sim/schedule/layer_schedule.h"

#include <algorithm>
#include <cmath>

#include "sim/screen/operators.h"

namespace cpfit::schedule {

using engine::ActivityId;
using engine::LaneKind;
using engine::Picoseconds;
using engine::TagId;
using engine::TrafficAxis;
using engine::Work;

namespace {

Picoseconds share_of(Picoseconds time, double share) {
  return static_cast<Picoseconds>(std::ceil(static_cast<double>(time) * share));
}

}  // namespace

LayerSchedule::LayerSchedule(const ScreenContext& context, const Recipe& recipe, const OperatorTimes& times, Writer& writer)
    : context_(context),
      recipe_(recipe),
      times_(times),
      writer_(writer),
      attention_(context, recipe, times, writer),
      tp_(tp_traffic(context.model, context.training, recipe)),
      overlap_tp_(recipe.overlap_tp && recipe.sequence_parallel ? context.rules.tp_overlap : TpOverlap::kNone),
      groups_(static_cast<std::size_t>(recipe.pp)) {
  const SimulatedRanks& ranks = writer.ranks();
  for (std::int32_t stage = 0; stage < recipe.pp; ++stage) {
    StageGroups& groups = groups_[static_cast<std::size_t>(stage)];
    for (std::int32_t d = 0; d < ranks.dp(); ++d) {
      for (std::int32_t c = 0; c < recipe.cp; ++c) {
        std::vector<std::int32_t>& tensor = groups.tensor.emplace_back();
        for (std::int32_t t = 0; t < ranks.tp(); ++t) tensor.push_back(ranks.index({t, c, d, stage}));
        groups.ranks.insert(groups.ranks.end(), tensor.begin(), tensor.end());
      }
      for (std::int32_t t = 0; t < ranks.tp(); ++t) {
        std::vector<std::int32_t>& ring = groups.context.emplace_back();
        for (std::int32_t c = 0; c < recipe.cp; ++c) ring.push_back(ranks.index({t, c, d, stage}));
      }
    }
  }
}

bool LayerSchedule::windowed(std::int32_t layer) const {
  if (context_.training.mask.kind == MaskKind::kSlidingWindow) return true;
  return context_.model.windowed_layers(layer, 1) == 1;
}

const std::vector<std::int32_t>& LayerSchedule::context_group(std::int32_t stage, std::int32_t t, std::int32_t d) const {
  return groups_[static_cast<std::size_t>(stage)]
      .context[static_cast<std::size_t>(d) * static_cast<std::size_t>(writer_.ranks().tp()) + static_cast<std::size_t>(t)];
}

const std::vector<std::int32_t>& LayerSchedule::stage_ranks(std::int32_t stage) const {
  return groups_[static_cast<std::size_t>(stage)].ranks;
}

void LayerSchedule::each_kernel(std::int32_t stage, TagId tag, Kernel time, std::int32_t launches, const Place& at) {
  for (const std::int32_t rank : stage_ranks(stage)) writer_.kernel(rank, LaneKind::kCompute, tag, time, launches, at);
}

void LayerSchedule::last_kernel(std::int32_t stage, TagId tag, Kernel time, std::int32_t launches, const Place& at, bool read) {
  for (const std::int32_t rank : stage_ranks(stage)) {
    const ActivityId kernel = writer_.kernel(rank, LaneKind::kCompute, tag, time, launches, at);
    if (read) writer_.program().host_reads(kernel);
  }
}

std::vector<ActivityId> LayerSchedule::posted_collectives(std::int32_t stage, CollectiveKind kind, const char* name, Bytes bytes,
                                                          const Place& at, bool by_copy_engine) {
  std::vector<ActivityId> posted;
  const GroupShape shape = group_shapes(recipe_).tp;
  const TagId tag = writer_.tag(name, Work::kCollective, at, TrafficAxis::kTp);
  for (const std::vector<std::int32_t>& group : groups_[static_cast<std::size_t>(stage)].tensor) {
    Transfer transfer = writer_.network().collective(kind, shape, group, bytes);
    transfer.by_copy_engine = by_copy_engine;
    posted.push_back(writer_.collective(group, LaneKind::kTp, tag, transfer, at));
  }
  return posted;
}

void LayerSchedule::gate_groups(std::int32_t stage, const std::vector<ActivityId>& collectives) {
  const std::vector<std::vector<std::int32_t>>& groups = groups_[static_cast<std::size_t>(stage)].tensor;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    for (const std::int32_t rank : groups[i]) writer_.gate(rank, collectives[i]);
  }
}

void LayerSchedule::tensor_parallel(std::int32_t stage, CollectiveKind kind, const char* name, Bytes bytes, const Place& at) {
  if (recipe_.tp > 1) gate_groups(stage, posted_collectives(stage, kind, name, bytes, at));
}

/// A product behind the gather of its input. Overlapped: the gather passes under all but the last of tp pieces of the product, or
/// under the first of them.
void LayerSchedule::gathered_product(std::int32_t stage, const char* name, Kernel time, std::int32_t launches, const Place& at) {
  const TagId tag = writer_.tag(name, Work::kGemm, at);
  const bool gathers = recipe_.tp > 1 && recipe_.sequence_parallel;
  if (!gathers) return each_kernel(stage, tag, time, launches, at);
  const bool copies = overlap_tp_ == TpOverlap::kUserBuffers;
  launches += at.pass == engine::StepPass::kForward ? LaunchCounts::kSequenceCollective : LaunchCounts::kSequenceCollectiveBack;
  const std::vector<ActivityId> gather =
      posted_collectives(stage, CollectiveKind::kAllGather, copies ? "copied gather" : "gather", tp_.gather, at, copies);
  if (overlap_tp_ == TpOverlap::kNone) {
    gate_groups(stage, gather);
    return each_kernel(stage, tag, time, launches, at);
  }
  const double waits = overlap_tp_ == TpOverlap::kOwnShard ? recipe_.tp - 1.0 : 1.0;  // pieces of tp that need what is gathered
  const Kernel last = share_of(time, waits / recipe_.tp);
  each_kernel(stage, tag, time - last, launches, at);
  gate_groups(stage, gather);
  each_kernel(stage, tag, last, 0, at);
}

/// A product whose output is scattered (or all-reduced). Overlapped: in four chunks, the last of which nothing hides.
void LayerSchedule::scattered_product(std::int32_t stage, const char* name, Kernel time, std::int32_t launches, const Place& at) {
  const TagId tag = writer_.tag(name, Work::kGemm, at);
  if (recipe_.tp <= 1) return each_kernel(stage, tag, time, launches, at);
  if (!recipe_.sequence_parallel) {
    each_kernel(stage, tag, time, launches, at);
    return tensor_parallel(stage, CollectiveKind::kAllReduce, "all-reduce", tp_.activation, at);
  }
  launches += LaunchCounts::kSequenceCollective;
  if (overlap_tp_ != TpOverlap::kUserBuffers) {
    each_kernel(stage, tag, time, launches, at);
    return tensor_parallel(stage, CollectiveKind::kReduceScatter, "scatter", tp_.activation, at);
  }
  const Kernel first = share_of(time, 0.25);
  each_kernel(stage, tag, first, launches, at);
  const std::vector<ActivityId> hidden =
      posted_collectives(stage, CollectiveKind::kReduceScatter, "scatter", tp_.activation * 0.75, at);
  each_kernel(stage, tag, time - first, 0, at);
  gate_groups(stage, hidden);
  tensor_parallel(stage, CollectiveKind::kReduceScatter, "scatter", tp_.activation * 0.25, at);
}

void LayerSchedule::attention(std::int32_t stage, const Place& at, bool forward) {
  for (std::int32_t d = 0; d < writer_.ranks().dp(); ++d) {
    for (std::int32_t t = 0; t < writer_.ranks().tp(); ++t) {
      const std::vector<std::int32_t>& group = context_group(stage, t, d);
      if (forward) {
        attention_.forward(group, at, windowed(at.layer));
      } else {
        attention_.backward(group, at, windowed(at.layer));
      }
    }
  }
}

void LayerSchedule::forward(std::int32_t stage, const Place& at, bool again) {
  const HalfTimes& a = times_.attention;
  const HalfTimes& m = times_.mlp;
  const bool early = again && context_.rules.recompute_ends_early;
  const Kernel last = early && context_.rules.fused_elementwise ? 0 : m.row;
  if (recipe_.tp <= 1) {
    each_kernel(stage, writer_.tag("norm, qkv, rope", Work::kGemm, at), a.norm + a.column + a.middle,
                LaunchCounts::kNormAttention + LaunchCounts::kColumn + LaunchCounts::kRope, at);
    attention(stage, at, true);
    each_kernel(stage, writer_.tag("projection, norm, mlp", Work::kGemm, at), a.row + m.norm + m.column + m.middle + last,
                LaunchCounts::kRowAttention + LaunchCounts::kNormMlp + LaunchCounts::kColumn + LaunchCounts::kActivation +
                    LaunchCounts::kRowMlp,
                at);
    return;
  }
  each_kernel(stage, writer_.tag("norm", Work::kElementwise, at), a.norm, LaunchCounts::kNormAttention, at);
  gathered_product(stage, "qkv", a.column, LaunchCounts::kColumn, at);
  each_kernel(stage, writer_.tag("rope", Work::kElementwise, at), a.middle, LaunchCounts::kRope, at);
  attention(stage, at, true);
  scattered_product(stage, "projection", a.row, LaunchCounts::kRowAttention, at);
  mlp_up(stage, at);
  if (!early) return scattered_product(stage, "mlp out", m.row, LaunchCounts::kRowMlp, at);
  if (last > 0) each_kernel(stage, writer_.tag("mlp out", Work::kGemm, at), last, LaunchCounts::kRowMlp, at);
}

void LayerSchedule::mlp_up(std::int32_t stage, const Place& at) {
  const HalfTimes& m = times_.mlp;
  each_kernel(stage, writer_.tag("norm", Work::kElementwise, at), m.norm, LaunchCounts::kNormMlp, at);
  gathered_product(stage, "mlp in", m.column, LaunchCounts::kColumn, at);
  each_kernel(stage, writer_.tag("activation", Work::kElementwise, at), m.middle, LaunchCounts::kActivation, at);
}

void LayerSchedule::mlp_again(std::int32_t stage, const Place& at) {
  const HalfTimes& m = times_.mlp;
  if (recipe_.tp <= 1) {
    return each_kernel(stage, writer_.tag("recompute", Work::kGemm, at), m.norm + m.column + m.middle + m.row, LaunchCounts::kMlp,
                       at);
  }
  mlp_up(stage, at);
  scattered_product(stage, "mlp out", m.row, LaunchCounts::kRowMlp, at);
}

void LayerSchedule::half_backward(std::int32_t stage, const HalfTimes& half, bool attention_half, const Place& at) {
  const auto gemm = [&](const char* name, Kernel time, std::int32_t collectives = 0) {
    each_kernel(stage, writer_.tag(name, Work::kGemm, at), time,
                LaunchCounts::kGradient + collectives * LaunchCounts::kSequenceCollectiveBack, at);
  };
  const bool split = recipe_.sequence_parallel;
  const bool async = context_.rules.tp_backward_async;
  if (overlap_tp_ != TpOverlap::kNone) {
    gathered_product(stage, "row input gradient", half.row_input_gradient, LaunchCounts::kGradient, at);
  } else {
    if (split) tensor_parallel(stage, CollectiveKind::kAllGather, "gather dy", tp_.gather, at);
    gemm("row input gradient", half.row_input_gradient, split ? 1 : 0);
  }
  const bool whole = !split_backward(recipe_);
  if (whole) gemm("row weight gradient", half.row_weight_gradient);
  if (attention_half) attention(stage, at, false);
  each_kernel(stage, writer_.tag(attention_half ? "rope" : "activation", Work::kElementwise, at), half.middle_back,
              LaunchCounts::kMiddleBack, at);
  if (!split) {
    gemm("column input gradient", half.column_input_gradient);
    const std::vector<ActivityId> reduce =
        posted_collectives(stage, CollectiveKind::kAllReduce, "all-reduce dx", tp_.activation, at);
    if (!async) gate_groups(stage, reduce);
    if (whole) gemm("column weight gradient", half.column_weight_gradient);
    gate_groups(stage, reduce);
  } else {
    std::vector<ActivityId> gather;
    if (context_.rules.tp_regathers_inputs)
      gather = posted_collectives(stage, CollectiveKind::kAllGather, "gather x", tp_.gather, at);
    if (!async) gate_groups(stage, gather);
    gemm("column input gradient", half.column_input_gradient, context_.rules.tp_regathers_inputs ? 2 : 1);
    const std::vector<ActivityId> scatter =
        posted_collectives(stage, CollectiveKind::kReduceScatter, "scatter dx", tp_.activation, at);
    gate_groups(stage, async ? gather : scatter);
    if (whole) gemm("column weight gradient", half.column_weight_gradient);
    gate_groups(stage, scatter);
  }
  each_kernel(stage, writer_.tag("norm", Work::kElementwise, at), half.norm_back, LaunchCounts::kNormBack, at);
}

void LayerSchedule::backward(std::int32_t stage, const Place& at, Repeated repeated) {
  const HalfTimes& a = times_.attention;
  const HalfTimes& m = times_.mlp;
  if (repeated.rest >= 1.0 && repeated.attention >= 1.0) {
    forward(stage, at, true);
  } else {
    if (repeated.rest > 0.0) {
      const Kernel rest = a.norm + a.column + a.middle + a.row + m.norm + m.column + m.middle + m.row;
      const double share = std::min(1.0, repeated.rest);
      const bool split = recipe_.sequence_parallel;
      const engine::TagId tag = writer_.tag("recompute", Work::kGemm, at);
      const auto launches = static_cast<std::int32_t>(std::lround(share * LaunchCounts::kRest));
      Kernel left = share_of(rest, share);
      if (recipe_.tp > 1 && share < 1.0 && split) {
        // Op-level checkpoints keep what was scattered and repeat K's product behind one gather, one of two behind the other.
        tensor_parallel(stage, CollectiveKind::kAllGather, "gather", tp_.gather, at);
        if (overlap_tp_ == TpOverlap::kUserBuffers) {
          const std::vector<ActivityId> gather =
              posted_collectives(stage, CollectiveKind::kAllGather, "copied gather", tp_.gather, at, true);
          const Kernel covers = std::min(left, share_of(m.column, 0.5 * (recipe_.tp - 1.0) / recipe_.tp));
          each_kernel(stage, tag, covers, 0, at);
          gate_groups(stage, gather);
          left -= covers;
        } else {
          tensor_parallel(stage, CollectiveKind::kAllGather, "gather", tp_.gather, at);
        }
      }
      each_kernel(stage, tag, left, launches, at);
      if (recipe_.tp > 1 && share >= 1.0) {
        for (int half = 0; half < 2; ++half) {
          if (split) tensor_parallel(stage, CollectiveKind::kAllGather, "gather", tp_.gather, at);
          tensor_parallel(stage, split ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                          split ? "scatter" : "all-reduce", tp_.activation, at);
        }
      }
    }
    if (repeated.attention > 0.0) attention(stage, at, true);
    if (repeated.mlp > 0.0) mlp_again(stage, at);
  }
  if (recipe_.tp <= 1) {
    const bool whole = !split_backward(recipe_);
    const auto weights = [whole](Kernel time) { return whole ? time : Kernel{0}; };
    const std::int32_t products = (whole ? 2 : 1) * LaunchCounts::kGradient;
    each_kernel(stage, writer_.tag("mlp, norm, projection gradients", Work::kGemm, at),
                m.row_input_gradient + weights(m.row_weight_gradient) + m.middle_back + m.column_input_gradient +
                    weights(m.column_weight_gradient) + m.norm_back + a.row_input_gradient + weights(a.row_weight_gradient),
                3 * products + LaunchCounts::kMiddleBack + LaunchCounts::kNormBack, at);
    attention(stage, at, false);
    each_kernel(stage, writer_.tag("rope, qkv, norm gradients", Work::kGemm, at),
                a.middle_back + a.column_input_gradient + weights(a.column_weight_gradient) + a.norm_back,
                products + LaunchCounts::kMiddleBack + LaunchCounts::kNormBack, at);
    return;
  }
  half_backward(stage, m, false, at);
  half_backward(stage, a, true, at);
}

void LayerSchedule::weight_gradients(std::int32_t stage, const Place& at) {
  const HalfTimes& a = times_.attention;
  const HalfTimes& m = times_.mlp;
  each_kernel(stage, writer_.tag(kWeightGradients, Work::kGemm, at),
              m.row_weight_gradient + m.column_weight_gradient + a.row_weight_gradient + a.column_weight_gradient,
              4 * LaunchCounts::kGradient, at);
}

void LayerSchedule::head_weight_gradient(std::int32_t stage, const Place& at) {
  each_kernel(stage, writer_.tag(kWeightGradients, Work::kGemm, at), times_.head_weight_gradient, 1, at);
}

void LayerSchedule::head_forward(std::int32_t stage, const Place& at) {
  if (recipe_.sequence_parallel) tensor_parallel(stage, CollectiveKind::kAllGather, "gather", tp_.activation, at);
  const bool read = recipe_.pp == 1 || context_.rules.host_reads_loss;
  last_kernel(stage, writer_.tag("head, loss", Work::kHead, at), times_.head_forward,
              operators::kForwardCalls * operators::kHeadForwardKernels, at, read);
  // Vocabulary-parallel loss: max, predicted logit, sum of exponentials, one fp32 number per token each.
  const Bytes numbers(4.0 * operators::rank_shape(context_, recipe_).tokens);
  for (int i = 0; i < 3; ++i) tensor_parallel(stage, CollectiveKind::kAllReduce, "loss all-reduce", numbers, at);
}

void LayerSchedule::head_backward(std::int32_t stage, const Place& at) {
  const Kernel later = split_backward(recipe_) ? times_.head_weight_gradient : Kernel{0};
  each_kernel(stage, writer_.tag("head gradients", Work::kHead, at), times_.head_backward - later,
              operators::kHeadBackwardKernels, at);
  tensor_parallel(stage, recipe_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce, "scatter",
                  tp_.activation, at);
}

void LayerSchedule::embedding(std::int32_t stage, const Place& at) {
  const bool forward = at.pass == engine::StepPass::kForward;
  last_kernel(stage, writer_.tag("embedding", Work::kEmbedding, at), times_.embedding / 2, forward ? operators::kForwardCalls : 1,
              at, !forward && recipe_.pp == 1);
  tensor_parallel(stage, recipe_.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce, "scatter",
                  tp_.activation, at);
}

}  // namespace cpfit::schedule
