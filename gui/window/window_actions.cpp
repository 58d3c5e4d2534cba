// The action table of the window and what each action does.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDockWidget>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QMenuBar>
#include <QMimeData>
#include <QTableView>

#include <QTextEdit>
#include <algorithm>

#include "gui/look/figures.h"
#include "gui/recipe/verdict_strip.h"
#include "gui/results/results_view.h"
#include "gui/study/recipe_values.h"
#include "gui/topology/network_picture.h"
#include "gui/view/export_view.h"
#include "gui/view/study_view.h"
#include "gui/window/command_palette.h"
#include "gui/window/dropped_file.h"
#include "gui/window/key_dialog.h"
#include "gui/window/layouts.h"
#include "gui/window/main_window.h"
#include "model/cluster/device_order.h"

namespace cpfit::gui {

void MainWindow::build_actions() {
  add_file_actions();
  add_edit_actions();
  add_view_actions();
  add_run_actions();
  actions_.fill(*menuBar());
  update_actions();
}

void MainWindow::add_file_actions() {
  const QString file = tr("&File");
  add({"file.open", file, tr("&Open …"), "Ctrl+O", tr("Open a scenario, a database, a model or a topology")},
      [this] { ask_and_open(); });
  add({"file.start", file, tr("&Close study"), "Ctrl+W", tr("Close the study and show the start page")}, [this] {
    document_.close();
    say(tr("The study was closed."));
  });
  add({"file.save", file, tr("&Save recipe"), "Ctrl+S", tr("Write the scenario with this recipe"), false, true},
      [this] { save(false); });
  add({"file.save_as", file, tr("Save recipe &as …"), "Ctrl+Shift+S", tr("Write the scenario with this recipe to another file")},
      [this] { save(true); });
  add({"file.export", file, tr("&Export view …"), "Ctrl+E", tr("The view with the focus as PNG, PDF, SVG or CSV"), false, true},
      [this] { export_focused(); });
  add({"file.report", file, tr("Export &report …"), "Ctrl+Shift+E",
       tr("The study as one HTML file with its pictures: to read, to send, to keep")},
      [this] { ask_for_report(); });
  add({"file.copy_command", file, tr("Copy as &command"), "Ctrl+Shift+C", tr("The command line that prints what the view shows")},
      [this] { copy_command(); });
  add({"file.copy_verdict", file, tr("Copy &verdict"), "", tr("The verdict as one line of text")}, [this] {
    QApplication::clipboard()->setText(verdict_line(live_.now(), shown_candidate(live_), document_.baseline()));
    say(tr("The verdict was copied."));
  });
  add({"file.quit", file, tr("&Quit"), "Ctrl+Q", tr("Leave; the session is kept"), false, true}, [this] { close(); });
}

void MainWindow::add_edit_actions() {
  const QString edit = tr("&Edit");
  add({"edit.undo", edit, tr("&Undo"), "Ctrl+Z", tr("Take back the last edit of the recipe")},
      [this] { document_.undo().undo(); });
  add({"edit.redo", edit, tr("&Redo"), "Ctrl+Shift+Z; Ctrl+Y", tr("Do it again")}, [this] { document_.undo().redo(); });
  add({"edit.copy", edit, tr("&Copy view"), "Ctrl+C", tr("What has the focus: a table with headers and units, else a picture"),
       false, true},
      [this] { copy_focused(); });
  add({"edit.copy_recipe", edit, tr("Copy r&ecipe"), "", tr("Every choice of the recipe, as --recipe takes it")}, [this] {
    QApplication::clipboard()->setText(text_of(to_complete_text(document_.design().recipe)));
    say(tr("Copied: %1").arg(QApplication::clipboard()->text()));
  });
  add({"edit.paste_recipe", edit, tr("&Paste recipe"), "Ctrl+Shift+V",
       tr("The recipe that was copied, also out of a command line; what it does not name stays")},
      [this] { paste_recipe(QApplication::clipboard()->text()); });
  add({"edit.reset", edit, tr("Reset &recipe"), "", tr("Back to the recipe the study opened with")}, [this] {
    Design opened = document_.opened();
    opened.calibration = document_.design().calibration;
    opened.recipe = with_locked(opened.recipe, document_.locks(), document_.design().recipe);
    document_.set_design(opened, tr("Reset recipe"));
  });
  add({"edit.ship", edit, tr("Take the recipe that &ships"), "Ctrl+Shift+G",
       tr("The smallest CP degree that fits, hides and keeps pace, by the search; of those that keep what is locked")},
      [this] { document_.set_recipe(live_.best()->recipe, tr("Recipe that ships")); });
  add({"edit.unlock", edit, tr("Un&lock every choice"), "", tr("Searches and proposals may change all of the recipe again")},
      [this] { document_.set_locks({}); });
  add({"edit.clear", edit, tr("Clear &selection"), "Esc", tr("First the focus range, then what is selected")},
      [this] { (void)selection_.clear_step(this); });
}

void MainWindow::add_view_actions() {
  const QString menu = tr("&View");
  for (std::size_t i = 0; i < window_layouts().size(); ++i) {
    const QString name = window_layouts()[i].name;
    add({QStringLiteral("layout.") + name.toLower(), menu + QStringLiteral("/&Layout"), tr("&%1 %2").arg(i + 1).arg(name),
         QStringLiteral("Ctrl+%1").arg(i + 1), tr("Arrange the docks: %1").arg(name)},
        [this, i] { apply_layout(i); });
  }
  add({"layout.reset", menu + QStringLiteral("/&Layout"), tr("&Reset layout"), "", tr("The docks as they were at first"), false,
       true},
      [this] { apply_layout(layout_); });
  for (const StudyView* view : views_) {
    add({QStringLiteral("show.") + view->id(), menu + QStringLiteral("/&Docks"), view->title(), "",
         tr("Show the dock %1").arg(view->title())},
        [this, id = view->id()] { show_dock(id); });
  }
  add({"view.only", menu, tr("&Only this view"), "F11", tr("The view with the focus alone, and back"), false, true},
      [this] { toggle_only_this(); });
  add({"view.next", menu, tr("&Next dock"), "F6", tr("Put the focus into the next dock")}, [this] { step_dock(1); });
  add({"view.previous", menu, tr("&Previous dock"), "Shift+F6", tr("Put the focus into the previous dock")},
      [this] { step_dock(-1); });
  add({"view.larger", menu, tr("&Larger"), "Ctrl+=; Ctrl++", tr("Everything larger, up to twice"), false, true},
      [this] { set_scale(stepped_scale(scale_, 1)); });
  add({"view.smaller", menu, tr("&Smaller"), "Ctrl+-", tr("Everything smaller")},
      [this] { set_scale(stepped_scale(scale_, -1)); });
  add({"view.normal", menu, tr("Normal si&ze"), "Ctrl+0", tr("Everything at its own size")}, [this] { set_scale(1.0); });
  const std::pair<ThemeChoice, QString> themes[] = {{ThemeChoice::kSystem, tr("&System")},
                                                    {ThemeChoice::kLight, tr("&Light")},
                                                    {ThemeChoice::kDark, tr("&Dark")},
                                                    {ThemeChoice::kHighContrast, tr("&High contrast")}};
  for (const auto& [choice, text] : themes) {
    add({QStringLiteral("theme.") + name_of(choice), menu + QStringLiteral("/&Theme"), text, "",
         tr("Colours: %1").arg(AppActions::plain(text).toLower()), true},
        [this, choice = choice] { set_theme(choice); });
  }
}

void MainWindow::add_run_actions() {
  const QString run = tr("&Run");
  add({"run.simulate", run, tr("&Simulate now"), "Ctrl+R", tr("The step on the timeline: every kernel and transfer")},
      [this] { live_.simulate_now(); });
  add({"run.sweep", run, tr("S&weep recipes …"), "Ctrl+Shift+R",
       tr("Choose what a search tries, start, stop, go on, and store it")},
      [this] {
        show_dock(QStringLiteral("results"));
        results().open_sweep();
      });
  add({"run.stop", run, tr("S&top"), "Ctrl+.",
       tr("End what runs beside the window; a sweep and a measurement keep what they have")},
      [this] { jobs_.stop_all(); });
  add({"run.pin", run, tr("&Pin as baseline"), "B", tr("Compare everything from now on with this recipe"), false, true},
      [this] { pin_baseline(); });
  add({"run.unpin", run, tr("&Unpin the baseline"), "Shift+B", tr("Compare with nothing")},
      [this] { document_.unpin_baseline(); });
  const QString help = tr("&Help");
  add({"help.palette", help, tr("&Command palette"), "Ctrl+Shift+P; /", tr("Any command by a few letters")},
      [this] { palette_->open_over_parent(); });
  add({"help.keys", help, tr("All &keys"), "?; F1", tr("Every key and what it does")}, [this] {
    auto* list = new KeyList(actions_, this);
    list->setAttribute(Qt::WA_DeleteOnClose);
    list->show();
  });
  add({"help.change_keys", help, tr("&Change keys …"), "", tr("Give commands other keys; who has a key already is said")},
      [this] {
        auto* dialog = new KeyDialog(actions_, this);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->show();
      });
}

void MainWindow::update_actions() {
  const QString no_study = document_.is_open() ? QString() : tr("no study is open");
  const QString illegal = !no_study.isEmpty()   ? no_study
                          : live_.now().legal() ? QString()
                                                : tr("the recipe is not legal: Problems says why");
  for (const char* id : {"file.start", "file.save_as", "file.report", "edit.copy_recipe", "edit.paste_recipe", "run.sweep",
                         "view.only", "view.next", "view.previous", "layout.reset"})
    actions_.set_reason(QLatin1String(id), no_study);
  for (const ActionSpec& spec : actions_.specs()) {
    if (spec.id.startsWith(QLatin1String("show.")) || spec.id.startsWith(QLatin1String("layout.")))
      actions_.set_reason(spec.id, no_study);
  }
  const StudyView* view = document_.is_open() ? focused_view() : nullptr;
  const QString no_view = !no_study.isEmpty() ? no_study
                          : view == nullptr   ? tr("no view has the focus: click one first")
                                              : QString();
  actions_.set_reason("file.save", !no_study.isEmpty() ? no_study
                                   : document_.undo().isClean() && document_.undo().count() == 0 && !document_.is_example()
                                       ? tr("nothing was edited")
                                       : QString());
  actions_.set_reason("file.export", no_view);
  actions_.set_reason("edit.copy", no_view);
  actions_.set_reason("file.copy_command", !no_view.isEmpty()          ? no_view
                                           : view->command().isEmpty() ? tr("the view %1 has no command line").arg(view->title())
                                                                       : QString());
  actions_.set_reason("file.copy_verdict", no_study);
  actions_.set_reason("edit.undo", document_.undo().canUndo() ? QString() : tr("nothing was edited"));
  actions_.set_reason("edit.redo", document_.undo().canRedo() ? QString() : tr("nothing was taken back"));
  actions_.find("edit.undo")->setText(document_.undo().canUndo() ? tr("&Undo %1").arg(document_.undo().undoText()) : tr("&Undo"));
  actions_.find("edit.redo")->setText(document_.undo().canRedo() ? tr("&Redo %1").arg(document_.undo().redoText()) : tr("&Redo"));
  actions_.set_reason("edit.reset", !no_study.isEmpty() ? no_study
                                    : document_.design().recipe == document_.opened().recipe &&
                                            document_.design().scenario == document_.opened().scenario
                                        ? tr("it is that recipe")
                                        : QString());
  const std::optional<Candidate> best = document_.is_open() ? live_.best() : std::nullopt;
  const QString held = document_.is_open() ? text_of(locks_text(document_.locks(), document_.design().recipe)) : QString();
  actions_.set_reason("edit.unlock", !no_study.isEmpty() ? no_study : held.isEmpty() ? tr("nothing is locked") : QString());
  actions_.set_reason("edit.ship", !no_study.isEmpty()       ? no_study
                                   : !live_.search()         ? tr("the search is not done yet")
                                   : !best && held.isEmpty() ? tr("no recipe fits and hides: Feasible CP names other levers")
                                   : !best                   ? tr("no recipe with %1 fits and hides: unlock a choice").arg(held)
                                   : best->recipe == document_.design().recipe ? tr("it is that recipe")
                                                                               : QString());
  actions_.set_reason("edit.clear", selection_.now() == Selected{} ? tr("nothing is selected") : QString());
  actions_.set_reason("run.simulate", illegal);
  bool running = false;
  for (const JobRow& row : jobs_.rows()) running = running || row.state == JobState::kRunning;
  actions_.set_reason("run.stop", running ? QString() : tr("nothing runs"));
  actions_.set_reason("run.pin", illegal);
  actions_.set_reason("run.unpin", document_.baseline() ? QString() : tr("no baseline is pinned"));
  for (const ThemeChoice choice : {ThemeChoice::kSystem, ThemeChoice::kLight, ThemeChoice::kDark, ThemeChoice::kHighContrast}) {
    if (QAction* action = actions_.find(QStringLiteral("theme.") + name_of(choice))) action->setChecked(choice == theme_);
  }
}

void MainWindow::save(bool ask) {
  QString path = document_.path();
  if (ask || document_.is_example()) {
    const QString proposed = QFileInfo(path).fileName();
    path = QFileDialog::getSaveFileName(this, tr("Save recipe"), proposed, tr("Scenarios (*.toml)"));
    if (path.isEmpty()) return;
  }
  const Problems problems = document_.save(path);
  if (!problems.empty()) {
    say(text_of(to_text(problems.front())), true);
    return;
  }
  recent_ = with_recent(recent_, path);
  refresh_state();
  say(tr("Saved %1").arg(path));
}

void MainWindow::export_focused() {
  StudyView* view = focused_view();
  if (view == nullptr) return;
  QString filter;
  QString path = QFileDialog::getSaveFileName(this, tr("Export %1").arg(view->title()), view->id() + QStringLiteral(".png"),
                                              export_filters(*view).join(QStringLiteral(";;")), &filter);
  if (path.isEmpty()) return;
  const QString trouble = export_view(*view, path, format_of(path));
  say(trouble.isEmpty() ? tr("Wrote %1").arg(path) : trouble, !trouble.isEmpty());
}

void MainWindow::copy_focused() {
  // A field with selected text copies that.
  QWidget* focus = QApplication::focusWidget();
  if (auto* line = qobject_cast<QLineEdit*>(focus); line != nullptr && line->hasSelectedText()) return line->copy();
  if (auto* text = qobject_cast<QTextEdit*>(focus); text != nullptr && text->textCursor().hasSelection()) return text->copy();
  StudyView* view = focused_view();
  if (view == nullptr) return;
  auto* content = new QMimeData;
  content->setImageData(view->grab().toImage());
  const QString table = view->csv();
  content->setText(table.isEmpty() ? view->summary() : table);
  QApplication::clipboard()->setMimeData(content);
  say(table.isEmpty() ? tr("The picture of %1 was copied.").arg(view->title())
                      : tr("%1 was copied as a table and as a picture.").arg(view->title()));
}

void MainWindow::copy_command() {
  const StudyView* view = focused_view();
  if (view == nullptr) return;
  QApplication::clipboard()->setText(view->command());
  say(tr("Copied: %1").arg(view->command()));
}

void MainWindow::paste_recipe(const QString& text) {
  if (!document_.is_open()) return;
  const QString recipe = recipe_in_text(text);
  const Outcome<Recipe> read = parse_recipe(to_std(recipe), document_.design().recipe);
  if (recipe.isEmpty() || !read.ok()) {
    say(recipe.isEmpty() ? tr("Nothing that could be a recipe was copied: tp=2,cp=4,pp=1,dp=1")
                         : tr("What was copied is no recipe: %1").arg(sentence_of(read.problems().front())),
        true);
    return;
  }
  document_.set_recipe(*read, tr("Paste recipe"));
}

void MainWindow::pin_baseline() {
  if (!live_.now().legal()) return;
  document_.pin_baseline({document_.design(), *shown_candidate(live_).candidate, text_of(to_text(document_.design().recipe))});
  say(tr("Everything is now compared with %1.").arg(document_.baseline()->name));
}

void MainWindow::toggle_only_this() {
  if (!docks_before_.isEmpty()) {
    restoreState(docks_before_, kLayoutVersion);
    docks_before_.clear();
    return;
  }
  const StudyView* view = focused_view();
  if (view == nullptr) {
    say(tr("Click the view first that should be alone."), true);
    return;
  }
  docks_before_ = saveState(kLayoutVersion);
  for (auto& [id, dock] : docks_) dock->setVisible(id == view->id());
}

void MainWindow::step_dock(int by) {
  std::vector<StudyView*> shown;
  for (StudyView* view : views_) {
    if (view->isVisible()) shown.push_back(view);
  }
  if (shown.empty()) return;
  const auto at = std::ranges::find(shown, focused_view());
  const auto count = static_cast<std::ptrdiff_t>(shown.size());
  const std::ptrdiff_t next = at == shown.end() ? 0 : (at - shown.begin() + by + count) % count;
  StudyView* target = shown[static_cast<std::size_t>(next)];
  last_dock_ = target->id();
  if (QWidget* first = target->nextInFocusChain(); first != nullptr && target->isAncestorOf(first))
    first->setFocus(Qt::TabFocusReason);
  else
    target->setFocus(Qt::TabFocusReason);
}

void MainWindow::take_placement(const BetterPlacement& placement) {
  Outcome<Design> changed = with_placement(document_.design(), placement.rank_order, placement.device_orders);
  if (!changed.ok()) return say(text_of(to_text(changed.problems().front())), true);
  Design placed = std::move(changed).value();
  placed.recipe = with_locked(placed.recipe, document_.locks(), document_.design().recipe);
  document_.set_design(placed, tr("Place ranks better"));
  const std::vector<std::string> lines = device_lines(placed.scenario->cluster, placement.device_orders);
  QString said = tr("Ranks are placed anew; Ctrl+Z takes it back.");
  if (!lines.empty()) said += " " + tr("The job is to start with %1.").arg(text_of(fmt::format("{}", fmt::join(lines, "; "))));
  say(said);
}

}  // namespace cpfit::gui
