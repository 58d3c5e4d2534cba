// The step timeline to a screen reader: a chart with a one-sentence summary whose children are the spans that can be told apart,
// with their sentence and place, and the current row where no span is chosen.
#pragma once

namespace cpfit::gui {

class TimelineView;

/// Makes TimelineView answer as a chart.
void install_timeline_accessibility(TimelineView& view);
/// Tells whoever listens that the current element changed.
void announce_timeline(TimelineView& view);

}  // namespace cpfit::gui
