// The budgets of the desktop program, on the platform without a display: start to usable window, edit to verdict, edit to new
// timeline, a study's views painted, 100,000 results sorted and brushed.
#include <benchmark/benchmark.h>

#include <chrono>

#include <QApplication>

#include "gui/results/parallel_axes.h"
#include "gui/results/result_table.h"
#include "gui/view/study_view.h"
#include "gui/window/main_window.h"
#include "gui/window/screenshots.h"

namespace cpfit::gui {
namespace {

constexpr const char* kExample = "examples/llama3-8b-128k-1node.toml";
constexpr int kPatienceMs = 120'000;

void start_to_usable_window(benchmark::State& state) {
  for (auto _ : state) {
    MainWindow window{WindowOptions{}};
    window.show();
    if (!window.open_example(kExample)) state.SkipWithError("the example does not open");
    QApplication::processEvents();
    benchmark::DoNotOptimize(window.live().now().legal());
    state.PauseTiming();
    (void)wait_until_idle(window, kPatienceMs);
    state.ResumeTiming();
  }
}
BENCHMARK(start_to_usable_window)->Unit(benchmark::kMillisecond)->Iterations(5);

/// The closed form with every view that listens, and the verdict painted.
void edit_to_verdict(benchmark::State& state) {
  MainWindow window{WindowOptions{}};
  window.show();
  if (!window.open_example(kExample) || !wait_until_idle(window, kPatienceMs)) state.SkipWithError("the example does not open");
  const char* const values[] = {"selective", "full"};
  std::size_t next = 0;
  for (auto _ : state) {
    (void)window.document().set_value("recompute", values[next++ % 2]);
    benchmark::DoNotOptimize(window.live().now().legal());
  }
  (void)wait_until_idle(window, kPatienceMs);
}
BENCHMARK(edit_to_verdict)->Unit(benchmark::kMillisecond);

/// The example on 64 GPUs; ranks that do alike are simulated once, as the window does by itself.
void edit_to_timeline(benchmark::State& state) {
  MainWindow window{WindowOptions{}};
  window.show();
  if (!window.open_example(kExample) || !wait_until_idle(window, kPatienceMs)) state.SkipWithError("the example does not open");
  if (!window.document().set_value("nodes", "8").empty() || !window.document().set_value("global_batch", "16").empty() ||
      !wait_until_idle(window, kPatienceMs) || window.document().design().recipe.world() != 64) {
    state.SkipWithError("the example does not grow to 64 GPUs");
    return;
  }
  const char* const values[] = {"selective", "full"};
  std::size_t next = 0;
  for (auto _ : state) {
    (void)window.document().set_value("recompute", values[next++ % 2]);
    const auto begin = std::chrono::steady_clock::now();
    while (!window.live().simulation_is_current() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(10))
      QApplication::processEvents(QEventLoop::AllEvents, 1);
    if (!window.live().simulation_is_current()) state.SkipWithError("no timeline within 10 s");
    state.PauseTiming();
    (void)wait_until_idle(window, kPatienceMs);
    state.ResumeTiming();
  }
}
BENCHMARK(edit_to_timeline)->Unit(benchmark::kMillisecond)->Iterations(10);

void paint_every_view(benchmark::State& state) {
  MainWindow window{WindowOptions{}};
  window.show();
  if (!window.open_example(kExample) || !wait_until_idle(window, kPatienceMs)) state.SkipWithError("the example does not open");
  for (auto _ : state) benchmark::DoNotOptimize(window.grab());
}
BENCHMARK(paint_every_view)->Unit(benchmark::kMillisecond);

/// 100,000 recipes: those of the example over and over, each with figures of its own.
std::shared_ptr<const ResultSet> many_results() {
  MainWindow window{WindowOptions{}};
  window.show();
  if (!window.open_example(kExample) || !wait_until_idle(window, kPatienceMs)) return nullptr;
  constexpr std::size_t kRows = 100'000;
  const std::vector<Candidate>& some = window.live().search()->evaluated;
  std::vector<Candidate> all;
  all.reserve(kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    all.push_back(some[i % some.size()]);
    all.back().time.compute += Seconds(1e-6 * static_cast<double>((i * 7919) % kRows));
  }
  return result_set(QStringLiteral("many"), {}, window.live().search()->scenario, std::move(all), window.live().search()->plan);
}

void sort_100000_results(benchmark::State& state) {
  const auto set = many_results();
  if (!set) return state.SkipWithError("the example does not open");
  std::vector<std::uint32_t> rows(set->size());
  bool descending = false;
  for (auto _ : state) {
    for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
    descending = !descending;
    sort_rows(*set, {{field_named("step"), descending}, {field_named("memory"), false}}, rows);
    benchmark::DoNotOptimize(rows.data());
  }
}
BENCHMARK(sort_100000_results)->Unit(benchmark::kMillisecond);

/// What a brush costs: the filter, the front, and the lines between ten axes folded again.
void brush_100000_results(benchmark::State& state) {
  const auto set = many_results();
  if (!set) return state.SkipWithError("the example does not open");
  ResultFilter filter;
  filter.fits_only = false;
  filter.terms = {parse_term(QStringLiteral("cp>=2")).value(), parse_term(QStringLiteral("recompute=none|full")).value()};
  ResultFilter none;
  none.fits_only = false;
  const FilteredRows everything = filtered(*set, none, field_named("memory"), field_named("step"));
  const std::vector<float> colors = color_shares(*set, everything.rows, field_named("step"));
  const std::vector<ParallelAxis> axes = parallel_axes(*set, everything.rows, ResultTable::usual_columns());
  for (auto _ : state) {
    const FilteredRows rows = filtered(*set, filter, field_named("memory"), field_named("step"));
    for (std::size_t i = 0; i + 1 < axes.size(); ++i)
      benchmark::DoNotOptimize(line_bundles(*set, rows.rows, axes[i], axes[i + 1], colors, 160));
  }
}
BENCHMARK(brush_100000_results)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cpfit::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
