#include "model/transformer/architecture_check.h"

#include <fmt/format.h>

namespace cpfit {

namespace {

struct Bound {
  const char* name;
  std::int64_t Architecture::* field;
  std::int64_t low, high;  // high: some ten times the largest model published, so that products stay within 63 bits
};

constexpr Bound kBounds[] = {
    {"layers", &Architecture::layers, 1, 10'000},
    {"hidden", &Architecture::hidden, 1, 1'000'000},
    {"ffn_hidden", &Architecture::ffn_hidden, 1, 10'000'000},
    {"heads", &Architecture::heads, 1, 10'000},
    {"kv_heads", &Architecture::kv_heads, 1, 10'000},
    {"head_dim", &Architecture::head_dim, 1, 10'000},
    {"vocab", &Architecture::vocab, 1, 100'000'000},
    {"max_positions", &Architecture::max_positions, 0, std::int64_t{1} << 40},
    {"norms_per_layer", &Architecture::norms_per_layer, 1, 8},
    {"sliding_window", &Architecture::sliding_window, 0, std::int64_t{1} << 40},
    {"window_period", &Architecture::window_period, 0, 10'000},
};

}  // namespace

Problems check_architecture(const Architecture& model, const std::string& where) {
  Problems problems;
  const auto place = [&where](const char* name) { return where.empty() ? std::string(name) : where + "." + name; };
  for (const Bound& bound : kBounds) {
    const std::int64_t value = model.*bound.field;
    if (value >= bound.low && value <= bound.high) continue;
    if (value == 0) {
      problems.push_back({"model.missing", place(bound.name), fmt::format("{} is missing", bound.name),
                          fmt::format("set {} to the model's own value, or name a preset or a config.json", bound.name)});
      continue;
    }
    problems.push_back({"model.out_of_range", place(bound.name),
                        fmt::format("{} is {}, but must lie between {} and {}", bound.name, value, bound.low, bound.high),
                        fmt::format("set {} to the model's own value", bound.name)});
  }
  if (!problems.empty()) return problems;
  if (model.heads % model.kv_heads != 0) {
    problems.push_back({"model.kv_heads", place("kv_heads"),
                        fmt::format("{} query heads cannot share {} KV heads evenly", model.heads, model.kv_heads),
                        "use a number of KV heads that divides the query heads"});
  }
  if (model.position == PositionKind::kLearned && model.max_positions == 0) {
    problems.push_back({"model.max_positions", place("max_positions"), "learned positions need a table, but max_positions is 0",
                        "set max_positions to the number of rows of the position table"});
  }
  if (model.window_period > 0 && model.sliding_window == 0) {
    problems.push_back(
        {"model.window_period", place("window_period"),
         fmt::format("every {}th layer is global, but no sliding window is given for the others", model.window_period),
         "set sliding_window, or leave window_period out"});
  }
  return problems;
}

}  // namespace cpfit
