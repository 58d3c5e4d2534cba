// Files that somebody damaged, or made to do damage, opened in the window: it says a sentence and lives, and what comes after
// can be opened.
#include <gtest/gtest.h>

#include <QFile>
#include <QTemporaryDir>
#include <chrono>

#include "gui/timeline/recorded_lanes.h"
#include "gui/view/study_view.h"
#include "gui/window/main_window.h"
#include "gui/window/screenshots.h"
#include "tests/fuzz/databases.h"
#include "tests/fuzz/mutate.h"
#include "tests/gui/example_study.h"

namespace cpfit::gui {
namespace {

using fuzz::Dice;

constexpr std::chrono::milliseconds kBudget{1000};  // of one kind of file
constexpr std::size_t kMostBytes = 1 << 16;

/// Calls `work` with 1, 2, ... up to `most`, for no longer than the budget. How often it came to that.
template <class Work>
int repeated(int most, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  int done = 0;
  while (done < most && std::chrono::steady_clock::now() - begin < kBudget) work(++done);
  return done;
}

std::string trace_text() {
  std::string text = R"({"schemaVersion":1,"traceEvents":[)";
  for (int i = 0; i < 12; ++i) {
    const bool sends = i % 3 == 1;
    text += std::string(i == 0 ? "" : ",\n") + R"({"ph":"X","cat":"kernel","name":")" +
            (sends ? "ncclDevKernel_SendRecv" : "gemm") + R"(","pid":0,"tid":7,"ts":)" +
            std::to_string(1690000000000000 + 40 * i) + R"(,"dur":)" + std::to_string(30 + 10 * (i % 4)) +
            R"(,"args":{"device":0,"stream":)" + std::to_string(7 + i % 2) + "}}";
  }
  return text +
         R"(,{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":1,"tid":1,"ts":1690000000000000,"dur":500}]})";
}

class HostileFiles : public testing::Test {
 protected:
  void SetUp() override {
    window.setProperty("unattended", true);
    window.show();
    ASSERT_TRUE(window.open_example("examples/llama3-8b-128k-1node.toml"));
    ASSERT_TRUE(wait_until_idle(window, 60'000));
  }

  std::string write(const QString& name, const std::string& bytes) const {
    QFile file(folder.filePath(name));
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(bytes.data(), static_cast<qsizetype>(bytes.size()));
    return file.fileName().toStdString();
  }

  void open(const QString& name, const std::string& bytes) {
    const std::string path = write(name, bytes);
    window.say("nothing was said");
    (void)window.open_path(QString::fromStdString(path));
    EXPECT_NE(window.said(), "nothing was said");
    EXPECT_FALSE(window.said().isEmpty());
    ASSERT_TRUE(wait_until_idle(window, 60'000));
  }

  /// The seed itself, then damage to it.
  void open_damaged(const QString& name, const std::string& seed, int most) {
    open(name, seed);
    const int done = repeated(most, [&](int number) {
      Dice dice(static_cast<std::uint64_t>(number));
      open(name, fuzz::mutated({seed}, {}, dice, kMostBytes));
    });
    EXPECT_GT(done, 0);
    EXPECT_TRUE(window.open_example("examples/llama3-8b-128k-1node.toml"));
    EXPECT_TRUE(wait_until_idle(window, 60'000));
  }

  QTemporaryDir folder;
  MainWindow window{WindowOptions{}};
};

TEST_F(HostileFiles, Scenarios) { open_damaged("s.toml", example_toml(), 40); }

TEST_F(HostileFiles, Topologies) {
  open_damaged("t.json", R"({"schema": "cpfit-topology/1", "base": "dgx-h100", "nodes": 1, "set": {"nic_rate": "200 Gb/s"}})",
               40);
}

TEST_F(HostileFiles, ModelConfigs) {
  open_damaged("config.json",
               R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336,
                   "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256})",
               40);
}

TEST_F(HostileFiles, Traces) { open_damaged("trace.json", trace_text(), 60); }

TEST_F(HostileFiles, Databases) {
  const std::string whole = fuzz::database_of(example_toml());
  open("r.sqlite", whole);
  EXPECT_TRUE(window.database().run() != nullptr) << window.said().toStdString();
  const std::string loose = fuzz::loosened(whole);
  const int done = repeated(60, [&](int number) {
    Dice dice(static_cast<std::uint64_t>(number));
    std::string choices;
    for (int i = 0; i < 60; ++i) choices += static_cast<char>(dice.below(256));
    open("r.sqlite", number % 2 == 0 ? fuzz::with_changed_cells(loose, choices) : fuzz::changed_database(whole, choices));
    for (StudyView* view : window.views()) (void)view->summary();
  });
  EXPECT_GT(done, 0);
}

/// What the views draw of a trace, without the window: thousands.
TEST(HostileTraces, BecomeLanesThatAscend) {
  const QTemporaryDir folder;
  const QString path = folder.filePath("trace.json");
  const std::string seed = trace_text();
  int read = 0;
  (void)repeated(3000, [&](int number) {
    Dice dice(static_cast<std::uint64_t>(number));
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    const std::string bytes = number == 1 ? seed : fuzz::mutated({seed}, {}, dice, kMostBytes);
    file.write(bytes.data(), static_cast<qsizetype>(bytes.size()));
    file.close();
    const Outcome<RecordedTrace> trace = read_trace(path.toStdString());
    if (!trace.ok()) return;
    ++read;
    for (std::size_t device = 0; device < std::min<std::size_t>(trace->devices.size(), 4); ++device) {
      for (const TracedStep& step : steps_of(*trace)) {
        const auto picture = with_recorded(StepPicture{}, recorded_lanes(*trace, device, step));
        EXPECT_EQ(picture->sums.size(), picture->timeline.lanes.size());
      }
    }
  });
  EXPECT_GT(read, 1);
}

}  // namespace
}  // namespace cpfit::gui
