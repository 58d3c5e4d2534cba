#include "gui/window/main_window.h"

#include <QAccessible>
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QStatusBar>
#include <QTableView>
#include <QToolBar>
#include <algorithm>

#include "gui/calibration/calibration_view.h"
#include "gui/calibration/fit_measured.h"
#include "gui/compare/compare_view.h"
#include "gui/details/details_view.h"
#include "gui/details/job_view.h"
#include "gui/details/notice_view.h"
#include "gui/equivalence/equivalence_view.h"
#include "gui/look/figures.h"
#include "gui/memory/feasible_view.h"
#include "gui/memory/length_curve.h"
#include "gui/memory/memory_view.h"
#include "gui/recipe/recipe_panel.h"
#include "gui/recipe/verdict_strip.h"
#include "gui/results/parallel_plot.h"
#include "gui/results/results_view.h"
#include "gui/step/step_view.h"
#include "gui/topology/topology_feed.h"
#include "gui/window/command_palette.h"
#include "gui/window/key_map.h"
#include "gui/window/layouts.h"
#include "gui/window/start_page.h"

namespace cpfit::gui {

MainWindow::MainWindow(WindowOptions options, QWidget* parent)
    : QMainWindow(parent),
      options_(std::move(options)),
      desktop_(QApplication::palette()),
      base_points_(QApplication::font().pointSizeF()),
      live_(document_, jobs_, std::make_shared<const RateSet>(RateSet::defaults())),
      database_(jobs_),
      actions_(this) {
  setObjectName(QStringLiteral("window"));
  setWindowTitle(QStringLiteral("cpfit"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  for (const Qt::Corner corner : {Qt::TopLeftCorner, Qt::BottomLeftCorner}) setCorner(corner, Qt::LeftDockWidgetArea);
  for (const Qt::Corner corner : {Qt::TopRightCorner, Qt::BottomRightCorner}) setCorner(corner, Qt::RightDockWidgetArea);

  start_ = new StartPage(this);
  setCentralWidget(start_);
  auto* strip = new QToolBar(tr("Verdict"), this);
  strip->setObjectName(QStringLiteral("verdict"));
  strip->setMovable(false);
  strip->setContextMenuPolicy(Qt::PreventContextMenu);
  strip->setContentsMargins(0, 0, 0, 0);
  verdict_ = new VerdictStrip(live_, document_, strip);
  strip->addWidget(verdict_);
  addToolBar(Qt::TopToolBarArea, strip);

  for (QLabel** label : {&study_label_, &rates_label_, &time_label_}) {
    *label = new QLabel(this);
    (*label)->setContentsMargins(8, 0, 8, 0);
    statusBar()->addPermanentWidget(*label);
  }
  build_views();
  build_actions();
  palette_ = new CommandPalette(actions_, this);
  auto* search = new QPushButton(tr("Search commands   Ctrl+Shift+P"), this);
  search->setFlat(true);
  search->setAccessibleName(tr("Search commands"));
  search->setFocusPolicy(Qt::NoFocus);
  connect(search, &QPushButton::clicked, palette_, &CommandPalette::open_over_parent);
  menuBar()->setCornerWidget(search, Qt::TopRightCorner);

  connect(start_, &StartPage::example_chosen, this, &MainWindow::open_example);
  connect(start_, &StartPage::file_chosen, this, &MainWindow::open_path);
  connect(start_, &StartPage::open_asked, this, &MainWindow::ask_and_open);
  connect(verdict_, &VerdictStrip::reveal, this, &MainWindow::reveal);
  connect(&document_, &StudyDocument::opened_changed, this, [this] { show_study(document_.is_open()); });
  for (const auto signal : {&LiveEstimate::estimate_changed, &LiveEstimate::simulation_changed, &LiveEstimate::search_changed})
    connect(&live_, signal, this, &MainWindow::refresh_state);
  connect(&document_, &StudyDocument::baseline_changed, this, &MainWindow::refresh_state);
  connect(&document_, &StudyDocument::locks_changed, this, &MainWindow::refresh_state);
  connect(&document_, &StudyDocument::refused, this, [this](const QString& sentence) { say(sentence, true); });
  connect(&document_.undo(), &QUndoStack::indexChanged, this, [this] { refresh_state(); });
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel, JobState state, const QString& sentence) {
    if (state == JobState::kFailed) say(tr("%1 failed: %2").arg(channel, sentence), true);
    refresh_state();
  });
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
    for (const StudyView* view : views_) {
      if (now != nullptr && view->isAncestorOf(now)) last_dock_ = view->id();
    }
    update_actions();
  });
  resize(1440, 900);
  show_study(false);
}

MainWindow::~MainWindow() {
  // While everything is still there: hiding takes the focus from a box, which enters what was typed in it.
  hide();
  // Signals of dying members must not find a half destroyed window.
  disconnect(qApp, nullptr, this, nullptr);
  disconnect(&document_.undo(), nullptr, this, nullptr);
  for (const QObject* sender : std::initializer_list<const QObject*>{&document_, &live_, &jobs_, &selection_, &database_})
    sender->disconnect(this);
}

void MainWindow::build_views() {
  auto* recipe = new RecipePanel(document_, live_, selection_);
  auto* feasible = new FeasibleView(document_, live_);
  connect(recipe, &RecipePanel::said, this, [this](const QString& sentence) { say(sentence, true); });
  connect(feasible, &FeasibleView::said, this, [this](const QString& sentence) { say(sentence, true); });
  auto* step = new StepView(document_, live_, jobs_, selection_);
  auto* topology = new TopologyView(&document_.undo());
  auto* feed = new TopologyFeed(live_, jobs_, selection_, *topology, *step->timeline(), this);
  connect(feed, &TopologyFeed::said, this, &MainWindow::say);
  connect(topology, &TopologyView::placementWanted, this, &MainWindow::take_placement);
  auto* results = new ResultsView(document_, live_, jobs_, database_, selection_);
  connect(results, &ResultsView::said, this, &MainWindow::say);
  auto* calibration = new CalibrationView(document_, jobs_, database_);
  connect(calibration, &CalibrationView::said, this, &MainWindow::say);
  auto* compare = new CompareView(document_, live_, jobs_, results->book(), selection_);
  auto* details = new DetailsView(document_, live_, selection_);
  details->set_result_text([results](std::int64_t row) { return results->book().row_text(static_cast<std::uint32_t>(row)); });
  details->set_span_text([step](const SelectedSpan&) { return step->span_text(); });
  for (StudyView* view : std::initializer_list<StudyView*>{
           recipe, step, new LengthCurve(document_, live_), feasible, topology, results, compare, calibration,
           new EquivalenceView(document_, database_), new MemoryView(document_, live_, selection_), details,
           new NoticeView(document_, live_, selection_), new JobView(jobs_)})
    add_view(view);
}

void MainWindow::add_view(StudyView* view) {
  auto* dock = new QDockWidget(view->title(), this);
  dock->setObjectName(QStringLiteral("dock.") + view->id());
  dock->setWidget(view);
  dock->hide();
  addDockWidget(Qt::TopDockWidgetArea, dock);
  views_.push_back(view);
  docks_[view->id()] = dock;
}

ResultsView& MainWindow::results() const { return *static_cast<ResultsView*>(view(QStringLiteral("results"))); }

StudyView* MainWindow::view(const QString& id) const {
  for (StudyView* view : views_) {
    if (view->id() == id) return view;
  }
  return nullptr;
}

QDockWidget* MainWindow::dock(const QString& id) const {
  const auto found = docks_.find(id);
  return found == docks_.end() ? nullptr : found->second;
}

StudyView* MainWindow::focused_view() const {
  const QWidget* focus = QApplication::focusWidget();
  for (StudyView* view : views_) {
    if (focus != nullptr && (view == focus || view->isAncestorOf(focus))) return view;
  }
  return view(last_dock_);
}

void MainWindow::show_study(bool open) {
  start_->setVisible(!open);
  start_->show_recent(recent_);
  verdict_->parentWidget()->setVisible(open);
  if (open && std::ranges::none_of(docks_, [](const auto& entry) { return !entry.second->isHidden(); })) apply_layout(layout_);
  if (!open) {
    for (auto& [id, dock] : docks_) dock->hide();
  }
  refresh_state();
}

void MainWindow::apply_layout(std::size_t index) {
  if (index >= window_layouts().size() || !document_.is_open()) return;
  const WindowLayout& layout = window_layouts()[index];
  layout_ = index;
  docks_before_.clear();
  for (auto& [id, dock] : docks_) {
    dock->setFloating(false);
    removeDockWidget(dock);
  }
  std::map<DockPlace, QDockWidget*> first;
  for (const DockSlot& slot : layout.docks) {
    QDockWidget* dock = this->dock(slot.id);
    if (dock == nullptr) continue;
    if (QDockWidget*& front = first[slot.place]; front == nullptr) {
      front = dock;
      addDockWidget(slot.place == DockPlace::kLeft    ? Qt::LeftDockWidgetArea
                    : slot.place == DockPlace::kRight ? Qt::RightDockWidgetArea
                    : slot.place == DockPlace::kMain  ? Qt::TopDockWidgetArea
                                                      : Qt::BottomDockWidgetArea,
                    dock);
    } else {
      tabifyDockWidget(front, dock);
    }
    dock->show();
  }
  for (auto& [place, dock] : first) dock->raise();
  const auto scaled = [this](int pixels) { return static_cast<int>(pixels * scale_); };
  QList<QDockWidget*> columns;
  QList<int> widths;
  if (QDockWidget* left = first[DockPlace::kLeft]) {
    columns.append(left);
    widths.append(scaled(layout.left));
  }
  if (QDockWidget* main = first[DockPlace::kMain]) {
    columns.append(main);
    widths.append(std::max(300, width() - scaled(layout.left) - scaled(layout.right)));
  }
  if (QDockWidget* right = first[DockPlace::kRight]) {
    columns.append(right);
    widths.append(scaled(layout.right));
  }
  resizeDocks(columns, widths, Qt::Horizontal);
  if (QDockWidget* bottom = first[DockPlace::kBottom]) {
    QList<QDockWidget*> rows = {bottom};
    QList<int> heights = {scaled(layout.bottom)};
    if (QDockWidget* main = first[DockPlace::kMain]) {
      rows.prepend(main);
      heights.prepend(std::max(200, height() - 200 - scaled(layout.bottom)));
    }
    resizeDocks(rows, heights, Qt::Vertical);
  }
  update_actions();
}

void MainWindow::show_dock(const QString& id) {
  QDockWidget* dock = this->dock(id);
  if (dock == nullptr) return;
  // A dock that the layout left out has no place yet: it joins the tabs of the main one.
  if (dockWidgetArea(dock) == Qt::NoDockWidgetArea) {
    QDockWidget* front = nullptr;
    for (const auto& [name, other] : docks_) {
      if (!other->isHidden() && !other->isFloating() && dockWidgetArea(other) == Qt::TopDockWidgetArea) front = other;
    }
    addDockWidget(Qt::TopDockWidgetArea, dock);
    if (front != nullptr) tabifyDockWidget(front, dock);
  }
  dock->show();
  dock->raise();
  view(id)->setFocus();
  last_dock_ = id;
}

void MainWindow::reveal(const QString& cell) {
  if (cell == QLatin1String("memory")) {
    show_dock(QStringLiteral("memory"));
    static_cast<MemoryView*>(view(QStringLiteral("memory")))->go_to_peak();
  } else if (cell == QLatin1String("ring")) {
    show_dock(QStringLiteral("feasible"));
  } else {
    show_dock(QStringLiteral("details"));
  }
}

void MainWindow::refresh_state() {
  const bool open = document_.is_open();
  setWindowTitle(open ? QStringLiteral("%1[*] — cpfit").arg(text_of(document_.design().scenario->name))
                      : QStringLiteral("cpfit"));
  setWindowModified(open && document_.undo().count() > 0 && !document_.undo().isClean());
  study_label_->setText(open ? tr("study %1").arg(document_.path()) : QString());
  rates_label_->setText(!open                 ? QString()
                        : live_.calibration() ? tr("● rates: %1").arg(text_of(live_.calibration()->name))
                                              : tr("◐ rates: fitted defaults"));
  rates_label_->setToolTip(
      !live_.calibration_trouble().isEmpty() ? live_.calibration_trouble()
      : live_.calibration()
          ? tr("%1 surfaces were measured; the defaults stand in for the rest").arg(live_.calibration()->used.size())
          : tr("Fitted to published measurements: Calibration shows them"));
  QString time;
  if (open && jobs_.is_running(QStringLiteral("simulate"))) {
    time = tr("simulating …");
  } else if (open && live_.simulation_is_current()) {
    for (const JobRow& row : jobs_.rows()) {
      if (row.channel != QLatin1String("simulate") || row.state != JobState::kDone) continue;
      time = tr("simulated in %1").arg(time_text(milliseconds(static_cast<double>(row.took_ms))));
      break;
    }
  }
  time_label_->setText(time);
  if (QDockWidget* problems = dock(QStringLiteral("problems"))) {
    const int errors = static_cast<int>(live_.now().problems.size());
    problems->setWindowTitle(open && errors > 0 ? tr("Problems (%1)").arg(errors) : tr("Problems"));
  }
  update_actions();
}

void MainWindow::say(const QString& sentence, bool trouble) {
  said_ = sentence;
  constexpr int kShownMs = 8000;
  statusBar()->showMessage(trouble ? QStringLiteral("⚠ ") + sentence : sentence, trouble ? 0 : kShownMs);
  statusBar()->setAccessibleDescription(sentence);
  QAccessibleEvent event(statusBar(), QAccessible::Alert);
  QAccessible::updateAccessibility(&event);
}

void MainWindow::set_theme(ThemeChoice choice) {
  theme_ = choice;
  changing_look_ = true;
  apply_look(*qApp, resolved(choice, desktop_), scale_, base_points_);
  changing_look_ = false;
  update_actions();
}

void MainWindow::set_scale(double scale) {
  scale_ = scale;
  set_theme(theme_);
  say(tr("Everything at %1 %").arg(static_cast<int>(scale * 100.0 + 0.5)));
}

SessionState MainWindow::session() const {
  SessionState state;
  state.geometry = saveGeometry();
  if (document_.is_open()) {
    state.docks = docks_before_.isEmpty() ? saveState(kLayoutVersion) : docks_before_;
    state.study = document_.path();
    state.recipe = text_of(to_complete_text(document_.design().recipe));
    for (const std::string& key : document_.locks()) state.locks.append(text_of(key));
    if (const auto& calibration = document_.design().calibration; calibration != nullptr) {
      state.calibration_from = text_of(calibration->from);
      state.calibration_id = text_of(calibration->calibration.id);
    }
  }
  state.database = database_.path();
  for (const ResultFilter& filter : results().book().kept_filters()) state.filters.append(line_of_filter(filter));
  state.log_axes = results().parallel()->logarithmic_fields();
  state.keys = lines_of(actions_.own_keys());
  state.recent = recent_;
  state.theme = name_of(theme_);
  state.scale = scale_;
  return state;
}

void MainWindow::restore(const SessionState& state) {
  theme_ = theme_named(state.theme).value_or(ThemeChoice::kSystem);
  scale_ = state.scale;
  set_theme(theme_);
  recent_ = state.recent;
  actions_.set_own_keys(key_map(actions_.specs(), state.keys));
  start_->show_recent(recent_);
  std::vector<ResultFilter> filters;
  for (const QString& line : state.filters) {
    if (Outcome<ResultFilter> filter = parse_filter(line); filter.ok()) filters.push_back(std::move(filter).value());
  }
  results().book().set_kept_filters(std::move(filters));
  results().parallel()->set_logarithmic_fields(state.log_axes);
  if (!state.geometry.isEmpty()) restoreGeometry(state.geometry);
  if (state.study.isEmpty()) return;
  const bool example = state.study.startsWith(QStringLiteral("examples/"));
  if (!(example ? open_example(state.study) : open_path(state.study))) return;
  Design design = document_.design();
  if (const Outcome<Recipe> recipe = parse_recipe(to_std(state.recipe), design.recipe); recipe.ok() && !state.recipe.isEmpty())
    design.recipe = *recipe;
  QString gone;
  if (!state.calibration_from.isEmpty()) {
    try {
      design.calibration = read_chosen(to_std(state.calibration_from), to_std(state.calibration_id));
    } catch (const Error& error) {
      gone = tr("The rates of the last session are gone, the defaults hold: %1").arg(text_of(error.what()));
    }
  }
  document_.set_design(design, tr("Recipe of the last session"));
  Locks locks;
  for (const QString& key : state.locks) locks.insert(to_std(key));
  document_.set_locks(std::move(locks));
  if (!state.database.isEmpty()) {
    if (QFileInfo::exists(state.database))
      database_.open(state.database);
    else
      gone = tr("The database of the last session is gone: %1").arg(state.database);
  }
  if (!gone.isEmpty()) say(gone, true);
  if (!state.docks.isEmpty() && !restoreState(state.docks, kLayoutVersion)) apply_layout(0);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!options_.session_file.isEmpty()) {
    const QString trouble = save_session(session(), options_.session_file);
    if (!trouble.isEmpty()) qWarning("%s", qPrintable(trouble));
  }
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  for (const QUrl& url : event->mimeData()->urls()) {
    if (!url.isLocalFile()) {
      say(tr("Only files of this machine can be opened, not %1.").arg(url.toDisplayString()), true);
      continue;
    }
    open_path(url.toLocalFile());
  }
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  // The desktop changed its colours: follow it where that was chosen.
  if (event->type() == QEvent::ThemeChange && !changing_look_ && theme_ == ThemeChoice::kSystem) {
    desktop_ = QGuiApplication::palette();
    set_theme(theme_);
  }
}

}  // namespace cpfit::gui
