// Arithmetic and wording that the legality rules share. Private to legality.cpp.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model/recipe/legality.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::legality {

inline std::int64_t samples_per_slot(const LegalityCase& at) { return std::int64_t{at.recipe.dp} * at.recipe.micro_batch; }
/// m: micro-batches per step and dp rank.
inline std::int64_t micro_batches(const LegalityCase& at) { return at.training.global_batch / samples_per_slot(at); }
inline std::int64_t sequence(const LegalityCase& at) { return at.training.sequence.count(); }
/// Chunks a sequence is cut into: 2 per rank for zigzag, else 1.
inline std::int64_t chunks_per_rank(const LegalityCase& at) { return at.recipe.shard_layout == ShardLayout::kZigzag ? 2 : 1; }
/// KV heads a TP rank holds: at least one, replicated when tp exceeds them.
inline std::int64_t kv_heads_on_rank(const LegalityCase& at) {
  return std::max<std::int64_t>(1, at.model.kv_heads / at.recipe.tp);
}
inline bool is_fp8(Precision precision) {
  return precision == Precision::kFp8Delayed || precision == Precision::kFp8Current || precision == Precision::kFp8Block;
}

template <class T>
bool offers(const std::vector<T>& offered, const T& wanted) {
  return std::find(offered.begin(), offered.end(), wanted) != offered.end();
}

template <class E>
std::string listed(const std::vector<E>& values) {
  std::vector<std::string> names;
  for (const E value : values) names.emplace_back(name_of(value));
  return names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", "));
}

/// "4 or 8": the largest value below `wanted` and the smallest above it (up to `limit`) for which `legal` holds.
template <class Legal>
std::string nearest_legal(std::int64_t wanted, std::int64_t limit, Legal legal) {
  std::vector<std::int64_t> found;
  for (std::int64_t v = std::min(wanted - 1, limit); v >= 1; --v) {
    if (legal(v)) {
      found.push_back(v);
      break;
    }
  }
  for (std::int64_t v = wanted + 1; v <= limit; ++v) {
    if (legal(v)) {
      found.push_back(v);
      break;
    }
  }
  return fmt::format("{}", fmt::join(found, " or "));
}

/// "name may be 4 or 8", or nothing when no value is near.
template <class Legal>
std::string may_be(std::string_view name, std::int64_t wanted, std::int64_t limit, Legal legal) {
  const std::string values = nearest_legal(wanted, limit, legal);
  return values.empty() ? std::string() : fmt::format("{} may be {}", name, values);
}

/// "name may be 131040 or 131072": the multiples of `step` on both sides.
inline std::string multiples_around(std::string_view name, std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  return below == 0 ? fmt::format("{} may be {}", name, step) : fmt::format("{} may be {} or {}", name, below, below + step);
}

inline std::string nothing(const LegalityCase&) { return {}; }

}  // namespace cpfit::legality
