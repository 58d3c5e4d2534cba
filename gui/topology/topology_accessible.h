// The topology graph to a screen reader: a chart with a sentence, its boxes and links in sight as children with names and places;
// pressing a link selects it, pressing a folded box opens it.
#pragma once

namespace cpfit::gui {

class TopologyGraph;

/// Makes this graph answer so.
void install_topology_accessibility(TopologyGraph& graph);
/// Tells whoever listens that another link is selected.
void announce_topology(TopologyGraph& graph);

}  // namespace cpfit::gui
