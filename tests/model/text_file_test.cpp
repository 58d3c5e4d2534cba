// Files that people name: read whole up to a limit, whatever they are.
#include "model/quantity/text_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace cpfit {
namespace {

using testing::HasSubstr;

TEST(TextFile, EndsAtItsLimit) {
  const std::string path = testing::TempDir() + "text_file_" + std::to_string(::getpid());
  const std::string text = std::string(100'000, 'x') + std::string("\0\r\n", 3);
  std::ofstream(path, std::ios::binary) << text;
  EXPECT_EQ(read_text_file(path, text.size(), "c").value(), text);
  const Outcome<std::string> longer = read_text_file(path, text.size() - 1, "some.code");
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.problems().front().code, "some.code");
  EXPECT_EQ(longer.problems().front().where, path);
  EXPECT_THAT(longer.problems().front().message, HasSubstr("more than"));
  std::filesystem::remove(path);
}

TEST(TextFile, ADeviceWithoutEndIsRefused) {
  if (!std::filesystem::exists("/dev/zero")) GTEST_SKIP() << "there is no /dev/zero";
  EXPECT_THAT(read_text_file("/dev/zero", kMostWrittenBytes, "c").problems().front().message, HasSubstr("more than 16 MiB"));
}

TEST(TextFile, SaysWhyItCannot) {
  EXPECT_THAT(read_text_file("/nowhere/at/all", 1, "c").problems().front().message, HasSubstr("No such file"));
  EXPECT_THAT(read_text_file(testing::TempDir(), 1, "c").problems().front().message, HasSubstr("folder"));
}

TEST(JsonNesting, CountsBracketsOutsideQuotes) {
  EXPECT_EQ(json_nesting(""), 0U);
  EXPECT_EQ(json_nesting(R"({"a": [1, {"b": 2}], "c": [[]]})"), 3U);
  EXPECT_EQ(json_nesting(R"({"[[[[": "\"[[[[", "x": "{{"})"), 1U);
  EXPECT_EQ(json_nesting("]]]}}}[[["), 3U);
}

}  // namespace
}  // namespace cpfit
