#include "sim/screen/real_tokens.h"

#include <algorithm>

#include "model/attention/document_mix.h"
#include "model/transformer/flops.h"

namespace cpfit {

double occupancy(const Training& training) {
  if (training.mask.kind != MaskKind::kDocuments) return 1.0;
  const double stored = static_cast<double>(training.sequence.count());
  return std::min(1.0, attention::mix_of(training.mask.documents).real_tokens / stored);
}

double real_tokens_per_step(const Training& training) {
  return static_cast<double>(training.global_batch) * static_cast<double>(training.sequence.count()) * occupancy(training);
}

double attended_context(const Architecture& model, const Training& training) {
  switch (training.mask.kind) {
    case MaskKind::kFull:
      return mean_context(model, training.sequence, AttentionCount::kFull);
    case MaskKind::kDocuments:
      return attention::mix_of(training.mask.documents).mean_context;
    case MaskKind::kSlidingWindow: {
      Architecture windowed = model;  // the mask narrows every layer
      windowed.sliding_window = training.mask.window;
      windowed.window_period = 0;
      return mean_context(windowed, training.sequence, AttentionCount::kCausalHalf);
    }
    case MaskKind::kCausal:
      break;
  }
  return mean_context(model, training.sequence, AttentionCount::kCausalHalf);
}

}  // namespace cpfit
