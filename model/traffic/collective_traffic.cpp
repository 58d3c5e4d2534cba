#include "model/traffic/collective_traffic.h"

namespace cpfit {

namespace {

bool is_fp8_class(Precision precision) { return precision != Precision::kBf16 && precision != Precision::kFp16; }

double tokens_per_rank(const Training& training, const Recipe& recipe) {
  return static_cast<double>(recipe.micro_batch) * static_cast<double>(training.sequence.count()) / recipe.cp;
}

}  // namespace

TpTraffic tp_traffic(const Architecture& model, const Training& training, const Recipe& recipe) {
  TpTraffic traffic;
  if (recipe.tp <= 1) return traffic;
  traffic.activation = Bytes(tokens_per_rank(training, recipe) * static_cast<double>(model.hidden) * 2.0);
  traffic.gather = is_fp8_class(recipe.precision) ? traffic.activation / 2.0 : traffic.activation;
  if (recipe.sequence_parallel) {
    traffic.forward_gathers = 2;
    traffic.forward_scatters = 2;
    traffic.backward_gathers = 4;
    traffic.backward_scatters = 2;
  } else {
    traffic.forward_all_reduces = 2;
    traffic.backward_all_reduces = 2;
  }
  return traffic;
}

Bytes pp_message(const Architecture& model, const Training& training, const Recipe& recipe, const RuleSet& rules) {
  const double split = recipe.sequence_parallel || rules.pp_messages_split ? recipe.tp : 1.0;
  return Bytes(tokens_per_rank(training, recipe) * static_cast<double>(model.hidden) * 2.0 / split);
}

Bytes pp_gather(const Architecture& model, const Training& training, const Recipe& recipe, const RuleSet& rules) {
  const bool gathers = recipe.pp > 1 && recipe.tp > 1 && !recipe.sequence_parallel && rules.pp_messages_split;
  return gathers ? pp_message(model, training, recipe, rules) * static_cast<double>(recipe.tp) : Bytes();
}

DpTraffic dp_traffic(double parameters, const Training& training, const Recipe& recipe, const RuleSet& rules) {
  DpTraffic traffic;
  const bool sharded = recipe.state_sharding != StateSharding::kNone;
  traffic.ranks = sharded ? shard_ranks(recipe) : std::int64_t{recipe.dp} * recipe.cp;
  traffic.replicas = sharded ? shard_replicas(recipe) : 1;
  if (traffic.data_ranks() <= 1) return traffic;
  const double gradient_bytes = training.grad_dtype == GradDtype::kFp32 ? 4.0 : 2.0;
  // Parameters travel in bf16, or in one byte when FP8 primary weights of per-tensor recipes are gathered.
  const bool one_byte = recipe.precision == Precision::kFp8Delayed || recipe.precision == Precision::kFp8Current;
  const double gather_bytes = one_byte && rules.fp8_param_gather ? 1.0 : 2.0;
  traffic.reduce_scatter = Bytes(parameters * gradient_bytes);
  if (!sharded) {
    traffic.all_reduce = true;
    return traffic;
  }
  traffic.all_gather = Bytes(parameters * gather_bytes);
  if (traffic.replicas > 1) traffic.replica_reduce = traffic.reduce_scatter / static_cast<double>(traffic.ranks);
  if (recipe.state_sharding == StateSharding::kZero3) traffic.gathers_per_micro_batch = 2;
  return traffic;
}

}  // namespace cpfit
