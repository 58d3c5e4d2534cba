// One parameter of the recipe panel: name, sensitivity strip, box, mark of its source; under it, while its value is illegal, the
// rule and the nearest legal values as buttons.
#pragma once

#include <QWidget>
#include <string>
#include <vector>

#include "gui/study/estimate.h"
#include "gui/study/recipe_values.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QToolButton;

namespace cpfit::gui {

class LockButton;
class SensitivityStrip;

class RecipeRow : public QWidget {
  Q_OBJECT
 public:
  explicit RecipeRow(const Parameter& parameter, QWidget* parent = nullptr);
  [[nodiscard]] const Parameter& parameter() const { return parameter_; }

  /// The value as text; `edited`: not the scenario's; `idle`: why it cannot be turned now.
  void show_value(const QString& value, bool edited, const QString& idle);
  void set_choices(const std::vector<std::string>& values);
  void set_variations(const std::vector<Variation>& variations);
  void set_derived(bool derived);
  /// While it is locked the value cannot be turned; call after show_value and set_derived.
  void set_locked(bool locked);
  /// A rule that the value breaks, with the values that would keep it; empty rule: none.
  void show_trouble(const QString& rule, const QStringList& legal);
  [[nodiscard]] QString trouble() const;
  [[nodiscard]] SensitivityStrip* strip() const { return strip_; }
  [[nodiscard]] LockButton* lock() const { return lock_; }  // null: what is asked is not searched
  void focus_box();

 signals:
  void entered(const QString& value, int gesture);
  void reset_asked();
  void derived_asked();
  void lock_asked(bool locked);
  void refused(const QString& why);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  [[nodiscard]] QString shown() const;
  const Parameter& parameter_;
  QLabel* name_;
  QLabel* mark_;
  SensitivityStrip* strip_ = nullptr;
  QLineEdit* line_ = nullptr;
  QComboBox* combo_ = nullptr;
  QToolButton* derive_ = nullptr;
  LockButton* lock_ = nullptr;
  QWidget* trouble_;
  QLabel* rule_;
  QHBoxLayout* buttons_;
  QString value_;
};

}  // namespace cpfit::gui
