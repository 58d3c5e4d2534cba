// The window: actions, palette, what files are, sessions, themes and scale, opening and refusing.
#include <gmock/gmock.h>

#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFile>
#include <QKeySequenceEdit>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QPushButton>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include "db/store/store.h"
#include "gui/recipe/recipe_panel.h"
#include "gui/recipe/recipe_row.h"
#include "gui/recipe/verdict_strip.h"
#include "gui/results/parallel_plot.h"
#include "gui/results/results_view.h"
#include "gui/topology/topology_view.h"
#include "gui/view/export_view.h"
#include "gui/view/study_view.h"
#include "gui/window/command_palette.h"
#include "gui/window/dropped_file.h"
#include "gui/window/examples.h"
#include "gui/window/key_dialog.h"
#include "gui/window/layouts.h"
#include "gui/window/main_window.h"
#include "gui/window/palette_match.h"
#include "gui/window/screenshots.h"
#include "gui/window/session.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

TEST(PaletteMatch, BeginningsOfWordsWin) {
  const QStringList texts = {"File: Open …", "View: Only this view", "File: Copy as command", "Edit: Copy view"};
  EXPECT_EQ(best_matches("open", texts).front(), 0);
  EXPECT_EQ(best_matches("cac", texts).front(), 2);
  EXPECT_EQ(best_matches("copy view", texts).front(), 3);
  EXPECT_TRUE(best_matches("zzz", texts).empty());
  EXPECT_THAT(best_matches("", texts), ElementsAre(0, 1, 2, 3));
}

TEST(FileNatures, AreReadFromContent) {
  EXPECT_EQ(nature_of("SQLite format 3\0", "a.txt").kind, FileKind::kDatabase);
  EXPECT_EQ(nature_of("# x\nmodel = \"m\"\n[training]\nsequence_length = \"1k\"\n", "a").kind, FileKind::kScenario);
  EXPECT_EQ(nature_of("{\"model_type\": \"llama\", \"num_hidden_layers\": 2}", "a").kind, FileKind::kModelConfig);
  EXPECT_EQ(nature_of("{\"traceEvents\": []}", "a").kind, FileKind::kTrace);
  EXPECT_EQ(nature_of("{\"base\": \"dgx-h100\"}", "a").kind, FileKind::kTopology);
  EXPECT_EQ(nature_of("<system version=\"1\">", "a").kind, FileKind::kTopology);
  for (const auto& [text, name] : {std::pair<QByteArray, QString>("", "empty"),
                                   {"hello", "words.txt"},
                                   {"{\"a\": 1}", "any.json"},
                                   {"x = 1\n", "other.toml"},
                                   {QByteArray("\x7f\0ELF", 5), "prog"}}) {
    const FileNature nature = nature_of(text, name);
    EXPECT_EQ(nature.kind, FileKind::kUnknown) << name.toStdString();
    EXPECT_TRUE(nature.sentence.contains(name)) << nature.sentence.toStdString();
  }
}

TEST(Sessions, ReadBack) {
  SessionState state;
  state.geometry = QByteArray("\x01\x02\x00\x03", 4);
  state.docks = "docks";
  state.study = "a/b.toml";
  state.recipe = "tp=2";
  state.locks = {"cp", "recompute"};
  state.database = "a/b.sqlite";
  state.calibration_from = "a/b.json.toml";
  state.calibration_id = "abcd";
  state.filters = {"+fits, cp>=4", "memory<=70"};
  state.log_axes = {"memory", "step"};
  state.keys = {"edit.undo=Ctrl+U", "run.pin="};
  state.recent = {"a", "b"};
  state.theme = "dark";
  state.scale = 1.5;
  const SessionRead read = session_from_json(to_json(state));
  EXPECT_TRUE(read.trouble.isEmpty());
  EXPECT_EQ(read.state, state);
}

TEST(Sessions, ABrokenFileIsPutAsideAndSaid) {
  QTemporaryDir folder;
  const QString path = folder.filePath("session.json");
  for (const QByteArray& content :
       {QByteArray("{"), QByteArray("[]"), QByteArray("{\"version\": 99}"), QByteArray("\xff\xfe garbage")}) {
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(content);
    file.close();
    const SessionRead read = load_session(path);
    EXPECT_FALSE(read.trouble.isEmpty()) << content.toStdString();
    EXPECT_EQ(read.state, SessionState{});
    EXPECT_FALSE(QFile::exists(path));
    EXPECT_TRUE(QFile::exists(path + ".broken"));
  }
  EXPECT_TRUE(load_session(folder.filePath("none.json")).trouble.isEmpty());
  EXPECT_FALSE(save_session({}, "/proc/nowhere/session.json").isEmpty());
}

std::vector<ActionSpec> three_commands() {
  return {{"a.undo", "&Edit", "&Undo", "Ctrl+Z", "", false, false},
          {"a.redo", "&Edit", "&Redo", "Ctrl+Shift+Z; Ctrl+Y", "", false, false},
          {"a.stop", "&Run", "S&top", "", "", false, false}};
}

TEST(KeyMaps, HoldWhatDiffersAndKnowWhoHasAKey) {
  const std::vector<ActionSpec> specs = three_commands();
  KeyMap map = with_keys(specs, {}, "a.undo", "Ctrl+U");
  EXPECT_EQ(keys_under(specs, map, "a.undo"), "Ctrl+U");
  EXPECT_EQ(keys_under(specs, map, "a.redo"), "Ctrl+Shift+Z; Ctrl+Y");
  EXPECT_TRUE(key_conflicts(specs, map, "a.stop", QKeySequence("Ctrl+Z")).empty()) << "Undo gave it up";
  const auto taken = key_conflicts(specs, map, "a.stop", QKeySequence("Ctrl+Y"));
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].text, "Redo");
  // A sequence that begins with another's key never gets beyond it.
  EXPECT_EQ(key_conflicts(specs, map, "a.stop", QKeySequence("Ctrl+U, Ctrl+X")).size(), 1u);
  // Zoom keys of the timeline: a command would take them from all views.
  ASSERT_EQ(key_conflicts(specs, map, "a.stop", QKeySequence("W")).size(), 1u);
  EXPECT_TRUE(key_conflicts(specs, map, "a.stop", QKeySequence("W"))[0].id.isEmpty());
  // Of two keys one goes; the table's own are no entry.
  map = without_key(specs, map, "a.redo", QKeySequence("Ctrl+Y"));
  EXPECT_EQ(keys_under(specs, map, "a.redo"), "Ctrl+Shift+Z");
  EXPECT_EQ(key_map(specs, lines_of(map)), map);
  map = with_keys(specs, map, "a.undo", "Ctrl+Z");
  map = with_keys(specs, map, "a.redo", "Ctrl+Shift+Z; Ctrl+Y");
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(key_map(specs, {"a.gone=Ctrl+K", "a.undo=NoSuchKey", "nonsense"}).empty());
}

TEST(Sessions, RecentIsShortAndHasNothingTwice) {
  QStringList recent;
  for (int i = 0; i < 30; ++i) recent = with_recent(recent, QString::number(i % 14));
  EXPECT_EQ(recent.size(), kRecentKept);
  EXPECT_EQ(recent.front(), "1");  // 29 % 14
  EXPECT_EQ(QSet<QString>(recent.begin(), recent.end()).size(), recent.size());
}

TEST(Examples, AreBundledWithNameAndQuestion) {
  const std::vector<Example> examples = bundled_examples();
  EXPECT_GE(examples.size(), 3u);
  for (const Example& example : examples) {
    EXPECT_FALSE(example_text(example.path).empty()) << example.path.toStdString();
    EXPECT_FALSE(example.question.isEmpty()) << example.path.toStdString();
    EXPECT_NE(example.name, example.path);
  }
  EXPECT_TRUE(example_text("examples/none.toml").empty());
}

TEST(Layouts, AreFiveAndNameNoDockTwice) {
  ASSERT_EQ(window_layouts().size(), 5u);
  for (const WindowLayout& layout : window_layouts()) {
    QSet<QString> seen;
    for (const DockSlot& slot : layout.docks) {
      EXPECT_FALSE(seen.contains(slot.id)) << slot.id.toStdString();
      seen.insert(slot.id);
    }
  }
}

class Window : public testing::Test {
 protected:
  void SetUp() override {
    window.setProperty("unattended", true);
    window.show();
  }
  void open() {
    ASSERT_TRUE(window.open_example("examples/llama3-8b-128k-1node.toml"));
    ASSERT_TRUE(wait_until_idle(window, 60'000));
  }
  MainWindow window{WindowOptions{}};
};

TEST_F(Window, EveryActionHasTextAndIsReachableAndSaysWhyNot) {
  for (const bool with_study : {false, true}) {
    if (with_study) open();
    QSet<QString> keys;
    for (const ActionSpec& spec : window.actions_table().specs()) {
      const QAction* action = window.actions_table().find(spec.id);
      ASSERT_NE(action, nullptr);
      EXPECT_FALSE(AppActions::plain(action->text()).isEmpty()) << spec.id.toStdString();
      EXPECT_FALSE(spec.menu.isEmpty()) << spec.id.toStdString();  // menus are reachable by keyboard
      EXPECT_FALSE(spec.help.isEmpty()) << spec.id.toStdString();
      if (!action->isEnabled()) {
        EXPECT_FALSE(window.actions_table().reason(spec.id).isEmpty()) << spec.id.toStdString();
      }
      for (const QKeySequence& key : action->shortcuts()) {
        EXPECT_FALSE(key.isEmpty()) << spec.id.toStdString();
        EXPECT_FALSE(keys.contains(key.toString())) << "two actions have " << key.toString().toStdString();
        keys.insert(key.toString());
      }
    }
  }
}

TEST_F(Window, AnExampleOpensInOneClickWithAVerdict) {
  open();
  EXPECT_TRUE(window.live().now().legal());
  EXPECT_EQ(window.verdict()->cells().size(), 5u);
  EXPECT_TRUE(window.dock("recipe")->isVisible());
  EXPECT_TRUE(window.dock("memory")->isVisible());
}

TEST_F(Window, ABadFileIsASentenceAndTheStudyStays) {
  open();
  QTemporaryDir folder;
  for (const auto& [name, content] : {std::pair<QString, QByteArray>("broken.toml", "[training]\nsequence_length = 12q\n"),
                                      {"words.txt", "hello"},
                                      {"empty", ""},
                                      {"broken.sqlite", "SQLite format 3\0garbage"},
                                      {"config.json", "{\"model_type\": \"mixtral\", \"num_hidden_layers\": 2}"},
                                      {"topology.json", "{\"base\": \"dgx-h1000\"}"}}) {
    const QString path = folder.filePath(name);
    QFile file(path);
    ASSERT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(content);
    file.close();
    EXPECT_FALSE(window.open_path(path)) << name.toStdString();
    EXPECT_FALSE(window.said().isEmpty());
    EXPECT_EQ(window.document().path(), "examples/llama3-8b-128k-1node.toml");
  }
  EXPECT_FALSE(window.open_path("/nowhere/at/all.toml"));
  EXPECT_FALSE(window.open_path(folder.path()));
}

TEST_F(Window, ADroppedScenarioOpens) {
  QMimeData content;
  content.setUrls({QUrl::fromLocalFile(QStringLiteral(CPFIT_SOURCE_DIR "/examples/llama3-8b-32k-8xpcie.toml"))});
  QDragEnterEvent enter(QPoint(100, 100), Qt::CopyAction, &content, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  ASSERT_TRUE(enter.isAccepted());
  QDropEvent drop(QPointF(100, 100), Qt::CopyAction, &content, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &drop);
  EXPECT_TRUE(window.document().is_open());
}

TEST_F(Window, TheSessionGoesRound) {
  open();
  ASSERT_TRUE(window.document().set_value("micro_batch", "2").empty());
  // A database, a kept filter and rates of one's own: the defaults' rows as a calibration file.
  QTemporaryDir folder;
  {
    const Store made = open_store(folder.filePath("my.sqlite").toStdString());
  }
  window.database().open(folder.filePath("my.sqlite"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window.database().content() != nullptr; }, 20'000));
  window.results().book().set_filter(*parse_filter("+fits, cp>=2"));
  window.results().book().keep_filter();
  window.results().parallel()->set_logarithmic_fields({"memory"});
  auto chosen = std::make_shared<ChosenCalibration>();
  chosen->calibration = default_calibration();
  chosen->calibration.assumed = false;
  chosen->calibration.name = "mine";
  chosen->calibration.id = calibration_id(chosen->calibration);
  chosen->from = folder.filePath("mine.toml").toStdString();
  QFile file(folder.filePath("mine.toml"));
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write(QByteArray::fromStdString(calibration_toml(chosen->calibration)));
  file.close();
  Design design = window.document().design();
  design.calibration = chosen;
  window.document().set_design(design, "Rates");
  window.document().set_locked("cp", true);
  window.document().set_locked("recompute", true);
  window.actions_table().set_own_keys({{"run.stop", "Ctrl+K"}});
  window.set_theme(ThemeChoice::kDark);
  window.set_scale(1.15);
  const SessionState state = window.session();
  MainWindow again{WindowOptions{}};
  again.show();
  again.restore(session_from_json(to_json(state)).state);
  EXPECT_EQ(again.document().design().recipe, window.document().design().recipe);
  EXPECT_EQ(again.document().locks(), (Locks{"cp", "recompute"}));
  EXPECT_EQ(again.actions_table().find("run.stop")->shortcut(), QKeySequence("Ctrl+K"));
  EXPECT_EQ(again.theme(), ThemeChoice::kDark);
  ASSERT_TRUE(again.live().calibration());
  EXPECT_EQ(again.live().calibration()->name, "mine");
  EXPECT_EQ(again.results().parallel()->logarithmic_fields(), QStringList{"memory"});
  EXPECT_EQ(again.results().book().kept_filters(), window.results().book().kept_filters());
  ASSERT_TRUE(QTest::qWaitFor([&] { return again.database().content() != nullptr; }, 20'000));
  EXPECT_EQ(again.database().path(), folder.filePath("my.sqlite"));
  EXPECT_DOUBLE_EQ(again.scale(), 1.15);
  again.set_scale(1.0);
  again.set_theme(ThemeChoice::kLight);
}

TEST_F(Window, NoTwoCommandsHaveOneKeyAndNoneHasAViews) {
  const AppActions& table = window.actions_table();
  for (const ActionSpec& spec : table.specs()) {
    for (const QKeySequence& key : keys_of(spec.keys))
      EXPECT_TRUE(key_conflicts(table.specs(), {}, spec.id, key).empty())
          << spec.id.toStdString() << key.toString().toStdString();
  }
}

TEST_F(Window, KeysAreChangedTakenOverAndSetBack) {
  open();
  AppActions& table = window.actions_table();
  KeyDialog dialog(table, &window);
  const QAbstractItemModelTester tester(dialog.model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
  dialog.show();
  dialog.filter()->setFocus();
  QTest::keyClicks(dialog.filter(), "unpin");
  ASSERT_EQ(dialog.model()->rowCount(), 1);
  EXPECT_TRUE(dialog.model()->index(0, 0).data().toString().contains("Unpin"));
  dialog.filter()->clear();
  dialog.choose("run.unpin");
  dialog.field()->setFocus();
  QTest::keyClick(dialog.field(), Qt::Key_U, Qt::ControlModifier);
  // The field waits a moment for a second key of the sequence.
  ASSERT_TRUE(QTest::qWaitFor([&] { return dialog.set_button()->isEnabled(); }, 10'000));
  EXPECT_TRUE(dialog.conflict()->text().isEmpty());
  QTest::mouseClick(dialog.set_button(), Qt::LeftButton);
  EXPECT_EQ(table.find("run.unpin")->shortcut(), QKeySequence("Ctrl+U"));
  // A key of another is taken over only when asked for, and the other has none of it then.
  dialog.field()->setKeySequence(QKeySequence("Ctrl+R"));
  EXPECT_TRUE(dialog.conflict()->text().contains("Simulate now")) << dialog.conflict()->text().toStdString();
  QTest::mouseClick(dialog.set_button(), Qt::LeftButton);
  EXPECT_EQ(table.find("run.unpin")->shortcut(), QKeySequence("Ctrl+R"));
  EXPECT_TRUE(table.find("run.simulate")->shortcuts().isEmpty());
  // One that views need is refused.
  dialog.field()->setKeySequence(QKeySequence("W"));
  EXPECT_FALSE(dialog.set_button()->isEnabled());
  EXPECT_FALSE(dialog.conflict()->text().isEmpty());
  // Back to its default: who holds that key by now gives it back.
  dialog.choose("run.simulate");
  QTest::mouseClick(dialog.default_button(), Qt::LeftButton);
  EXPECT_EQ(table.find("run.simulate")->shortcut(), QKeySequence("Ctrl+R"));
  EXPECT_TRUE(table.find("run.unpin")->shortcuts().isEmpty());
  QTest::mouseClick(dialog.defaults_button(), Qt::LeftButton);
  EXPECT_EQ(table.find("run.unpin")->shortcut(), QKeySequence("Shift+B"));
  EXPECT_TRUE(table.own_keys().empty());
}

TEST_F(Window, UndoTakesBackWhatWasTypedInABox) {
  open();
  window.activateWindow();
  auto* field = static_cast<RecipePanel*>(window.view("recipe"))->row("micro_batch")->findChild<QLineEdit*>();
  ASSERT_TRUE(QTest::qWaitFor([&] { return QApplication::activeWindow() == &window; }, 5'000));
  field->setFocus();
  field->selectAll();
  const std::int32_t before = window.document().design().recipe.micro_batch;
  QTest::keyClicks(field, before == 2 ? "1" : "2");
  QTest::keyClick(field, Qt::Key_Return);
  EXPECT_NE(window.document().design().recipe.micro_batch, before);
  QTest::keyClick(field, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_EQ(window.document().design().recipe.micro_batch, before);
}

TEST(Windows, ThatGoWhileAValueIsTypedEnterItFirst) {
  auto window = std::make_unique<MainWindow>(WindowOptions{});
  window->show();
  ASSERT_TRUE(window->open_example("examples/llama3-8b-128k-1node.toml"));
  window->activateWindow();
  ASSERT_TRUE(QTest::qWaitFor([&] { return QApplication::activeWindow() == window.get(); }, 5'000));
  auto* field = static_cast<RecipePanel*>(window->view("recipe"))->row("global_batch")->findChild<QLineEdit*>();
  field->setFocus();
  field->selectAll();
  QTest::keyClicks(field, "16");
  window.reset();  // it used to be entered into a document that was gone
}

TEST_F(Window, ASessionWhoseStudyIsGoneShowsTheStartPage) {
  SessionState state;
  state.study = "examples/llama3-8b-128k-1node.toml";
  state.database = "/nowhere/my.sqlite";
  window.restore(state);
  EXPECT_TRUE(window.said().contains("/nowhere/my.sqlite")) << window.said().toStdString();
  state.calibration_from = "/nowhere/rates.toml";
  state.database.clear();
  window.restore(state);
  EXPECT_TRUE(window.said().contains("the defaults hold")) << window.said().toStdString();
  window.document().close();
  state.study = "/nowhere/at/all.toml";
  window.restore(state);
  EXPECT_FALSE(window.document().is_open());
  EXPECT_FALSE(window.said().isEmpty());
}

TEST_F(Window, LayoutsChangeWhatIsShownAndResetWorks) {
  open();
  window.apply_layout(1);
  EXPECT_FALSE(window.dock("recipe")->isVisible());
  window.apply_layout(0);
  EXPECT_TRUE(window.dock("recipe")->isVisible());
  window.dock("recipe")->close();
  window.actions_table().find("layout.reset")->trigger();
  EXPECT_TRUE(window.dock("recipe")->isVisible());
}

TEST_F(Window, ThePaletteRunsACommandByAFewLetters) {
  open();
  window.actions_table().find("help.palette")->trigger();
  auto* palette = window.findChild<CommandPalette*>();
  ASSERT_TRUE(palette->isVisible());
  QTest::keyClicks(palette->findChild<QLineEdit*>(), "high contrast");
  QTest::keyClick(palette->findChild<QLineEdit*>(), Qt::Key_Return);
  EXPECT_EQ(window.theme(), ThemeChoice::kHighContrast);
  window.set_theme(ThemeChoice::kLight);
}

TEST_F(Window, EveryViewIsExportedInEveryFormat) {
  open();
  QTemporaryDir folder;
  for (StudyView* view : window.views()) {
    for (const char* ending : {".png", "@2x.png", ".pdf", ".svg", ".csv"}) {
      const QString path = folder.filePath(view->id() + ending);
      if (QString(ending) == ".csv" && view->csv().isEmpty()) continue;
      EXPECT_EQ(export_view(*view, path, format_of(path)), "") << path.toStdString();
      // A table without rows is its headings.
      EXPECT_GT(QFile(path).size(), QString(ending) == ".csv" ? 10 : 50) << path.toStdString();
    }
    EXPECT_FALSE(export_view(*view, "/nowhere/at/all.png", ExportFormat::kPng).isEmpty());
    EXPECT_FALSE(view->summary().isEmpty()) << view->id().toStdString();
  }
  const QImage once(folder.filePath("memory.png")), twice(folder.filePath("memory@2x.png"));
  EXPECT_EQ(twice.size(), once.size() * 2);
}

TEST_F(Window, AReportIsWrittenOrSaysWhyNot) {
  open();
  QTemporaryDir folder;
  const QString path = folder.filePath("study.html");
  window.export_report(path);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window.jobs().is_running("report"); }, 60'000));
  EXPECT_EQ(window.said(), "Wrote " + path);
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const QByteArray page = file.readAll();
  EXPECT_TRUE(page.startsWith("<!DOCTYPE html>"));
  EXPECT_TRUE(page.contains(QByteArray::fromStdString(window.live().search()->plan.answer.substr(0, 60)))) << "the same verdict";
  EXPECT_GE(page.count("<svg"), 3);
  window.export_report("/nowhere/at/all.html");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window.jobs().is_running("report"); }, 60'000));
  EXPECT_TRUE(window.said().contains("cannot be written")) << window.said().toStdString();
  window.export_report(folder.filePath("never.html"));
  window.jobs().stop_all();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window.jobs().is_running("report"); }, 60'000));
  EXPECT_FALSE(QFile::exists(folder.filePath("never.html")));
}

TEST_F(Window, ABaselineIsPinnedAndTheDifferenceShown) {
  open();
  window.actions_table().find("run.pin")->trigger();
  ASSERT_TRUE(window.document().set_value("micro_batch", "2").empty());
  EXPECT_FALSE(window.verdict()->cells()[0].delta.isEmpty());
  window.actions_table().find("run.unpin")->trigger();
  EXPECT_TRUE(window.verdict()->cells()[0].delta.isEmpty());
}

TEST(CopiedRecipes, AreFoundInCommandLinesAndAlone) {
  EXPECT_EQ(recipe_in_text("cpfit simulate \"a.toml\" --recipe \"tp=2,cp=4\" --db x"), "tp=2,cp=4");
  EXPECT_EQ(recipe_in_text("cpfit simulate a.toml --recipe='tp=1'"), "tp=1");
  EXPECT_EQ(recipe_in_text("--recipe tp=8 --json"), "tp=8");
  EXPECT_EQ(recipe_in_text("  tp=2,cp=2 \nmore"), "tp=2,cp=2");
  EXPECT_EQ(recipe_in_text("--recipe"), "");
  EXPECT_EQ(recipe_in_text(""), "");
}

TEST_F(Window, ARecipeIsCopiedAndPastedAndNonsenseIsASentence) {
  open();
  window.actions_table().find("edit.copy_recipe")->trigger();
  const QString copied = QApplication::clipboard()->text();
  const Recipe before = window.document().design().recipe;
  ASSERT_TRUE(window.document().set_value("micro_batch", "4").empty());
  window.actions_table().find("edit.paste_recipe")->trigger();
  EXPECT_EQ(window.document().design().recipe, before) << copied.toStdString();
  window.document().undo().undo();
  EXPECT_EQ(window.document().design().recipe.micro_batch, 4) << "one undo step";
  for (const char* nonsense : {"", "tp=many", "a poem"}) {
    QApplication::clipboard()->setText(QString::fromLatin1(nonsense));
    window.actions_table().find("edit.paste_recipe")->trigger();
    EXPECT_TRUE(window.said().contains("recipe")) << nonsense;
    EXPECT_EQ(window.document().design().recipe.micro_batch, 4);
  }
}

TEST_F(Window, TheCommandIsCopied) {
  open();
  window.dock("memory")->raise();
  window.view("memory")->findChild<QWidget*>()->setFocus();
  window.actions_table().find("show.memory")->trigger();
  window.actions_table().find("file.copy_command")->trigger();
  EXPECT_TRUE(QApplication::clipboard()->text().startsWith("cpfit simulate \"examples/llama3-8b-128k-1node.toml\" --recipe"))
      << QApplication::clipboard()->text().toStdString();
}

TEST_F(Window, ItIsUsableAt1024By700AndAtTwiceTheScale) {
  open();
  window.set_scale(1.0);
  window.resize(1024, 700);
  // With all that comes later: a network's rings have long names.
  auto* topology = qobject_cast<TopologyView*>(window.view("topology"));
  ASSERT_NE(topology, nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return topology->picture() != nullptr; }, 60'000));
  QApplication::processEvents();
  std::string widths;  // of the docks, for whoever made one too wide
  for (const StudyView* view : window.views())
    widths += view->id().toStdString() + " " + std::to_string(view->minimumSizeHint().width()) + ", ";
  EXPECT_LE(window.minimumSizeHint().width(), 1024) << widths;
  EXPECT_LE(window.minimumSizeHint().height(), 700);
}

}  // namespace
}  // namespace cpfit::gui
