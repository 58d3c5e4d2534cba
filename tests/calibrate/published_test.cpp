#include "calibrate/read/published.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "calibrate/read/csv.h"
#include "tests/shared_folder.h"

namespace cpfit {
namespace {

TEST(PublishedShared, EveryFileIsReadAndEveryRowIsAccountedFor) {
  CPFIT_REQUIRE_SHARED("published");
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_path("published"))) {
    const auto path = entry.path();
    if (path.extension() != ".csv" || path.stem() == "model_architectures") continue;
    const auto csv = CsvTable::load(path.string());
    ASSERT_TRUE(csv.ok()) << path;
    const auto table = read_published(path.string());
    ASSERT_TRUE(table.ok()) << to_text(table.problems().front());
    EXPECT_EQ(table->family.substr(0, 4), path.stem().string().substr(0, 4)) << path;
    std::set<std::int64_t> lines;
    for (const auto& run : table->runs) EXPECT_TRUE(lines.insert(run.line).second) << path << ":" << run.line;
    for (const auto& kernel : table->kernels) lines.insert(kernel.line);
    for (const auto& row : table->skipped) EXPECT_TRUE(lines.insert(row.line).second) << path << ":" << row.line;
    EXPECT_EQ(lines.size(), csv->size()) << path;
    std::map<std::string, int> reasons;
    for (const auto& row : table->skipped) {
      EXPECT_FALSE(row.reason.empty());
      ++reasons[row.reason];
    }
    std::printf("%-36s %-34s rows %5zu runs %5zu kernels %5zu skipped %5zu\n", path.filename().c_str(), table->family.c_str(), csv->size(),
                table->runs.size(), table->kernels.size(), table->skipped.size());
    for (const auto& [reason, count] : reasons) std::printf("      %5d %s\n", count, reason.c_str());
  }
}

}  // namespace
}  // namespace cpfit
