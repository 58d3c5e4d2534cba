// The step timeline at a million spans: opening, a frame of panning and zooming, the focus range, memory. Offscreen.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <QApplication>
#include <QImage>
#include <QTemporaryDir>
#include <fstream>
#include <memory>

#include "db/store/timeline_store.h"
#include "gui/look/theme.h"
#include "gui/timeline/range_sums.h"
#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {
namespace {

constexpr std::int32_t kRanks = 16;
constexpr std::int32_t kLanesPerRank = 4;
constexpr std::int64_t kSpansPerLane = 1'000'000 / (kRanks * kLanesPerRank);

/// 16 ranks of 4 lanes, a million spans, none like another rank's.
Timeline million() {
  Timeline step;
  step.names = {"attention 0", "norm", "send kv 0", "gather"};
  std::uint32_t random = 1;
  const auto next = [&random](std::uint32_t below) {
    random = random * 1664525U + 1013904223U;
    return static_cast<std::int64_t>((random >> 8U) % below);
  };
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    for (std::int32_t l = 0; l < kLanesPerRank; ++l) {
      SpanLane lane{rank, l == 0 ? "compute" : l == 1 ? "cp send" : l == 2 ? "cp receive" : "tp", {}};
      std::int64_t at = 0;
      for (std::int64_t s = 0; s < kSpansPerLane; ++s) {
        LaneSpan span;
        at += next(400'000) * (l + 1);
        span.start = span.posted = at;
        at += 100'000 + next(1'000'000);
        span.end = at;
        span.kind = l == 0 ? (s % 5 == 0 ? SpanKind::kCompute : SpanKind::kAttention) : l == 3 ? SpanKind::kTp : SpanKind::kCp;
        span.name = l == 0 ? static_cast<std::int32_t>(s % 5 == 0 ? 1 : 0) : l == 3 ? 3 : 2;
        span.exposed = l > 0 && s % 9 == 0 ? (span.end - span.start) / 3 : 0;
        span.bytes = l > 0 ? 1e6 : 0;
        span.activity = static_cast<std::int32_t>(s);
        lane.spans.push_back(span);
      }
      step.step = std::max(step.step, at);
      step.lanes.push_back(std::move(lane));
    }
  }
  return step;
}

std::vector<timeline::RankPlace> places() {
  std::vector<timeline::RankPlace> all;
  for (std::int32_t r = 0; r < kRanks; ++r) all.push_back({.node = r / 8, .rank = r, .stage = 0});
  return all;
}

double resident_mb() {
  std::ifstream status("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  status >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

/// One application and one view for all of them.
struct Bench {
  Bench() {
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    static int argc = 1;
    static char name[] = "gui_timeline_benchmark";
    static char* argv[] = {name, nullptr};
    application = std::make_unique<QApplication>(argc, argv);
    apply_look(*application, Theme::kLight, 1.0, 9.5);
    picture = picture_of(million(), places());
    view = std::make_unique<TimelineView>();
    view->resize(1800, 1300);  // every lane is seen
    view->show();
    view->setPicture(picture);
    view->setShowsAllRanks(true);
    target = QImage(view->size(), QImage::Format_RGB32);
  }
  std::unique_ptr<QApplication> application;
  std::shared_ptr<const StepPicture> picture;
  std::unique_ptr<TimelineView> view;
  QImage target;
};
Bench& bench() {
  static Bench made;
  return made;
}

/// From the database to a picture: rows read, running sums, ranks that do alike, marks.
void open_a_million_spans(benchmark::State& state) {
  (void)bench();
  const QTemporaryDir folder;
  Store store = open_store(folder.filePath(QStringLiteral("spans.sqlite")).toStdString());
  const TimelineId id = save_timeline(store, million(), {});
  for (auto _ : state) {
    Outcome<Timeline> read = load_timeline(store, id);
    benchmark::DoNotOptimize(picture_of(std::move(read).value(), places()));
  }
}
BENCHMARK(open_a_million_spans)->Unit(benchmark::kMillisecond);

void pan_a_frame(benchmark::State& state) {
  Bench& b = bench();
  const std::int64_t step = b.picture->timeline.step;
  const std::int64_t length = step / state.range(0);
  std::int64_t from = 0;
  for (auto _ : state) {
    from = (from + length / 50) % std::max<std::int64_t>(1, step - length + 1);
    b.view->setWindow({from, from + length});
    b.view->render(&b.target);
  }
  state.SetLabel("window 1/" + std::to_string(state.range(0)) + " of the step, 64 lanes, 1800 pixels");
}
BENCHMARK(pan_a_frame)->Arg(2)->Arg(10)->Arg(1000)->Arg(100000)->Unit(benchmark::kMillisecond);

void zoom_a_frame(benchmark::State& state) {
  Bench& b = bench();
  const std::int64_t step = b.picture->timeline.step;
  TimeWindow window = whole(step);
  bool in = true;
  for (auto _ : state) {
    window = zoomed(window, in ? 0.8 : 1.25, 0.37, step);
    if (window.length() < step / 1'000'000) in = false;
    if (window.length() >= step) in = true;
    b.view->setWindow(window);
    b.view->render(&b.target);
  }
}
BENCHMARK(zoom_a_frame)->Unit(benchmark::kMillisecond);

void drag_a_range(benchmark::State& state) {
  Bench& b = bench();
  const std::int64_t step = b.picture->timeline.step;
  std::int64_t to = step / 4;
  for (auto _ : state) {
    to = to + step / 1000 < step ? to + step / 1000 : step / 4;
    benchmark::DoNotOptimize(range_sums(*b.picture, 3, {step / 5, to}));
  }
}
BENCHMARK(drag_a_range)->Unit(benchmark::kMicrosecond);

void memory_of_a_million_spans(benchmark::State& state) {
  (void)bench();
  double megabytes = 0;
  for (auto _ : state) {
    const double before = resident_mb();
    const std::shared_ptr<const StepPicture> picture = picture_of(million(), places());
    megabytes = std::max(megabytes, resident_mb() - before);
    benchmark::DoNotOptimize(picture);
  }
  state.counters["MB"] = megabytes;
}
BENCHMARK(memory_of_a_million_spans)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cpfit::gui
