#include "gui/window/smoke_run.h"

#include <QApplication>
#include <QCommandLinkButton>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QScreen>
#include <QWindow>
#include <cstdio>

#include "gui/recipe/recipe_panel.h"
#include "gui/recipe/recipe_row.h"
#include "gui/step/step_view.h"
#include "gui/timeline/timeline_view.h"
#include "gui/window/main_window.h"

// The way in that platforms take and Qt Test uses: QtGui exports it without a header of its own.
Q_GUI_EXPORT void qt_handleMouseEvent(QWindow* window, const QPointF& local, const QPointF& global, Qt::MouseButtons state,
                                      Qt::MouseButton button, QEvent::Type type, Qt::KeyboardModifiers mods, int timestamp);
Q_GUI_EXPORT void qt_handleKeyEvent(QWindow* window, QEvent::Type t, int k, Qt::KeyboardModifiers mods, const QString& text,
                                    bool autorep, ushort count);

namespace cpfit::gui {

namespace {

constexpr int kLookMs = 20;
constexpr qint64 kPatienceMs = 60'000;  // of one step; a machine that is busy with other things takes its time

int now_ms() {
  static QElapsedTimer clock;
  if (!clock.isValid()) clock.start();
  return static_cast<int>(clock.elapsed()) + 1;
}

/// More than one colour: something was painted.
bool shows_something(const QImage& picture) {
  if (picture.isNull()) return false;
  const QRgb first = picture.pixel(0, 0);
  for (int y = 0; y < picture.height(); y += 7) {
    for (int x = 0; x < picture.width(); x += 7) {
      if (picture.pixel(x, y) != first) return true;
    }
  }
  return false;
}

QFileDialog* file_dialog() { return qobject_cast<QFileDialog*>(QApplication::activeModalWidget()); }

}  // namespace

void SmokeRun::click(QWidget* widget, const QPoint& at) {
  QWindow* window = widget->window()->windowHandle();
  const QPointF local = widget->mapTo(widget->window(), at), global = widget->mapToGlobal(at);
  qt_handleMouseEvent(window, local, global, Qt::NoButton, Qt::NoButton, QEvent::MouseMove, Qt::NoModifier, now_ms());
  qt_handleMouseEvent(window, local, global, Qt::LeftButton, Qt::LeftButton, QEvent::MouseButtonPress, Qt::NoModifier, now_ms());
  qt_handleMouseEvent(window, local, global, Qt::NoButton, Qt::LeftButton, QEvent::MouseButtonRelease, Qt::NoModifier, now_ms());
}

void SmokeRun::press(QWidget* widget, int key, Qt::KeyboardModifiers modifiers, const QString& text) {
  QWindow* window = widget->window()->windowHandle();
  qt_handleKeyEvent(window, QEvent::KeyPress, key, modifiers, text, false, 1);
  qt_handleKeyEvent(window, QEvent::KeyRelease, key, modifiers, text, false, 1);
}

void SmokeRun::type(QWidget* widget, const QString& text) {
  for (const QChar letter : text) press(widget, letter.toUpper().unicode(), Qt::NoModifier, letter);
}

SmokeRun::SmokeRun(MainWindow& window, QString folder) : window_(window), folder_(std::move(folder)) {
  timer_.setInterval(kLookMs);
  connect(&timer_, &QTimer::timeout, this, &SmokeRun::look);
}

void SmokeRun::start() {
  if (!QDir().mkpath(folder_)) return fail(tr("the folder %1 cannot be made").arg(folder_));
  build();
  QApplication::setQuitOnLastWindowClosed(false);  // the last step is looked at, too
  clock_.start();
  timer_.start();
}

void SmokeRun::build() {
  const auto calm = [this] { return window_.document().is_open() && !window_.live().is_busy(); };
  const auto timeline = [this] { return static_cast<StepView*>(window_.view(QStringLiteral("step")))->timeline(); };
  const auto simulations = [this] {
    return static_cast<int>(std::ranges::count_if(window_.jobs().rows(), [](const JobRow& row) {
      return row.channel == QLatin1String("simulate") && row.state == JobState::kDone;
    }));
  };
  const auto micro_batch = [this] { return window_.document().design().recipe.micro_batch; };
  const QString picture = QDir(folder_).absoluteFilePath(QStringLiteral("view.png"));
  QFile::remove(picture);

  steps_.push_back({tr("shows itself"), [this] { window_.activateWindow(); },
                    [this] { return window_.windowHandle()->isExposed() && QApplication::activeWindow() == &window_; }});
  steps_.push_back({tr("opens an example by a click"),
                    [this] {
                      for (auto* example : window_.findChildren<QCommandLinkButton*>()) {
                        if (example->isVisible()) return click(example, example->rect().center());
                      }
                    },
                    [=, this] { return calm() && window_.live().simulation_is_current(); }});
  steps_.push_back({tr("edits the recipe by keys"),
                    [=, this] {
                      before_ = micro_batch();
                      auto* panel = static_cast<RecipePanel*>(window_.view(QStringLiteral("recipe")));
                      panel->go_to("micro_batch");
                      auto* field = panel->row("micro_batch")->findChild<QLineEdit*>();
                      click(field, field->rect().center());
                      press(field, Qt::Key_A, Qt::ControlModifier);
                      type(field, before_ == 2 ? QStringLiteral("1") : QStringLiteral("2"));
                      press(field, Qt::Key_Return);
                    },
                    [=, this] { return micro_batch() != before_ && calm(); }});
  steps_.push_back({tr("takes the edit back"), [this] { press(&window_, Qt::Key_Z, Qt::ControlModifier); },
                    [=, this] { return micro_batch() == before_ && calm() && window_.live().simulation_is_current(); }});
  steps_.push_back({tr("simulates"),
                    [=, this] {
                      before_ = simulations();
                      press(&window_, Qt::Key_R, Qt::ControlModifier);
                    },
                    [=, this] { return simulations() > before_ && calm(); }});
  steps_.push_back({tr("zooms the timeline"),
                    [=, this] {
                      length_ = timeline()->window().to - timeline()->window().from;
                      click(timeline(), QPoint(timeline()->width() / 2, timeline()->height() / 2));
                      for (int i = 0; i < 3; ++i) press(timeline(), Qt::Key_Plus, Qt::NoModifier, QStringLiteral("+"));
                    },
                    [=, this] { return timeline()->window().to - timeline()->window().from < length_ * 3 / 4; }});
  steps_.push_back({tr("asks where to export"), [this] { press(&window_, Qt::Key_E, Qt::ControlModifier); },
                    [] { return file_dialog() != nullptr && file_dialog()->isVisible(); }});
  steps_.push_back({tr("exports a picture"),
                    [picture] {
                      QFileDialog* dialog = file_dialog();
                      dialog->activateWindow();
                      press(dialog, Qt::Key_A, Qt::ControlModifier);
                      type(dialog, picture);
                      press(dialog, Qt::Key_Return);
                    },
                    [picture] { return file_dialog() == nullptr && QFileInfo(picture).size() > 0; }});
  // A window manager would give the focus back; a bare display server does not.
  steps_.push_back({tr("is to be seen on the screen"), [this] { window_.activateWindow(); },
                    [this] {
                      if (QApplication::activeWindow() != &window_) return false;
                      const QImage screen = window_.screen()->grabWindow(window_.winId()).toImage();
                      return shows_something(screen) && screen.save(QDir(folder_).filePath(QStringLiteral("screen.png")));
                    }});
  steps_.push_back({tr("quits by a key"), [this] { press(&window_, Qt::Key_Q, Qt::ControlModifier); },
                    [this] { return !window_.isVisible(); }});
}

void SmokeRun::look() {
  Step& step = steps_[at_];
  if (!acted_) {
    // Not from the timer itself: a dialog that the act opens has a loop of its own, in which the timer must go on.
    acted_ = true;
    clock_.restart();
    QMetaObject::invokeMethod(this, step.act, Qt::QueuedConnection);
    return;
  }
  if (step.came_about()) {
    std::printf("%6.3f s  %s\n", static_cast<double>(clock_.elapsed()) / 1000.0, qPrintable(step.name));
    std::fflush(stdout);
    acted_ = false;
    if (++at_ < steps_.size()) return;
    timer_.stop();
    QCoreApplication::exit(0);
  } else if (clock_.elapsed() > kPatienceMs) {
    fail(tr("it should be so that the window %1, but it did not come about: %2").arg(step.name, window_.said()));
  }
}

void SmokeRun::fail(const QString& why) {
  trouble_ = why;
  timer_.stop();
  if (QDir(folder_).exists()) window_.grab().save(QDir(folder_).filePath(QStringLiteral("failed.png")));
  if (QFileDialog* dialog = file_dialog()) dialog->reject();
  QMetaObject::invokeMethod(qApp, [] { QCoreApplication::exit(1); }, Qt::QueuedConnection);
}

}  // namespace cpfit::gui
