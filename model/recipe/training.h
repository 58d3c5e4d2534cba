// What is trained, apart from the recipe: the token batch, the mask, the optimizer. Comparisons are made only between
// recipes with an identical Training and Architecture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/quantity/units.h"
#include "model/recipe/recipe.h"

namespace cpfit {

enum class MaskKind : std::uint8_t { kCausal, kFull, kSlidingWindow, kDocuments };
enum class GradDtype : std::uint8_t { kFp32, kBf16 };
enum class OptimizerKind : std::uint8_t { kAdam, kAdamPrecisionAware /* bf16 master remainder */, kSgdMomentum };

/// One class of a document-length histogram: `count` documents of `length` real tokens.
struct DocumentClass {
  std::int64_t length = 0;
  double count = 0;
};

struct Mask {
  MaskKind kind = MaskKind::kCausal;
  std::int64_t window = 0;               // kSlidingWindow: keys a query sees, itself included
  std::vector<DocumentClass> documents;  // kDocuments: how one packed sequence is filled
};

struct Training {
  Tokens sequence;                // s: padded tokens of one (packed) sequence
  std::int64_t global_batch = 1;  // sequences per optimizer step over all dp ranks
  Mask mask;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  GradDtype grad_dtype = GradDtype::kFp32;  // accumulation and reduction dtype of gradients
  bool cuda_graphs = false;                 // layers are captured: their launches cost what a graph's do
  std::int64_t vocab_divisor = 128;         // Megatron --make-vocab-size-divisible-by; the vocabulary is padded to this times tp
};

}  // namespace cpfit
