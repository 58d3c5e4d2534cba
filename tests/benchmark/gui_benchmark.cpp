// The budgets of the desktop program, on the platform without a display: start to usable window, edit to verdict, edit to new
// timeline, a study's views painted.
#include <benchmark/benchmark.h>

#include <QApplication>

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

void edit_to_timeline(benchmark::State& state) {
  MainWindow window{WindowOptions{}};
  window.show();
  if (!window.open_example(kExample) || !wait_until_idle(window, kPatienceMs)) state.SkipWithError("the example does not open");
  const char* const values[] = {"selective", "full"};
  std::size_t next = 0;
  for (auto _ : state) {
    (void)window.document().set_value("recompute", values[next++ % 2]);
    while (!window.live().simulation_is_current()) QApplication::processEvents(QEventLoop::AllEvents, 1);
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

}  // namespace
}  // namespace cpfit::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
