// Layers that only repeat are copied when a step is written. What is copied must be what the schedule would have written.
#include <algorithm>
#include <optional>
#include <random>

#include "fixture.h"
#include "sim/engine/program_builder.h"
#include "sim/plan/step_timeline.h"

namespace cpfit {
namespace {

bool same(const engine::Activity& a, const engine::Activity& b) {
  return a.fixed == b.fixed && a.amount == b.amount && a.cap == b.cap && a.pattern == b.pattern && a.first_slot == b.first_slot &&
         a.slots == b.slots && a.tag == b.tag && a.layer == b.layer && a.micro_batch == b.micro_batch && a.chunk == b.chunk &&
         a.host_reads == b.host_reads;
}
bool same(const engine::Slot& a, const engine::Slot& b) {
  return a.activity == b.activity && a.lane == b.lane && a.next == b.next && a.waits == b.waits && a.hold == b.hold &&
         a.launch == b.launch;
}

template <class Value>
bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value& x, const Value& y) { return same(x, y); });
}

/// A program of the recipe with this recompute policy, every layer in it; none of an illegal one.
std::optional<schedule::StepProgram> written(const Scenario& study, const RateSet& rates, const std::string& recipe_text,
                                             const std::string& recompute, bool every_rank) {
  Scenario scenario = study;
  const Recipe recipe = parse_recipe(recipe_text + ",recompute=" + recompute, scenario.base).value();
  scenario.base = recipe;
  Workbench bench = Workbench::build(scenario, rates).value();
  if (first_violation(bench.legality(scenario.training, recipe)) >= 0) return std::nullopt;
  bench.prepare(recipe);
  const ResolvedLayout layout = resolve_layout(scenario.model, recipe).value();
  schedule::StepOptions options;
  options.fold_layers = false;
  options.every_rank = every_rank;
  return schedule::step_program(bench.context(scenario.training), recipe, layout, options).value();
}

/// Recompute of all layers is written out layer by layer when it is asked for as a block that holds all of them, because a
/// block's layers differ from the others; asked for as "full" they are copied. It is the same step.
TEST(CopiedLayers, AreWhatTheScheduleWouldHaveWritten) {
  const Scenario study = test::llama_on_dgx(2, 65536, 8);
  const RateSet rates = RateSet::defaults();
  std::mt19937 random(7);
  const auto one_of = [&](std::initializer_list<const char*> values) {
    return std::string(values.begin()[random() % values.size()]);
  };
  int compared = 0;
  for (int i = 0; i < 80; ++i) {
    const int pp = random() % 3 == 0 ? 2 : 1, tp = random() % 3 == 0 ? 2 : 1;
    const int cp = 1 << random() % (pp * tp > 2 ? 3 : 4), dp = 16 / (pp * tp * cp);
    std::string text = "tp=" + std::to_string(tp) + ",cp=" + std::to_string(cp) + ",pp=" + std::to_string(pp) +
                       ",dp=" + std::to_string(dp) + ",state_sharding=" + one_of({"none", "zero1", "zero3"});
    if (cp > 1) text += ",cp_comm=" + one_of({"p2p", "p2p", "all_gather", "a2a"});
    if (tp > 1) text += ",overlap_tp=" + one_of({"true", "false"});
    text += ",framework=" + one_of({"megatron-core", "megatron-core", "torchtitan", "nanotron", "ring-flash-attention"});
    const bool every_rank = random() % 4 == 0;
    const std::optional<schedule::StepProgram> full = written(study, rates, text, "full", every_rank);
    const std::optional<schedule::StepProgram> block =
        written(study, rates, text, "block-" + std::to_string(32 / pp), every_rank);
    if (!full || !block) continue;
    ++compared;
    const engine::Program &copied = full->program, &plain = block->program;
    EXPECT_TRUE(same(copied.activities, plain.activities)) << text;
    EXPECT_TRUE(same(copied.slots, plain.slots)) << text;
    EXPECT_EQ(copied.released, plain.released) << text;
    EXPECT_EQ(copied.release_begin, plain.release_begin) << text;
    EXPECT_EQ(copied.first_of_lane, plain.first_of_lane) << text;
  }
  EXPECT_GT(compared, 20);
}

/// Blocks of a kernel and a message each, of which the last is written by `change`; before them one that begins the lanes.
template <class Change>
bool repeats(Change change) {
  engine::ProgramBuilder builder;
  const engine::LaneId compute = builder.lane(0, engine::LaneKind::kCompute), send = builder.lane(0, engine::LaneKind::kCpSend);
  const engine::ActivityId start = builder.add({.amount = 1.0}, {compute});
  const auto block = [&](int layer, double amount, bool waits_for_start, bool launched) {
    const engine::ActivityId kernel = builder.add({.amount = amount, .layer = layer}, {compute});
    if (launched) builder.launch(kernel, compute);
    const engine::ActivityId message = builder.add({.amount = 5.0, .layer = layer}, {send});
    builder.wait(message, send, waits_for_start ? start : kernel);
  };
  block(0, 3.0, false, true);
  const engine::ProgramBuilder::Mark first = builder.mark();
  block(1, 3.0, false, true);
  const engine::ProgramBuilder::Mark second = builder.mark();
  change(block);
  return builder.repeats(first, second);
}

TEST(CopiedLayers, ABlockThatDiffersInAnythingIsNoRepetition) {
  EXPECT_TRUE(repeats([](auto block) { block(2, 3.0, false, true); }));
  EXPECT_FALSE(repeats([](auto block) { block(2, 4.0, false, true); }));   // another amount
  EXPECT_FALSE(repeats([](auto block) { block(2, 3.0, true, true); }));    // waits for something else
  EXPECT_FALSE(repeats([](auto block) { block(2, 3.0, false, false); }));  // not launched
  EXPECT_FALSE(repeats([](auto block) { block(-1, 3.0, false, true); }));  // of no layer
  EXPECT_FALSE(repeats([](auto block) {
    block(2, 3.0, false, true);
    block(3, 3.0, false, true);
  }));
}

}  // namespace
}  // namespace cpfit
