// Topology files: the three forms, what goes wrong in each, and the way back. Checks and texts on the same small clusters.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "model/cluster/cluster_spec.h"
#include "model/cluster/group_network.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_file.h"
#include "model/cluster/topology_text.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

/// Two GPUs on two NVSwitch chips of 9 links each, one PCIe switch, one NIC, and what the caller adds.
std::string small_host(const std::string& more_links = "", const std::string& gpu = "H100-SXM5-80GB") {
  return R"({"schema": "cpfit-topology/1", "name": "small", "gpu": ")" + gpu + R"(", "nodes": 2,
  "host": {"vertices": [{"id": "gpu0", "kind": "gpu"}, {"id": "gpu1", "kind": "gpu"},
                        {"id": "sw0", "kind": "nvswitch"}, {"id": "sw1", "kind": "nvswitch"},
                        {"id": "pcie0", "kind": "pcie_switch"}, {"id": "cpu0", "kind": "cpu"},
                        {"id": "nic0", "kind": "nic", "rate": "400 Gb/s"}],
           "links": [{"between": ["gpu0", "sw0"], "class": "nvlink", "count": 9, "rate": "25 GB/s", "latency": "0.3 us"},
                     {"between": ["gpu0", "sw1"], "class": "nvlink", "count": 9, "rate": "25 GB/s", "latency": "0.3 us"},
                     {"between": ["gpu1", "sw0"], "class": "nvlink", "count": 9, "rate": "25 GB/s", "latency": "0.3 us"},
                     {"between": ["gpu1", "sw1"], "class": "nvlink", "count": 9, "rate": "25 GB/s", "latency": "0.3 us"},
                     {"between": ["gpu0", "pcie0"], "class": "pcie", "rate": "63 GB/s"},
                     {"between": ["gpu1", "pcie0"], "class": "pcie", "rate": "63 GB/s"},
                     {"between": ["nic0", "pcie0"], "class": "pcie", "rate": "63 GB/s"},
                     {"between": ["pcie0", "cpu0"], "class": "pcie", "rate": "63 GB/s"})" +
         more_links + R"(]},
  "fabric": {"rails": true, "oversubscription": 1}})";
}

std::vector<std::string> codes(const Problems& problems) {
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(problem.code);
  return out;
}

Problems problems_of(const std::string& text, std::int64_t nodes = 0) {
  const Outcome<Cluster> cluster = read_topology(text, "f.json", nodes);
  EXPECT_FALSE(cluster.ok());
  return cluster.problems();
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(TopologyFile, ReadsAHostAndRepeatsIt) {
  const Outcome<Cluster> cluster = read_topology(small_host(), "f.json", 0);
  ASSERT_TRUE(cluster) << to_text(cluster.problems().front());
  EXPECT_EQ(cluster->nodes, 2);
  EXPECT_EQ(cluster->gpus_per_node, 2);
  EXPECT_EQ(cluster->scale_up_domain, 2);
  EXPECT_EQ(read_topology(small_host(), "f.json", 5)->gpus(), 10);
  // Both chips together: 18 links. Routing over one chip would give half.
  EXPECT_DOUBLE_EQ(price_group(*cluster, {1, 2}).ring.rate.value(), 450e9);
  EXPECT_DOUBLE_EQ(price_group(*cluster, {2, 2}).ring.rate.value(), 25e9);  // two GPUs, one NIC of 50
}

TEST(TopologyFile, FourChipsGiveWhatThePresetGives) {
  // DGX H100 with its real chips (4, 4, 5, 5 links) against the preset with one plane.
  std::string vertices, links;
  for (int chip = 0; chip < 4; ++chip) vertices += R"({"id": "s)" + std::to_string(chip) + R"(", "kind": "nvswitch"},)";
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    vertices += R"({"id": "g)" + n + R"(", "kind": "gpu"},{"id": "p)" + n + R"(", "kind": "pcie_switch"},{"id": "n)" + n +
                R"(", "kind": "nic", "rate": "400 Gb/s"},)";
    const int counts[] = {4, 4, 5, 5};
    for (int chip = 0; chip < 4; ++chip) {
      links += R"({"between": ["g)" + n + R"(", "s)" + std::to_string(chip) +
               R"("], "class": "nvlink", "rate": "25 GB/s", "latency": "0.3 us", "count": )" + std::to_string(counts[chip]) +
               "},";
    }
    for (const char* device : {"g", "n"}) {
      links += R"({"between": [")" + std::string(device) + n + R"(", "p)" + n +
               R"("], "class": "pcie", "rate": "63 GB/s", "latency": "0.25 us"},)";
    }
    links += R"({"between": ["p)" + n + R"(", "cpu"], "class": "pcie", "rate": "63 GB/s", "latency": "0.25 us"})" +
             std::string(i < 7 ? "," : "");
  }
  vertices += R"({"id": "cpu", "kind": "cpu"})";
  const std::string text = R"({"schema": "cpfit-topology/1", "gpu": "h100", "host": {"vertices": [)" + vertices +
                           R"(], "links": [)" + links + R"(]}, "fabric": {"nic_latency": "0.3 us", "switch_latency": "0.2 us"}})";
  const Outcome<Cluster> chips = read_topology(text, "f.json", 4);
  ASSERT_TRUE(chips) << to_text(chips.problems().front());
  EXPECT_THAT(check_topology(*chips), IsEmpty());
  const Cluster plane = build_cluster("dgx-h100", 4).value();
  for (const GroupShape shape : {GroupShape{1, 8}, {2, 8}, {8, 4}, {1, 32}, {4, 8}}) {
    const GroupNetwork a = price_group(*chips, shape), b = price_group(plane, shape);
    EXPECT_DOUBLE_EQ(a.ring.rate.value(), b.ring.rate.value());
    EXPECT_NEAR(a.ring.latency.value(), b.ring.latency.value(), 1e-12);
    EXPECT_DOUBLE_EQ(a.collective_rate.value(), b.collective_rate.value());
    EXPECT_NEAR(a.alltoall_rate.value(), b.alltoall_rate.value(), 1.0);
  }
}

TEST(TopologyFile, OverridesAPreset) {
  const Outcome<Cluster> cluster = read_topology(
      R"({"schema": "cpfit-topology/1", "name": "ours", "base": "dgx-h100", "nodes": 2, "set": {"nic_rate": "200 Gb/s", "oversubscription": 2}})",
      "f.json", 0);
  ASSERT_TRUE(cluster) << to_text(cluster.problems().front());
  EXPECT_EQ(cluster->name, "ours");
  EXPECT_DOUBLE_EQ(price_group(*cluster, {8, 2}).ring.rate.value(), 25e9);
}

TEST(TopologyFile, OverrideProblemsNameTheKey) {
  const Problems problems = problems_of(
      R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "set": {"nic_rte": "200 Gb/s", "nics": "many", "nic_rate": "200"}})");
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_THAT(problems, Contains(Field(&Problem::repair, HasSubstr("nic_rate"))));
  EXPECT_THAT(problems, Contains(Field(&Problem::where, "f.json: set.nics")));
}

TEST(TopologyFile, ImpossibleCountsAndRatesOverAPresetAreRefused) {
  const auto over_preset = [](const std::string& more) {
    return problems_of(R"({"schema": "cpfit-topology/1", "base": "dgx-h100", )" + more + "}");
  };
  for (const char* nodes : {"-1", "0", "1e18", "\"two\"", "9223372036854775808"}) {
    SCOPED_TRACE(nodes);
    const Problems problems = over_preset(std::string("\"nodes\": ") + nodes);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].where, "f.json: nodes");
  }
  EXPECT_THAT(codes(over_preset(R"("set": {"nic_rate": "0 Gb/s"})")), ElementsAre("topology.bandwidth"));
  EXPECT_EQ(problems_of(R"({"schema": "cpfit-topology/1"})").front().where, "f.json") << "the root needs no second colon";
}

TEST(TopologyFile, BadInputIsNamed) {
  EXPECT_EQ(problems_of("{\n \"schema\": \"cpfit-topology/1\",\n \"base\" \"x\"}").front().where,
            "f.json:3:11");  // the end of "x"
  EXPECT_THAT(codes(problems_of(R"({"schema": "hw-topology/1"})")), ElementsAre("topology.schema"));
  EXPECT_THAT(codes(problems_of(R"({"schema": "cpfit-topology/1"})")), ElementsAre("topology.form"));
  EXPECT_THAT(codes(problems_of(replaced(small_host(), "H100-SXM5-80GB", "H1000"))), ElementsAre("gpu.unknown"));
  EXPECT_THAT(codes(problems_of(replaced(small_host(), "\"400 Gb/s\"", "\"0 Gb/s\""))), ElementsAre("topology.bandwidth"));
  EXPECT_THAT(codes(problems_of(replaced(small_host(), "\"id\": \"gpu1\"", "\"id\": \"gpu0\""))),
              Contains("topology.duplicate_id"));

  const Problems unknown = problems_of(small_host(R"(, {"between": ["gpu0", "pci0"], "class": "pcie", "rate": "63 GB/s"})"));
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].where, "f.json: host.links[8]");
  EXPECT_THAT(unknown[0].repair, HasSubstr("pcie0"));
  const Problems kind = problems_of(replaced(small_host(), "\"kind\": \"nvswitch\"", "\"kind\": \"nvswich\""));
  EXPECT_THAT(kind, Contains(Field(&Problem::repair, HasSubstr("nvswitch"))));
  const Problems unit = problems_of(replaced(small_host(), "\"63 GB/s\"", "\"63\""));
  EXPECT_EQ(unit.front().where, "f.json: host.links[4].rate");
}

TEST(TopologyFile, WrittenGraphReadsBack) {
  for (const char* preset : {"dgx-h100", "gb200-nvl72", "pcie-8gpu-l40s", "mi300x-8way", "dgx1-v100", "aws-p5"}) {
    SCOPED_TRACE(preset);
    const Cluster original = build_cluster(preset, 3).value();
    const Outcome<Cluster> again = read_topology(write_topology(original), "f.json", 0);
    ASSERT_TRUE(again) << to_text(again.problems().front());
    EXPECT_EQ(again->gpus_per_node, original.gpus_per_node);
    EXPECT_EQ(again->scale_up_domain, original.scale_up_domain);
    EXPECT_EQ(again->nodes, 3);
    EXPECT_EQ(again->gpu.name, original.gpu.name);
    ASSERT_EQ(again->topology->links().size(), original.topology->links().size());
    for (std::int64_t a = 0; a < original.gpus(); ++a) {
      for (std::int64_t b = 0; b < original.gpus(); ++b) EXPECT_EQ(again->topology->route(a, b), original.topology->route(a, b));
    }
    for (std::size_t i = 0; i < original.topology->links().size(); ++i) {
      EXPECT_DOUBLE_EQ(again->topology->links()[i].capacity.value(), original.topology->links()[i].capacity.value());
      EXPECT_DOUBLE_EQ(again->topology->links()[i].latency.value(), original.topology->links()[i].latency.value());
    }
    EXPECT_FALSE(read_topology(write_topology(original), "f.json", 4)) << "a graph has the hosts it has";
  }
}

TEST(TopologyFile, ANumberBeyondDoubleIsAProblem) {
  const Outcome<Cluster> cluster =
      read_topology(R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "nodes": 1e400})", "f.json", 0);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.problems().front().code, "topology.syntax");
}

TEST(TopologyFile, UnreadableFileIsAProblem) {
  const Outcome<Cluster> cluster = load_cluster("/nonexistent/cluster.json", 1);
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.problems().front().code, "topology.unreadable");
  const Outcome<Cluster> folder = load_cluster(testing::TempDir(), 1);
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.problems().front().message, HasSubstr("folder"));
}

// ---- check_topology on planted faults

Cluster changed(const Cluster& cluster, auto&& change) {
  std::vector<Vertex> vertices = cluster.topology->vertices();
  std::vector<Link> links = cluster.topology->links();
  change(vertices, links);
  Cluster out = cluster;
  out.topology = std::make_shared<const Topology>(std::move(vertices), std::move(links));
  return out;
}

TEST(TopologyCheck, PresetsAreClean) {
  for (const std::string& name : cluster_preset_names()) {
    if (name == "pcie-8gpu-a100" || name == "a100-pcie-4gpu")
      continue;  // cards sold with a bridge, here without: the warning is right
    EXPECT_THAT(check_topology(build_cluster(name, 2).value()), IsEmpty()) << name;
  }
}

TEST(TopologyCheck, FindsPlantedFaults) {
  const Cluster good = build_cluster("dgx-h100", 2).value();
  const auto found = [&](auto&& change) { return codes(check_topology(changed(good, change))); };
  const auto class_of = [](const Link& link, LinkClass wanted) { return link.link_class == wanted; };

  EXPECT_THAT(found([](auto&, auto& links) { links[40].capacity = {}; }), Contains("topology.error.bandwidth"));
  EXPECT_THAT(found([](auto&, auto& links) { links[40].capacity = BytesPerSecond(-1); }), Contains("topology.error.bandwidth"));
  EXPECT_THAT(found([](auto&, auto& links) { links.pop_back(); }),
              ElementsAre("topology.warning.asymmetric", "topology.error.unreachable"));
  EXPECT_THAT(found([](auto&, auto& links) { links[0].capacity /= 2; }), ElementsAre("topology.warning.asymmetric"));
  EXPECT_THAT(found([](auto&, auto& links) { links.insert(links.end(), {links[0], links[1]}); }),
              Contains("topology.warning.duplicate"));
  EXPECT_THAT(
      found([&](auto&, auto& links) { std::erase_if(links, [&](const Link& link) { return class_of(link, LinkClass::kNic); }); }),
      ElementsAre("topology.error.unreachable"));
  EXPECT_THAT(found([&](auto& vertices, auto& links) {
                std::erase_if(links, [&](const Link& link) {
                  return class_of(link, LinkClass::kPcie) &&
                         (vertices[static_cast<std::size_t>(link.from)].kind == VertexKind::kNic ||
                          vertices[static_cast<std::size_t>(link.to)].kind == VertexKind::kNic);
                });
              }),
              ElementsAre("topology.error.unreachable", "topology.error.no_nic"));
  EXPECT_THAT(found([&](auto&, auto& links) {
                for (Link& link : links) {
                  if (class_of(link, LinkClass::kNvlink)) link.capacity /= 2;
                }
              }),
              ElementsAre("topology.warning.scale_up"));
  EXPECT_THAT(found([&](auto&, auto& links) {
                for (Link& link : links) {
                  if (class_of(link, LinkClass::kPcie)) link.capacity *= 2;
                }
              }),
              ElementsAre("topology.warning.pcie"));
}

TEST(TopologyCheck, CountsPlacesAndTellsErrorsFromWarnings) {
  Cluster cluster = build_cluster("dgx-h100", 2).value();
  cluster.gpu = find_gpu("a100").value();  // 300 GB/s and PCIe 4 on the sheet
  const Problems findings = check_topology(cluster);
  ASSERT_THAT(codes(findings), ElementsAre("topology.warning.scale_up", "topology.warning.pcie"));
  EXPECT_THAT(findings[0].message, HasSubstr("16 places"));
  EXPECT_EQ(findings[0].where, "n0.gpu0");
  EXPECT_FALSE(is_error(findings[0]));
}

// ---- text

TEST(TopologyText, MatrixOfADgxH100) {
  const ConnectionMatrix matrix = connection_matrix(*build_cluster("dgx-h100", 2)->topology, 1);
  ASSERT_EQ(matrix.names.size(), 16u);
  EXPECT_EQ(matrix.names[0], "GPU0");
  EXPECT_EQ(matrix.names[8], "NIC0");
  EXPECT_EQ(matrix.codes[0][0], "X");
  EXPECT_EQ(matrix.codes[0][7], "NV18");
  EXPECT_EQ(matrix.codes[0][8], "PIX");   // its own NIC, one switch
  EXPECT_EQ(matrix.codes[0][9], "NODE");  // the neighbour's NIC, same socket
  EXPECT_EQ(matrix.codes[0][15], "SYS");  // other socket
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) EXPECT_EQ(matrix.codes[i][j], matrix.codes[j][i]);
  }
}

TEST(TopologyText, MatrixOfOtherBoxes) {
  const ConnectionMatrix cube = connection_matrix(*build_cluster("dgx1-v100", 1)->topology, 0);
  EXPECT_EQ(cube.codes[0][1], "NV1");
  EXPECT_EQ(cube.codes[0][3], "NV2");
  EXPECT_EQ(cube.codes[0][5], "SYS");  // no link of its own, other socket
  const ConnectionMatrix pcie = connection_matrix(*build_cluster("pcie-8gpu-l40s", 1)->topology, 0);
  EXPECT_EQ(pcie.codes[0][1], "NODE");
  EXPECT_EQ(pcie.codes[0][4], "SYS");
  EXPECT_EQ(connection_matrix(*build_cluster("mi300x-8way", 1)->topology, 0).codes[2][6], "XGMI1");
  EXPECT_EQ(connection_matrix(*build_cluster("a100-pcie-4gpu-bridge", 1)->topology, 0).codes[2][3], "NV12");
}

/// The codes of a real DGX-1, from a public nvidia-smi text.
TEST(TopologyText, CubeMeshMatchesARealMachine) {
  const std::string path = "reference/hardware/samples/smi_topo/01_dgx1_v100_mlx5_columns.txt";
  CPFIT_REQUIRE_SHARED(path);
  std::ifstream file(test::shared_path(path));
  const ConnectionMatrix matrix = connection_matrix(*build_cluster("dgx1-v100", 1)->topology, 0);
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::string name;
    cells >> name;
    if (name.size() != 4 || !name.starts_with("GPU") || rows >= 8) continue;
    std::vector<std::string> codes;
    for (std::string cell; cells >> cell;) codes.push_back(cell);
    if (codes.empty() || codes[0].starts_with("GPU")) continue;  // the header line
    const auto gpu = static_cast<std::size_t>(name[3] - '0');
    for (std::size_t other = 0; other < 8; ++other)
      EXPECT_EQ(matrix.codes[gpu][other], codes[other]) << "GPU" << gpu << " GPU" << other;
    ++rows;
  }
  EXPECT_EQ(rows, 8);
}

TEST(TopologyText, LinksAreGrouped) {
  const std::vector<TopologyLink> rows = link_table(*build_cluster("dgx-h100", 2)->topology);
  const auto nvlink =
      std::find_if(rows.begin(), rows.end(), [](const TopologyLink& row) { return row.link_class == LinkClass::kNvlink; });
  ASSERT_NE(nvlink, rows.end());
  EXPECT_EQ(nvlink->count, 16);  // 2 hosts x 8 GPUs, GPU to switch
  EXPECT_EQ(nvlink->lanes, 18);
  EXPECT_THAT(print_links(rows), HasSubstr("450 GB/s"));
}

TEST(TopologyText, RingSaysWhichHopCrosses) {
  const std::string text = print_ring(build_cluster("dgx-h100", 2).value(), {2, 8});
  EXPECT_THAT(text, HasSubstr("rank 6 -> 8"));
  EXPECT_THAT(text, HasSubstr("n0.nic6 -> leaf6"));
  EXPECT_THAT(text, HasSubstr("crosses nodes"));
}

TEST(RingWarning, TellsWhatWouldSpareTheSlowHop) {
  const Cluster cluster = build_cluster("dgx-h100", 2).value();
  const std::optional<RingWarning> warning = ring_warning(cluster, 2, 8);
  ASSERT_TRUE(warning);
  EXPECT_DOUBLE_EQ(warning->slow.rate.value(), 50e9);
  EXPECT_DOUBLE_EQ(warning->usual.rate.value(), 450e9);
  // cp first: ranks 0..7 stay in the host (450), tp then pairs hosts over one NIC per GPU (50); tp=1: cp=8 fits a host.
  ASSERT_EQ(warning->alternatives.size(), 2u);
  EXPECT_DOUBLE_EQ(warning->alternatives[0].ring_rate.value(), 450e9);
  EXPECT_DOUBLE_EQ(warning->alternatives[0].tensor_rate.value(), 50e9);
  EXPECT_EQ(warning->alternatives[1].tp, 1);
  EXPECT_THAT(warning->sentence, HasSubstr("n0.nic6 -> leaf6 at 50 GB/s"));
  EXPECT_THAT(warning->sentence, HasSubstr("2 rings leave"));
}

TEST(RingWarning, IsSilentWhereAllHopsAreAlike) {
  EXPECT_FALSE(ring_warning(build_cluster("dgx-h100", 2).value(), 1, 8));
  EXPECT_FALSE(ring_warning(build_cluster("dgx-h100", 2).value(), 2, 4));
  EXPECT_FALSE(ring_warning(build_cluster("gb200-nvl72", 64).value(), 8, 8));
}

}  // namespace
}  // namespace cpfit
