// The verdict in words: what fits, how fast, what limits it. Pure: figures in, sentences out.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "gui/study/live_estimate.h"

namespace cpfit::gui {

/// One cell of the verdict strip.
struct VerdictCell {
  QString id;       // "memory", "step", "ring", "mfu", "limit"
  QString caption;  // "Memory"
  QString value;    // "59.2 of 79.2 GiB"
  QString note;     // "stage 0, in loss"
  QString mark;     // of its source: "●" measured, "◐" fitted, "○" assumed, "✎" edited
  QString source;   // the mark as a word
  QString delta;    // against the baseline, signed; empty without one
  bool better = false;
  enum class Tone { kPlain, kGood, kWarn, kBad } tone = Tone::kPlain;
  QString tip;
};

/// What limits the step: the largest part that is not compute, or compute itself.
[[nodiscard]] QString limit_of(const TimeBreakdown& time);
/// Of a ring's messages, the share that runs behind attention; none where nothing goes round a ring, or where what is exposed is
/// not the ring's own (peers waited for, kernels slowed).
[[nodiscard]] std::optional<double> hidden_share(const CpExposure& cp, const TimeBreakdown& time, const Recipe& recipe);

/// The candidate shown: the timeline's where it is current, else the closed form's.
struct Shown {
  const Candidate* candidate = nullptr;
  bool from_timeline = false;
  QString edited;  // what was changed about the cluster for a try; empty: nothing
};
[[nodiscard]] Shown shown_candidate(const LiveEstimate& live);

[[nodiscard]] std::vector<VerdictCell> verdict_cells(const Estimate& estimate, const Shown& shown,
                                                     const std::optional<Baseline>& baseline);

/// "Fits", "At risk", "Does not fit", "Not legal" and why, one sentence.
[[nodiscard]] QString verdict_headline(const Estimate& estimate, const std::optional<Lever>& smallest_change);
/// All of it as one line of text.
[[nodiscard]] QString verdict_line(const Estimate& estimate, const Shown& shown, const std::optional<Baseline>& baseline);

/// The smallest of the levers that makes the recipe fit: the least gain that is enough.
[[nodiscard]] std::optional<Lever> smallest_enough(const std::vector<Lever>& levers);

}  // namespace cpfit::gui
