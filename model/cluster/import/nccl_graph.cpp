// NCCL's graph XML (src/graph/search.cc): the channels NCCL chose. The order of a channel's gpu elements is its ring; rates and
// cables are not in it.
#include <fmt/format.h>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/import/xml.h"

namespace cpfit {

Outcome<ImportedTopology> import_nccl_graph(std::string_view text, const std::string& where) {
  constexpr std::int64_t kRing = 4;  // NCCL_TOPO_PATTERN_RING
  constexpr std::size_t kMostChannels = 1024;
  pugi::xml_document document;
  if (Problems problems = parse_xml(document, text, where); !problems.empty()) return problems;
  ImportedOrder order;
  std::size_t graphs = 0, others = 0, gpus = 0;
  std::string classes;
  for (const pugi::xml_node& graph : document.child("graphs").children("graph")) {
    ++graphs;
    if (whole_of(graph, "pattern") != kRing) {
      ++others;
      continue;
    }
    if (classes.empty()) {
      classes = fmt::format("{} between GPUs, {} to the network", scan::shown(text_of(graph, "typeintra")),
                            scan::shown(text_of(graph, "typeinter")));
    }
    for (const pugi::xml_node& channel : graph.children("channel")) {
      ImportedOrder::Ring ring{fmt::format("channel {}", order.rings.size()), {}};
      for (const pugi::xml_node& gpu : channel.children("gpu")) {
        if (ring.members.size() < kMostDevices) ring.members.push_back(scan::shown(text_of(gpu, "dev")));
      }
      gpus = std::max(gpus, ring.members.size());
      if (order.rings.size() < kMostChannels) order.rings.push_back(std::move(ring));
    }
  }
  if (graphs == 0) return scan::problem("xml", where, 0, "there is no <graph> element", "NCCL_GRAPH_DUMP_FILE writes such files");
  ImportedTopology imported;
  imported.format = TopologyFormat::kNcclGraph;
  imported.where = where;
  imported.summary = fmt::format("the order of {} GPUs of one host in {} rings", gpus, order.rings.size());
  if (!classes.empty()) imported.notes.push_back("links as NCCL classed them: " + classes);
  if (others > 0) imported.notes.push_back(fmt::format("{} graphs that are no rings (trees, NVLS) are left out", others));
  imported.holds = std::move(order);
  return imported;
}

}  // namespace cpfit
