// The window: verdict strip, views in docks, menus from the action table, start page while nothing is open. It connects; what
// decides lives elsewhere.
#pragma once

#include <QMainWindow>
#include <QPalette>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gui/look/theme.h"
#include "gui/study/jobs.h"
#include "gui/study/live_estimate.h"
#include "gui/study/opened_database.h"
#include "gui/study/selection.h"
#include "gui/study/study_document.h"
#include "gui/study/view_history.h"
#include "gui/window/app_actions.h"
#include "gui/window/session.h"

class QDockWidget;
class QLabel;
class QStackedWidget;

namespace cpfit::gui {

class CommandPalette;
class ResultsView;
class StartPage;
class StudyView;
class VerdictStrip;

struct BetterPlacement;

struct WindowOptions {
  QString session_file;  // empty: nothing is remembered
};

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(WindowOptions options, QWidget* parent = nullptr);
  ~MainWindow() override;

  [[nodiscard]] StudyDocument& document() { return document_; }
  [[nodiscard]] LiveEstimate& live() { return live_; }
  [[nodiscard]] Selection& selection() { return selection_; }
  [[nodiscard]] Jobs& jobs() { return jobs_; }
  [[nodiscard]] OpenedDatabase& database() { return database_; }
  [[nodiscard]] AppActions& actions_table() { return actions_; }
  [[nodiscard]] VerdictStrip* verdict() const { return verdict_; }
  [[nodiscard]] StudyView* view(const QString& id) const;
  [[nodiscard]] ResultsView& results() const;
  [[nodiscard]] const std::vector<StudyView*>& views() const { return views_; }
  [[nodiscard]] QDockWidget* dock(const QString& id) const;
  [[nodiscard]] QString said() const { return said_; }

  /// Opens whatever the file is, by its content. Trouble is a sentence in the window; false then.
  bool open_path(const QString& path);
  bool open_example(const QString& path);
  /// The study as one HTML file: a job, whose end is said.
  void export_report(const QString& path);
  /// A sentence for the person: status bar and screen reader; errors stay until the next one.
  void say(const QString& sentence, bool trouble = false);

  void apply_layout(std::size_t index);
  void set_theme(ThemeChoice choice);
  [[nodiscard]] ThemeChoice theme() const { return theme_; }
  void set_scale(double scale);
  [[nodiscard]] double scale() const { return scale_; }

  [[nodiscard]] SessionState session() const;
  /// Puts a session back: look, docks, what was open. A study that is gone is said, and the start page stays.
  void restore(const SessionState& state);

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  // main_window.cpp
  void build_views();
  void add_view(StudyView* view);
  void show_study(bool open);
  void refresh_state();
  void reveal(const QString& cell);
  void show_dock(const QString& id);
  [[nodiscard]] StudyView* focused_view() const;
  // window_actions.cpp
  void build_actions();
  void add_file_actions();
  void add_edit_actions();
  void add_view_actions();
  void add_run_actions();
  void update_actions();
  void add(const ActionSpec& spec, std::function<void()> run) { actions_.add(spec, std::move(run)); }
  void export_focused();
  void copy_focused();
  void copy_command();
  void save(bool ask);
  void pin_baseline();
  void paste_recipe(const QString& text);
  void toggle_only_this();
  void step_dock(int by);
  // export_report.cpp
  void ask_for_report();
  // open_files.cpp
  void ask_and_open();
  bool take_opened(const Problems& problems, const QString& path);
  bool open_database(const QString& path);
  bool use_model_config(const QString& path);
  bool use_topology(const QString& path);
  void take_placement(const BetterPlacement& placement);
  bool overlay_trace(const QString& path);

  WindowOptions options_;
  QPalette desktop_;
  double base_points_ = 10.0;
  StudyDocument document_;
  Jobs jobs_;
  Selection selection_;
  ViewHistory history_;
  LiveEstimate live_;
  OpenedDatabase database_;
  AppActions actions_;
  VerdictStrip* verdict_ = nullptr;
  StartPage* start_ = nullptr;
  CommandPalette* palette_ = nullptr;
  QLabel* study_label_ = nullptr;
  QLabel* rates_label_ = nullptr;
  QLabel* time_label_ = nullptr;
  std::vector<StudyView*> views_;
  std::map<QString, QDockWidget*> docks_;
  QByteArray docks_before_;  // while one view fills the window
  QString last_dock_;        // whose view had the focus last
  QStringList recent_;
  ThemeChoice theme_ = ThemeChoice::kSystem;
  double scale_ = 1.0;
  std::size_t layout_ = 0;
  QString said_;
  bool changing_look_ = false;
};

}  // namespace cpfit::gui
