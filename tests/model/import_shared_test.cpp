// Every public sample imports, or is refused with a reason: one row per file, with what a person who looks at the file would
// count in it. Matrices of nvidia-smi must come back out of the graph code by code.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "model/cluster/import/import.h"
#include "model/cluster/import/smi_matrix.h"
#include "model/cluster/topology_check.h"
#include "model/cluster/topology_text.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

const std::string kSamples = "reference/hardware/samples";

struct Sample {
  const char* file;
  const char* gpu;      // --gpu; empty: the file says it
  std::int64_t gpus;    // of one host (host formats), of all (fabrics); 0: refused or an order
  std::int64_t nics;    // of host 0, ports bonded as far as the importer does
  std::int64_t domain;  // GPUs that reach the first over NVLink or xGMI
  const char* answer;   // GPU found, or the code of the refusal
};

// GPUs and NICs are counted in the files. `nics` of smi_topo is without bonding: there the codes are compared as well.
const std::vector<Sample> kTable = {
    {"smi_topo/01_dgx1_v100_mlx5_columns.txt", "", 8, 4, 8, "V100-SXM2-32GB"},
    {"smi_topo/05_8xa100_nv12_10nic_pxb.txt", "", 8, 10, 8, "A100-SXM4-80GB"},
    {"smi_topo/06_2gpu_leading_newline.txt", "", 0, 0, 0, "import.gpu"},  // NV1 fits no GPU that ships
    {"smi_topo/06_2gpu_leading_newline.txt", "V100", 2, 0, 2, "V100-SXM2-32GB"},
    {"smi_topo/07_8xa100_nv12_2numa.txt", "", 8, 0, 8, "A100-SXM4-80GB"},
    {"smi_topo/08_8xh100_nv18_ht_ranges.txt", "", 8, 0, 8, "H100-SXM5-80GB"},
    {"smi_topo/09_2gpu_phb_na_numa.txt", "", 0, 0, 0, "import.gpu"},
    {"smi_topo/09_2gpu_phb_na_numa.txt", "RTX-4090", 2, 0, 1, "RTX-4090-24GB"},
    {"smi_topo/11_8xh100_8nic_pix.txt", "", 8, 8, 8, "H100-SXM5-80GB"},
    {"smi_topo/12_8xh200_9nic_bond.txt", "H200", 8, 9, 8, "H200-SXM-141GB"},
    {"smi_topo/13_gb200_ansi_header.txt", "GB200", 4, 6, 4, "GB200"},
    {"smi_topo/14_8gpu_all_sys.txt", "L40S", 8, 0, 1, "L40S"},
    {"smi_topo/16_6gpu_pix_node_sys.txt", "L40S", 6, 0, 1, "L40S"},
    {"smi_topo/20_dgx_a100_12_mlx5_columns.txt", "", 8, 12, 8, "A100-SXM4-80GB"},
    {"smi_topo/21_4xa100_pcie_nvlink_bridge.txt", "", 4, 0, 2, "A100-PCIe-80GB"},
    {"smi_topo/22_power9_ac922.txt", "", 0, 0, 0, "import.gpu"},  // three of six NVLinks go to the CPU: not in the matrix
    {"smi_topo/22_power9_ac922.txt", "V100", 4, 6, 2, "V100-SXM2-32GB"},
    {"smi_topo/24_8xa100_18nic_oci.txt", "", 8, 18, 8, "A100-SXM4-80GB"},
    {"smi_topo/25_8x4090_2nic_no_legend.txt", "RTX-4090", 8, 2, 1, "RTX-4090-24GB"},
    {"smi_topo/26_5gpu_odd_count.txt", "RTX-4090", 5, 0, 1, "RTX-4090-24GB"},
    {"smi_topo/27_4xh100_nv6_4nic.txt", "", 4, 4, 4, "H100-SXM5-80GB"},
    {"smi_topo/28_dgx_h100_12nic_truncated.txt", "", 8, 12, 8, "H100-SXM5-80GB"},
    {"smi_topo/29_8xa100_4nic_asymmetric.txt", "", 8, 4, 8, "A100-SXM4-80GB"},
    {"smi_topo/90_rocm_smi_showtopotype_8xmi.txt", "", 0, 0, 0, "import.gpu"},
    {"smi_topo/90_rocm_smi_showtopotype_8xmi.txt", "MI300X", 8, 0, 8, "MI300X"},
    {"nccl_topo/01_azure_ndv2_8xv100.xml", "V100", 8, 1, 8, "V100-SXM2-32GB"},
    {"nccl_topo/02_azure_nc_a100_v4.xml", "", 4, 1, 1, "A100-PCIe-80GB"},  // NVLinks lead back to their own GPU
    {"nccl_topo/04_azure_nd_h100_v5.xml", "", 0, 0, 0, "import.gpu"},
    {"nccl_topo/04_azure_nd_h100_v5.xml", "H100", 8, 8, 8, "H100-SXM5-80GB"},
    {"nccl_topo/05_aws_g5_48xl.xml", "L40S", 0, 0, 0, "import.no_class"},
    {"nccl_topo/06_aws_p4d_24xl.xml", "", 8, 4, 8, "A100-SXM4-40GB"},
    {"nccl_topo/09_nemo_azure.xml", "A100", 8, 8, 8, "A100-SXM4-80GB"},
    {"nccl_topo/11_rccl_mi300x_8p_940.xml", "", 8, 8, 8, "MI300X"},
    {"nccl_topo/13_rccl_mi300a_4p_940.xml", "", 0, 0, 0, "import.gpu"},  // no preset of the MI300A
    {"nccl_topo/13_rccl_mi300a_4p_940.xml", "MI300X", 4, 4, 4, "MI300X"},
    {"nccl_topo/14_rccl_mi250x_8p_90a.xml", "", 8, 1, 8, "MI250X-GCD"},
    {"nccl_topo/15_rccl_mi250x_16p.xml", "", 16, 8, 16, "MI250X-GCD"},
    {"nccl_topo/16_rccl_8p_pcie.xml", "", 0, 0, 0, "import.gpu"},  // gcn 906
    {"nccl_topo/16_rccl_8p_pcie.xml", "MI300X", 8, 1, 1, "MI300X"},
    {"nccl_topo/17_rccl_8p_rome_4nics.xml", "", 0, 0, 0, "import.gpu"},  // gcn 908
    {"nccl_topo/17_rccl_8p_rome_4nics.xml", "MI250X", 8, 4, 4, "MI250X-GCD"},
    {"nccl_topo/21_oci_flattened_a100.xml", "A100", 8, 8, 8, "A100-SXM4-80GB"},
    {"nccl_topo/22_oci_flattened_b4.xml", "A100-40GB", 8, 8, 8, "A100-SXM4-40GB"},
    {"nccl_topo/24_h200_vm_fragment.xml", "", 1, 1, 1, "H200-SXM-141GB"},
    {"hwloc/01_nvidia_dgx2.xml", "", 16, 0, 8, "V100-SXM2-32GB"},             // SXM3; two boards whose trunk is not in the file
    {"hwloc/02_power8_gpu_nvlink_distances.xml", "", 0, 0, 0, "import.gpu"},  // P100
    {"hwloc/02_power8_gpu_nvlink_distances.xml", "V100", 4, 0, 2, "V100-SXM2-32GB"},
    {"hwloc/03_nvidia_dgx_gb10.xml", "H100", 0, 0, 0, "import.no_pci"},
    {"hwloc/04_two_socket_pci_v3.xml", "L40S", 3, 1, 1, "L40S"},
    {"slurm/01_tree_two_level.conf", "H100", 48 * 8, 8, 8, "H100-SXM5-80GB"},    // 16 + 16 + 8 + 8 nodes
    {"slurm/02_tree_three_level.conf", "H100", 24 * 8, 8, 8, "H100-SXM5-80GB"},  // 4 x 6 nodes
    {"slurm/03_block_nvl72.conf", "GB200", 72 * 4, 4, 72, "GB200"},
    {"slurm/04_ring.conf", "H100", 0, 0, 0, "import.order_only"},
    {"slurm/05_multi.yaml", "H100", 4 * 8, 8, 8, "H100-SXM5-80GB"},
    {"slurm/06_topograph_oci_sim_tree.conf", "H100", 96 * 8, 8, 8, "H100-SXM5-80GB"},  // 12 leaves of 8
    {"slurm/07_topograph_dra_block.conf", "GB200", 96 * 4, 4, 8 * 4, "GB200"},
    {"slurm/08_topograph_nvl72_model.yaml", "GB200", 0, 0, 0, "import.topograph"},
    {"ibnet/excerpt_2leaf_1spine_3ca.txt", "H100", 28 * 8, 1, 8, "H100-SXM5-80GB"},  // 17 and 11 named adapters
    {"ibnet/bad_excerpt.txt", "H100", 0, 0, 0, "import.no_links"},
    {"ibnet/dgx_h100_ndr_fabric.ibnetdiscover.gz", "H100", 0, 0, 0, "import.compressed"},
    {"nccl_graph/01_azure_nc_a100_v4_graph.xml", "A100", 0, 0, 0, "import.order_only"},
    {"nccl_log/02_8gpu_p2p_read_and_shm.log", "A100", 0, 0, 0, "import.order_only"},
    {"nccl_log/03_h20_2nodes_ib_gdrdma.log", "H20", 0, 0, 0, "import.order_only"},
    {"nccl_log/04_dgx1_old_format_busid.log", "V100", 0, 0, 0, "import.order_only"},
    {"nccl_log/07_nccl_230_docs_subsystems.log", "H100", 0, 0, 0, "import.order_only"},
};

std::string sample(const std::string& file) {
  std::ifstream stream(test::shared_path(kSamples + "/" + file), std::ios::binary);
  EXPECT_TRUE(stream) << file;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::int64_t count(const Cluster& cluster, VertexKind kind) {
  std::int64_t found = 0;
  for (const Vertex& vertex : cluster.topology->vertices()) found += vertex.node == 0 && vertex.kind == kind ? 1 : 0;
  return found;
}

TEST(ImportSamples, EveryFileImportsOrSaysWhyNot) {
  CPFIT_REQUIRE_SHARED(kSamples);
  for (const Sample& row : kTable) {
    SCOPED_TRACE(std::string(row.file) + " --gpu '" + row.gpu + "'");
    ImportOptions options{row.gpu};
    options.bond_ports = false;
    const Outcome<ImportedCluster> made = read_any_topology(sample(row.file), row.file, options);
    if (row.gpus == 0) {
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.problems().front().code, row.answer);
      EXPECT_FALSE(made.problems().front().repair.empty());
      continue;
    }
    ASSERT_TRUE(made.ok()) << to_text(made.problems().front());
    EXPECT_EQ(made->cluster.gpu.name, row.answer);
    EXPECT_EQ(made->cluster.gpus(), row.gpus);
    EXPECT_EQ(static_cast<std::int64_t>(made->cluster.topology->gpus().size()), row.gpus);
    EXPECT_EQ(count(made->cluster, VertexKind::kNic), row.nics);
    EXPECT_EQ(made->cluster.scale_up_domain, row.domain);
    for (const Problem& finding : check_topology(made->cluster)) EXPECT_FALSE(is_error(finding)) << to_text(finding);
  }
}

TEST(ImportSamples, NoFileIsForgotten) {
  CPFIT_REQUIRE_SHARED(kSamples);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::shared_path(kSamples))) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.ends_with(".csv") || name.ends_with(".md")) continue;
    const std::string file = entry.path().parent_path().filename().string() + "/" + name;
    EXPECT_TRUE(std::any_of(kTable.begin(), kTable.end(), [&](const Sample& row) { return file == row.file; })) << file;
  }
}

TEST(ImportSamples, MatricesComeBackCodeByCode) {
  CPFIT_REQUIRE_SHARED(kSamples);
  std::size_t compared = 0;
  for (const Sample& row : kTable) {
    const std::string text = sample(row.file);
    if (row.gpus == 0 || detect_format(text) != TopologyFormat::kSmiTopo) continue;
    SCOPED_TRACE(row.file);
    const Outcome<SmiMatrix> matrix = read_smi_matrix(text, row.file);
    ASSERT_TRUE(matrix.ok());
    ImportOptions options{row.gpu};
    options.bond_ports = false;
    const Outcome<ImportedCluster> made = read_any_topology(text, row.file, options);
    ASSERT_TRUE(made.ok());
    const ConnectionMatrix drawn = connection_matrix(*made->cluster.topology, 0);
    ASSERT_EQ(drawn.names.size(), matrix->names.size());
    for (std::size_t i = 0; i < drawn.names.size(); ++i) {
      for (std::size_t j = 0; j < drawn.names.size(); ++j) {
        if (matrix->codes[i][j].empty()) continue;  // cut off in the sample
        EXPECT_EQ(drawn.codes[i][j], matrix->codes[i][j]) << matrix->names[i] << " " << matrix->names[j];
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 2000U);
}

TEST(ImportSamples, KnownMachines) {
  CPFIT_REQUIRE_SHARED(kSamples);
  const auto matrix_of = [](const std::string& file, const std::string& gpu) {
    ImportOptions options{gpu};
    const Outcome<ImportedCluster> made = read_any_topology(sample(file), file, options);
    EXPECT_TRUE(made.ok());
    return connection_matrix(*made->cluster.topology, 0);
  };
  // Bridges of Azure's ND H100 v5: one GPU and one NIC each, four bridges per socket.
  const ConnectionMatrix azure = matrix_of("nccl_topo/04_azure_nd_h100_v5.xml", "H100");
  EXPECT_THAT(azure.codes[0], testing::ElementsAre("X", "NV18", "NV18", "NV18", "NV18", "NV18", "NV18", "NV18", "PIX", "NODE",
                                                   "NODE", "NODE", "SYS", "SYS", "SYS", "SYS"));
  // DGX-2: GPUs in pairs under a chip (PIX), two chips under one (PXB), two host bridges per socket.
  const ConnectionMatrix dgx2 = matrix_of("hwloc/01_nvidia_dgx2.xml", "");
  EXPECT_EQ(dgx2.codes[0][1], "NV6");
  EXPECT_EQ(dgx2.codes[0][8], "SYS");
  // MI300X: one xGMI link between any two.
  const ConnectionMatrix mi300 = matrix_of("nccl_topo/11_rccl_mi300x_8p_940.xml", "");
  for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(mi300.codes[0][i], "XGMI1");
  EXPECT_EQ(mi300.codes[3][8 + 3], "PIX");
  EXPECT_EQ(mi300.codes[3][8 + 4], "SYS");
  // OCI's 18 ports: each GPU has one card of two ports.
  const ConnectionMatrix oci = matrix_of("smi_topo/24_8xa100_18nic_oci.txt", "");
  EXPECT_EQ(oci.names.size(), 8U + 2 + 8);  // two host ports at SYS stay alone
}

/// What `gzip -dc` makes of a file; empty where there is no gzip.
std::string unpacked(const std::string& path) {
  std::string text;
  FILE* pipe = popen(("gzip -dc '" + path + "' 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return text;
  std::vector<char> piece(1 << 16);
  for (std::size_t got = 0; (got = std::fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), got);
  pclose(pipe);
  return text;
}

// The whole fabric: 31 leaves and 9 spines; 109 hosts show four named adapters, 11 show three and two are management hosts; each
// leaf serves one adapter number, so a host's NICs go to four leaves.
TEST(ImportSamples, WholeFabric) {
  const std::string file = kSamples + "/ibnet/dgx_h100_ndr_fabric.ibnetdiscover.gz";
  CPFIT_REQUIRE_SHARED(file);
  const std::string text = unpacked(test::shared_path(file));
  if (text.empty()) GTEST_SKIP() << "needs gzip to unpack the sample";
  const Outcome<ImportedCluster> made = read_any_topology(text, "fabric", {"H100"});
  ASSERT_TRUE(made.ok()) << to_text(made.problems().front());
  EXPECT_EQ(made->cluster.nodes, 109);
  std::map<VertexKind, int> kinds;
  for (const Vertex& vertex : made->cluster.topology->vertices()) ++kinds[vertex.kind];
  EXPECT_EQ(kinds[VertexKind::kLeaf], 31);
  EXPECT_EQ(kinds[VertexKind::kSpine], 9);
  EXPECT_EQ(kinds[VertexKind::kNic], 4 * 109);
  for (const Problem& finding : check_topology(made->cluster)) EXPECT_FALSE(is_error(finding)) << to_text(finding);
  for (const Link& link : made->cluster.topology->links()) {  // 4xNDR throughout
    if (link.link_class == LinkClass::kNic) {
      EXPECT_DOUBLE_EQ(link.capacity.value(), 50e9);
    }
  }
}

TEST(ImportSamples, RingsOfLogsAndGraphs) {
  CPFIT_REQUIRE_SHARED(kSamples);
  const auto order_of = [](const std::string& file) {
    const Outcome<ImportedTopology> made = import_topology(sample(file), file);
    EXPECT_TRUE(made.ok()) << file;
    return std::get<ImportedOrder>(made->holds);
  };
  const ImportedOrder graph = order_of("nccl_graph/01_azure_nc_a100_v4_graph.xml");
  ASSERT_EQ(graph.rings.size(), 2U);
  EXPECT_THAT(graph.rings[1].members, testing::ElementsAre("0", "3", "2", "1"));
  const ImportedOrder eight = order_of("nccl_log/02_8gpu_p2p_read_and_shm.log");
  ASSERT_EQ(eight.rings.size(), 2U);
  EXPECT_THAT(eight.rings[0].members, testing::ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  // Channel 4 of the old log: 0 -> 1 -> 2 -> 3 -> 0.
  const ImportedOrder old = order_of("nccl_log/04_dgx1_old_format_busid.log");
  EXPECT_TRUE(std::any_of(old.rings.begin(), old.rings.end(), [](const ImportedOrder::Ring& ring) {
    return ring.name == "channel 4" && ring.members == std::vector<std::string>{"0", "1", "2", "3"};
  }));
  EXPECT_FALSE(order_of("nccl_log/03_h20_2nodes_ib_gdrdma.log").transports.empty());
  EXPECT_FALSE(order_of("nccl_log/07_nccl_230_docs_subsystems.log").rings.empty());
  EXPECT_EQ(order_of("slurm/04_ring.conf").rings.size(), 2U);
}

}  // namespace
}  // namespace cpfit
