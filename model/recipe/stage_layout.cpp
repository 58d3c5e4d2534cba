#include "model/recipe/stage_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "model/recipe/recipe_names.h"

namespace cpfit {

namespace {

// nanotron's blocks after the layers, in order: final norm, head, cast to fp32, loss. Only the head costs anything, but each of
// them can be the whole content of a stage.
constexpr std::int64_t kBlocksAfterLayers = 4;
constexpr std::int64_t kHeadAfterLayers = 1;

enum class Fault : std::uint8_t {
  kNone,
  kTooManyStages,
  kUneven,
  kEndsTooLarge,
  kOneStage,
  kEntries,
  kEntryChunks,
  kSum,
  kNegative,
  kEmptyChunk,
  kVpp
};

/// Calls put(chunk, layers) for every chunk in pipeline order, unless the layout has a fault. No allocation.
template <class Put>
Fault spread(const Architecture& model, const Recipe& recipe, Put put) {
  const std::int64_t layers = model.layers;
  const std::int64_t pp = recipe.pp;
  const std::int64_t vpp = recipe.vpp;
  const std::int64_t chunks = pp * vpp;
  const StageLayout& layout = recipe.stage_layout;
  if (pp > kMaxStages) return Fault::kTooManyStages;

  switch (layout.kind) {
    case LayoutKind::kEven:
      if (layers % chunks != 0) return Fault::kUneven;
      for (std::int64_t c = 0; c < chunks; ++c) put(c, layers / chunks);
      return Fault::kNone;

    case LayoutKind::kEmbeddingAndLossAsLayers: {
      const std::int64_t share = (layers + 2) / chunks;
      if ((layers + 2) % chunks != 0) return Fault::kUneven;
      for (std::int64_t c = 0; c < chunks; ++c) put(c, share - (c == 0 ? 1 : 0) - (c == chunks - 1 ? 1 : 0));
      return Fault::kNone;
    }

    case LayoutKind::kFirstLast: {
      const std::int64_t first = layout.first;
      const std::int64_t last = layout.last;
      if (pp < 2 || (first == 0 && last == 0)) return Fault::kOneStage;
      const std::int64_t middle_stages = pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
      const std::int64_t middle = layers - first - last;
      if (middle < 0 || (middle_stages == 0 && middle != 0) || (middle_stages > 0 && middle == 0)) return Fault::kEndsTooLarge;
      const std::int64_t share = middle_stages == 0 ? 0 : middle / middle_stages;
      if (middle_stages > 0 && middle % middle_stages != 0) return Fault::kUneven;
      if (share % vpp != 0 || first % vpp != 0 || last % vpp != 0) return Fault::kVpp;
      for (std::int64_t c = 0; c < chunks; ++c) {
        const std::int64_t stage = c % pp;
        const std::int64_t held = stage == 0 && first > 0 ? first : stage == pp - 1 && last > 0 ? last : share;
        put(c, held / vpp);
      }
      return Fault::kNone;
    }

    case LayoutKind::kExplicit: {
      const std::int64_t entries = static_cast<std::int64_t>(layout.layers.size());
      if (entries != pp && entries != chunks) return Fault::kEntries;
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < entries; ++i) {
        const std::int64_t held = layout.layers[static_cast<std::size_t>(i)];
        if (held < 0) return Fault::kNegative;
        if (entries != chunks && held % vpp != 0) return Fault::kEntryChunks;
        sum += held;
      }
      if (sum != layers) return Fault::kSum;
      for (std::int64_t c = 0; c < chunks; ++c) {
        put(c, entries == chunks ? layout.layers[static_cast<std::size_t>(c)]
                                 : layout.layers[static_cast<std::size_t>(c % pp)] / vpp);
      }
      return Fault::kNone;
    }

    case LayoutKind::kCostBalanced: {
      if (vpp != 1) return Fault::kVpp;
      const std::int64_t matrices = model.gated() ? 3 : 2;
      const std::int64_t layer_cost = model.hidden * (4 * model.heads * model.head_dim + matrices * model.ffn_hidden);
      const std::int64_t head_cost = model.vocab * model.hidden;
      const std::int64_t total = layers * layer_cost + head_cost;
      std::int64_t stage = 0;  // of the next block
      std::int64_t held = 0;
      std::int64_t sum = 0;
      for (std::int64_t block = 0; block < layers + kBlocksAfterLayers; ++block) {
        const bool is_layer = block < layers;
        if (stage == pp) return Fault::kEmptyChunk;
        held += is_layer ? 1 : 0;
        sum += is_layer ? layer_cost : block == layers + kHeadAfterLayers ? head_cost : 0;
        const bool is_last = block == layers + kBlocksAfterLayers - 1;
        if (is_last || (stage < pp - 1 && sum * pp > total * (stage + 1))) {
          put(stage++, held);
          held = 0;
        }
      }
      if (stage != pp) return Fault::kEmptyChunk;
      return Fault::kNone;
    }
  }
  return Fault::kUneven;
}

/// Divisors of `total` nearest to `wanted`, one below and one above where they exist, within 1..limit.
std::vector<std::int64_t> nearest_divisors(std::int64_t total, std::int64_t wanted, std::int64_t limit) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = std::min(wanted - 1, total); d >= 1; --d) {
    if (total % d == 0) {
      found.push_back(d);
      break;
    }
  }
  for (std::int64_t d = wanted + 1; d <= std::min(total, limit); ++d) {
    if (total % d == 0) {
      found.push_back(d);
      break;
    }
  }
  return found;
}

bool resolves(const Architecture& model, Recipe recipe, const StageLayout& layout) {
  recipe.stage_layout = layout;
  return layout_resolves(model, recipe);
}

/// Layouts that would resolve with this pp and vpp: what a person can write without touching the degrees.
std::vector<std::string> layouts_that_resolve(const Architecture& model, const Recipe& recipe) {
  std::vector<std::string> found;
  for (const LayoutKind kind : {LayoutKind::kEven, LayoutKind::kEmbeddingAndLossAsLayers}) {
    StageLayout layout;
    layout.kind = kind;
    if (resolves(model, recipe, layout)) found.emplace_back(name_of(kind));
  }
  // Ends that hold less than the middle, the smallest difference first: they also carry the embedding and the head.
  const std::int64_t per_stage = (model.layers + recipe.pp - 1) / recipe.pp;
  for (std::int64_t less = 1; less < per_stage && found.empty() && recipe.pp > 2; ++less) {
    for (const std::int64_t middle : {per_stage, per_stage + 1}) {
      const std::int64_t both = model.layers - middle * (recipe.pp - 2);
      if (both < 2) continue;
      StageLayout layout;
      layout.kind = LayoutKind::kFirstLast;
      layout.first = static_cast<std::int32_t>(both / 2);
      layout.last = static_cast<std::int32_t>(both - both / 2);
      if (found.empty() && resolves(model, recipe, layout)) found.push_back(to_text(layout));
    }
  }
  return found;
}

std::string repair_text(const Architecture& model, const Recipe& recipe) {
  const std::vector<std::int64_t> degrees = nearest_divisors(model.layers, std::int64_t{recipe.pp} * recipe.vpp, kMaxStages);
  std::string text =
      degrees.empty() ? std::string() : fmt::format("with an even layout pp*vpp may be {}", fmt::join(degrees, " or "));
  const std::vector<std::string> layouts = layouts_that_resolve(model, recipe);
  if (!layouts.empty()) {
    text += fmt::format("{}with pp {} and vpp {} write stage_layout = {}", text.empty() ? "" : "; ", recipe.pp, recipe.vpp,
                        fmt::join(layouts, " or "));
  }
  return text;
}

std::string fault_text(Fault fault, const Architecture& model, const Recipe& recipe) {
  const StageLayout& layout = recipe.stage_layout;
  const std::int64_t chunks = std::int64_t{recipe.pp} * recipe.vpp;
  switch (fault) {
    case Fault::kNone:
      return {};
    case Fault::kTooManyStages:
      return fmt::format("pp {} is above {} stages", recipe.pp, kMaxStages);
    case Fault::kUneven:
      if (layout.kind == LayoutKind::kFirstLast) {
        return fmt::format("{} layers without first {} and last {} do not divide over the other stages of pp {}", model.layers,
                           layout.first, layout.last, recipe.pp);
      }
      if (layout.kind == LayoutKind::kEmbeddingAndLossAsLayers) {
        return fmt::format("{} layers + embedding + loss = {} do not divide over pp {} * vpp {} = {} chunks", model.layers,
                           model.layers + 2, recipe.pp, recipe.vpp, chunks);
      }
      return fmt::format("{} layers do not divide over pp {} * vpp {} = {} chunks", model.layers, recipe.pp, recipe.vpp, chunks);
    case Fault::kEndsTooLarge:
      return fmt::format("first {} and last {} leave {} layers for the other stages of pp {}", layout.first, layout.last,
                         model.layers - layout.first - layout.last, recipe.pp);
    case Fault::kOneStage:
      return fmt::format("a first_last layout needs pp of at least 2 and at least one layer at an end, not pp {} with {}",
                         recipe.pp, to_text(layout));
    case Fault::kEntries:
      return fmt::format("an explicit layout needs one entry per stage ({}) or per chunk ({}), not {}", recipe.pp, chunks,
                         layout.layers.size());
    case Fault::kEntryChunks:
      return fmt::format("an entry per stage must divide over vpp {} chunks", recipe.vpp);
    case Fault::kSum: {
      std::int64_t sum = 0;
      for (const std::int32_t held : layout.layers) sum += held;
      return fmt::format("the explicit layout holds {} layers, the model has {}", sum, model.layers);
    }
    case Fault::kNegative:
      return "an entry is below zero";
    case Fault::kEmptyChunk:
      return fmt::format("the split by cost leaves stages of pp {} empty: {} layers, and the head cannot be cut", recipe.pp,
                         model.layers);
    case Fault::kVpp:
      return layout.kind == LayoutKind::kCostBalanced
                 ? fmt::format("the split by cost knows no chunks, vpp is {}", recipe.vpp)
                 : fmt::format("the layers of a stage do not divide over vpp {}", recipe.vpp);
  }
  return {};
}

}  // namespace

Problems layout_problems(const Architecture& model, const Recipe& recipe) {
  const Fault fault = spread(model, recipe, [](std::int64_t, std::int64_t) {});
  if (fault == Fault::kNone) return {};
  return {{"recipe.stage_layout", "stage_layout", fault_text(fault, model, recipe), repair_text(model, recipe)}};
}

Outcome<ResolvedLayout> resolve_layout(const Architecture& model, const Recipe& recipe) {
  Problems problems = layout_problems(model, recipe);
  if (!problems.empty()) return problems;
  ResolvedLayout resolved;
  resolved.layers_of_stage.assign(static_cast<std::size_t>(recipe.pp), 0);
  resolved.layers_of_chunk.assign(static_cast<std::size_t>(recipe.pp) * static_cast<std::size_t>(recipe.vpp), 0);
  spread(model, recipe, [&](std::int64_t chunk, std::int64_t layers) {
    resolved.layers_of_chunk[static_cast<std::size_t>(chunk)] = static_cast<std::int32_t>(layers);
    resolved.layers_of_stage[static_cast<std::size_t>(chunk % recipe.pp)] += static_cast<std::int32_t>(layers);
  });
  return resolved;
}

bool layout_resolves(const Architecture& model, const Recipe& recipe) {
  return spread(model, recipe, [](std::int64_t, std::int64_t) {}) == Fault::kNone;
}

std::int64_t layers_of_fullest_stage(const Architecture& model, const Recipe& recipe) {
  std::int64_t stages[kMaxStages] = {};
  const std::int64_t pp = recipe.pp;
  const Fault fault = spread(model, recipe, [&](std::int64_t chunk, std::int64_t layers) { stages[chunk % pp] += layers; });
  return fault == Fault::kNone ? *std::max_element(stages, stages + pp) : 0;
}

}  // namespace cpfit
