// Ranks as traces of `cpfit simulate --trace` name their processes. Private to calibrate/read.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cpfit::trace {

/// 2 of "node 0, rank 2, stage 1" and of "rank 2"; nothing of another name.
inline std::optional<std::int64_t> named_rank(std::string_view process_name) {
  constexpr std::string_view kWord = "rank ";
  const std::size_t at = process_name.find(kWord);
  if (at == std::string_view::npos || (at > 0 && process_name[at - 1] != ' ')) return std::nullopt;
  const std::string_view digits = process_name.substr(at + kWord.size());
  std::int64_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool whole = error == std::errc{} && rank >= 0 && (end == digits.data() + digits.size() || *end == ',');
  return whole ? std::optional(rank) : std::nullopt;
}

}  // namespace cpfit::trace
