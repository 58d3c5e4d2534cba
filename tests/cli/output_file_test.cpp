// Files that commands write: whole or not at all, and what was there before stays when the new one cannot be written.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFixture = std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/topology/slurm_tree.conf";
const Words kImport{"topology", "import", kFixture, "--gpu", "H100-SXM5-80GB", "--out"};

Said import_to(const std::string& path) {
  Words words = kImport;
  words.push_back(path);
  return cpfit(words);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(OutputFile, TakesTheOldOnesPlaceWithItsPermissions) {
  const Folder folder;
  const std::string path = folder.file("t.json", "old");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_EQ(import_to(path).exit_code, 0);
  EXPECT_THAT(read_file(path), AllOf(HasSubstr("cpfit-topology/1"), HasSubstr("\n")));
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(path).permissions()), 0640U);
  EXPECT_THAT(names_in(folder / "."), testing::Not(testing::Contains(HasSubstr(".new"))));
}

TEST(OutputFile, FollowsALinkAndLeavesItALink) {
  const Folder folder;
  const std::string target = folder.file("real.json", "old"), link = folder / "link.json";
  std::filesystem::create_symlink(target, link);
  ASSERT_EQ(import_to(link).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(read_file(target), HasSubstr("cpfit-topology/1"));
}

TEST(OutputFile, ADeviceIsWrittenToDirectly) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  const Said said = import_to("/dev/full");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_THAT(said.err, AllOf(HasSubstr("/dev/full cannot be written"), HasSubstr("No space left")));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

/// Every command that writes a file, to a disk on which nothing more fits: what was there is there still, and nothing beside it.
TEST(OutputFile, AFullDiskKeepsTheOldOne) {
  const Folder folder;
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "cannot mount a small file system here: " << std::strerror(errno);
  const std::string scenario = folder.file("s.toml", small_scenario()), out = disk + "/out";
  std::ofstream(out) << "old";
  {
    std::ofstream rest(disk + "/rest");
    while (rest << std::string(4096, 'x') << std::flush) continue;
  }
  const std::string recipe = "tp=2,cp=2,pp=1,dp=2,recompute=full";
  for (const Words& words :
       std::vector<Words>{{"topology", "import", kFixture, "--gpu", "H100-SXM5-80GB", "--out", out},
                          {"launch", scenario, "--format", "megatron", "--recipe", recipe, "--out", out},
                          {"simulate", scenario, "--recipe", recipe, "--fidelity", "timeline", "--trace", out},
                          {"simulate", scenario, "--recipe", recipe, "--fidelity", "timeline", "--spans", out}}) {
    SCOPED_TRACE(testing::PrintToString(words));
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, 1) << said.err;
    EXPECT_THAT(said.err, AllOf(HasSubstr(out + " cannot be written"), HasSubstr("No space left")));
    EXPECT_EQ(read_file(out), "old");
    EXPECT_THAT(names_in(disk), ElementsAre("out", "rest"));
  }
  EXPECT_EQ(umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace cpfit::cli_test
