// The step timeline to a screen reader: a chart with a one-sentence summary, and the current element as its child.
#pragma once

namespace cpfit::gui {

class TimelineView;

/// Makes TimelineView answer as a chart; once per program.
void install_timeline_accessibility();
/// Tells whoever listens that the current element changed.
void announce_timeline(TimelineView& view);

}  // namespace cpfit::gui
