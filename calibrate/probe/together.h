// What the ranks of a measurement tell each other beside what is measured: figures to rank 0, decisions from it, over the ranks'
// transport of host memory. Every rank makes the same calls in the same order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/transport.h"

namespace cpfit::probe {

class Together {
 public:
  explicit Together(kernels::Transport& host) : host_(host) {}

  [[nodiscard]] std::int32_t rank() const { return host_.rank(); }
  [[nodiscard]] std::int32_t size() const { return host_.size(); }
  void barrier() { host_.barrier(); }

  /// On rank 0: everybody's, rank by rank, all of one length; on the others nothing.
  [[nodiscard]] std::vector<double> gather(std::span<const double> own);
  /// Rank 0's values on every rank.
  void share(std::span<double> values);
  /// The same on every rank.
  [[nodiscard]] double largest(double own);
  [[nodiscard]] bool any(bool own) { return largest(own ? 1 : 0) > 0; }
  /// By rank, on every rank; at most 255 bytes of each are kept.
  [[nodiscard]] std::vector<std::string> texts(const std::string& own);
  /// Rank 0's, of any length.
  [[nodiscard]] std::string text(const std::string& of_rank_0);

 private:
  kernels::Transport& host_;
};

}  // namespace cpfit::probe
