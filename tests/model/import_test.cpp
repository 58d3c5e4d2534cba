// Importers on our own small files: what each format gives, what is assumed and said so, what is refused and why, and that no
// damage to a file does worse than a Problem.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "model/cluster/group_network.h"
#include "model/cluster/import/import.h"
#include "model/cluster/import/smi_matrix.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_file.h"
#include "model/cluster/topology_text.h"

namespace cpfit {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kFixtures = {"smi_three_gpus_ansi.txt", "smi_wrapped_soc.txt",  "smi_p2p.txt",
                                            "rocm_two_gpus.txt",       "nccl_two_sockets.xml", "nccl_ring_graph.xml",
                                            "nccl_ring.log",           "hwloc_one_socket.xml", "slurm_tree.conf",
                                            "slurm_block.conf",        "slurm_topology.yaml",  "ib_two_leaves.txt"};

std::string fixture(const std::string& name) {
  std::ifstream file(std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/topology/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ImportedCluster completed(const std::string& text, ImportOptions options = {}) {
  const Outcome<ImportedCluster> cluster = read_any_topology(text, "f", options);
  for (const Problem& problem : cluster.problems()) ADD_FAILURE() << to_text(problem);
  return cluster.value();
}

Problem refused(const std::string& text, const ImportOptions& options = {}) {
  const Outcome<ImportedCluster> cluster = read_any_topology(text, "f", options);
  EXPECT_FALSE(cluster.ok());
  return cluster.ok() ? Problem{} : cluster.problems().front();
}

std::vector<std::string> row(const ImportedCluster& made, std::size_t at) {
  return connection_matrix(*made.cluster.topology, 0).codes.at(at);
}

/// The link between two vertices by name; capacity 0 when there is none.
Link link_of(const Topology& topology, const std::string& from, const std::string& to) {
  for (const Link& link : topology.links()) {
    if (topology.vertices()[static_cast<std::size_t>(link.from)].name == from &&
        topology.vertices()[static_cast<std::size_t>(link.to)].name == to)
      return link;
  }
  ADD_FAILURE() << "no link " << from << " -> " << to;
  return {0, 0, LinkClass::kLocal, {}, {}};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(ImportFormat, IsKnownByContent) {
  const std::vector<TopologyFormat> formats = {
      TopologyFormat::kSmiTopo,      TopologyFormat::kSmiTopo,   TopologyFormat::kSmiP2p,    TopologyFormat::kRocmTopo,
      TopologyFormat::kNcclTopology, TopologyFormat::kNcclGraph, TopologyFormat::kNcclLog,   TopologyFormat::kHwloc,
      TopologyFormat::kSlurmConf,    TopologyFormat::kSlurmConf, TopologyFormat::kSlurmYaml, TopologyFormat::kIbnetdiscover};
  for (std::size_t i = 0; i < kFixtures.size(); ++i) EXPECT_EQ(detect_format(fixture(kFixtures[i])), formats[i]) << kFixtures[i];
  EXPECT_EQ(detect_format("  {\"schema\": 1}"), TopologyFormat::kOwn);
  EXPECT_EQ(detect_format("\x1f\x8b\x08"), TopologyFormat::kGzip);
  EXPECT_EQ(detect_format(std::string("GPU0\0GPU1", 9)), TopologyFormat::kBinary);
  EXPECT_EQ(detect_format("hello"), TopologyFormat::kUnknown);
  EXPECT_EQ(detect_format(""), TopologyFormat::kUnknown);
}

TEST(ImportSmi, GivesTheCodesBackThroughColoursTabsAndCarriageReturns) {
  const ImportedCluster made = completed(fixture("smi_three_gpus_ansi.txt"));
  // Pairs of cards with 12 links each: an NVLink bridge.
  EXPECT_EQ(made.cluster.gpu.name, "A100-PCIe-80GB");
  EXPECT_THAT(made.notes, Contains(HasSubstr("--gpu changes it")));
  EXPECT_EQ(made.cluster.gpus_per_node, 3);
  EXPECT_THAT(row(made, 0), ElementsAre("X", "NV12", "SYS", "PIX", "SYS"));
  EXPECT_THAT(row(made, 1), ElementsAre("NV12", "X", "SYS", "PXB", "SYS"));
  EXPECT_THAT(row(made, 2), ElementsAre("SYS", "SYS", "X", "SYS", "PHB"));
  EXPECT_THAT(row(made, 3), ElementsAre("PIX", "PXB", "SYS", "X", "SYS"));
  // 12 links of 300 GB/s / 12 each.
  EXPECT_DOUBLE_EQ(link_of(*made.cluster.topology, "n0.gpu0", "n0.gpu1").capacity.value(), 300e9);
  const Outcome<SmiMatrix> matrix = read_smi_matrix(fixture("smi_three_gpus_ansi.txt"), "f");
  EXPECT_THAT(matrix->labels, ElementsAre("GPU0", "GPU1", "GPU2", "mlx5_7", "mlx5_bond_0"));
  EXPECT_THAT(matrix->affinity, ElementsAre("numa 0", "numa 0", "numa 1", "", ""));
}

TEST(ImportSmi, JoinsLinesThatATerminalWrapped) {
  const ImportedCluster made = completed(fixture("smi_wrapped_soc.txt"), {"L40S", 0, "200 Gb/s"});
  EXPECT_THAT(row(made, 0), ElementsAre("X", "NODE", "SYS", "SYS", "PIX"));
  EXPECT_THAT(row(made, 2), ElementsAre("SYS", "SYS", "X", "NODE", "SYS"));
  EXPECT_THAT(row(made, 4), ElementsAre("PIX", "NODE", "SYS", "SYS", "X"));
}

TEST(ImportSmi, TakesMorePairsThanAGpuHasLinksAsAPlane) {
  // Three GPUs with NV18 each: 36 links per GPU directly, and an H100 has 18.
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\tX\tNV18\tNV18\t0\nGPU1\tNV18\tX\tNV18\t0\nGPU2\tNV18\tNV18\tX\t0\n";
  const ImportedCluster made = completed(text);
  EXPECT_EQ(made.cluster.gpu.name, "H100-SXM5-80GB");
  EXPECT_EQ(made.cluster.scale_up_domain, 3);
  EXPECT_DOUBLE_EQ(link_of(*made.cluster.topology, "n0.gpu2", "n0.nvsw0").capacity.value(), 450e9);
  EXPECT_THAT(row(made, 0), ElementsAre("X", "NV18", "NV18"));
  // Two GPUs of the same board: 18 links fit, drawn directly; the rate is the same.
  const ImportedCluster pair = completed("\tGPU0\tGPU1\nGPU0\tX\tNV18\nGPU1\tNV18\tX\n");
  EXPECT_DOUBLE_EQ(link_of(*pair.cluster.topology, "n0.gpu0", "n0.gpu1").capacity.value(), 450e9);
}

TEST(ImportSmi, PlanesOfRackScaleGpusLeaveTheHost) {
  const std::string text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV18\tNV18\nGPU1\tNV18\tX\tNV18\nGPU2\tNV18\tNV18\tX\n";
  EXPECT_EQ(completed(text, {"GB200", 2}).cluster.scale_up_domain, 6);
}

TEST(ImportSmi, SaysWhatIsWrong) {
  const std::string good = "\tGPU0\tGPU1\tNIC0\nGPU0\tX\tPIX\tSYS\nGPU1\tPIX\tX\tSYS\nNIC0\tSYS\tSYS\tX\n";
  EXPECT_EQ(refused(good).code, "import.gpu");  // nothing hints at the GPU
  EXPECT_EQ(refused(good, {"H900"}).code, "gpu.unknown");
  const ImportOptions l40s{"L40S"};
  EXPECT_EQ(completed(good, l40s).cluster.gpus(), 2);
  EXPECT_EQ(refused(replaced(good, "X\tPIX\tSYS", "X\tPXB\tSYS"), l40s).code, "import.asymmetric");
  EXPECT_EQ(refused(replaced(good, "X\tPIX\tSYS", "X\tFOO\tSYS"), l40s).code, "import.code");
  EXPECT_EQ(refused(replaced(good, "X\tPIX\tSYS", "PIX\tX\tSYS"), l40s).code, "import.code");
  EXPECT_EQ(refused(replaced(good, "X\tPIX\tSYS", "X\tNV12345\tSYS"), l40s).code, "import.code");
  EXPECT_EQ(refused(replaced(good, "X\tPIX\tSYS", "X\tPIX\tSYS\tSYS"), l40s).code, "import.cut");
  // A missing row: the columns of the other rows tell it.
  EXPECT_THAT(row(completed(replaced(good, "GPU1\tPIX\tX\tSYS\n", ""), l40s), 1), ElementsAre("PIX", "X", "SYS"));
  EXPECT_EQ(refused("\tGPU0\tGPU1\tCPU Affinity\n", l40s).code, "import.cut");
  EXPECT_EQ(refused(replaced(good, "\tNIC0\n", "\tMIG0\n"), l40s).code, "import.mig");
  EXPECT_EQ(refused(fixture("smi_p2p.txt"), l40s).code, "import.p2p");
  EXPECT_EQ(refused(replaced(good, "PIX", "NV4"), l40s).code, "import.asymmetric");
  const std::string linked = "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n";
  EXPECT_EQ(refused(linked, l40s).code, "import.gpu");  // an L40S has no NVLink
  EXPECT_EQ(refused(good, {"L40S", 1'000'000}).code, "import.nodes");
  EXPECT_EQ(refused(good, {"L40S", 1, "fast"}).where, "--nic-rate");
}

TEST(ImportSmi, BondsPortsThatOutnumberTheGpusOfTheirSwitch) {
  // One GPU and four ports under one bridge (EFA): one NIC of four ports; without bonding, four NICs.
  const std::string text =
      "\tGPU0\tNIC0\tNIC1\tNIC2\tNIC3\nGPU0\tX\tPIX\tPIX\tPIX\tPIX\nNIC0\tPIX\tX\tPIX\tPIX\tPIX\nNIC1\tPIX\tPIX\tX\tPIX\tPIX\n"
      "NIC2\tPIX\tPIX\tPIX\tX\tPIX\nNIC3\tPIX\tPIX\tPIX\tPIX\tX\n";
  ImportOptions options{"H100-SXM5-80GB", 2, "100 Gb/s"};
  const ImportedCluster bonded = completed(text, options);
  EXPECT_THAT(row(bonded, 0), ElementsAre("X", "PIX"));
  EXPECT_DOUBLE_EQ(link_of(*bonded.cluster.topology, "n1.nic0", "leaf0").capacity.value(), 4 * 12.5e9);
  options.bond_ports = false;
  EXPECT_EQ(row(completed(text, options), 0).size(), 5U);
}

TEST(ImportRocm, ReadsLinkTypes) {
  const ImportedCluster made = completed(fixture("rocm_two_gpus.txt"), {"MI300X"});
  EXPECT_THAT(row(made, 0), ElementsAre("X", "XGMI1"));
  EXPECT_DOUBLE_EQ(link_of(*made.cluster.topology, "n0.gpu0", "n0.gpu1").capacity.value(), 448e9 / 7);
  EXPECT_EQ(refused(fixture("rocm_two_gpus.txt")).code, "import.gpu");
  EXPECT_EQ(refused("ROCm System Management Interface\nWeight between two GPUs\n").code, "import.no_matrix");
}

TEST(ImportNccl, ReadsSwitchesPortsPlanesAndRates) {
  const ImportedCluster made = completed(fixture("nccl_two_sockets.xml"));
  EXPECT_EQ(made.cluster.gpu.name, "H200-SXM-141GB");  // PCI device 10de:2335
  const Topology& topology = *made.cluster.topology;
  // GPU 0 is dev 0, on the second socket, beside mlx5_2, which is NIC 1.
  EXPECT_THAT(row(made, 0), ElementsAre("X", "NV18", "SYS", "PIX"));
  EXPECT_THAT(row(made, 1), ElementsAre("NV18", "X", "PIX", "SYS"));
  EXPECT_EQ(link_of(topology, "n0.gpu0", "n0.nvsw0").lanes, 18);  // two chips, 8 + 10
  EXPECT_DOUBLE_EQ(link_of(topology, "n0.gpu0", "n0.nvsw0").capacity.value(), 450e9);
  EXPECT_DOUBLE_EQ(link_of(topology, "n0.gpu1", "n0.pcie0").capacity.value(), 31.5e9);  // the bridge above it has eight lanes
  EXPECT_DOUBLE_EQ(link_of(topology, "n0.cpu0", "n0.cpu1").capacity.value(), 22e9);     // Intel model 143: Sapphire Rapids
  const ImportedCluster two = completed(fixture("nccl_two_sockets.xml"), {"", 2});
  EXPECT_DOUBLE_EQ(link_of(*two.cluster.topology, "n0.nic0", "leaf0").capacity.value(), 2 * 25e9);  // two ports of 200 Gb/s
  EXPECT_EQ(link_of(*two.cluster.topology, "n0.nic0", "leaf0").lanes, 2);
}

TEST(ImportNccl, FillsWhatCloudFilesLeaveOut) {
  std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 4; ++i) text += "<pci busid=\"000" + std::to_string(i) + ":00:00.0\" class=\"0x030200\"/>";
  text += "</cpu></system>";
  const ImportedCluster made = completed(text, {"H100"});
  EXPECT_EQ(made.cluster.scale_up_domain, 4);
  EXPECT_THAT(made.notes, Contains(HasSubstr("assumed as in the preset dgx-h100")));
  EXPECT_EQ(refused("<system><cpu><pci busid=\"0000:01:00.0\"/></cpu></system>").code, "import.no_class");
  EXPECT_EQ(refused("<system><cpu/></system>").code, "import.no_gpu");
  EXPECT_EQ(refused("<system><cpu>").code, "import.xml");
  EXPECT_EQ(refused("<system><cpu host_hash=\"1\"/><cpu host_hash=\"2\"/></system>").code, "import.several_hosts");
}

TEST(ImportNccl, GraphsAndLogsHoldAnOrderOnly) {
  const Outcome<ImportedTopology> graph = import_topology(fixture("nccl_ring_graph.xml"), "f");
  ASSERT_TRUE(graph.ok());
  const auto& rings = std::get<ImportedOrder>(graph->holds).rings;
  ASSERT_EQ(rings.size(), 2U);
  EXPECT_THAT(rings[0].members, ElementsAre("0", "2", "1"));
  EXPECT_THAT(rings[1].members, ElementsAre("1", "2", "0"));
  EXPECT_EQ(refused(fixture("nccl_ring_graph.xml"), {"H100"}).code, "import.order_only");

  const Outcome<ImportedTopology> log = import_topology(fixture("nccl_ring.log"), "f");
  ASSERT_TRUE(log.ok());
  const auto& order = std::get<ImportedOrder>(log->holds);
  ASSERT_EQ(order.rings.size(), 2U);  // channel 9 has one connection and closes no ring
  EXPECT_THAT(order.rings[0].members, ElementsAre("0", "1", "3", "2"));
  EXPECT_THAT(order.rings[1].members, ElementsAre("0", "2", "3", "1"));  // from "Ring 01" lines
  EXPECT_THAT(order.transports, Contains(std::pair<std::string, std::int64_t>("NET/IB/GDRDMA", 1)));
  EXPECT_THAT(order.transports, Contains(std::pair<std::string, std::int64_t>("P2P/CUMEM", 2)));
  EXPECT_THAT(log->summary, HasSubstr("4 ranks on 2 hosts"));
  EXPECT_EQ(refused("a:1:2 [0] NCCL INFO Using network IB\n").code, "import.no_ring");
  // A number beyond any cluster is damage: it joins no ring, and ranks are not counted on from it.
  for (const char* rank : {"9223372036854775807", "9223372036854775806", "16777216"}) {
    const std::string line = std::string("alpha:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> ") + rank + "[1] via P2P/CUMEM\n";
    EXPECT_THAT(import_topology(fixture("nccl_ring.log") + line, "f")->summary, HasSubstr("4 ranks on 2 hosts")) << rank;
  }
}

TEST(ImportHwloc, TellsHostBridgesFromSwitches) {
  const ImportedCluster made = completed(fixture("hwloc_one_socket.xml"));
  EXPECT_EQ(made.cluster.gpu.name, "L40S");
  // GPU 0 and the NIC hang on two root ports of one host bridge, GPU 1 on another bridge; the plain Ethernet card is no NIC.
  EXPECT_THAT(row(made, 0), ElementsAre("X", "NODE", "PHB"));
  EXPECT_THAT(made.notes, Contains(HasSubstr("1 network devices without verbs")));
  EXPECT_DOUBLE_EQ(link_of(*made.cluster.topology, "n0.nic0", "n0.pcie0").capacity.value(), 15.753846e9);
  EXPECT_EQ(refused("<topology><object type=\"Machine\"/></topology>").code, "import.no_pci");
}

TEST(ImportSlurm, TreesCarryWhatHangsBelow) {
  const ImportedCluster made = completed(fixture("slurm_tree.conf"), {"H100"});
  EXPECT_EQ(made.cluster.nodes, 5);
  // Two hosts of eight NICs of 50 GB/s below leafA, three below leafB.
  EXPECT_DOUBLE_EQ(link_of(*made.cluster.topology, "leaf0", "spine0").capacity.value(), 2 * 8 * 50e9);
  EXPECT_DOUBLE_EQ(link_of(*made.cluster.topology, "leaf1", "spine0").capacity.value(), 3 * 8 * 50e9);
  EXPECT_THAT(check_topology(made.cluster), testing::IsEmpty());
  EXPECT_EQ(completed(fixture("slurm_tree.conf"), {"H100", 2}).cluster.gpus(), 16);
  EXPECT_EQ(refused(fixture("slurm_tree.conf"), {"H100", 6}).code, "import.nodes");
  EXPECT_EQ(refused(fixture("slurm_tree.conf")).code, "import.gpu");
  EXPECT_EQ(refused("SwitchName=a Switches=b\n").code, "import.unknown_switch");
  EXPECT_EQ(refused("SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n1\n").code, "import.loop");
  EXPECT_EQ(refused("SwitchName=a Nodes=n[1-\n").code, "import.host_list");
  EXPECT_EQ(refused("SwitchName=a Nodes=n[1-999999999]\n").code, "import.host_list");
  EXPECT_EQ(refused("SwitchName=a Nodes=n[5-2]\n").code, "import.host_list");
  EXPECT_EQ(refused("SwitchName=a Nodse=n1\n").code, "import.syntax");
  EXPECT_EQ(refused("SwitchName=a\n").code, "import.no_nodes");
  EXPECT_EQ(refused("RingName=r Nodes=n[1-4]\n", {"H100"}).code, "import.order_only");
}

TEST(ImportSlurm, BlocksAreNvlinkDomainsOfRackScaleGpus) {
  const ImportedCluster made = completed(fixture("slurm_block.conf"), {"GB200"});
  EXPECT_EQ(made.cluster.gpus(), 4 * 4);
  EXPECT_EQ(made.cluster.scale_up_domain, 2 * 4);
  EXPECT_EQ(completed(fixture("slurm_block.conf"), {"H100"}).cluster.scale_up_domain, 8);
}

TEST(ImportSlurm, YamlTakesTheDefaultTopology) {
  const ImportedCluster made = completed(fixture("slurm_topology.yaml"), {"H100"});
  EXPECT_EQ(made.cluster.nodes, 4);
  EXPECT_THAT(made.notes, Contains(HasSubstr("'net' is taken")));
  EXPECT_EQ(refused("- topology: t\n  torus3d:\n    dims: 1\n", {"H100"}).code, "import.kind");
  EXPECT_EQ(refused("- topology: t\n  tree:\n   switches:\n  - odd\n", {"H100"}).code, "import.yaml");
  EXPECT_EQ(refused("- topology: t\n\ttree:\n", {"H100"}).code, "import.yaml");
}

TEST(ImportInfiniband, CountsCablesAndFindsRails) {
  const ImportedCluster made = completed(fixture("ib_two_leaves.txt"), {"H100"});
  const Topology& topology = *made.cluster.topology;
  EXPECT_EQ(made.cluster.nodes, 2);  // the login host has one NIC of two
  EXPECT_THAT(made.notes, Contains(HasSubstr("1 hosts do not have 2 NICs")));
  EXPECT_THAT(made.notes, Contains(HasSubstr("1 adapters do not say")));
  EXPECT_DOUBLE_EQ(link_of(topology, "leaf0", "spine0").capacity.value(), 2 * 50e9);  // 2 x 4xNDR
  EXPECT_DOUBLE_EQ(link_of(topology, "leaf1", "spine0").capacity.value(), 50e9);
  EXPECT_DOUBLE_EQ(link_of(topology, "n1.nic1", "leaf1").capacity.value(), 25e9);  // 2xNDR
  EXPECT_DOUBLE_EQ(link_of(topology, "n0.nic0", "leaf0").capacity.value(), 50e9);
  EXPECT_EQ(refused("vendid=0x1\nCa\t1 \"H-c1\"\t# \"n1 mlx5_0\"\n").code, "import.no_links");
}

TEST(Import, WritesWhatReadsBack) {
  for (const std::string& name : kFixtures) {
    const Outcome<ImportedCluster> made = read_any_topology(fixture(name), name, {"H200"});
    if (!made.ok()) continue;
    const Outcome<Cluster> again = read_topology(write_topology(made->cluster), name, 0);
    ASSERT_TRUE(again.ok()) << name << ": " << to_text(again.problems().front());
    EXPECT_EQ(again->gpus(), made->cluster.gpus()) << name;
    EXPECT_EQ(again->scale_up_domain, made->cluster.scale_up_domain) << name;
    EXPECT_EQ(connection_matrix(*again->topology, 0).codes, connection_matrix(*made->cluster.topology, 0).codes) << name;
  }
}

TEST(ImportHostile, NothingWorseThanAProblem) {
  const ImportOptions any{"H200"};
  EXPECT_EQ(refused(std::string("GPU0\0", 5)).code, "import.binary");
  EXPECT_EQ(refused("\x1f\x8b\x08 packed").code, "import.compressed");
  EXPECT_EQ(refused("what is this").code, "import.unknown_format");
  EXPECT_EQ(refused("").code, "import.unknown_format");
  EXPECT_EQ(refused("{}").code, "topology.schema");
  std::string deep = "<system>";
  for (int i = 0; i < 200'000; ++i) deep += "<pci>";
  EXPECT_EQ(refused(deep).code, "import.xml");  // never closed
  for (int i = 0; i < 200'000; ++i) deep += "</pci>";
  EXPECT_EQ(refused(deep + "</system>").code, "import.xml");  // nested too deep
  EXPECT_EQ(refused("<system>" + std::string(kMostXmlBytes, ' ') + "</system>").code, "import.too_large");
  EXPECT_EQ(refused(std::string(kMostImportBytes + 1, '\n')).code, "import.too_large");
  std::string wide = "\tGPU0\tGPU1";
  for (int i = 0; i < 5000; ++i) wide += "\tNIC" + std::to_string(i);
  EXPECT_EQ(refused(wide + "\nGPU0\tX\n", any).code, "import.too_large");
  std::string crowd = "<system><cpu>";
  for (int i = 0; i < 5000; ++i) crowd += "<pci class=\"0x030200\"/>";
  EXPECT_EQ(refused(crowd + "</cpu></system>", any).code, "import.too_large");
  std::string yaml = "- topology: t\n";
  for (int i = 0; i < 100; ++i) yaml += std::string(static_cast<std::size_t>(i) * 2 + 2, ' ') + "k:\n";
  EXPECT_EQ(refused(yaml, any).code, "import.yaml");
  const std::string nccl = fixture("nccl_two_sockets.xml");
  for (const char* number : {"99999999999999999999999", "-5", "2147483648", "1e300", "nan", ""}) {
    for (const char* attribute :
         {"count=\"8\"", "dev=\"1\"", "link_width=\"8\"", "speed=\"400000\"", "sm=\"90\"", "modelid=\"143\""}) {
      const std::string name = std::string(attribute).substr(0, std::string(attribute).find('"') + 1);
      (void)read_any_topology(replaced(nccl, attribute, name + number + "\""), "f", any);
    }
  }
}

/// Files cut everywhere and with bytes replaced: the sanitizers watch. Reading is tried often; what still reads is completed less
/// often, because presets are parsed each time.
TEST(ImportHostile, CutAndDamagedFiles) {
  for (const std::string& name : kFixtures) {
    const std::string text = fixture(name);
    std::size_t refusals = 0, tried = 0;
    const auto attempt = [&](const std::string& damaged) {
      const Outcome<ImportedTopology> read = import_topology(damaged, name);
      refusals += read.ok() ? 0 : 1;
      if (read.ok() && ++tried % 16 == 0) (void)complete_topology(*read, {"H200"});
    };
    for (std::size_t cut = 0; cut < text.size(); cut += 7) attempt(text.substr(0, cut));
    EXPECT_GT(refusals, 0U) << name;
    for (std::size_t at = 0; at < text.size(); at += 11) {
      for (const char byte : {'\xff', '"', '9', '\n'}) {
        std::string damaged = text;
        damaged[at] = byte;
        attempt(damaged);
      }
    }
  }
}

}  // namespace
}  // namespace cpfit
