// The cluster presets against public descriptions of the same machines: scale-up, NIC and PCIe capacity of each host must agree.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "model/cluster/cluster.h"
#include "model/cluster/topology.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

struct Totals {
  double scale_up = 0;  // GB/s of all GPUs, one direction
  double nics = 0;      // GB/s, compute NICs
  double gpu_host = 0;  // GB/s, GPU to PCIe switch or CPU
  int gpus = 0;
};

Totals described(const nlohmann::json& file) {
  Totals totals;
  const auto is = [](const std::string& id, const char* what) { return id.find(what) != std::string::npos; };
  for (const auto& vertex : file["vertices"]) {
    totals.gpus += vertex["kind"] == "gpu" ? 1 : 0;
    if (vertex["kind"] == "nic" && vertex["role"] == "compute") totals.nics += vertex["gbps"].get<double>() / 8;
  }
  for (const auto& edge : file["edges"]) {
    const std::string a = edge["a"], b = edge["b"];
    const double rate = edge["GBps_per_dir"].get<double>() * edge["count"].get<double>();
    const int gpu_ends = (is(a, "gpu") ? 1 : 0) + (is(b, "gpu") ? 1 : 0);
    if (gpu_ends == 2) {
      totals.scale_up += 2 * rate;  // both send
    } else if (gpu_ends == 1 && (is(a, "nvsw") || is(b, "nvsw"))) {
      totals.scale_up += rate;
    } else if (gpu_ends == 1) {
      totals.gpu_host += rate;
    }
  }
  return totals;
}

Totals built(const Cluster& cluster) {
  Totals totals;
  const Topology& topology = *cluster.topology;
  totals.gpus = static_cast<int>(topology.gpus().size());
  for (const Link& link : topology.links()) {
    const VertexKind from = topology.vertices()[static_cast<std::size_t>(link.from)].kind;
    const double rate = link.capacity.value() / 1e9;
    if (from == VertexKind::kGpu) (is_scale_up(link.link_class) ? totals.scale_up : totals.gpu_host) += rate;
    if (from == VertexKind::kNic && link.link_class == LinkClass::kNic) totals.nics += rate;
  }
  return totals;
}

struct Pair {
  const char* preset;
  const char* file;
  int nodes;  // the file describes
};

class PresetAgainstFile : public testing::TestWithParam<Pair> {};

TEST_P(PresetAgainstFile, CapacitiesAgree) {
  const Pair pair = GetParam();
  const std::string path = std::string("reference/hardware/topologies/") + pair.file + ".json";
  CPFIT_REQUIRE_SHARED(path);
  std::ifstream file(test::shared_path(path));
  const Totals expected = described(nlohmann::json::parse(file));
  const int copies = pair.nodes == 1 ? 2 : 1;  // one host alone has no fabric, so its NICs are not linked
  const Totals found = built(build_cluster(pair.preset, pair.nodes * copies).value());
  EXPECT_EQ(found.gpus, expected.gpus * copies);
  EXPECT_NEAR(found.scale_up, expected.scale_up * copies, 1e-6);
  EXPECT_NEAR(found.nics, expected.nics * copies, 1e-6);
  EXPECT_NEAR(found.gpu_host, expected.gpu_host * copies, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Presets, PresetAgainstFile,
    testing::Values(Pair{"dgx1-v100", "dgx1_v100", 1}, Pair{"dgx-a100", "dgx_a100", 1}, Pair{"dgx-h100", "dgx_h100", 1},
                    Pair{"dgx-h200", "dgx_h200", 1}, Pair{"dgx-b200", "dgx_b200", 1}, Pair{"gb200-nvl72", "gb200_nvl72", 18},
                    Pair{"aws-p4d", "aws_p4d", 1}, Pair{"aws-p5", "aws_p5", 1}, Pair{"azure-nd-h100-v5", "azure_nd_h100_v5", 1},
                    Pair{"pcie-8gpu-l40s", "pcie_8gpu_2socket", 1}, Pair{"a100-pcie-4gpu-bridge", "a100_pcie_4gpu_bridge", 1},
                    Pair{"mi300x-8way", "mi300x_8way", 1}),
    [](const auto& made) { return std::string(made.param.file); });

}  // namespace
}  // namespace cpfit
