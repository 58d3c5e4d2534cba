// Max-min fair sharing against hand-derived shares, and against progressive filling written anew in the plainest way.
#include "sim/engine/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace cpfit::engine {
namespace {

struct System {
  std::vector<Resource> resources;
  std::vector<Use> uses;
  std::vector<std::uint32_t> begin{0};
  PatternId pattern(const std::vector<Use>& of) {
    uses.insert(uses.end(), of.begin(), of.end());
    begin.push_back(static_cast<std::uint32_t>(uses.size()));
    return static_cast<PatternId>(begin.size() - 2);
  }
  ResourceId resource(double capacity) {
    resources.push_back({capacity, kNone, kNone});
    return static_cast<ResourceId>(resources.size() - 1);
  }
  [[nodiscard]] FairShare share() const { return {resources, uses, begin}; }
};

TEST(FairShare, TwoFlowsHalveALink) {
  System system;
  const PatternId link = system.pattern({{system.resource(1.0), 1.0}});
  FairShare share = system.share();
  const FlowId a = share.add(link, 1.0, 0);
  EXPECT_TRUE(share.settle().empty());  // alone: its cap, nobody solved
  EXPECT_EQ(share.rate(a), 1.0);
  const FlowId b = share.add(link, 1.0, 0);
  EXPECT_EQ(share.settle().size(), 2U);
  EXPECT_EQ(share.rate(a), 0.5);
  EXPECT_EQ(share.rate(b), 0.5);
  share.remove(a, 0);
  EXPECT_EQ(share.settle().size(), 1U);
  EXPECT_EQ(share.rate(b), 1.0);
}

TEST(FairShare, ThreeCapsOfAThirdFillALinkWithoutSharing) {
  System system;
  const PatternId link = system.pattern({{system.resource(0.1), 1.0}});
  FairShare share = system.share();
  for (int i = 0; i < 3; ++i) (void)share.add(link, 0.1 / 3, 0);
  EXPECT_TRUE(share.settle().empty());
}

TEST(FairShare, TheTextbookChain) {
  // Bertsekas and Gallager's example: links of capacity 1 in a chain A-B-C; flow 0 goes over both, flow 1 over A, flows 2 and 3
  // over B. B is the bottleneck: flows 0, 2, 3 get 1/3; A's flow 1 takes the rest, 2/3.
  System system;
  const ResourceId a = system.resource(1.0), b = system.resource(1.0);
  const PatternId both = system.pattern({{a, 1.0}, {b, 1.0}}), only_a = system.pattern({{a, 1.0}}),
                  only_b = system.pattern({{b, 1.0}});
  FairShare share = system.share();
  const FlowId f0 = share.add(both, 9.0, 0), f1 = share.add(only_a, 9.0, 0), f2 = share.add(only_b, 9.0, 0),
               f3 = share.add(only_b, 9.0, 0);
  (void)share.settle();
  EXPECT_DOUBLE_EQ(share.rate(f0), 1.0 / 3);
  EXPECT_DOUBLE_EQ(share.rate(f1), 2.0 / 3);
  EXPECT_DOUBLE_EQ(share.rate(f2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(share.rate(f3), 1.0 / 3);
}

TEST(FairShare, WeightsSayWhatARateCosts) {
  // Capacity 1; x costs 1 and y costs 3 per unit of rate: both rates are 1 / (1 + 3).
  System system;
  const ResourceId r = system.resource(1.0);
  const PatternId light = system.pattern({{r, 1.0}}), heavy = system.pattern({{r, 3.0}});
  FairShare share = system.share();
  const FlowId x = share.add(light, 1.0, 0), y = share.add(heavy, 1.0, 0);
  (void)share.settle();
  EXPECT_DOUBLE_EQ(share.rate(x), 0.25);
  EXPECT_DOUBLE_EQ(share.rate(y), 0.25);
}

TEST(FairShare, ACapLeavesItsRestToOthers) {
  // Capacity 1, caps 0.1 and 1: 0.1 and 0.9.
  System system;
  const PatternId link = system.pattern({{system.resource(1.0), 1.0}});
  FairShare share = system.share();
  const FlowId slow = share.add(link, 0.1, 0), fast = share.add(link, 1.0, 0);
  (void)share.settle();
  EXPECT_DOUBLE_EQ(share.rate(slow), 0.1);
  EXPECT_DOUBLE_EQ(share.rate(fast), 0.9);
}

TEST(FairShare, UsesOfOneResourceAddUp) {
  // Twice over the same link: a rate costs 2.
  System system;
  const ResourceId r = system.resource(1.0);
  const PatternId twice = system.pattern({{r, 1.0}, {r, 1.0}});
  FairShare share = system.share();
  const FlowId flow = share.add(twice, 1.0, 0);
  (void)share.settle();
  EXPECT_DOUBLE_EQ(share.rate(flow), 0.5);
  EXPECT_EQ(share.flows_on(r), 1U);
}

TEST(FairShare, HoldsTakeCapacityButLeaveTheLeastShare) {
  System system;
  const ResourceId sms = system.resource(1.0);
  const PatternId kernel = system.pattern({{sms, 1.0}});
  FairShare share = system.share();
  const FlowId flow = share.add(kernel, 1.0, 0);
  share.take(sms, 0.25);
  (void)share.settle();
  EXPECT_DOUBLE_EQ(share.rate(flow), 0.75);
  share.take(sms, 0.25);
  share.take(sms, 0.5);  // all of it
  (void)share.settle();
  EXPECT_NEAR(share.rate(flow), kLeastShare, 1e-15);
  share.give_back(sms, 0.25);
  share.give_back(sms, 0.25);
  share.give_back(sms, 0.5);
  (void)share.settle();
  EXPECT_EQ(share.rate(flow), 1.0);
}

TEST(FairShare, AStrangerOnAnotherLinkIsNotSolvedAgain) {
  System system;
  const PatternId one = system.pattern({{system.resource(1.0), 1.0}}), two = system.pattern({{system.resource(1.0), 1.0}});
  FairShare share = system.share();
  (void)share.add(one, 1.0, 0);
  (void)share.add(one, 1.0, 0);
  (void)share.settle();
  (void)share.add(two, 1.0, 0);
  (void)share.add(two, 1.0, 0);
  EXPECT_EQ(share.settle().size(), 2U);  // the two of link `two`
}

struct LiveFlow {
  FlowId id;
  PatternId pattern;
  double cap;
};

/// Progressive filling in the plainest way: raise all open flows by the least step to a cap or an exhausted resource.
std::vector<double> fill_plainly(const System& system, const std::vector<double>& capacity, const std::vector<LiveFlow>& flows) {
  std::vector<long double> left(capacity.begin(), capacity.end());
  std::vector<long double> rate(flows.size(), 0);
  std::vector<bool> open(flows.size(), true);
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    std::vector<long double> weight(capacity.size(), 0);
    const auto each_use = [&](std::size_t flow, auto&& act) {
      for (std::uint32_t u = system.begin[static_cast<std::size_t>(flows[flow].pattern)];
           u < system.begin[static_cast<std::size_t>(flows[flow].pattern) + 1]; ++u) {
        act(static_cast<std::size_t>(system.uses[u].resource), static_cast<long double>(system.uses[u].weight));
      }
    };
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (open[f]) each_use(f, [&](std::size_t r, long double w) { weight[r] += w; });
    }
    long double step = std::numeric_limits<long double>::infinity();
    for (std::size_t r = 0; r < left.size(); ++r) {
      if (weight[r] > 0) step = std::min(step, std::max(left[r], 0.0L) / weight[r]);
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (open[f]) step = std::min(step, static_cast<long double>(flows[f].cap) - rate[f]);
    }
    for (std::size_t r = 0; r < left.size(); ++r) left[r] -= step * weight[r];
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!open[f]) continue;
      rate[f] += step;
      if (rate[f] >= static_cast<long double>(flows[f].cap) * (1 - 1e-15L)) open[f] = false;
      each_use(f, [&](std::size_t r, long double) {
        if (left[r] <= static_cast<long double>(capacity[r]) * 1e-16L) open[f] = false;
      });
    }
  }
  return {rate.begin(), rate.end()};
}

class RandomSystems : public testing::TestWithParam<unsigned> {};

TEST_P(RandomSystems, AgreeWithPlainFillingAndForgetTheirHistory) {
  std::mt19937 random(GetParam());
  const auto real = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  const auto pick = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  System system;
  const std::size_t resources = 3 + pick(12);
  for (std::size_t r = 0; r < resources; ++r) (void)system.resource(real(0.5, 4.0));
  const std::size_t patterns = 4 + pick(20);
  for (std::size_t p = 0; p < patterns; ++p) {
    std::vector<Use> uses;
    for (std::size_t r = 0; r < resources; ++r) {
      if (pick(4) == 0) uses.push_back({static_cast<ResourceId>(r), pick(2) == 0 ? 1.0 : real(0.2, 3.0)});
    }
    if (uses.empty()) uses.push_back({0, 1.0});
    (void)system.pattern(uses);
  }
  FairShare share = system.share();
  std::vector<LiveFlow> flows;
  std::vector<double> held(resources, 0.0);
  for (int round = 0; round < 120; ++round) {
    const std::size_t changes = 1 + pick(4);
    for (std::size_t i = 0; i < changes; ++i) {
      const std::size_t what = pick(8);
      if (what == 0) {
        const std::size_t r = pick(resources);
        if (held[r] > 0) {
          share.give_back(static_cast<ResourceId>(r), held[r]);
          held[r] = 0;
        } else {
          held[r] = real(0.05, 0.45);  // less than all: capacities begin at 0.5
          share.take(static_cast<ResourceId>(r), held[r]);
        }
      } else if (!flows.empty() && (what < 4 || flows.size() > 30)) {
        const std::size_t gone = pick(flows.size());
        share.remove(flows[gone].id, 0);
        flows.erase(flows.begin() + static_cast<std::ptrdiff_t>(gone));
      } else {
        LiveFlow flow{0, static_cast<PatternId>(pick(patterns)), pick(3) == 0 ? 0.25 : real(0.02, 2.0)};
        flow.id = share.add(flow.pattern, flow.cap, 0);
        flows.push_back(flow);
      }
    }
    (void)share.settle();

    std::vector<double> capacity;
    for (std::size_t r = 0; r < resources; ++r) capacity.push_back(system.resources[r].capacity - held[r]);
    const std::vector<double> expected = fill_plainly(system, capacity, flows);
    FairShare fresh = system.share();  // the same set, come about at once and in the opposite order
    for (std::size_t r = 0; r < resources; ++r) fresh.take(static_cast<ResourceId>(r), held[r]);
    std::vector<FlowId> again(flows.size());
    for (std::size_t f = flows.size(); f-- > 0;) again[f] = fresh.add(flows[f].pattern, flows[f].cap, 0);
    (void)fresh.settle();
    for (std::size_t f = 0; f < flows.size(); ++f) {
      EXPECT_NEAR(share.rate(flows[f].id), expected[f], expected[f] * 1e-12) << "round " << round << " flow " << f;
      EXPECT_EQ(share.rate(flows[f].id), fresh.rate(again[f])) << "round " << round << " flow " << f;
    }
    if (testing::Test::HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSystems, testing::Range(1U, 41U));

TEST(FairShare, FlowIdsAreUsedAgain) {
  System system;
  const PatternId link = system.pattern({{system.resource(1.0), 1.0}});
  FairShare share = system.share();
  for (int i = 0; i < 100; ++i) {
    const FlowId flow = share.add(link, 1.0, 0);
    (void)share.settle();
    share.remove(flow, 0);
  }
  EXPECT_EQ(share.ids(), 1U);
}

}  // namespace
}  // namespace cpfit::engine
