// Legality of the grid: degrees, batch, pipeline, layout, placement. Private to legality.cpp.
#pragma once

#include "model/recipe/legality_text.h"
#include "model/recipe/rank_grid.h"
#include "model/recipe/stage_layout.h"

namespace cpfit::legality {

/// Numbers that every other rule divides by. When it fails, nothing else is asked.
inline constexpr LegalityRule kPositive = {
    "positive",
    "tp, cp, pp, dp, vpp, micro_batch, a2a_degree, window, batch and sequence >= 1",
    "a degree counts ranks (definition)",
    "write whole numbers of at least 1",
    [](const LegalityCase& at) {
      const Recipe& r = at.recipe;
      return r.tp >= 1 && r.cp >= 1 && r.pp >= 1 && r.dp >= 1 && r.vpp >= 1 && r.micro_batch >= 1 && r.a2a_degree >= 1 &&
             r.window >= 1 && at.training.global_batch >= 1 && at.training.sequence.count() >= 1;
    },
    [](const LegalityCase& at) {
      const Recipe& r = at.recipe;
      return fmt::format("tp {}, cp {}, pp {}, dp {}, vpp {}, micro_batch {}, a2a_degree {}, window {}, batch {}, sequence {}",
                         r.tp, r.cp, r.pp, r.dp, r.vpp, r.micro_batch, r.a2a_degree, r.window, at.training.global_batch,
                         sequence(at));
    },
    nothing};

inline constexpr LegalityRule kGridRules[] = {
    {"world_size", "tp * cp * pp * dp = GPUs", "every GPU holds one coordinate of the grid (Megatron parallel_state)",
     "change a degree or the number of nodes",
     [](const LegalityCase& at) {
       std::int64_t rest = at.gpus;  // divided down, so that absurd degrees cannot overflow a product
       for (const std::int64_t size : {at.recipe.tp, at.recipe.cp, at.recipe.pp, at.recipe.dp}) {
         if (rest % size != 0) return false;
         rest /= size;
       }
       return rest == 1;
     },
     [](const LegalityCase& at) {
       const Recipe& r = at.recipe;
       return fmt::format("{} * {} * {} * {} is not {} GPUs", r.tp, r.cp, r.pp, r.dp, at.gpus);
     },
     [](const LegalityCase& at) -> std::string {
       const double model_ranks = double(at.recipe.tp) * at.recipe.cp * at.recipe.pp;
       if (model_ranks > double(at.gpus))
         return fmt::format("tp * cp * pp = {:.0f} already exceeds {} GPUs", model_ranks, at.gpus);
       const std::int64_t ranks = static_cast<std::int64_t>(model_ranks);
       if (at.gpus % ranks == 0) return fmt::format("with these tp, cp and pp, dp must be {}", at.gpus / ranks);
       return fmt::format("tp * cp * pp = {} must divide {}: {}", ranks, at.gpus,
                          nearest_legal(ranks, at.gpus, [&](std::int64_t v) { return at.gpus % v == 0; }));
     }},
    {"axis_offered", "the framework cuts along every axis whose degree is above 1", "policy axes of the rule set",
     "set that degree to 1, or choose another framework",
     [](const LegalityCase& at) {
       const auto may = [&](std::int32_t degree, Axis axis) { return degree == 1 || offers(at.rules.axes, axis); };
       return may(at.recipe.tp, Axis::kTp) && may(at.recipe.cp, Axis::kCp) && may(at.recipe.pp, Axis::kPp);
     },
     [](const LegalityCase& at) {
       return fmt::format("tp {}, cp {}, pp {} with {}", at.recipe.tp, at.recipe.cp, at.recipe.pp, at.rules.name);
     },
     [](const LegalityCase& at) { return fmt::format("it cuts along {}", listed(at.rules.axes)); }},
    {"batch_large_enough", "global_batch >= dp * micro_batch", "every dp rank needs at least one micro-batch per step",
     "lower dp or micro_batch, or raise global_batch",
     [](const LegalityCase& at) { return at.training.global_batch >= samples_per_slot(at); },
     [](const LegalityCase& at) {
       return fmt::format("{} sequences < dp {} * micro_batch {}", at.training.global_batch, at.recipe.dp, at.recipe.micro_batch);
     },
     [](const LegalityCase& at) {
       return may_be("dp", at.recipe.dp, at.training.global_batch,
                     [&](std::int64_t v) { return at.training.global_batch % (v * at.recipe.micro_batch) == 0; });
     }},
    {"batch_divides", "global_batch % (dp * micro_batch) = 0",
     "all dp ranks run the same number of micro-batches (Megatron num_microbatches_calculator)",
     "change dp, micro_batch or global_batch",
     [](const LegalityCase& at) {
       return at.training.global_batch < samples_per_slot(at) || at.training.global_batch % samples_per_slot(at) == 0;
     },
     [](const LegalityCase& at) {
       return fmt::format("{} % ({} * {}) = {}", at.training.global_batch, at.recipe.dp, at.recipe.micro_batch,
                          at.training.global_batch % samples_per_slot(at));
     },
     [](const LegalityCase& at) { return multiples_around("global_batch", at.training.global_batch, samples_per_slot(at)); }},
    {"tp_in_domain", "tp (with what varies faster) divides the GPUs of a scale-up domain or host",
     "two all-gathers and two reduce-scatters per layer and direction on the critical path: over a network they cost more than "
     "any other split (limit of the search; cp_model.md D.2, D.4)",
     "lower tp, or put tp first in rank_order",
     [](const LegalityCase& at) {
       if (!at.search_limits || at.recipe.tp == 1 || at.gpus <= at.gpus_per_node) return true;
       const GroupShape shape = group_shape(at.recipe, Axis::kTp);
       return at.gpus_per_node % (shape.stride * shape.size) == 0;
     },
     [](const LegalityCase& at) {
       const GroupShape shape = group_shape(at.recipe, Axis::kTp);
       return fmt::format("a tp group spans {} consecutive ranks, a domain has {} GPUs", shape.stride * shape.size,
                          at.gpus_per_node);
     },
     [](const LegalityCase& at) {
       const std::int64_t stride = group_shape(at.recipe, Axis::kTp).stride;
       return may_be("tp", at.recipe.tp, at.gpus_per_node, [&](std::int64_t v) { return at.gpus_per_node % (stride * v) == 0; });
     }},
    {"pp_within_layers", "pp <= layers", "a stage without a layer only waits (limit of the search)", "lower pp",
     [](const LegalityCase& at) { return at.recipe.pp <= at.model.layers && at.recipe.pp <= kMaxStages; },
     [](const LegalityCase& at) {
       return fmt::format("pp {}, {} layers (and at most {} stages)", at.recipe.pp, at.model.layers, kMaxStages);
     },
     [](const LegalityCase& at) {
       return fmt::format("pp may be up to {}", std::min<std::int64_t>(at.model.layers, kMaxStages));
     }},
    {"vpp_needs_pp", "vpp > 1 needs pp > 1", "interleaving cuts the stages of a pipeline (Megatron arguments)", "set vpp = 1",
     [](const LegalityCase& at) { return at.recipe.vpp == 1 || at.recipe.pp > 1; },
     [](const LegalityCase& at) { return fmt::format("vpp {}, pp {}", at.recipe.vpp, at.recipe.pp); }, nothing},
    {"schedule_matches_vpp", "schedule is interleaved exactly when vpp > 1",
     "1F1B and GPipe run one chunk per stage, interleaving several (Megatron schedules)",
     "leave schedule out: it follows from vpp",
     [](const LegalityCase& at) { return (at.recipe.schedule == Schedule::kInterleaved) == (at.recipe.vpp > 1); },
     [](const LegalityCase& at) { return fmt::format("schedule {}, vpp {}", name_of(at.recipe.schedule), at.recipe.vpp); },
     nothing},
    {"schedule_offered", "the framework offers the schedule",
     "policy schedules of the rule set; torchtitan's zero-bubble schedules (InterleavedZeroBubble, ZBVZeroBubble) need two "
     "chunks a "
     "rank and are others than ZB-H1, Megatron core has none",
     "choose another schedule or framework",
     [](const LegalityCase& at) { return at.recipe.pp == 1 || offers(at.rules.schedules, at.recipe.schedule); },
     [](const LegalityCase& at) { return fmt::format("{} has no {}", at.rules.name, name_of(at.recipe.schedule)); },
     [](const LegalityCase& at) { return fmt::format("it offers {}", listed(at.rules.schedules)); }},
    {"zero_bubble", "zb_h1 needs micro-batches >= pp and overlap_grad_reduce, overlap_param_gather and overlap_tp off",
     "its order is defined for a filled pipeline; weight gradients come late, and code that reduces or hides behind them as they "
     "come "
     "does not run with it (Primus: required arguments of its zero-bubble schedules)",
     "set the three flags to false, and raise global_batch or lower pp, dp or micro_batch",
     [](const LegalityCase& at) {
       if (at.recipe.pp == 1 || at.recipe.schedule != Schedule::kZeroBubble) return true;
       return micro_batches(at) >= at.recipe.pp && !at.recipe.overlap_grad_reduce && !at.recipe.overlap_param_gather &&
              !at.recipe.overlap_tp;
     },
     [](const LegalityCase& at) {
       return fmt::format("{} micro-batches, pp {}, overlap_grad_reduce {}, overlap_param_gather {}, overlap_tp {}",
                          micro_batches(at), at.recipe.pp, at.recipe.overlap_grad_reduce, at.recipe.overlap_param_gather,
                          at.recipe.overlap_tp);
     },
     nothing},
    {"interleaving_micro_batches", "vpp > 1 needs micro-batches % pp = 0",
     "the interleaved schedule runs groups of pp micro-batches (Megatron schedules.py)",
     "change global_batch, dp, micro_batch or pp",
     [](const LegalityCase& at) {
       return at.recipe.vpp == 1 || !at.rules.interleaving_needs_micro_batches_multiple_of_pp ||
              micro_batches(at) % at.recipe.pp == 0;
     },
     [](const LegalityCase& at) {
       return fmt::format("{} micro-batches % pp {} = {}", micro_batches(at), at.recipe.pp, micro_batches(at) % at.recipe.pp);
     },
     [](const LegalityCase& at) {
       return multiples_around("global_batch", at.training.global_batch, samples_per_slot(at) * at.recipe.pp);
     }},
    {"interleaving_messages", "vpp > 1 without overlap_p2p needs pp > 2",
     "with two stages, batched sends and receives of the same pair would mix (Megatron arguments)", "set overlap_p2p = true",
     [](const LegalityCase& at) { return at.recipe.vpp == 1 || at.recipe.overlap_p2p || at.recipe.pp != 2; },
     [](const LegalityCase& at) { return fmt::format("pp {}, vpp {}, overlap_p2p false", at.recipe.pp, at.recipe.vpp); },
     nothing},
    {"pipeline_filled", "micro-batches >= pp - what the framework tolerates",
     "PyTorch's schedules need pp micro-batches, nanotron's engine pp - 1", "lower pp, dp or micro_batch, or raise global_batch",
     [](const LegalityCase& at) {
       return at.recipe.pp == 1 || micro_batches(at) >= at.recipe.pp - at.rules.micro_batches_short_of_pp;
     },
     [](const LegalityCase& at) {
       return fmt::format("{} micro-batches, {} needs {}", micro_batches(at), at.rules.name,
                          at.recipe.pp - at.rules.micro_batches_short_of_pp);
     },
     [](const LegalityCase& at) {
       return fmt::format("global_batch must be at least {}",
                          samples_per_slot(at) * (at.recipe.pp - at.rules.micro_batches_short_of_pp));
     }},
    {"layout_offered", "the framework offers the kind of stage layout", "policy layout_kinds of the rule set",
     "choose another stage_layout or framework",
     [](const LegalityCase& at) { return at.recipe.pp == 1 || offers(at.rules.layout_kinds, at.recipe.stage_layout.kind); },
     [](const LegalityCase& at) {
       return fmt::format("{} has no {} layout", at.rules.name, name_of(at.recipe.stage_layout.kind));
     },
     [](const LegalityCase& at) { return fmt::format("it offers {}", listed(at.rules.layout_kinds)); }},
    {"stage_layout", "the layout gives every layer one place", "each kind divides in its own way (stage_layout.h)",
     "change pp, vpp or stage_layout", [](const LegalityCase& at) { return layout_resolves(at.model, at.recipe); },
     [](const LegalityCase& at) {
       const Problems problems = layout_problems(at.model, at.recipe);
       return problems.empty() ? std::string() : problems.front().message;
     },
     [](const LegalityCase& at) {
       const Problems problems = layout_problems(at.model, at.recipe);
       return problems.empty() ? std::string() : problems.front().repair;
     }},
    {"empty_stage", "every stage but the first and the last holds a layer", "only a split by cost leaves one without (nanotron)",
     "give each entry of the explicit layout a layer",
     [](const LegalityCase& at) {
       const StageLayout& layout = at.recipe.stage_layout;
       if (layout.kind != LayoutKind::kExplicit || offers(at.rules.layout_kinds, LayoutKind::kCostBalanced)) return true;
       for (std::size_t i = 1; i + 1 < layout.layers.size(); ++i) {
         if (layout.layers[i] == 0) return false;
       }
       return true;
     },
     [](const LegalityCase& at) {
       return fmt::format("{}: only the first and the last entry may be empty", to_text(at.recipe.stage_layout));
     },
     nothing},
    {"recompute_block", "block-n has 1 <= n <= layers of the fullest stage",
     "a stage cannot recompute more layers than it holds (Megatron --recompute-num-layers)", "lower n, or write recompute=full",
     [](const LegalityCase& at) {
       if (at.recipe.recompute.kind != RecomputeKind::kBlock) return true;
       const std::int64_t held = layers_of_fullest_stage(at.model, at.recipe);
       return held == 0 || (at.recipe.recompute.block_layers >= 1 && at.recipe.recompute.block_layers <= held);
     },
     [](const LegalityCase& at) {
       return fmt::format("block-{}, the fullest stage holds {} layers", at.recipe.recompute.block_layers,
                          layers_of_fullest_stage(at.model, at.recipe));
     },
     [](const LegalityCase& at) { return fmt::format("n may be 1 to {}", layers_of_fullest_stage(at.model, at.recipe)); }},
    {"recompute_mlp", "the framework can recompute the MLP half of a layer by itself",
     "the rule set's recompute_mlp (Megatron core since 2025: --recompute-modules mlp)",
     "write recompute=full, or block-n for the first n layers of each stage",
     [](const LegalityCase& at) { return at.recipe.recompute.kind != RecomputeKind::kMlp || at.rules.recompute_mlp; },
     [](const LegalityCase& at) { return at.rules.name + " recomputes whole layers or its own selection"; }, nothing},
    {"rank_order", "rank_order names each axis once", "a rank has one coordinate per axis (definition)",
     "write tp, cp, dp and pp in some order, like tp-cp-dp-pp",
     [](const LegalityCase& at) {
       unsigned seen = 0;
       for (const Axis axis : at.recipe.rank_order.axes) seen |= 1u << static_cast<unsigned>(axis);
       return seen == 0b1111u;
     },
     [](const LegalityCase& at) { return to_text(at.recipe.rank_order); }, nothing},
};

}  // namespace cpfit::legality
