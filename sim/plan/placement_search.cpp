#include "sim/plan/placement_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "model/cluster/ring_order.h"
#include "model/quantity/index.h"
#include "model/recipe/axis_fields.h"
#include "model/recipe/rank_grid.h"
#include "sim/plan/placement_text.h"

namespace cpfit {

namespace {

using GpuOrder = std::vector<std::int32_t>;

/// Every order of the axes with more than one rank, the recipe's own first; axes of one rank follow.
std::vector<RankOrder> rank_orders(const Recipe& recipe) {
  std::vector<Axis> many, one;
  for (const Axis axis : recipe.rank_order.axes) (degree_of(recipe, axis) > 1 ? many : one).push_back(axis);
  std::vector<std::size_t> places(many.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<RankOrder> orders{recipe.rank_order};
  while (std::next_permutation(places.begin(), places.end())) {
    RankOrder order;
    std::size_t next = 0;
    for (const std::size_t place : places) order.axes[next++] = many[place];
    for (const Axis axis : one) order.axes[next++] = axis;
    orders.push_back(order);
  }
  return orders;
}

/// Blocks 0 .. count-1 with `entry` first and `exit` last.
GpuOrder way_through(std::int32_t count, std::int32_t entry, std::int32_t exit) {
  GpuOrder blocks;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t block = entry < exit ? i : count - 1 - i;
    if (block != entry && block != exit) blocks.push_back(block);
  }
  blocks.insert(blocks.begin(), entry);
  blocks.push_back(exit);
  return blocks;
}

GpuOrder numbered(std::int64_t gpus) {
  GpuOrder order(at(gpus));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// What a candidate is made of.
struct Parts {
  RankOrder rank_order;
  GpuOrder base;
  bool turned = false;
};

class Search {
 public:
  Search(const ScreenContext& context, const Recipe& recipe)
      : context_(context), recipe_(recipe), domain_(std::min(domain_ranks(context.cluster), context.cluster.gpus())) {
    // A domain that is cut off at the end of the cluster has no place for every GPU order.
    const bool whole = context.cluster.gpus() % domain_ranks(context.cluster) == 0;
    bases_.push_back(numbered(domain_));
    if (!whole || domain_ < 3) return;
    reorders_ = true;
    std::vector<std::int64_t> gpus(at(domain_));
    std::iota(gpus.begin(), gpus.end(), std::int64_t{0});
    const RingOrder ring = order_ring(*context.cluster.topology, gpus);
    GpuOrder order(ring.members.begin(), ring.members.end());
    if (order != bases_.front()) bases_.push_back(std::move(order));
  }

  PlacementAdvice run() {
    PlacementAdvice advice;
    best_parts_ = {recipe_.rank_order, bases_.front(), false};
    best_ = price_placement(context_, recipe_, default_placement(recipe_));
    tried_ = 1;
    advice.before = best_;
    for (const RankOrder& order : rank_orders(recipe_)) {
      for (const GpuOrder& base : bases_) {
        for (const bool turned : {false, true}) consider({order, base, turned});
      }
    }
    if (reorders_ && domain_ <= kSwapGpus) swap();
    advice.after = best_;
    advice.better = cheaper(best_, advice.before);
    advice.tried = tried_;
    return advice;
  }

 private:
  [[nodiscard]] std::int64_t cp_stride(const RankOrder& order) const {
    Recipe recipe = recipe_;
    recipe.rank_order = order;
    return group_shape(recipe, Axis::kCp).stride;
  }

  bool consider(const Parts& parts) {
    Placement placement;
    placement.rank_order = parts.rank_order;
    const bool as_numbered = parts.base == bases_.front();
    if (parts.turned) {
      placement.gpu_orders = turned_orders(parts.base, cp_stride(parts.rank_order), recipe_.cp);
      if (placement.gpu_orders.empty() || !reorders_) return false;
    } else if (!as_numbered) {
      placement.gpu_orders.push_back(parts.base);
    }
    placement.name = placement_name(context_.cluster, placement, recipe_.rank_order, parts.turned);
    PlacementPrice price = price_placement(context_, recipe_, placement);
    ++tried_;
    if (!cheaper(price, best_)) return false;
    best_ = std::move(price);
    best_parts_ = parts;
    return true;
  }

  /// Swaps of two GPUs, the first that helps at once.
  void swap() {
    const std::int64_t used = std::min(domain_, recipe_.world());
    for (std::int32_t round = 0; round < kSwapRounds; ++round) {
      bool helped = false;
      for (std::int64_t i = 0; i < used; ++i) {
        for (std::int64_t j = i + 1; j < domain_; ++j) {
          Parts parts = best_parts_;
          std::swap(parts.base[at(i)], parts.base[at(j)]);
          helped = consider(parts) || helped;
        }
      }
      if (!helped) return;
    }
  }

  const ScreenContext& context_;
  const Recipe& recipe_;
  std::int64_t domain_;
  bool reorders_ = false;
  std::vector<GpuOrder> bases_;
  PlacementPrice best_;
  Parts best_parts_;
  std::int64_t tried_ = 0;
};

}  // namespace

Placement default_placement(const Recipe& recipe) {
  Placement placement;
  placement.rank_order = recipe.rank_order;
  placement.name = kUsualPlacement;
  return placement;
}

std::vector<std::vector<std::int32_t>> turned_orders(const std::vector<std::int32_t>& base, std::int64_t stride,
                                                     std::int64_t cp) {
  const auto gpus = static_cast<std::int64_t>(base.size());
  if (stride < 1 || gpus % stride != 0 || stride == gpus || stride * cp <= gpus) return {};
  const auto blocks = static_cast<std::int32_t>(gpus / stride);
  // Domains one ring passes; where rings end inside a domain, two and two take turns.
  const std::int64_t domains = stride * cp % gpus == 0 ? stride * cp / gpus : 2;
  std::vector<std::int32_t> borders(at(domains) + 1, 0);  // block that domain n is entered on; the ring ends where it began
  for (std::int64_t n = 0; n < domains; ++n) borders[at(n)] = n % 2 == 0 ? 0 : blocks - 1;
  if (domains % 2 == 1) {
    if (blocks > 2) {
      borders[at(domains - 1)] = blocks / 2;  // neither the block before nor the first
    } else {
      borders[at(domains)] = blocks - 1;  // two blocks cannot close an odd ring: the last border crosses
    }
  }
  std::vector<GpuOrder> orders;
  for (std::int64_t n = 0; n < domains; ++n) {
    GpuOrder& order = orders.emplace_back();
    for (const std::int32_t block : way_through(blocks, borders[at(n)], borders[at(n + 1)])) {
      for (std::int64_t lane = 0; lane < stride; ++lane) order.push_back(base[at(block * stride + lane)]);
    }
  }
  return orders;
}

PlacementAdvice optimise_placement(const ScreenContext& context, const Recipe& recipe) {
  PlacementAdvice advice = Search(context, recipe).run();
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  advice.links_before = placed_links(context, recipe, advice.before.placement, kAll);
  advice.links_after = advice.better ? placed_links(context, recipe, advice.after.placement, kAll) : advice.links_before;
  advice.sentence = advice_sentence(context, recipe, advice);
  return advice;
}

}  // namespace cpfit
