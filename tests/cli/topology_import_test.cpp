// cpfit topology import, show and check on files of other tools: what is written, what is told, how it ends.
#include <gmock/gmock.h>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;

std::string fixture(const std::string& name) { return std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/topology/" + name; }

TEST(CliTopologyImport, WritesAFileThatTheOtherCommandsRead) {
  const Folder folder;
  const std::string out = folder / "host.json";
  const nlohmann::json made = cpfit_json({"topology", "import", fixture("nccl_two_sockets.xml"), "--nodes", "2", "--out", out});
  EXPECT_EQ(made["format"], "NCCL topology XML");
  EXPECT_EQ(made["holds"], "host");
  EXPECT_EQ(made["gpu"], "H200-SXM-141GB");
  EXPECT_EQ(made["gpus"], 4);  // two per host
  EXPECT_EQ(made["out"], out);
  EXPECT_TRUE(made["usable"]);
  EXPECT_FALSE(made["notes"].empty());
  EXPECT_TRUE(cpfit_json({"topology", "check", out})["usable"]);
  EXPECT_EQ(cpfit_json({"topology", "show", out})["nodes"], 2);
}

TEST(CliTopologyImport, ShowAndCheckReadForeignFiles) {
  const Said show = cpfit({"topology", "show", fixture("smi_three_gpus_ansi.txt")});
  EXPECT_EQ(show.exit_code, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("NV12"));
  EXPECT_THAT(show.err, HasSubstr("note: the GPU is taken as A100-PCIe-80GB"));
  EXPECT_EQ(cpfit_json({"topology", "check", fixture("slurm_tree.conf"), "--gpu", "H100"})["usable"], true);
}

TEST(CliTopologyImport, RefusalsSayHowToRepair) {
  const Said no_gpu = cpfit({"topology", "import", fixture("slurm_tree.conf")});
  EXPECT_EQ(no_gpu.exit_code, 2);
  EXPECT_THAT(no_gpu.err, HasSubstr("--gpu NAME"));
  const Said p2p = cpfit({"topology", "import", fixture("smi_p2p.txt"), "--gpu", "H100"});
  EXPECT_EQ(p2p.exit_code, 2);
  EXPECT_THAT(p2p.err, HasSubstr("topo -m"));
  EXPECT_EQ(cpfit({"topology", "import", fixture("")}).exit_code, 2);  // a folder
  EXPECT_EQ(cpfit({"topology", "import", fixture("absent.txt")}).exit_code, 2);
}

TEST(CliTopologyImport, AnOrderIsShownAndNotWritten) {
  const Folder folder;
  const nlohmann::json order = cpfit_json({"topology", "import", fixture("nccl_ring.log")});
  EXPECT_EQ(order["holds"], "order");
  EXPECT_EQ(order["rings"].size(), 2U);
  const Said written = cpfit({"topology", "import", fixture("nccl_ring.log"), "--out", folder / "x.json"});
  EXPECT_EQ(written.exit_code, 2);
  EXPECT_EQ(read_file(folder / "x.json"), "");
}

}  // namespace
}  // namespace cpfit::cli_test
