// Timelines in a store: every field of every span comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/store/timeline_store.h"
#include "sample_records.h"

namespace cpfit {
namespace {

/// Two lanes: three spans with every field set to something of its own, and an empty one.
Timeline sample_timeline() {
  Timeline timeline;
  timeline.step = 9'000'000'000'123;
  timeline.names = {"attention 0", "send kv 3", "optimizer"};
  SpanLane lane;
  lane.rank = 7;
  lane.name = "cp send";
  std::int64_t at = 1'000'000'000'000;
  for (int i = 0; i < 3; ++i) {
    LaneSpan span;
    span.start = at + 10 * i;
    span.end = span.start + 5 + i;
    span.posted = span.start - 3 - i;
    span.exposed = i;
    span.bytes = 33554432.5 + i;
    span.activity = 100'000'000 + i;
    span.copy = 31 - i;
    span.name = i;
    span.peer = i - 1;
    span.layer = static_cast<std::int16_t>(79 - i);
    span.micro_batch = static_cast<std::int16_t>(i - 1);
    span.chunk = static_cast<std::int8_t>(i);
    span.sends = i == 1;
    span.kind = static_cast<SpanKind>(i * 3);
    span.pass = static_cast<SpanPass>(i);
    lane.spans.push_back(span);
  }
  timeline.lanes.push_back(lane);
  timeline.lanes.push_back({8, "compute", {}});
  return timeline;
}

TimelineOrigin sample_origin() { return {"a.toml", "name = \"a\"", "tp=1,cp=8,pp=1,dp=1", "1.0", "r1"}; }

TEST(StoredTimeline, ComesBackWhole) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("t.cpfit");
  TimelineId id{};
  {
    Store store = open_store(path);
    (void)save_timeline(store, Timeline{}, sample_origin());
    id = save_timeline(store, sample_timeline(), sample_origin());
  }
  const Store store = open_store(path, {.access = StoreAccess::kRead});
  const Outcome<Timeline> loaded = load_timeline(store, id);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(*loaded, sample_timeline());
  const std::vector<TimelineListing> listings = list_timelines(store);
  ASSERT_EQ(listings.size(), 2u);
  EXPECT_EQ(listings[0].id, id);
  EXPECT_EQ(listings[0].origin, sample_origin());
  EXPECT_EQ(listings[0].step_picoseconds, 9'000'000'000'123);
  EXPECT_EQ(listings[0].lanes, 2);
  EXPECT_EQ(listings[0].spans, 3);
  EXPECT_EQ(listings[1].lanes, 0);
}

TEST(StoredTimeline, UnknownOneIsAProblemDamagedOneAnError) {
  const sample::TemporaryFolder folder;
  const std::string path = folder.file("t.cpfit");
  Store store = open_store(path);
  const TimelineId id = save_timeline(store, sample_timeline(), sample_origin());
  const Outcome<Timeline> unknown = load_timeline(store, TimelineId{99});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.problems()[0].code, "timeline.unknown");
  SQLite::Database(path, SQLite::OPEN_READWRITE).exec("UPDATE timeline_lane SET spans = x'0102' WHERE ordinal = 0");
  EXPECT_THROW((void)load_timeline(store, id), Error);
}

}  // namespace
}  // namespace cpfit
