#include "sim/plan/step_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/quantity/text.h"
#include "sim/timeline/loads.h"

namespace cpfit {

namespace {

/// The run of a program whose layers repeat: with more copies as long as the state does not, then unfolded.
struct WrittenStep {
  std::shared_ptr<const schedule::StepProgram> step;
  std::shared_ptr<const engine::Run> run;
  bool folded = false;
};

Outcome<WrittenStep> write_and_run(const ScreenContext& context, const Recipe& recipe, const ResolvedLayout& layout,
                                   schedule::StepOptions options) {
  constexpr std::int32_t kMostCopies = 16;  // beyond, little is saved
  for (;;) {
    Outcome<schedule::StepProgram> step = schedule::step_program(context, recipe, layout, options);
    if (!step.ok()) return step.problems();
    Outcome<engine::Run> run = engine::run(step->program, options.stop);
    if (run.ok()) {
      WrittenStep written;
      written.folded = !step->program.sections.empty();
      written.step = std::make_shared<schedule::StepProgram>(std::move(step).value());
      written.run = std::make_shared<engine::Run>(std::move(run).value());
      return written;
    }
    if (!options.fold_layers || run.problems().front().code != "engine.no_period") return run.problems();
    options.fold_copies *= 2;
    if (options.fold_copies > kMostCopies) options.fold_layers = false;
  }
}

/// Exposed CP of one layer and micro-batch, forward and backward, on the rank where it is longest.
void set_exposure(const timeline::StepAnswer& answer, const Architecture& model, std::int32_t micro_batches, const Recipe& recipe,
                  CpExposure& exposure) {
  const double runs = static_cast<double>(model.layers) / recipe.pp * micro_batches;
  exposure.forward_exposed = exposure.backward_exposed = Seconds();
  for (const timeline::RankAnswer& rank : answer.ranks) {
    Seconds forward, backward;
    for (const timeline::ExposureRow& row : rank.rows) {
      if (row.axis != engine::TrafficAxis::kCp) continue;
      (row.pass == engine::StepPass::kForward ? forward : backward) += engine::to_seconds(row.exposed());
    }
    if (forward + backward > (exposure.forward_exposed + exposure.backward_exposed) * runs) {
      exposure.forward_exposed = forward / runs;
      exposure.backward_exposed = backward / runs;
    }
  }
}

std::vector<LinkLoad> loads_of_links(const Topology& topology, const timeline::History& history) {
  std::vector<LinkLoad> loads;
  for (const timeline::LinkUse& use : timeline::link_uses(history)) {
    const Link& link = topology.links()[static_cast<std::size_t>(use.link)];
    LinkLoad load;
    load.from = topology.vertices()[static_cast<std::size_t>(link.from)].name;
    load.to = topology.vertices()[static_cast<std::size_t>(link.to)].name;
    load.bytes = Bytes(use.bytes);
    load.busy = engine::to_seconds(use.busy);
    loads.push_back(std::move(load));
  }
  std::stable_sort(loads.begin(), loads.end(), [](const LinkLoad& a, const LinkLoad& b) { return a.busy > b.busy; });
  return loads;
}

}  // namespace

Outcome<StepTimeline> step_timeline(Workbench& bench, const Training& training, const Recipe& recipe,
                                    const schedule::StepOptions& options) {
  Outcome<Candidate> screened = bench.evaluate(training, recipe);
  if (!screened.ok()) return screened.problems();
  const ScreenContext context = bench.context(training);
  Outcome<ResolvedLayout> layout = resolve_layout(context.model, recipe);
  if (!layout.ok()) return layout.problems();
  Outcome<WrittenStep> written = write_and_run(context, recipe, *layout, options);
  if (!written.ok()) return written.problems();

  StepTimeline result;
  result.screened = *screened;
  result.candidate = *screened;
  result.step = written->step;
  result.run = written->run;
  result.folded = written->folded;
  const timeline::History history = result.history();
  result.answer = timeline::step_answer(history);
  result.links = loads_of_links(*context.cluster.topology, history);

  Candidate& candidate = result.candidate;
  candidate.time = result.answer.time;
  const double longer = result.ratio();
  candidate.step_low = screened->step_low * longer;
  candidate.step_high = screened->step_high * longer;
  candidate.tokens_per_second_per_gpu = screened->tokens_per_second_per_gpu / longer;
  candidate.mfu = screened->mfu / longer;
  candidate.hfu = screened->hfu / longer;
  set_exposure(result.answer, context.model, result.step->micro_batches, recipe, candidate.cp);
  return result;
}

std::string first_step_sentence(const TimeBreakdown& first, const TimeBreakdown& steady) {
  const double change = 100.0 * (first.step() / steady.step() - 1.0);
  std::string text = fmt::format("The first step of the job takes {} ({:+.1f} %): ", print_time(first.step()),
                                 std::round(10.0 * change) / 10.0 + 0.0);
  text += "it has no gradients to update with";
  const Seconds gathers = steady.exposed_dp - first.exposed_dp;
  if (gathers / steady.step() > 1e-6)
    text += fmt::format(" and no changed parameters to gather, {} exposed", print_time(gathers));
  return text + ". Every later step takes exactly as long as the one shown, from gradient norm to gradient norm.";
}

std::string disagreement(const StepTimeline& timeline, double bound) {
  const TimeBreakdown& a = timeline.screened.time;
  const TimeBreakdown& b = timeline.candidate.time;
  const Seconds step = a.step();
  if (std::abs(b.step() / step - 1.0) <= bound) return {};
  struct Part {
    const char* name;
    Seconds difference;
    const char* why;
  };
  const std::array<Part, 9> parts{{
      {"compute", b.compute - a.compute, "the stage that ends last does not hold the layers that the screen counts for it"},
      {"exposed CP", b.exposed_cp - a.exposed_cp, "ring messages share links, wait for slower neighbours, or drift apart"},
      {"exposed TP", b.exposed_tp - a.exposed_tp, "collectives meet other traffic, or kernels between them hide more or less"},
      {"exposed PP", b.exposed_pp - a.exposed_pp, "stages post their messages at other moments than one after the other"},
      {"exposed DP", b.exposed_dp - a.exposed_dp,
       "buckets start when their gradients exist, and share links with what runs then"},
      {"bubble", b.bubble - a.bubble, "stages wait for each other where their turns do not line up"},
      {"launch", b.launch - a.launch, "the host thread runs ahead in one part and is waited for in another"},
      {"optimizer", b.optimizer - a.optimizer, "it belongs to another stage"},
      {"other", b.other - a.other, "ranks wait for the slowest one at the end of the step"},
  }};
  const Part& worst = *std::max_element(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    return std::abs(x.difference.value()) < std::abs(y.difference.value());
  });
  return fmt::format("timeline and screen differ by {:+.1f} %, most in {} ({}{}): {}", 100.0 * (b.step() / step - 1.0),
                     worst.name, worst.difference.value() < 0 ? "-" : "+",
                     print_time(Seconds(std::abs(worst.difference.value()))), worst.why);
}

}  // namespace cpfit
