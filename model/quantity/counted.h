// Counts before a noun, as sentences print them: "1 row", "12 rows", "0 rows".
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace cpfit {

/// The noun alone, as it stands behind that count: "row", "rows"; "entry" is "entries". `plural` where a rule does not make it.
[[nodiscard]] std::string noun_for(std::int64_t count, std::string_view noun, std::string_view plural = {});

/// Count and noun: "1 row", "12 rows".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view noun, std::string_view plural = {});

template <std::unsigned_integral Count>
[[nodiscard]] std::string counted(Count count, std::string_view noun, std::string_view plural = {}) {
  return counted(static_cast<std::int64_t>(count), noun, plural);
}

}  // namespace cpfit
