// The trace is read back and checked for what readers of traces stumble over.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "model/quantity/problem.h"
#include "sim/timeline/exposure.h"
#include "sim/timeline/lanes.h"
#include "sim/timeline/trace_export.h"
#include "timeline_fixture.h"

namespace cpfit::timeline {
namespace {

/// A ring of four ranks over `layers` layers; times are odd on purpose, so that cutting to nanoseconds happens everywhere.
struct RingScene {
  engine::Program program;
  engine::Run run;
  Timeline timeline;
  explicit RingScene(int layers) {
    Script s;
    std::mt19937 random(7);
    std::vector<engine::ActivityId> arrived(4, kNone);
    for (int l = 0; l < layers; ++l) {
      for (std::int32_t hop = 0; hop < 4; ++hop) {
        for (std::int32_t r = 0; r < 4; ++r) {
          const engine::ActivityId kernel =
              s.kernel(r, 40'000 + static_cast<Picoseconds>(random() % 5000), Work::kAttention, LaneKind::kCompute, l);
          s.builder.wait(kernel, arrived[static_cast<std::size_t>(r)]);
        }
        for (std::int32_t r = 0; r < 4; ++r) {
          arrived[static_cast<std::size_t>((r + 1) % 4)] =
              s.ring(r, (r + 1) % 4, 41'234 + static_cast<double>(random() % 7000), l);
        }
      }
    }
    program = s.builder.take();
    run = by_hand(program);
    const History history(program, run);
    timeline = timeline_of(history);
    for (std::int32_t r = 0; r < 4; ++r) mark_exposed(timeline, rank_answer(history, r));
  }
};

nlohmann::json trace_of(const Timeline& timeline, const std::vector<CounterTrack>& counters = {}) {
  std::ostringstream out;
  write_trace(out, timeline, {{0, 0, 0}, {0, 8, 0}, {1, 16, 1}, {1, 24, 1}}, counters);
  return nlohmann::json::parse(out.str());
}

std::int64_t picoseconds(double microseconds) { return static_cast<std::int64_t>(std::floor(microseconds * 1e6)); }
/// As readers do that keep nanoseconds: in floating point, cut.
std::int64_t cut_to_ns(double microseconds) { return static_cast<std::int64_t>(microseconds * 1000); }

TEST(TraceExport, SlicesAreTheSpansAndNeverOverlapEvenWhenCut) {
  const RingScene scene(6);
  const nlohmann::json trace = trace_of(scene.timeline);
  std::map<std::pair<int, int>, std::pair<std::int64_t, std::int64_t>> ends;  // (pid, tid) -> exact, cut
  std::size_t slices = 0;
  std::set<int> threads;
  for (const nlohmann::json& e : trace.at("traceEvents")) {
    const std::string ph = e.at("ph");
    ASSERT_TRUE(ph == "M" || ph == "X" || ph == "s" || ph == "f") << ph;
    if (ph != "X") continue;
    ++slices;
    auto& [exact, cut] = ends[{e.at("pid"), e.at("tid")}];
    const double ts = e.at("ts");
    const double dur = e.at("dur");
    EXPECT_GE(picoseconds(ts), exact);
    EXPECT_GE(cut_to_ns(ts), cut);
    exact = picoseconds(ts) + static_cast<std::int64_t>(std::llround(dur * 1e6));
    cut = cut_to_ns(ts) + cut_to_ns(dur);
    threads.insert(e.at("tid").get<int>());
  }
  std::size_t spans = 0;
  for (const SpanLane& lane : scene.timeline.lanes) spans += lane.spans.size();
  EXPECT_EQ(slices, spans);
  EXPECT_EQ(slices, 6u * 4 * 4 * 3);  // layers, hops, ranks: a kernel, a send, a receive
  EXPECT_EQ(ends.size(), 12u);        // 4 ranks with 3 lanes
  EXPECT_EQ(threads.size(), 12u);     // no thread number in two processes
}

TEST(TraceExport, EveryArrowHasTwoEndsInsideItsSlices) {
  const RingScene scene(3);
  struct Slice {
    int pid;
    std::int64_t start, end;
  };
  std::map<int, std::vector<Slice>> slices;
  const nlohmann::json trace = trace_of(scene.timeline);
  for (const nlohmann::json& e : trace.at("traceEvents")) {
    if (e.at("ph") == "X") {
      const std::int64_t start = cut_to_ns(e.at("ts"));
      slices[e.at("tid")].push_back({e.at("pid"), start, start + cut_to_ns(e.at("dur"))});
    }
  }
  struct Arrow {
    int from = 0, to = 0;
    std::int64_t tail = 0, head = 0;
  };
  std::map<std::int64_t, Arrow> arrows;
  for (const nlohmann::json& e : trace.at("traceEvents")) {
    const std::string ph = e.at("ph");
    if (ph != "s" && ph != "f") continue;
    const std::int64_t time = cut_to_ns(e.at("ts"));
    bool inside = false;
    for (const Slice& slice : slices.at(e.at("tid"))) inside = inside || (slice.start <= time && time < slice.end);
    EXPECT_TRUE(inside) << e;
    Arrow& arrow = arrows[e.at("id")];
    (ph == "s" ? arrow.from : arrow.to) = e.at("pid");
    (ph == "s" ? arrow.tail : arrow.head) = time;
    EXPECT_EQ(ph == "f", e.contains("bp"));
  }
  EXPECT_EQ(arrows.size(), 3u * 4 * 4);  // layers, hops, ranks
  for (const auto& [id, arrow] : arrows) {
    ASSERT_GT(arrow.from, 0);
    ASSERT_GT(arrow.to, 0);
    EXPECT_EQ(arrow.to % 4, (arrow.from + 1) % 4);  // processes 1..4 in a ring
    EXPECT_LT(arrow.tail, arrow.head);
  }
}

TEST(TraceExport, NamesArgsAndCounters) {
  const RingScene scene(1);
  const CounterTrack memory{2, "memory", "bytes", {{0, 5}, {1'500'000, 7}}};
  const CounterTrack link{kNone, "a \"quoted\" link", "GB/s", {{0, 12.5}}};
  const nlohmann::json trace = trace_of(scene.timeline, {memory, link});
  std::set<std::string> processes;
  std::set<std::string> threads;
  std::vector<nlohmann::json> counters;
  nlohmann::json received;
  for (const nlohmann::json& e : trace.at("traceEvents")) {
    if (e.at("name") == "process_name") processes.insert(e.at("args").at("name"));
    if (e.at("name") == "thread_name") threads.insert(e.at("args").at("name"));
    if (e.at("ph") == "C") counters.push_back(e);
    if (e.at("ph") == "X" && e.at("name") == "message" && received.is_null()) received = e;
  }
  EXPECT_TRUE(processes.contains("node 1, rank 16, stage 1"));
  EXPECT_TRUE(processes.contains("links"));
  EXPECT_EQ(processes.size(), 5u);
  EXPECT_EQ(threads, (std::set<std::string>{"compute", "cp send", "cp receive"}));
  ASSERT_EQ(counters.size(), 3u);
  EXPECT_EQ(counters[1].at("args").at("bytes"), 7);
  EXPECT_EQ(counters[1].at("ts"), 1.5000005);
  EXPECT_EQ(counters[1].at("pid"), 3);
  EXPECT_EQ(counters[2].at("name"), "a \"quoted\" link");
  EXPECT_EQ(received.at("cat"), "cp");
  EXPECT_EQ(received.at("args").at("layer"), 0);
  EXPECT_GT(received.at("args").at("bytes"), 41'000);
  EXPECT_TRUE(received.at("args").contains("posted_us"));
  EXPECT_TRUE(received.at("args").contains("peer"));
}

TEST(TraceExport, CsvHasALineForEachSpanWithEveryPicosecond) {
  const RingScene scene(1);
  std::ostringstream out;
  write_span_csv(out, scene.timeline, {{0, 0, 0}});
  std::istringstream lines(out.str());
  std::string header;
  std::getline(lines, header);
  const auto commas = std::count(header.begin(), header.end(), ',');
  EXPECT_EQ(commas, 17);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
  EXPECT_EQ(count, 4u * 4 * 3);
  const LaneSpan& first = scene.timeline.lanes[0].spans[0];
  EXPECT_NE(out.str().find("0,0,0,compute,kernel,attention,forward,0,,0,0," + std::to_string(first.end) + ",0,0,0,,0,0\n"),
            std::string::npos)
      << out.str().substr(0, 300);
}

TEST(TraceExport, AnOutputThatFailsIsAnError) {
  const RingScene scene(1);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_trace(out, scene.timeline, {}, {}), Error);
}

}  // namespace
}  // namespace cpfit::timeline
