#include "sim/screen/real_tokens.h"

#include <algorithm>

#include "model/attention/document_mix.h"

namespace cpfit {

double occupancy(const Training& training) {
  if (training.mask.kind != MaskKind::kDocuments) return 1.0;
  const double stored = static_cast<double>(training.sequence.count());
  return std::min(1.0, attention::mix_of(training.mask.documents).real_tokens / stored);
}

double real_tokens_per_step(const Training& training) {
  return static_cast<double>(training.global_batch) * static_cast<double>(training.sequence.count()) * occupancy(training);
}

double mean_context(const Architecture& model, const Training& training) {
  const double s = static_cast<double>(training.sequence.count());
  const auto through_window = [s](double window) {
    return window >= s ? s / 2.0 : window - window * (window - 1.0) / (2.0 * s);  // cp_model.md C, sliding window
  };
  switch (training.mask.kind) {
    case MaskKind::kFull:
      return s;
    case MaskKind::kSlidingWindow:
      return through_window(static_cast<double>(training.mask.window));
    case MaskKind::kDocuments:
      return attention::mix_of(training.mask.documents).mean_context;
    case MaskKind::kCausal:
      break;
  }
  if (model.sliding_window <= 0) return s / 2.0;
  const double windowed = model.window_period > 0 ? 1.0 - 1.0 / static_cast<double>(model.window_period) : 1.0;
  return windowed * through_window(static_cast<double>(model.sliding_window)) + (1.0 - windowed) * s / 2.0;
}

}  // namespace cpfit
