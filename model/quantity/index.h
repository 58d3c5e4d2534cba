// Places in containers. Counts and identifiers are signed here, so that a difference of two is what it looks like; containers
// want unsigned ones.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace cpfit {

/// Of a count, or of an enumeration that numbers things (SlotId). Not negative.
template <class Value>
  requires std::integral<Value> || std::is_enum_v<Value>
[[nodiscard]] constexpr std::size_t at(Value index) {
  return static_cast<std::size_t>(index);
}

}  // namespace cpfit
