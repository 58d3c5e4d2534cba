// Topologies: the project's own format, and everybody else's by content.
#include "model/cluster/import/import.h"
#include "model/cluster/topology.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_file.h"
#include "model/cluster/topology_text.h"
#include "tests/fuzz/targets.h"

namespace cpfit::fuzz {

namespace {

/// What `cpfit topology show` and `check` do with it.
void look_at(const Cluster& cluster) {
  if (cluster.gpus() > 4096) return;
  (void)check_topology(cluster);
  (void)connection_matrix(*cluster.topology, 0);
}

}  // namespace

void topology(std::string_view bytes) {
  const Outcome<Cluster> read = read_topology(std::string(bytes), "t.json", 0);
  must(read.ok() != !read.problems().empty(), "a cluster or problems");
  if (!read.ok()) return;
  look_at(*read);
  if (read->gpus() > 512) return;
  const std::string written = write_topology(*read);
  const Outcome<Cluster> again = read_topology(written, "again.json", 0);
  must(again.ok() && write_topology(*again) == written, "a topology comes back from its text");
}

void import_topology(std::string_view bytes) {
  const std::string text(bytes);
  ImportOptions options;
  options.gpu = "H100-SXM5-80GB";
  const Outcome<ImportedCluster> read = read_any_topology(text, "f", options);
  must(read.ok() != !read.problems().empty(), "a cluster or problems");
  if (read.ok()) look_at(read->cluster);
  (void)read_any_topology(text, "f", ImportOptions{});
}

}  // namespace cpfit::fuzz
