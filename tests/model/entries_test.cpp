// TOML texts value by value, and what separates two of them.
#include "model/presets/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cpfit {
namespace {

using testing::ElementsAre;

constexpr const char* kText = R"(version = "a"
[latency]
pcie = "0.25 us"
[[gpu]]
name = "H100"
memory = "80 GiB"
links = [1, 2]
[[gpu]]
name = "B200"
memory = "180 GiB"
[[gemm]]
gpu = "H100"
math = "bf16"
share = 0.5
)";

std::vector<TextEntry> entries(const std::string& text) {
  const Outcome<std::vector<TextEntry>> read = toml_entries(text);
  EXPECT_TRUE(read.ok());
  return read.ok() ? *read : std::vector<TextEntry>{};
}

TEST(Entries, NameTheTablesOfListsByWhatIsInThem) {
  std::vector<std::string> paths;
  for (const TextEntry& entry : entries(kText)) paths.push_back(entry.path);
  EXPECT_THAT(paths,
              ElementsAre("version", "latency.pcie", "gpu[H100].name", "gpu[H100].memory", "gpu[H100].links", "gpu[B200].name",
                          "gpu[B200].memory", "gemm[H100 bf16].gpu", "gemm[H100 bf16].math", "gemm[H100 bf16].share"));
  EXPECT_EQ(toml_entries("a = \n").problems().at(0).code, "entries.syntax");
}

TEST(Entries, ChangesAreValuesAndWholeTables) {
  std::string other = kText;
  other.replace(other.find("80 GiB"), 6, "79 GiB");
  other.replace(other.find("name = \"B200\""), 13, "name = \"B300\"");
  other.replace(other.find("version = \"a\""), 13, "edition = \"b\"");
  const std::vector<EntryChange> changes = changed_entries(entries(kText), entries(other));
  EXPECT_THAT(changes, ElementsAre(EntryChange{"edition", "", "'b'"}, EntryChange{"gpu[H100].memory", "'80 GiB'", "'79 GiB'"},
                                   EntryChange{"gpu[B300]", "", "added"}, EntryChange{"version", "'a'", ""},
                                   EntryChange{"gpu[B200]", "there", ""}));
  EXPECT_TRUE(changed_entries(entries(kText), entries(kText)).empty());
}

TEST(Entries, SpeakOfWhatTheirTableIsNamedAfter) {
  EXPECT_TRUE(speaks_of("gemm[H100 bf16].share", {"H100"}));
  EXPECT_FALSE(speaks_of("gemm[H100-SXM bf16].share", {"H100"}));
  EXPECT_FALSE(speaks_of("gpu[B200]", {"H100", "memory"}));
  EXPECT_TRUE(speaks_of("latency.pcie", {}));
}

}  // namespace
}  // namespace cpfit
