// The printed name of every enumerated choice of a recipe and of a training run, as data: one table serves printing, reading,
// suggestions and help texts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"

namespace cpfit {

template <class E>
struct NamedValue {
  E value;
  std::string_view name;
};

/// The table of an enumeration, in the order of its values. Specialised for the enumerations of recipe.h and training.h.
template <class E>
[[nodiscard]] std::span<const NamedValue<E>> named_values();

template <>
std::span<const NamedValue<CpComm>> named_values();
template <>
std::span<const NamedValue<ShardLayout>> named_values();
template <>
std::span<const NamedValue<RecomputeKind>> named_values();
template <>
std::span<const NamedValue<StateSharding>> named_values();
template <>
std::span<const NamedValue<Precision>> named_values();
template <>
std::span<const NamedValue<Schedule>> named_values();
template <>
std::span<const NamedValue<LayoutKind>> named_values();
template <>
std::span<const NamedValue<Axis>> named_values();
template <>
std::span<const NamedValue<MaskKind>> named_values();
template <>
std::span<const NamedValue<GradDtype>> named_values();
template <>
std::span<const NamedValue<OptimizerKind>> named_values();

/// All names of an enumeration, for suggestions.
template <class E>
[[nodiscard]] std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const NamedValue<E>& entry : named_values<E>()) names.emplace_back(entry.name);
  return names;
}

/// The value with exactly that name, if there is one.
template <class E>
[[nodiscard]] std::optional<E> value_named(std::string_view name) {
  for (const NamedValue<E>& entry : named_values<E>()) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

[[nodiscard]] std::string_view name_of(LayoutKind value);
[[nodiscard]] std::string_view name_of(MaskKind value);
[[nodiscard]] std::string_view name_of(GradDtype value);
[[nodiscard]] std::string_view name_of(OptimizerKind value);

/// "'x' is not one of a, b, c" with the nearest as the repair; `where` is the key or the place of the word.
[[nodiscard]] Problem unknown_word(std::string_view code, std::string_view where, std::string_view word,
                                   const std::vector<std::string>& known);

}  // namespace cpfit
