#include "sim/timeline/trace_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <string_view>

#include "model/quantity/problem.h"

namespace cpfit::timeline {

namespace {

constexpr Picoseconds kPerMicrosecond = 1'000'000;
constexpr Picoseconds kShortestArrow = 3'000;  // its head stands 2 ns before the slice's end, inside it even when cut to ns
constexpr std::size_t kFlushAt = 1u << 16;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string exact_us(Picoseconds time) { return fmt::format("{}.{:06}", time / kPerMicrosecond, time % kPerMicrosecond); }
std::string stamp_us(Picoseconds time) { return exact_us(time) + "5"; }  // see the header

class Writer {
 public:
  explicit Writer(std::ostream& out) : out_(&out) {}
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
    if (buffer_.size() >= kFlushAt) flush();
  }
  /// Begins an event: a comma where one stands before it.
  void next() {
    print("{}", first_ ? "\n" : ",\n");
    first_ = false;
  }
  void flush() {
    out_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
    if (!*out_) throw Error("could not write the timeline: the output failed");
  }

 private:
  std::ostream* out_;
  fmt::memory_buffer buffer_;
  bool first_ = true;
};

std::int32_t rank_count(const Timeline& timeline, const std::vector<CounterTrack>& counters) {
  std::int32_t ranks = 0;
  for (const SpanLane& lane : timeline.lanes) ranks = std::max(ranks, lane.rank + 1);
  for (const CounterTrack& counter : counters) ranks = std::max(ranks, counter.rank + 1);
  return ranks;
}

/// Process and thread numbers: processes 1..ranks, then one thread number per lane, then the process of the links.
struct Numbers {
  std::int32_t ranks = 0;
  std::int32_t lanes = 0;
  [[nodiscard]] std::int32_t process(std::int32_t rank) const { return rank == kNone ? ranks + lanes + 1 : rank + 1; }
  [[nodiscard]] std::int32_t thread(std::size_t lane) const { return ranks + 1 + static_cast<std::int32_t>(lane); }
};

void write_names(Writer& writer, const Timeline& timeline, const std::vector<RankPlace>& places, const Numbers& numbers,
                 bool links) {
  const auto meta = [&](std::string_view what, std::int32_t process, std::int32_t thread, const std::string& args) {
    writer.next();
    writer.print(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, process, thread, args);
  };
  const auto process = [&](std::int32_t rank, const std::string& name) {
    const std::int32_t pid = numbers.process(rank);
    meta("process_name", pid, 0, "\"name\":" + json_text(name));
    meta("process_sort_index", pid, 0, fmt::format("\"sort_index\":{}", pid));
  };
  for (std::int32_t rank = 0; rank < numbers.ranks; ++rank) {
    const std::size_t r = static_cast<std::size_t>(rank);
    process(rank, r < places.size() ? fmt::format("node {}, rank {}, stage {}", places[r].node, places[r].rank, places[r].stage)
                                    : fmt::format("rank {}", rank));
  }
  if (links) process(kNone, "links");
  for (std::size_t l = 0; l < timeline.lanes.size(); ++l) {
    const std::int32_t pid = numbers.process(timeline.lanes[l].rank);
    meta("thread_name", pid, numbers.thread(l), "\"name\":" + json_text(timeline.lanes[l].name));
    meta("thread_sort_index", pid, numbers.thread(l), fmt::format("\"sort_index\":{}", l));
  }
}

void write_slice(Writer& writer, const LaneSpan& span, const std::string& name, std::int32_t process, std::int32_t thread) {
  writer.next();
  writer.print(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"pass":"{}")", name,
               name_of(span.kind), process, thread, stamp_us(span.start), exact_us(span.end - span.start), name_of(span.pass));
  if (span.layer >= 0) writer.print(R"(,"layer":{})", span.layer);
  if (span.micro_batch >= 0) writer.print(R"(,"micro_batch":{})", span.micro_batch);
  if (span.chunk > 0) writer.print(R"(,"chunk":{})", span.chunk);
  if (span.bytes > 0) writer.print(R"(,"bytes":{})", span.bytes);
  if (span.peer >= 0) writer.print(R"(,"peer":{})", span.peer);
  writer.print(R"(,"posted_us":{})", exact_us(span.posted));
  if (span.exposed > 0) writer.print(R"(,"exposed_us":{})", exact_us(span.exposed));
  writer.print(R"(,"activity":{},"copy":{}}}}})", span.activity, span.copy);
}

/// The tail of a message's arrow stands at the sender's beginning, its head just before the receiver's end.
void write_arrow(Writer& writer, const LaneSpan& span, std::int64_t activities, std::int32_t process, std::int32_t thread) {
  if (span.peer < 0 || span.end - span.start < kShortestArrow) return;
  const std::int64_t id = span.copy * activities + span.activity;  // the same at both ends
  writer.next();
  writer.print(R"({{"ph":"{}","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{}{}}})", span.sends ? "s" : "f",
               id, process, thread, stamp_us(span.sends ? span.start : span.end - 2'000), span.sends ? "" : R"(,"bp":"e")");
}

void write_counter(Writer& writer, const CounterTrack& counter, std::int32_t process) {
  const std::string name = json_text(counter.name);
  const std::string unit = json_text(counter.unit);
  for (const CounterPoint& point : counter.points) {
    writer.next();
    writer.print(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{{}:{}}}}})", name, process, stamp_us(point.time), unit,
                 point.value);
  }
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string number_or_empty(std::int64_t value) { return value < 0 ? std::string() : fmt::format("{}", value); }

}  // namespace

void write_trace(std::ostream& out, const Timeline& timeline, const std::vector<RankPlace>& places,
                 const std::vector<CounterTrack>& counters, const std::vector<StepMark>& steps) {
  const Numbers numbers{rank_count(timeline, counters), static_cast<std::int32_t>(timeline.lanes.size())};
  std::vector<std::string> names;
  for (const std::string& name : timeline.names) names.push_back(json_text(name));
  std::int64_t activities = 1;
  for (const SpanLane& lane : timeline.lanes) {
    for (const LaneSpan& span : lane.spans) activities = std::max<std::int64_t>(activities, span.activity + 1);
  }

  Writer writer(out);
  writer.print(R"({{"displayTimeUnit":"ns","otherData":{{"generator":"cpfit","step_us":"{}"}},"traceEvents":[)",
               exact_us(timeline.step));
  const bool links = std::any_of(counters.begin(), counters.end(), [](const CounterTrack& c) { return c.rank == kNone; });
  write_names(writer, timeline, places, numbers, links);
  for (std::size_t l = 0; l < timeline.lanes.size(); ++l) {
    const SpanLane& lane = timeline.lanes[l];
    const std::int32_t process = numbers.process(lane.rank);
    for (const LaneSpan& span : lane.spans) {
      write_slice(writer, span, names[static_cast<std::size_t>(span.name)], process, numbers.thread(l));
      write_arrow(writer, span, activities, process, numbers.thread(l));
    }
  }
  for (const StepMark& step : steps) {
    writer.next();
    writer.print(R"({{"ph":"i","s":"g","name":{},"cat":"step","pid":1,"tid":0,"ts":{}}})", json_text(step.name),
                 stamp_us(step.time));
  }
  for (const CounterTrack& counter : counters) write_counter(writer, counter, numbers.process(counter.rank));
  writer.print("\n]}}\n");
  writer.flush();
  out.flush();
}

void write_span_csv(std::ostream& out, const Timeline& timeline, const std::vector<RankPlace>& places) {
  Writer writer(out);
  writer.print(
      "rank,node,stage,lane,name,kind,pass,layer,micro_batch,chunk,start_ps,end_ps,posted_ps,exposed_ps,bytes,peer,activity,"
      "copy\n");
  for (const SpanLane& lane : timeline.lanes) {
    const std::size_t r = static_cast<std::size_t>(lane.rank);
    const std::string where = r < places.size() ? fmt::format("{},{},{}", places[r].rank, places[r].node, places[r].stage)
                                                : fmt::format("{},,", lane.rank);
    const std::string name = csv_text(lane.name);
    for (const LaneSpan& span : lane.spans) {
      writer.print("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", where, name,
                   csv_text(timeline.names[static_cast<std::size_t>(span.name)]), name_of(span.kind), name_of(span.pass),
                   number_or_empty(span.layer), number_or_empty(span.micro_batch), span.chunk, span.start, span.end, span.posted,
                   span.exposed, span.bytes, number_or_empty(span.peer), span.activity, span.copy);
    }
  }
  writer.flush();
  out.flush();
}

}  // namespace cpfit::timeline
