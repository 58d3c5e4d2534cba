// Legality of states and numbers: state sharding, overlap of TP, precision on this GPU. Private to legality.cpp.
#pragma once

#include "model/recipe/data_ranks.h"
#include "model/recipe/legality_text.h"

namespace cpfit::legality {

inline bool shards_gradients(const Recipe& recipe) {
  return recipe.state_sharding == StateSharding::kZero2 || recipe.state_sharding == StateSharding::kZero3;
}

inline std::int64_t data_ranks(const LegalityCase& at) { return std::int64_t{at.recipe.dp} * at.recipe.cp; }

/// Fewer ranks than all share one copy of the states.
inline bool sharded_in_groups(const LegalityCase& at) {
  return at.recipe.state_shards > 0 && at.recipe.state_shards != data_ranks(at);
}

/// Groups of `shards` data ranks in rank order and the groups along the faster of cp and dp lie inside each other.
inline bool shards_nest(const LegalityCase& at, std::int64_t shards) {
  if (at.rules.shard_groups_hold_cp) return shards % at.recipe.cp == 0;
  const std::int64_t fast = cp_before_dp(at.recipe) ? at.recipe.cp : at.recipe.dp;
  return shards % fast == 0 || fast % shards == 0;
}

/// Elements that one scale or one tensor-core tile spans: matrix sizes must be multiples of it. 1 for 16-bit recipes.
inline std::int64_t size_step(Precision precision) {
  if (precision == Precision::kMxfp8) return 32;
  return is_fp8(precision) || precision == Precision::kNvfp4 ? 16 : 1;
}

/// The first size of the block's matrices on a rank that is not a multiple of `step`, or 0.
inline std::int64_t odd_size(const LegalityCase& at, std::int64_t step) {
  const std::int64_t tp = at.recipe.tp;
  const std::int64_t tokens = sequence(at) / at.recipe.cp * at.recipe.micro_batch;
  for (const std::int64_t size : {at.model.hidden, at.model.ffn_hidden / tp, at.model.heads * at.model.head_dim / tp,
                                  kv_heads_on_rank(at) * at.model.head_dim, tokens}) {
    if (size % step != 0) return size;
  }
  return 0;
}

inline constexpr LegalityRule kStateRules[] = {
    {"state_sharding_offered", "the framework offers this state sharding", "policy state_shardings of the rule set",
     "choose another state_sharding or framework",
     [](const LegalityCase& at) { return offers(at.rules.state_shardings, at.recipe.state_sharding); },
     [](const LegalityCase& at) { return fmt::format("{} has no {}", at.rules.name, name_of(at.recipe.state_sharding)); },
     [](const LegalityCase& at) { return fmt::format("it offers {}", listed(at.rules.state_shardings)); }},
    {"gradient_sharding_with_pp", "zero2 and zero3 need pp = 1, unless the framework runs them in a pipeline",
     "sharded gradients would be reduced once per micro-batch; DeepSpeed refuses ZeRO-2 and 3 in its pipeline, torchtitan and "
     "Meta "
     "run FSDP in theirs",
     "set pp = 1, or state_sharding=zero1",
     [](const LegalityCase& at) {
       return at.recipe.pp == 1 || at.rules.gradient_sharding_with_pp || !shards_gradients(at.recipe);
     },
     [](const LegalityCase& at) {
       return fmt::format("{} with pp {} under {}", name_of(at.recipe.state_sharding), at.recipe.pp, at.rules.name);
     },
     nothing},
    {"state_shards_divide", "dp * cp % state_shards = 0", "every data rank belongs to one group that holds the states once",
     "change state_shards, dp or cp, or leave state_shards out: all data ranks share one copy",
     [](const LegalityCase& at) {
       const std::int64_t ranks = data_ranks(at);
       return at.recipe.state_shards >= 0 && (at.recipe.state_shards == 0 || ranks % at.recipe.state_shards == 0);
     },
     [](const LegalityCase& at) {
       return fmt::format("dp {} * cp {} over groups of {}", at.recipe.dp, at.recipe.cp, at.recipe.state_shards);
     },
     [](const LegalityCase& at) {
       const std::int64_t ranks = data_ranks(at);
       return may_be("state_shards", at.recipe.state_shards, ranks, [&](std::int64_t v) { return ranks % v == 0; });
     }},
    {"state_shards_offered", "state_shards below dp * cp needs a state sharding that the framework has in groups",
     "policy partial_shardings of the rule set: hybrid sharding of FSDP, several instances of Megatron's distributed optimizer",
     "leave state_shards out, or choose another state_sharding or framework",
     [](const LegalityCase& at) {
       return !sharded_in_groups(at) || offers(at.rules.partial_shardings, at.recipe.state_sharding);
     },
     [](const LegalityCase& at) {
       return fmt::format("{} in groups of {} under {}", name_of(at.recipe.state_sharding), at.recipe.state_shards,
                          at.rules.name);
     },
     [](const LegalityCase& at) { return fmt::format("it has {} in groups", listed(at.rules.partial_shardings)); }},
    {"state_shards_nest", "a group of state_shards ranks holds whole context groups, or lies inside one",
     "FSDP2's mesh of dp_shard x cp holds whole context groups; Megatron also cuts them evenly (of others the model knows no "
     "group)",
     "choose a multiple of cp",
     [](const LegalityCase& at) {
       if (!sharded_in_groups(at) || data_ranks(at) % at.recipe.state_shards != 0) return true;  // the rules above
       return shards_nest(at, at.recipe.state_shards);
     },
     [](const LegalityCase& at) {
       return fmt::format("groups of {}, cp {}, dp {}", at.recipe.state_shards, at.recipe.cp, at.recipe.dp);
     },
     [](const LegalityCase& at) {
       const std::int64_t ranks = data_ranks(at);
       return may_be("state_shards", at.recipe.state_shards, ranks,
                     [&](std::int64_t v) { return ranks % v == 0 && shards_nest(at, v); });
     }},
    {"overlap_tp", "overlap_tp needs tp > 1, sequence_parallel and a framework that has it",
     "what is overlapped are the gathers and scatters of sequence parallelism (Megatron-Bridge comm_overlap.py)",
     "set overlap_tp=false",
     [](const LegalityCase& at) {
       return !at.recipe.overlap_tp ||
              (at.recipe.tp > 1 && at.recipe.sequence_parallel && at.rules.tp_overlap != TpOverlap::kNone);
     },
     [](const LegalityCase& at) {
       return fmt::format("tp {}, sequence_parallel {}, {} {} it", at.recipe.tp, at.recipe.sequence_parallel, at.rules.name,
                          at.rules.tp_overlap != TpOverlap::kNone ? "has" : "does not have");
     },
     nothing},
    {"precision_on_gpu", "the GPU computes in this precision",
     "bf16 needs Ampere or later, FP8 Ada, Hopper or later, MXFP8 and NVFP4 the block scales of Blackwell (data sheets)",
     "choose a precision that the GPU has",
     [](const LegalityCase& at) {
       if (at.gpu == nullptr) return true;
       if (is_fp8(at.recipe.precision)) return at.gpu->fp8.value() > 0;
       if (at.recipe.precision == Precision::kMxfp8 || at.recipe.precision == Precision::kNvfp4) return at.gpu->fp4.value() > 0;
       return at.recipe.precision != Precision::kBf16 || at.gpu->bf16.value() > 0;
     },
     [](const LegalityCase& at) { return fmt::format("{} has no {}", at.gpu->name, name_of(at.recipe.precision)); },
     [](const LegalityCase& at) {
       if (at.gpu->bf16.value() <= 0) return std::string("it has fp16");
       return at.gpu->fp8.value() > 0 ? std::string("it has bf16, fp16 and fp8") : std::string("it has bf16 and fp16");
     }},
    {"precision_sizes", "matrix sizes on a rank are multiples of 16 in FP8 and NVFP4, of 32 in MXFP8",
     "low-precision GEMMs and their block scales span that many elements (TransformerEngine)", "lower tp or cp, or use bf16",
     [](const LegalityCase& at) {
       const std::int64_t step = size_step(at.recipe.precision);
       return step == 1 || odd_size(at, step) == 0;
     },
     [](const LegalityCase& at) {
       const std::int64_t step = size_step(at.recipe.precision);
       return fmt::format("a size of {} with {}, which needs multiples of {}", odd_size(at, step), name_of(at.recipe.precision),
                          step);
     },
     nothing},
};

}  // namespace cpfit::legality
