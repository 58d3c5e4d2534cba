// `cpfit-gui --smoke DIR`: a check of the desktop under the window. Drives it as a person would, by key and mouse events that
// take the platform's own way in: opens an example, edits, simulates, zooms, exports, quits. Says of every step how long it took.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QPoint>
#include <QString>
#include <QTimer>
#include <functional>
#include <vector>

class QWidget;

namespace cpfit::gui {

class MainWindow;

class SmokeRun : public QObject {
  Q_OBJECT
 public:
  /// Pictures go into `folder`, which is made. The window must outlive it; it is closed at the end, and that ends the program.
  SmokeRun(MainWindow& window, QString folder);
  void start();
  /// Empty: every step came about.
  [[nodiscard]] const QString& trouble() const { return trouble_; }

 private:
  struct Step {
    QString name;
    std::function<void()> act;
    std::function<bool()> came_about;
  };
  void build();
  void look();
  void fail(const QString& why);
  /// Events as the platform delivers them, to the window that the widget is in.
  static void click(QWidget* widget, const QPoint& at);
  static void press(QWidget* widget, int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier, const QString& text = {});
  static void type(QWidget* widget, const QString& text);

  MainWindow& window_;
  QString folder_, trouble_;
  std::vector<Step> steps_;
  std::size_t at_ = 0;
  bool acted_ = false;
  QTimer timer_;
  QElapsedTimer clock_;
  int before_ = 0;  // what a step compares with
  qint64 length_ = 0;
};

}  // namespace cpfit::gui
