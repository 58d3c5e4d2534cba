#include "gui/window/screenshots.h"

#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QTabWidget>
#include <QThread>

#include "gui/calibration/calibration_view.h"
#include "gui/compare/compare_view.h"
#include "gui/results/results_view.h"
#include "gui/results/sweep_dialog.h"
#include "gui/view/export_view.h"
#include "gui/view/study_view.h"
#include "gui/window/key_dialog.h"
#include "gui/window/layouts.h"
#include "gui/window/main_window.h"

namespace cpfit::gui {

namespace {

void settle() {
  for (int i = 0; i < 5; ++i) QApplication::processEvents(QEventLoop::AllEvents, 20);
}

class Album {
 public:
  explicit Album(QDir folder) : folder_(std::move(folder)) {}
  void add(QWidget& widget, const QString& name) {
    settle();
    const QString path = folder_.filePath(name + QStringLiteral(".png"));
    if (widget.grab().save(path, "PNG"))
      done_.files.append(path);
    else if (done_.trouble.isEmpty())
      done_.trouble = QObject::tr("%1 cannot be written").arg(path);
  }
  [[nodiscard]] const ScreenshotsDone& done() const { return done_; }

 private:
  QDir folder_;
  ScreenshotsDone done_;
};

}  // namespace

bool wait_until_idle(MainWindow& window, int limit_ms) {
  QElapsedTimer clock;
  clock.start();
  int calm = 0;
  while (clock.elapsed() < limit_ms) {
    QApplication::processEvents(QEventLoop::AllEvents, 20);
    // An edit that a search caused starts the clocks again: calm must last.
    calm = window.live().is_busy() ? 0 : calm + 1;
    if (calm > 10) return true;
    QThread::msleep(5);
  }
  return false;
}

ScreenshotsDone write_screenshots(MainWindow& window, const QString& folder) {
  if (!QDir().mkpath(folder)) return {{}, QObject::tr("the folder %1 cannot be made").arg(folder)};
  constexpr int kPatienceMs = 120'000;
  if (!wait_until_idle(window, kPatienceMs)) return {{}, QObject::tr("the study was not computed within two minutes")};
  Album album{QDir(folder)};
  window.resize(1440, 900);
  for (const ThemeChoice theme : {ThemeChoice::kLight, ThemeChoice::kDark}) {
    window.set_theme(theme);
    window.resize(1440, 900);
    const QString suffix = QStringLiteral("-") + name_of(theme);
    const std::vector<WindowLayout>& layouts = window_layouts();
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      window.apply_layout(i);
      album.add(window, QStringLiteral("window-") + layouts[i].name.toLower() + suffix);
    }
    window.apply_layout(0);
    for (StudyView* view : window.views()) {
      QDockWidget* dock = window.dock(view->id());
      // Alone and large, as a person would export it; a dock that the layout left out has no place to float from.
      const bool left_out = window.dockWidgetArea(dock) == Qt::NoDockWidgetArea;
      if (left_out) window.addDockWidget(Qt::TopDockWidgetArea, dock);
      dock->setFloating(true);
      dock->resize(view->id() == QLatin1String("recipe")   ? QSize(400, 860)
                   : view->id() == QLatin1String("memory") ? QSize(560, 760)
                                                           : QSize(1000, 620));
      dock->show();
      dock->raise();
      album.add(*view, view->id() + suffix);
      if (auto* calibration = qobject_cast<CalibrationView*>(view)) {
        calibration->tabs()->setCurrentIndex(2);
        album.add(*view, QStringLiteral("measure") + suffix);
        calibration->tabs()->setCurrentIndex(0);
      }
      if (auto* compare = qobject_cast<CompareView*>(view)) {
        compare->tabs()->setCurrentIndex(1);
        (void)wait_until_idle(window, kPatienceMs);
        album.add(*view, QStringLiteral("compare-steps") + suffix);
        compare->tabs()->setCurrentIndex(0);
      }
      dock->setFloating(false);
      if (left_out) window.removeDockWidget(dock);
    }
    SweepDialog* sweep = window.results().open_sweep();
    QElapsedTimer clock;
    for (clock.start(); !sweep->is_estimated() && clock.elapsed() < kPatienceMs;) settle();
    album.add(*sweep, QStringLiteral("sweep") + suffix);
    sweep->hide();
    KeyDialog keys(window.actions_table(), &window);
    keys.show();
    album.add(keys, QStringLiteral("keys") + suffix);
  }
  window.set_theme(ThemeChoice::kHighContrast);
  window.apply_layout(0);
  album.add(window, QStringLiteral("window-design-high-contrast"));
  window.set_theme(ThemeChoice::kLight);
  window.document().close();
  album.add(window, QStringLiteral("start-light"));
  return album.done();
}

}  // namespace cpfit::gui
