// What is shown while no study is open: examples that open in one click, what was open before, a place to drop files, and what
// this program answers.
#pragma once

#include <QStringList>
#include <QWidget>

class QVBoxLayout;

namespace cpfit::gui {

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(QWidget* parent = nullptr);
  void show_recent(const QStringList& paths);

 signals:
  void example_chosen(const QString& path);
  void file_chosen(const QString& path);
  void open_asked();

 private:
  QVBoxLayout* recent_;
};

}  // namespace cpfit::gui
