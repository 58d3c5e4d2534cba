#include "db/store/timeline_store.h"

#include <bit>
#include <cstring>
#include <span>

#include "db/store/binding.h"
#include "db/store/connection.h"

namespace cpfit {

namespace {

static_assert(std::endian::native == std::endian::little, "spans are stored little-endian");

/// Writes and reads values one behind the other.
struct Packer {
  unsigned char* at;
  template <class Value>
  void put(Value value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
  }
};
struct Unpacker {
  const unsigned char* at;
  template <class Value>
  void take(Value& value) {
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
  }
};

void pack(const LaneSpan& span, unsigned char* bytes) {
  Packer packer{bytes};
  packer.put(span.start);
  packer.put(span.end);
  packer.put(span.posted);
  packer.put(span.exposed);
  packer.put(span.bytes);
  packer.put(span.activity);
  packer.put(span.copy);
  packer.put(span.name);
  packer.put(span.peer);
  packer.put(span.layer);
  packer.put(span.micro_batch);
  packer.put(span.chunk);
  packer.put(static_cast<std::uint8_t>(span.sends ? 1 : 0));
  packer.put(static_cast<std::uint8_t>(span.kind));
  packer.put(static_cast<std::uint8_t>(span.pass));
}

LaneSpan unpack(const unsigned char* bytes) {
  LaneSpan span;
  Unpacker unpacker{bytes};
  std::uint8_t sends = 0, kind = 0, pass = 0;
  unpacker.take(span.start);
  unpacker.take(span.end);
  unpacker.take(span.posted);
  unpacker.take(span.exposed);
  unpacker.take(span.bytes);
  unpacker.take(span.activity);
  unpacker.take(span.copy);
  unpacker.take(span.name);
  unpacker.take(span.peer);
  unpacker.take(span.layer);
  unpacker.take(span.micro_batch);
  unpacker.take(span.chunk);
  unpacker.take(sends);
  unpacker.take(kind);
  unpacker.take(pass);
  span.sends = sends != 0;
  span.kind = static_cast<SpanKind>(std::min<std::uint8_t>(kind, kSpanKinds - 1));
  span.pass = static_cast<SpanPass>(std::min<std::uint8_t>(pass, 2));
  return span;
}

constexpr std::size_t kPackedBytes = 64;

std::vector<unsigned char> pack_lane(const SpanLane& lane) {
  std::vector<unsigned char> bytes(lane.spans.size() * kPackedBytes);
  for (std::size_t i = 0; i < lane.spans.size(); ++i) pack(lane.spans[i], &bytes[i * kPackedBytes]);
  return bytes;
}

std::vector<LaneSpan> unpack_lane(std::span<const unsigned char> bytes) {
  if (bytes.size() % kPackedBytes != 0) throw Error("a lane of the timeline is damaged: its bytes are no whole spans");
  std::vector<LaneSpan> spans(bytes.size() / kPackedBytes);
  for (std::size_t i = 0; i < spans.size(); ++i) spans[i] = unpack(&bytes[i * kPackedBytes]);
  return spans;
}

void insert_lanes(SQLite::Database& database, std::int64_t id, const Timeline& timeline) {
  SQLite::Statement insert_name(database, "INSERT INTO timeline_name (timeline_id, ordinal, name) VALUES (?, ?, ?)");
  std::int64_t ordinal = 0;
  for (const std::string& name : timeline.names) Binder(insert_name).integer(id).integer(ordinal++).text(name).run();
  SQLite::Statement insert_lane(database,
                                "INSERT INTO timeline_lane (timeline_id, ordinal, rank, name, span_count, spans) "
                                "VALUES (?, ?, ?, ?, ?, ?)");
  ordinal = 0;
  for (const SpanLane& lane : timeline.lanes) {
    const std::vector<unsigned char> bytes = pack_lane(lane);
    Binder binder(insert_lane);
    binder.integer(id).integer(ordinal++).integer(lane.rank).text(lane.name);
    binder.integer(static_cast<std::int64_t>(lane.spans.size())).blob(bytes).run();
  }
}

}  // namespace

TimelineId save_timeline(Store& store, const Timeline& timeline, const TimelineOrigin& origin) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "store a timeline in", [&] {
    SQLite::Transaction transaction(connection.database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement insert(connection.database,
                             "INSERT INTO timeline (scenario_path, scenario_text, recipe, tool_version, rates_version, "
                             "step_picoseconds, stored_unix_seconds) VALUES (?, ?, ?, ?, ?, ?, unixepoch())");
    Binder binder(insert);
    binder.text(origin.scenario_path).text(origin.scenario_text).text(origin.recipe).text(origin.tool_version);
    binder.text(origin.rates_version).integer(timeline.step).run();
    const std::int64_t id = connection.database.getLastInsertRowid();
    insert_lanes(connection.database, id, timeline);
    transaction.commit();
    return TimelineId{id};
  });
}

std::vector<TimelineListing> list_timelines(const Store& store) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "list the timelines of", [&]() -> std::vector<TimelineListing> {
    if (!connection.database.tableExists("timeline")) return {};  // a file of an older cpfit, opened for reading
    SQLite::Statement select(
        connection.database,
        "SELECT t.id, t.scenario_path, t.scenario_text, t.recipe, t.tool_version, t.rates_version, "
        "t.stored_unix_seconds, t.step_picoseconds, count(l.ordinal), coalesce(sum(l.span_count), 0) "
        "FROM timeline t LEFT JOIN timeline_lane l ON l.timeline_id = t.id GROUP BY t.id ORDER BY t.id DESC");
    std::vector<TimelineListing> listings;
    while (select.executeStep()) {
      RowReader row(select);
      TimelineListing& listing = listings.emplace_back();
      listing.id = TimelineId{row.integer()};
      listing.origin.scenario_path = row.text();
      listing.origin.scenario_text = row.text();
      listing.origin.recipe = row.text();
      listing.origin.tool_version = row.text();
      listing.origin.rates_version = row.text();
      listing.stored_unix_seconds = row.integer();
      listing.step_picoseconds = row.integer();
      listing.lanes = row.integer();
      listing.spans = row.integer();
    }
    return listings;
  });
}

Outcome<Timeline> load_timeline(const Store& store, TimelineId id) {
  Store::Connection& connection = store.connection();
  return guarded(connection, "read a timeline of", [&]() -> Outcome<Timeline> {
    const ReadSnapshot snapshot(connection);
    const auto number = static_cast<std::int64_t>(id);
    const Problem unknown{"timeline.unknown", connection.path, "the database holds no timeline " + std::to_string(number),
                          "simulate one: cpfit simulate SCENARIO --recipe R --fidelity timeline --db " + connection.path};
    if (!connection.database.tableExists("timeline")) return unknown;  // a file of an older cpfit, opened for reading
    SQLite::Statement select(connection.database, "SELECT step_picoseconds FROM timeline WHERE id = ?");
    select.bind(1, number);
    if (!select.executeStep()) return unknown;
    Timeline timeline;
    timeline.step = RowReader(select).integer();
    SQLite::Statement names(connection.database, "SELECT name FROM timeline_name WHERE timeline_id = ? ORDER BY ordinal");
    names.bind(1, number);
    while (names.executeStep()) timeline.names.push_back(RowReader(names).text());
    SQLite::Statement lanes(connection.database,
                            "SELECT rank, name, spans FROM timeline_lane WHERE timeline_id = ? ORDER BY ordinal");
    lanes.bind(1, number);
    while (lanes.executeStep()) {
      RowReader row(lanes);
      SpanLane& lane = timeline.lanes.emplace_back();
      lane.rank = row.small_integer();
      lane.name = row.text();
      lane.spans = unpack_lane(row.blob());
    }
    return timeline;
  });
}

}  // namespace cpfit
