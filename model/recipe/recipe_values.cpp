// Text of the composite values of a recipe: recompute, stage layout, rank order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "model/recipe/recipe.h"
#include "model/recipe/recipe_names.h"

namespace cpfit {

namespace {

constexpr std::int64_t kMaxLayers = 100'000;  // of one stage or chunk, as a person may write it
constexpr std::size_t kMaxEntries = 65'536;   // of an explicit layout

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t at_least, std::int64_t at_most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < at_least || value > at_most) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Problem bad_layout(std::string_view text, std::string_view reason) {
  return {"recipe.stage_layout", "stage_layout", fmt::format("'{}' is not a stage layout: {}", text, reason),
          "write even, embedding_loss, first=7;last=7, explicit=2/34*2/3 (34*2 is thirty-four entries of 2 layers) or "
          "cost_balanced"};
}

Outcome<StageLayout> parse_first_last(std::string_view text) {
  StageLayout layout;
  layout.kind = LayoutKind::kFirstLast;
  bool first_named = false;
  bool last_named = false;
  for (const std::string_view part : split(text, ';')) {
    const bool is_first = part.starts_with("first=");
    if (!is_first && !part.starts_with("last=")) return bad_layout(text, fmt::format("'{}' is neither first= nor last=", part));
    const std::string_view digits = part.substr(part.find('=') + 1);
    const std::optional<std::int64_t> layers = whole_number(digits, 1, kMaxLayers);
    if (!layers) return bad_layout(text, fmt::format("'{}' is not a number of layers from 1 to {}", digits, kMaxLayers));
    bool& named = is_first ? first_named : last_named;
    if (named) return bad_layout(text, "the same end is named twice");
    named = true;
    (is_first ? layout.first : layout.last) = static_cast<std::int32_t>(*layers);
  }
  return layout;
}

Outcome<StageLayout> parse_explicit(std::string_view text) {
  StageLayout layout;
  layout.kind = LayoutKind::kExplicit;
  for (const std::string_view part : split(text.substr(text.find('=') + 1), '/')) {
    const std::size_t star = part.find('*');
    const std::string_view layers_text = star == std::string_view::npos ? part : part.substr(star + 1);
    const std::optional<std::int64_t> times = star == std::string_view::npos
                                                  ? std::optional<std::int64_t>(1)
                                                  : whole_number(part.substr(0, star), 1, static_cast<std::int64_t>(kMaxEntries));
    const std::optional<std::int64_t> layers = whole_number(layers_text, 0, kMaxLayers);
    if (!times || !layers) return bad_layout(text, fmt::format("'{}' is not LAYERS or TIMES*LAYERS", part));
    if (layout.layers.size() + static_cast<std::size_t>(*times) > kMaxEntries) {
      return bad_layout(text, fmt::format("it has more than {} entries", kMaxEntries));
    }
    layout.layers.insert(layout.layers.end(), static_cast<std::size_t>(*times), static_cast<std::int32_t>(*layers));
  }
  return layout;
}

}  // namespace

std::string to_text(const Recompute& value) {
  if (value.kind == RecomputeKind::kBlock) return fmt::format("block-{}", value.block_layers);
  return std::string(name_of(value.kind));
}

Outcome<Recompute> parse_recompute(std::string_view text) {
  constexpr std::string_view kBlockPrefix = "block-";
  if (text.starts_with(kBlockPrefix)) {
    const std::optional<std::int64_t> layers = whole_number(text.substr(kBlockPrefix.size()), 1, kMaxLayers);
    if (layers) return Recompute{RecomputeKind::kBlock, static_cast<std::int32_t>(*layers)};
  }
  const std::optional<RecomputeKind> kind = value_named<RecomputeKind>(text);
  if (kind && *kind != RecomputeKind::kBlock) return Recompute{*kind, 0};
  if (text.starts_with("block")) {
    return Problem{"recipe.recompute", "recompute", fmt::format("'{}' does not say how many layers are recomputed", text),
                   "write block-5 for the first five layers of each stage"};
  }
  return unknown_word("recipe.recompute", "recompute", text, {"none", "selective", "mlp", "full", "block-5"});
}

std::string to_text(const StageLayout& value) {
  switch (value.kind) {
    case LayoutKind::kFirstLast:
      if (value.last == 0) return fmt::format("first={}", value.first);
      if (value.first == 0) return fmt::format("last={}", value.last);
      return fmt::format("first={};last={}", value.first, value.last);
    case LayoutKind::kExplicit: {
      std::vector<std::string> parts;
      for (std::size_t i = 0; i < value.layers.size();) {
        std::size_t j = i;
        while (j < value.layers.size() && value.layers[j] == value.layers[i]) ++j;
        parts.push_back(j - i == 1 ? fmt::format("{}", value.layers[i]) : fmt::format("{}*{}", j - i, value.layers[i]));
        i = j;
      }
      return fmt::format("explicit={}", fmt::join(parts, "/"));
    }
    default:
      return std::string(name_of(value.kind));
  }
}

Outcome<StageLayout> parse_stage_layout(std::string_view text) {
  if (text.starts_with("first=") || text.starts_with("last=")) return parse_first_last(text);
  if (text.starts_with("explicit=")) return parse_explicit(text);
  const std::optional<LayoutKind> kind = value_named<LayoutKind>(text);
  if (kind == LayoutKind::kEven || kind == LayoutKind::kEmbeddingAndLossAsLayers || kind == LayoutKind::kCostBalanced) {
    StageLayout layout;
    layout.kind = *kind;
    return layout;
  }
  if (kind) return bad_layout(text, "its numbers of layers are missing");
  const std::string near = nearest_name(std::string(text), {"even", "embedding_loss", "cost_balanced"});
  return bad_layout(text, near.empty() ? "the word is unknown" : fmt::format("did you mean '{}'?", near));
}

std::string to_text(const RankOrder& value) {
  return fmt::format("{}-{}-{}-{}", name_of(value.axes[0]), name_of(value.axes[1]), name_of(value.axes[2]),
                     name_of(value.axes[3]));
}

Outcome<RankOrder> parse_rank_order(std::string_view text) {
  const auto refuse = [&](std::string_view reason) {
    return Problem{"recipe.rank_order", "rank_order", fmt::format("'{}' is not a rank order: {}", text, reason),
                   "name tp, cp, dp and pp once each, fastest first, like tp-cp-dp-pp"};
  };
  std::vector<Axis> axes;
  for (const std::string_view part : split(text, '-')) {
    if (part == "ep") continue;
    const std::optional<Axis> axis = value_named<Axis>(part);
    if (!axis) return refuse(fmt::format("'{}' is not an axis", part));
    if (std::find(axes.begin(), axes.end(), *axis) != axes.end()) return refuse(fmt::format("{} is named twice", part));
    axes.push_back(*axis);
  }
  if (axes.size() != std::size(RankOrder{}.axes)) return refuse("an axis is missing");
  RankOrder order;
  std::copy(axes.begin(), axes.end(), order.axes);
  return order;
}

}  // namespace cpfit
