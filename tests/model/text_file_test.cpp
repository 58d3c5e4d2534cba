// Files that people name: read whole up to a limit, whatever they are.
#include "model/quantity/text_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "model/quantity/counted.h"
#include "model/quantity/given_path.h"

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

/// Which of both a program throws decides between its exit codes: the path's own fault, or the world's.
TEST(GivenPath, TellsItsOwnFaultFromTheWorlds) {
  const std::string folder = testing::TempDir(), file = folder + "given_path_" + std::to_string(::getpid());
  std::ofstream(file) << "x";
  EXPECT_EQ(given_path_trouble(file), "");
  EXPECT_EQ(given_path_trouble(file + ".new"), "");
  EXPECT_EQ(given_path_trouble("here"), "");
  EXPECT_THAT(given_path_trouble(""), HasSubstr("empty"));
  EXPECT_THAT(given_path_trouble(folder), HasSubstr("folder"));
  EXPECT_THAT(given_path_trouble(file + ".d/x"), HasSubstr("does not exist"));
  EXPECT_THAT(given_path_trouble(file + "/x"), HasSubstr("is a file, not a folder"));
  EXPECT_THROW(throw_unwritable(folder, "no room"), InputError);
  try {
    throw_unwritable(file, "no room");
  } catch (const InputError&) {
    ADD_FAILURE() << "nothing is wrong with the path";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), file + " cannot be written: no room");
  }
  EXPECT_THROW(make_given_folder(file), InputError);
  EXPECT_THROW(make_given_folder(file + "/x"), InputError);
  EXPECT_NO_THROW(make_given_folder(folder));
  std::filesystem::remove(file);
}

TEST(Counted, NounsFollowTheirCount) {
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(12U, "KV head"), "12 KV heads");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "key"), "2 keys");
  EXPECT_EQ(counted(2, "axis", "axes"), "2 axes");
  EXPECT_EQ(counted(1, "axis", "axes"), "1 axis");
  EXPECT_EQ(noun_for(3, "box"), "boxes");
}

TEST(JsonNesting, CountsBracketsOutsideQuotes) {
  EXPECT_EQ(json_nesting(""), 0U);
  EXPECT_EQ(json_nesting(R"({"a": [1, {"b": 2}], "c": [[]]})"), 3U);
  EXPECT_EQ(json_nesting(R"({"[[[[": "\"[[[[", "x": "{{"})"), 1U);
  EXPECT_EQ(json_nesting("]]]}}}[[["), 3U);
}

}  // namespace
}  // namespace cpfit
