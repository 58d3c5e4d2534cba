// Memory snapshots: Python's pickles in three protocols and JSON hold the same; hostile files are refused by name.
#include "calibrate/read/memory_snapshot.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "calibrate/read/pickle.h"

namespace cpfit {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::string fixture(const std::string& name) { return std::string(CPFIT_SOURCE_DIR) + "/tests/fixtures/snapshots/" + name; }

/// 26 MiB before the first event (20 that are still there, 6 that an event frees); then -6, +100, +10, +3: 133 MiB, and back
/// to 30.
TEST(MemorySnapshot, ThePeakIsReplayedFromEveryFormat) {
  for (const char* name : {"protocol2.pickle", "protocol4.pickle", "protocol5.pickle", "snapshot.json"}) {
    SCOPED_TRACE(name);
    const Outcome<MemorySnapshot> snapshot = read_memory_snapshot(fixture(name));
    ASSERT_TRUE(snapshot.ok()) << to_text(snapshot.problems().front());
    ASSERT_EQ(snapshot->devices.size(), 1u);
    const DeviceSnapshot& device = snapshot->devices[0];
    EXPECT_EQ(device.allocated, 30 * kMiB);
    EXPECT_EQ(device.reserved, 64 * kMiB);
    EXPECT_EQ(device.peak_allocated, 133 * kMiB);
    EXPECT_EQ(device.peak_reserved, (64 + 128) * kMiB);
    EXPECT_EQ(device.events, 11);
    ASSERT_EQ(device.at_peak.size(), 3u);
    EXPECT_EQ(device.at_peak[0], (HeldMemory{"forward, job/model/attention.py:118", 103 * kMiB, 2}));
    EXPECT_EQ(device.at_peak[1], (HeldMemory{"before the recording began", 20 * kMiB, 1}));
    EXPECT_EQ(device.at_peak[2], (HeldMemory{"forward, job/model/mlp.py:42", 10 * kMiB, 1}));
  }
}

Outcome<PickledData> unpickle(const std::string& bytes, const TreeLimits& limits = {}) {
  std::istringstream stream(bytes);
  return read_pickle(stream, "x.pickle", limits);
}
std::string code_of(const std::string& bytes, const TreeLimits& limits = {}) {
  const Outcome<PickledData> data = unpickle(bytes, limits);
  return data.ok() ? "ok" : data.problems().front().code;
}
std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST(Pickle, NumbersTextsAndTheMemo) {
  // [-1 (4 bytes), 300 (2 bytes), 2^40 (LONG1), 1.5, True, None, "ab", the same "ab" from the memo]
  const std::string pickle =
      "\x80\x04]("
      "J\xff\xff\xff\xff"
      "M" +
      bytes({0x2c, 0x01}) + "\x8a\x06" + bytes({0, 0, 0, 0, 0, 1}) + "G\x3f\xf8" + bytes({0, 0, 0, 0, 0, 0}) +
      "\x88N\x8c\x02"
      "ab\x94h" +
      bytes({0}) + "e.";
  const Outcome<PickledData> data = unpickle(pickle);
  ASSERT_TRUE(data.ok()) << to_text(data.problems().front());
  const ValueTree& tree = data->tree;
  const std::vector<NodeId>& list = tree.children(data->root);
  ASSERT_EQ(list.size(), 8u);
  EXPECT_EQ(tree.integer_of(list[0]), -1);
  EXPECT_EQ(tree.integer_of(list[1]), 300);
  EXPECT_EQ(tree.integer_of(list[2]), std::int64_t{1} << 40);
  EXPECT_EQ(tree.number_of(list[3]), 1.5);
  EXPECT_EQ(tree.kind(list[4]), NodeKind::kBoolean);
  EXPECT_EQ(tree.kind(list[5]), NodeKind::kNone);
  EXPECT_EQ(tree.text_of(list[6]), "ab");
  EXPECT_EQ(list[7], list[6]);
}

TEST(Pickle, WhatWouldRunCodeIsRefusedByName) {
  const Outcome<PickledData> global = unpickle("cos\nsystem\n(S'true'\ntR.");
  ASSERT_FALSE(global.ok());
  EXPECT_EQ(global.problems()[0].code, "pickle.code");
  EXPECT_NE(global.problems()[0].message.find("os.system"), std::string::npos);
  const Outcome<PickledData> stacked = unpickle(
      "\x80\x04\x8c\x08"
      "builtins\x8c\x04"
      "eval\x93.");
  ASSERT_FALSE(stacked.ok());
  EXPECT_NE(stacked.problems()[0].message.find("builtins.eval"), std::string::npos);
  for (const char* code : {"N)R.", "NNb.", "(io\nx\n.", "(No.", "N)\x81.", "Pid\n.", "NQ.", "\x82\x01.", "\x97."})
    EXPECT_EQ(code_of(code), "pickle.code") << code;
}

TEST(Pickle, HostileBytesAreProblems) {
  EXPECT_EQ(code_of(""), "pickle.truncated");
  EXPECT_EQ(code_of("\x80\x04]"), "pickle.truncated");
  EXPECT_EQ(code_of("."), "pickle.syntax");   // nothing on the stack
  EXPECT_EQ(code_of("a."), "pickle.syntax");  // appends to nothing
  EXPECT_EQ(code_of("NNs."), "pickle.syntax");
  EXPECT_EQ(code_of("e."), "pickle.syntax");         // no mark
  EXPECT_EQ(code_of("(Nd."), "pickle.syntax");       // a key without a value
  EXPECT_EQ(code_of("h\x05."), "pickle.syntax");     // never remembered
  EXPECT_EQ(code_of("\x80\x09."), "pickle.syntax");  // protocol 9
  EXPECT_EQ(code_of("\xff."), "pickle.syntax");
  // An append that would take from below a mark, and what then collects down to that mark, read outside of the stack (fuzzing).
  EXPECT_EQ(code_of("]K\x01(ae."), "pickle.syntax");
  EXPECT_EQ(code_of("}NN(s1."), "pickle.syntax");
  EXPECT_EQ(code_of("X\xff\xff\xff\xff"
                    "abc"),
            "pickle.too_large");  // a text of 4 GiB
  EXPECT_EQ(code_of("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "pickle.too_large");
  EXPECT_EQ(code_of("X" + bytes({0, 0, 16, 0}) + "abc"), "pickle.truncated");
  EXPECT_EQ(code_of("\x8b\xff\xff\xff\x7f"), "pickle.too_large");
  EXPECT_EQ(code_of("I" + std::string(10000, '1')), "pickle.syntax");
  // A million lists in each other: no recursion, and a limit on nodes.
  std::string deep(1'000'000, ']');
  deep += std::string(999'999, 'a') + ".";
  EXPECT_EQ(code_of(deep), "ok");
  EXPECT_EQ(code_of(deep, {.nodes = 1000}), "pickle.too_large");
  EXPECT_EQ(code_of(std::string(5'000'000, '(')), "pickle.too_large");
  // A list that holds itself.
  EXPECT_EQ(code_of("](h" + bytes({0}) + "e."), "pickle.syntax");
  EXPECT_EQ(code_of("]q" + bytes({0}) + "h" + bytes({0}) + "a."), "ok");
}

/// Every prefix of a real pickle, and every one of its bytes replaced.
TEST(Pickle, NoCutAndNoWrongByteDoesMoreThanFail) {
  std::ifstream file(fixture("protocol4.pickle"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ASSERT_GT(whole.size(), 1000u);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_FALSE(unpickle(whole.substr(0, i)).ok()) << i;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    (void)unpickle(changed, {.nodes = 100000, .text_bytes = 1000000});
  }
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "cpfit_snapshot_" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(MemorySnapshot, OtherContentIsAProblem) {
  const auto code = [](const std::string& name, const std::string& text, const TreeLimits& limits = {}) {
    const std::string path = written(name, text);
    const Outcome<MemorySnapshot> snapshot = read_memory_snapshot(path, limits);
    std::remove(path.c_str());
    return snapshot.ok() ? std::string("ok") : snapshot.problems().front().code;
  };
  EXPECT_EQ(read_memory_snapshot("/nowhere").problems()[0].code, "snapshot.unreadable");
  EXPECT_EQ(code("empty", ""), "snapshot.unreadable");
  EXPECT_EQ(code("other", R"({"a": 1})"), "snapshot.content");
  EXPECT_EQ(code("cut", R"({"segments": [)"), "snapshot.json");
  EXPECT_EQ(code("deep", std::string(100000, '[')), "snapshot.json");
  EXPECT_EQ(code("many", "[" + std::string(20000, '1').replace(1, 1, ",") + "]", {.nodes = 2}), "snapshot.json");
  EXPECT_EQ(code("scalar", "\x80\x04K\x01."), "snapshot.content");
  // Sizes beyond any device, negative ones, and texts where numbers belong count as nothing.
  EXPECT_EQ(
      code(
          "sizes",
          R"({"segments": [{"device": 0, "total_size": 9223372036854775807, "blocks": [{"size": -1, "state": "active_allocated"}]},
                             {"device": -5, "total_size": 512}, {"device": 1e300, "total_size": "x"}], "device_traces": [[]]})"),
      "snapshot.content");
}

TEST(MemorySnapshot, WithoutEventsOnlyTheEndIsKnown) {
  const std::string path = written(
      "end", R"([{"device": 1, "address": 0, "total_size": 4194304, "blocks": [{"size": 1024, "state": "active_allocated"}]}])");
  const Outcome<MemorySnapshot> snapshot = read_memory_snapshot(path);
  std::remove(path.c_str());
  ASSERT_TRUE(snapshot.ok());
  ASSERT_EQ(snapshot->devices.size(), 1u);
  EXPECT_EQ(snapshot->devices[0].device, 1);
  EXPECT_EQ(snapshot->devices[0].peak_allocated, 1024);
  EXPECT_EQ(snapshot->remarks.at(0).code, "snapshot.no_events");
}

}  // namespace
}  // namespace cpfit
