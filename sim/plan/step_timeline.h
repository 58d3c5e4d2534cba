// One recipe on the timeline: its step written as a program, run by the engine, and read back as a candidate beside the screen's.
// What the command line and the desktop program show of a recipe at timeline fidelity.
#pragma once

#include <memory>
#include <vector>

#include "model/record/candidate.h"
#include "model/record/run.h"
#include "sim/plan/workbench.h"
#include "sim/schedule/step_schedule.h"
#include "sim/timeline/exposure.h"

namespace cpfit {

struct StepTimeline {
  Candidate screened;   // closed form
  Candidate candidate;  // time, step, tokens/s, mfu, hfu, cp exposure from the timeline; memory and verdict are the screen's
  std::shared_ptr<const schedule::StepProgram> step;
  std::shared_ptr<const engine::Run> run;
  timeline::StepAnswer answer;
  std::vector<LinkLoad> links;  // of the simulated ranks, by busy time, longest first
  bool folded = false;          // layers were folded

  /// The step's program with its run. The timeline must outlive what reads it.
  [[nodiscard]] timeline::History history() const { return {step->program, *run}; }
  /// Step on the timeline over step on the screen.
  [[nodiscard]] double ratio() const { return candidate.time.step() / screened.time.step(); }
};

/// Problems: every violated rule of the recipe, "schedule.*", "engine.*". Prepares the network of the recipe's groups.
[[nodiscard]] Outcome<StepTimeline> step_timeline(Workbench& bench, const Training& training, const Recipe& recipe,
                                                  const schedule::StepOptions& options);

/// Why the job's first step takes longer or shorter than the steady one (`steady` - `first` by part): one sentence.
[[nodiscard]] std::string first_step_sentence(const TimeBreakdown& first, const TimeBreakdown& steady);

/// Why timeline and screen differ by more than `bound` (a share of the step): one sentence that names the part that differs most
/// and what explains it; empty inside the bound.
[[nodiscard]] std::string disagreement(const StepTimeline& timeline, double bound);

/// Screen and timeline are held together within this share of the step where nothing contends.
inline constexpr double kAgreement = 0.02;

}  // namespace cpfit
