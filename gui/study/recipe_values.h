// The parameters a person turns, as one table: key, label, group, kind, and what each means. Values travel as text, in the form
// that scenario files and --recipe use, so that every reading and every message is the model's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/study/design.h"
#include "model/quantity/problem.h"

namespace cpfit::gui {

enum class ParameterKind : std::uint8_t { kDegree, kCount, kTokens, kChoice, kFlag };

struct Parameter {
  std::string_view key;  // of a recipe's text, or sequence_length, global_batch, nodes, model, cluster
  std::string_view label;
  std::string_view group;
  ParameterKind kind;
  std::string_view unit;  // "GPUs", "tokens"; empty for words
  std::string_view help;  // one sentence
  bool strip;             // has a sensitivity strip
};
[[nodiscard]] std::span<const Parameter> parameters();
[[nodiscard]] const Parameter* find_parameter(std::string_view key);

/// One field of a recipe, as its text prints it. The key must be one of recipe_keys().
[[nodiscard]] std::string recipe_value(const Recipe& recipe, std::string_view key);
/// The value of any parameter of a design.
[[nodiscard]] std::string value_of(const Design& design, std::string_view key);

/// The axis that fills the cluster: it follows from the other three.
[[nodiscard]] bool is_degree(std::string_view key);  // tp, cp, pp, dp
/// "8 = 2 × 4 × 1 × 1" in the order tp, cp, pp, dp; names the GPUs.
[[nodiscard]] std::string world_equation(const Design& design);

/// The design with one parameter set. A degree, or the number of nodes, makes `derived` follow where it divides. Problems: an
/// unreadable value, with the place `key`; illegal but readable values are values (legality speaks of them).
[[nodiscard]] Outcome<Design> with_value(const Design& design, std::string_view key, const std::string& value,
                                         std::string_view derived = "dp");

/// The design with ranks ordered like that and the GPUs of its hosts taken in these orders (model/cluster/device_order.h).
[[nodiscard]] Outcome<Design> with_placement(const Design& design, const RankOrder& rank_order,
                                             const DeviceOrders& device_orders);

/// Values worth trying along a parameter, ascending, the current one included, at most 20: divisors of the GPUs, powers of two of
/// tokens and batches, every name of a choice.
[[nodiscard]] std::vector<std::string> values_along(const Design& design, std::string_view key);

/// Why a choice cannot be turned now; empty when it can ("window" without a double ring).
[[nodiscard]] std::string idle_reason(const Design& design, std::string_view key);

}  // namespace cpfit::gui
