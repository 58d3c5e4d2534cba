// Links that fail, other jobs, slow ranks: what they change in the graph and in a step.
#include "sim/plan/disturbance.h"

#include <algorithm>

#include "fixture.h"
#include "model/cluster/device_order.h"
#include "model/cluster/topology.h"
#include "sim/plan/step_timeline.h"
#include "sim/plan/timeline_summary.h"
#include "sim/schedule/step_size.h"

namespace cpfit {
namespace {

std::string ends(const Topology& topology, std::int32_t link) {
  const auto name = [&](std::int32_t vertex) { return topology.vertices()[static_cast<std::size_t>(vertex)].name; };
  const Link& l = topology.links()[static_cast<std::size_t>(link)];
  return name(l.from) + " -> " + name(l.to);
}

std::vector<std::string> route(const Cluster& cluster, std::int64_t a, std::int64_t b) {
  std::vector<std::string> names;
  for (const std::int32_t link : cluster.topology->route(a, b)) names.push_back(ends(*cluster.topology, link));
  return names;
}

double capacity(const Cluster& cluster, const std::string& link) {
  for (std::size_t i = 0; i < cluster.topology->links().size(); ++i) {
    if (ends(*cluster.topology, static_cast<std::int32_t>(i)) == link) return cluster.topology->links()[i].capacity.value();
  }
  return -1.0;
}

/// The link by which a route leaves the first host.
std::string uplink(const Cluster& cluster, std::int64_t a, std::int64_t b) {
  for (const std::int32_t link : cluster.topology->route(a, b)) {
    if (cluster.topology->links()[static_cast<std::size_t>(link)].link_class == LinkClass::kNic)
      return ends(*cluster.topology, link);
  }
  return "";
}

std::string code_of(const Problems& problems) { return problems.empty() ? "" : problems.front().code; }

TEST(Disturbance, ReadsWhatPeopleWrite) {
  const LinkChange change = parse_link_change(" n0.nic3 ->leaf3 = 0.5").value();
  EXPECT_EQ(change.from, "n0.nic3");
  EXPECT_EQ(change.to, "leaf3");
  EXPECT_EQ(change.factor, 0.5);
  EXPECT_EQ(parse_link_change("a -> b=50 %")->factor, 0.5);
  EXPECT_EQ(parse_second_job("n0.gpu1 -> n1.gpu1=25 GB/s")->rate, BytesPerSecond(25e9));
  EXPECT_EQ(parse_slow_rank("3=1.2")->rank, 3);
  EXPECT_EQ(parse_slow_rank("3=1.2")->factor, 1.2);
  for (const char* text : {"", "a -> b", "a=1", "-> b=1", "a ->=1", "a -> b="})
    EXPECT_EQ(code_of(parse_link_change(text).problems()), "disturbance.syntax") << text;
  for (const char* text : {"a -> b=-1", "a -> b=x", "a -> b=inf", "a -> b=nan"})
    EXPECT_EQ(code_of(parse_link_change(text).problems()), "disturbance.factor") << text;
  EXPECT_TRUE(code_of(parse_second_job("a -> b=25").problems()).starts_with("quantity.")) << "a rate without its unit";
  for (const char* text : {"", "3", "x=1", "-1=2", "3.5=2"})
    EXPECT_EQ(code_of(parse_slow_rank(text).problems()), "disturbance.syntax") << text;
  for (const char* text : {"3=0", "3=-1", "3=", "3=fast"})
    EXPECT_EQ(code_of(parse_slow_rank(text).problems()), "disturbance.factor") << text;
}

TEST(Disturbance, ALinkKeepsItsShareAndOthersKeepAll) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  const std::string link = uplink(cluster, 3, 11);
  const std::size_t arrow = link.find(" -> ");
  const std::string from = link.substr(0, arrow), to = link.substr(arrow + 4);
  const Cluster half = disturbed(cluster, {{{from, to, 0.5}}, {}}).value();
  EXPECT_EQ(half.topology->links().size(), cluster.topology->links().size());
  EXPECT_EQ(capacity(half, link), 0.5 * capacity(cluster, link));
  EXPECT_EQ(capacity(half, to + " -> " + from), capacity(cluster, to + " -> " + from)) << "the way back is another link";
  EXPECT_EQ(uplink(half, 3, 11), link) << "a slow NIC is still the nearest";
}

TEST(Disturbance, RanksStayOnTheirGpus) {
  const Cluster ordered = with_device_orders(build_cluster("dgx-h100", 2).value(), {{7, 6, 5, 4, 3, 2, 1, 0}}).value();
  const Link& link = ordered.topology->links().front();
  const auto name = [&](std::int32_t vertex) { return ordered.topology->vertices()[static_cast<std::size_t>(vertex)].name; };
  const Cluster half = disturbed(ordered, {{{name(link.from), name(link.to), 0.5}}, {}}).value();
  EXPECT_EQ(half.topology->gpus(), ordered.topology->gpus());
}

TEST(Disturbance, TheGpusOfADeadNicTakeAnother) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  const std::string link = uplink(cluster, 3, 11);
  const std::size_t arrow = link.find(" -> ");
  const Cluster without = disturbed(cluster, {{{link.substr(0, arrow), link.substr(arrow + 4), 0.0}}, {}}).value();
  EXPECT_EQ(capacity(without, link), -1.0);
  ASSERT_TRUE(without.topology->reachable(3, 11));
  ASSERT_TRUE(without.topology->reachable(11, 3)) << "it can neither send nor receive over half a NIC";
  EXPECT_NE(uplink(without, 3, 11), link);
  EXPECT_NE(uplink(without, 3, 11), "");
  EXPECT_EQ(route(without, 2, 10), route(cluster, 2, 10)) << "others are not concerned";
}

TEST(Disturbance, AnotherJobTakesItsRateFromEveryLinkOnItsWay) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  const auto gpu = [&](std::size_t rank) {
    return cluster.topology->vertices()[static_cast<std::size_t>(cluster.topology->gpus()[rank])].name;
  };
  const Cluster shared = disturbed(cluster, {{}, {{gpu(1), gpu(9), BytesPerSecond(10e9)}}}).value();
  const std::vector<std::string> way = route(cluster, 1, 9);
  ASSERT_FALSE(way.empty());
  for (std::size_t i = 0; i < cluster.topology->links().size(); ++i) {
    const std::string link = ends(*cluster.topology, static_cast<std::int32_t>(i));
    const double taken = std::find(way.begin(), way.end(), link) == way.end() ? 0.0 : 10e9;
    EXPECT_EQ(capacity(shared, link), capacity(cluster, link) - taken) << link;
  }
  // From NIC to NIC it is on the fabric alone.
  const std::string link = uplink(cluster, 1, 9);
  const std::string nic = link.substr(0, link.find(" -> "));
  const std::string far = cluster.topology->vertices()[static_cast<std::size_t>(cluster.topology->nic_of(9))].name;
  const Cluster fabric = disturbed(cluster, {{}, {{nic, far, BytesPerSecond(10e9)}}}).value();
  EXPECT_EQ(capacity(fabric, link), capacity(cluster, link) - 10e9);
  EXPECT_EQ(capacity(fabric, way.front()), capacity(cluster, way.front())) << way.front();
}

TEST(Disturbance, NamesWhatIsWrongAndWhatWasMeant) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  const auto problem = [&](const Disturbance& disturbance) {
    const Outcome<Cluster> outcome = disturbed(cluster, disturbance);
    return outcome.ok() ? Problem{} : outcome.problems().front();
  };
  EXPECT_EQ(problem({{{"n0.gpux0", "n0.nic0", 1}}, {}}).code, "disturbance.vertex");
  EXPECT_NE(problem({{{"n0.gpux0", "n0.nic0", 1}}, {}}).repair.find("n0.gpu0"), std::string::npos);
  EXPECT_EQ(problem({{{"n0.gpu0", "n1.gpu0", 1}}, {}}).code, "disturbance.link");
  EXPECT_NE(problem({{{"n0.gpu0", "n1.gpu0", 1}}, {}}).repair.find("n0.gpu0 is linked to"), std::string::npos);
  const std::string link = uplink(cluster, 3, 11);
  const std::size_t arrow = link.find(" -> ");
  const LinkChange change{link.substr(0, arrow), link.substr(arrow + 4), 0.5};
  EXPECT_EQ(problem({{change, change}, {}}).code, "disturbance.link");
  EXPECT_EQ(problem({{}, {{"n0.gpu0", "n1.gpu0", BytesPerSecond(1e12)}}}).code, "disturbance.rate");
  EXPECT_EQ(problem({{}, {{"n0.gpu0", "n0.gpu0", BytesPerSecond(1e9)}}}).code, "disturbance.route");
  EXPECT_EQ(problem({{}, {{change.to, "n0.gpu0", BytesPerSecond(1e9)}}}).code, "disturbance.vertex") << "a switch sends nothing";
}

StepTimeline simulated(Workbench& bench, const std::string& recipe, const schedule::StepOptions& options) {
  const Recipe read = parse_recipe(recipe, bench.scenario().base).value();
  Outcome<StepTimeline> timeline = step_timeline(bench, bench.scenario().training, read, options);
  for (const Problem& problem : timeline.problems()) ADD_FAILURE() << to_text(problem);
  return std::move(timeline).value();
}

TEST(Disturbance, ASlowRankIsSlowByItsFactor) {
  const Scenario scenario = test::llama_on_dgx(1, 32768, 8);
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  // One replica stands for eight and has no partner: every kernel takes 1.5 times as long, rounded up to a picosecond each.
  const char* alone = "tp=1,cp=1,pp=1,dp=8,recompute=full";
  const StepTimeline quiet = simulated(bench, alone, {}), slow = simulated(bench, alone, {.slow_ranks = {{5, 1.5}}});
  EXPECT_NEAR(slow.candidate.time.compute / quiet.candidate.time.compute, 1.5, 1e-6);
  EXPECT_EQ(simulated(bench, alone, {.slow_ranks = {{5, 1.0}}}).candidate, quiet.candidate);
  // In a ring the others wait for it: the step is longer, at most by the factor, and it is they who wait.
  const char* ring = "tp=1,cp=8,pp=1,dp=1,recompute=full";
  const StepTimeline even = simulated(bench, ring, {}), uneven = simulated(bench, ring, {.slow_ranks = {{3, 1.5}}});
  EXPECT_GT(uneven.candidate.time.step(), even.candidate.time.step() * 1.2);
  EXPECT_LE(uneven.candidate.time.step(), even.candidate.time.step() * 1.5 * (1 + 1e-9));
  EXPECT_GT(uneven.answer.ranks[3].parts.compute, uneven.answer.ranks[4].parts.compute);
  EXPECT_LT(uneven.answer.ranks[3].parts.exposed_cp, uneven.answer.ranks[4].parts.exposed_cp);
  // Of two, each as it was told.
  EXPECT_GT(simulated(bench, ring, {.slow_ranks = {{3, 1.5}, {4, 2.0}}}).candidate.time.step(), uneven.candidate.time.step());
  const Recipe recipe = parse_recipe(ring, scenario.base).value();
  for (const schedule::SlowRank wrong : {schedule::SlowRank{8, 1.5}, {-1, 1.5}, {0, 0.0}, {0, -2.0}})
    EXPECT_EQ(code_of(step_timeline(bench, scenario.training, recipe, {.slow_ranks = {wrong}}).problems()), "schedule.slow_rank");
}

TEST(Disturbance, ARingFeelsTheLinkItCrosses) {
  const Scenario scenario = test::llama_on_dgx(2, 131072, 2);
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const char* recipe = "tp=1,cp=16,pp=1,dp=1,recompute=full";
  const StepTimeline quiet = simulated(bench, recipe, {.every_rank = true});
  const std::string link = uplink(scenario.cluster, 7, 8);  // by which the ring leaves the first node
  const std::size_t arrow = link.find(" -> ");
  const std::string from = link.substr(0, arrow), to = link.substr(arrow + 4);
  Scenario changed = scenario;
  changed.cluster = disturbed(scenario.cluster, {{{from, to, 0.1}}, {}}).value();
  Workbench other = bench.with(changed);
  const StepTimeline slow = simulated(other, recipe, {.every_rank = true});
  EXPECT_GT(slow.candidate.time.step(), quiet.candidate.time.step());
  const std::vector<LinkShift> shifts = link_shifts(quiet.links, slow.links);
  ASSERT_FALSE(shifts.empty());
  const auto hit = std::find_if(shifts.begin(), shifts.end(), [&](const LinkShift& s) { return s.from == from && s.to == to; });
  ASSERT_NE(hit, shifts.end());
  // The same bytes, but for the collectives' part: of a link they are charged no more than they attain of it.
  EXPECT_NEAR(hit->after.bytes / hit->before.bytes, 1.0, 0.1);
  EXPECT_GT(hit->after.busy, hit->before.busy * 2.0) << "over a tenth of the link";
  // Without its NVLinks a GPU sends over PCIe; without these too it reaches nobody.
  const auto cut = [&](std::vector<LinkChange> links) {
    changed.cluster = disturbed(scenario.cluster, {std::move(links), {}}).value();
    Workbench without = bench.with(changed);
    return step_timeline(without, scenario.training, parse_recipe(recipe, scenario.base).value(), {.every_rank = true});
  };
  const Outcome<StepTimeline> detour = cut({{"n0.gpu0", "n0.nvsw0", 0.0}});
  ASSERT_TRUE(detour.ok());
  EXPECT_GT(detour->candidate.time.step(), quiet.candidate.time.step());
  EXPECT_EQ(code_of(cut({{"n0.gpu0", "n0.nvsw0", 0.0}, {"n0.gpu0", "n0.pcie0", 0.0}}).problems()), "schedule.route");
}

TEST(StepSize, OfUnfoldedLayersIsToldWithinAFactorOfTwo) {
  const Scenario scenario = test::llama_on_dgx(1, 32768, 8);
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  for (const char* text :
       {"tp=1,cp=1,pp=1,dp=8,recompute=full", "tp=1,cp=8,pp=1,dp=1,recompute=full", "tp=2,cp=4,pp=1,dp=1", "tp=2,cp=2,pp=2,dp=1",
        "tp=8,cp=1,pp=1,dp=1", "tp=1,cp=4,pp=2,dp=1,recompute=none", "tp=2,cp=4,pp=1,dp=1,cp_comm=a2a"}) {
    for (const bool every_rank : {false, true}) {
      const Recipe recipe = parse_recipe(text, scenario.base).value();
      const schedule::StepOptions options{.every_rank = every_rank, .fold_layers = false};
      const StepTimeline timeline = simulated(bench, text, options);
      const auto real = static_cast<double>(timeline.step->program.activities.size());
      const auto told = static_cast<double>(schedule::estimated_activities(bench.context(scenario.training), recipe, options));
      EXPECT_LT(told / real, 2.0) << text << (every_rank ? ", every rank" : "");
      EXPECT_GT(told / real, 0.5) << text << (every_rank ? ", every rank" : "");
    }
  }
}

TEST(PathParts, AddUpToTheStepAndCarryNoRingStepNumbers) {
  const Scenario scenario = test::llama_on_dgx(1, 32768, 8);
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const StepTimeline timeline = simulated(bench, "tp=1,cp=8,pp=1,dp=1,recompute=full", {});
  const timeline::History history = timeline.history();
  Seconds sum;
  for (const PathPart& part : path_parts(history, timeline::critical_path(history))) {
    sum += part.time;
    EXPECT_EQ(part.name.find_first_of("0123456789"), std::string::npos) << part.name;
  }
  EXPECT_NEAR(sum / timeline.candidate.time.step(), 1.0, 1e-9);
}

}  // namespace
}  // namespace cpfit
