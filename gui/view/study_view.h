// What every view of the window is: a widget with a name, a sentence for people who listen, and ways to take its content along.
#pragma once

#include <QString>
#include <QWidget>

class QPainter;

namespace cpfit::gui {

class StudyView : public QWidget {
  Q_OBJECT
 public:
  StudyView(QString id, QString title, QWidget* parent = nullptr)
      : QWidget(parent), id_(std::move(id)), title_(std::move(title)) {
    setObjectName(id_);
    setAccessibleName(title_);
  }
  [[nodiscard]] const QString& id() const { return id_; }        // "memory": file names, session
  [[nodiscard]] const QString& title() const { return title_; }  // of its dock
  /// One sentence: what is to be seen now.
  [[nodiscard]] virtual QString summary() const = 0;
  /// What is shown as a table with headers and units; empty: there is none.
  [[nodiscard]] virtual QString csv() const { return {}; }
  /// The command line that prints the same; empty: there is none.
  [[nodiscard]] virtual QString command() const { return {}; }
  /// Paints all of it, `area` in the painter's units (pixels of the view's size); views with own vectors override it.
  virtual void paint_on(QPainter& painter);

 protected:
  /// The summary as the accessible description: call when it changed.
  void tell() { setAccessibleDescription(summary()); }

 private:
  QString id_, title_;
};

}  // namespace cpfit::gui
