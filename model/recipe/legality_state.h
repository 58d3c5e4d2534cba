// Legality of states and numbers: state sharding, overlap of TP, precision on this GPU. Private to legality.cpp.
#pragma once

#include "model/recipe/legality_text.h"

namespace cpfit::legality {

inline bool shards_gradients(const Recipe& recipe) {
  return recipe.state_sharding == StateSharding::kZero2 || recipe.state_sharding == StateSharding::kZero3;
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
     "FP8 needs Ada, Hopper or later, MXFP8 and NVFP4 the block scales of Blackwell (data sheets)",
     "choose a precision that the GPU has",
     [](const LegalityCase& at) {
       if (at.gpu == nullptr) return true;
       if (is_fp8(at.recipe.precision)) return at.gpu->fp8.value() > 0;
       if (at.recipe.precision == Precision::kMxfp8 || at.recipe.precision == Precision::kNvfp4) return at.gpu->fp4.value() > 0;
       return true;
     },
     [](const LegalityCase& at) { return fmt::format("{} has no {}", at.gpu->name, name_of(at.recipe.precision)); },
     [](const LegalityCase& at) {
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
