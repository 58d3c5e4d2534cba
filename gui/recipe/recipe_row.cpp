#include "gui/recipe/recipe_row.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/figures.h"
#include "gui/recipe/lock_button.h"
#include "gui/recipe/sensitivity_strip.h"
#include "gui/study/locks.h"

namespace cpfit::gui {

namespace {

constexpr int kBoxWidth = 94;

/// One width for all rows, so that their boxes stand one under the other: the longest name's.
int name_width(const QFontMetrics& font) {
  int widest = 0;
  for (const Parameter& parameter : parameters()) widest = std::max(widest, font.horizontalAdvance(text_of(parameter.label)));
  return widest + 4;
}

}  // namespace

RecipeRow::RecipeRow(const Parameter& parameter, QWidget* parent)
    : QWidget(parent),
      parameter_(parameter),
      name_(new QLabel(text_of(parameter.label), this)),
      mark_(new QLabel(this)),
      trouble_(new QWidget(this)),
      rule_(new QLabel(trouble_)),
      buttons_(new QHBoxLayout) {
  const QString label = text_of(parameter.label);
  name_->setFixedWidth(name_width(name_->fontMetrics()));
  name_->setToolTip(QStringLiteral("<p>%1</p>")
                        .arg((text_of(parameter.help) + tr(" Double-click: back to the scenario's value.")).toHtmlEscaped()));
  name_->installEventFilter(this);
  auto* top = new QHBoxLayout;
  top->setContentsMargins(0, 0, 0, 0);
  top->setSpacing(4);
  top->addWidget(name_);
  if (parameter.strip) {
    strip_ = new SensitivityStrip(label, this);
    top->addWidget(strip_, 1);
    connect(strip_, &SensitivityStrip::picked, this, &RecipeRow::entered);
    connect(strip_, &SensitivityStrip::refused, this, &RecipeRow::refused);
  }
  if (is_degree(parameter.key)) {
    derive_ = new QToolButton(this);
    derive_->setText(QStringLiteral("="));
    derive_->setCheckable(true);
    derive_->setAutoRaise(true);
    derive_->setAccessibleName(tr("%1 follows from the other sizes").arg(label));
    derive_->setToolTip(tr("%1 follows from the other sizes, so that all GPUs are used").arg(label));
    connect(derive_, &QToolButton::clicked, this, &RecipeRow::derived_asked);
    top->addWidget(derive_);
  }
  if (parameter.kind == ParameterKind::kChoice || parameter.kind == ParameterKind::kFlag) {
    combo_ = new QComboBox(this);
    combo_->setAccessibleName(label);
    combo_->setToolTip(text_of(parameter.help));
    combo_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    combo_->setMinimumContentsLength(7);
    combo_->setFocusPolicy(Qt::StrongFocus);
    combo_->installEventFilter(this);
    if (parameter.strip) combo_->setFixedWidth(kBoxWidth);
    if (parameter.kind == ParameterKind::kFlag) {
      combo_->addItem(tr("on"), QStringLiteral("true"));
      combo_->addItem(tr("off"), QStringLiteral("false"));
    }
    connect(combo_, &QComboBox::activated, this, [this](int index) { emit entered(combo_->itemData(index).toString(), 0); });
    top->addWidget(combo_, parameter.strip ? 0 : 1);
  } else {
    line_ = new QLineEdit(this);
    line_->setAccessibleName(label + QStringLiteral(", ") + text_of(parameter.unit));
    line_->setToolTip(tr("%1, in %2").arg(label, text_of(parameter.unit)));
    line_->setFixedWidth(kBoxWidth);
    line_->setAlignment(Qt::AlignRight);
    line_->installEventFilter(this);
    connect(line_, &QLineEdit::editingFinished, this, [this] {
      const QString typed = line_->text().trimmed().section(QLatin1Char(' '), 0, 0);
      const QString before = value_;
      if (!typed.isEmpty() && typed != value_) emit entered(typed, 0);
      // Taken, or nothing new: the box shows the value. What could not be read stays to be corrected.
      if (value_ != before || typed.isEmpty() || typed == before) line_->setText(shown());
    });
    top->addWidget(line_);
  }
  if (is_lockable(parameter.key)) {
    lock_ = new LockButton(label, this);
    connect(lock_, &QToolButton::clicked, this, &RecipeRow::lock_asked);
    top->addWidget(lock_);
  } else {
    top->addSpacing(LockButton::kWidth + top->spacing());  // boxes stand one under the other
  }
  mark_->setFixedWidth(12);
  mark_->setAlignment(Qt::AlignCenter);
  top->addWidget(mark_);
  rule_->setWordWrap(true);
  rule_->setForegroundRole(QPalette::BrightText);
  rule_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* inner = new QVBoxLayout(trouble_);
  inner->setContentsMargins(12, 0, 0, 4);
  inner->setSpacing(3);
  inner->addWidget(rule_);
  inner->addLayout(buttons_);
  trouble_->hide();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 1, 0, 1);
  layout->setSpacing(1);
  layout->addLayout(top);
  layout->addWidget(trouble_);
}

QString RecipeRow::shown() const {
  const bool counts = parameter_.kind == ParameterKind::kTokens || parameter_.kind == ParameterKind::kCount ||
                      parameter_.kind == ParameterKind::kDegree;
  if (!counts || parameter_.unit.empty()) return value_;
  return value_ + QLatin1Char(' ') +
         text_of(value_ == QLatin1String("1") && parameter_.unit.ends_with('s')
                     ? parameter_.unit.substr(0, parameter_.unit.size() - 1)
                     : parameter_.unit);
}

void RecipeRow::show_value(const QString& value, bool edited, const QString& idle) {
  value_ = value;
  if (line_ != nullptr && (!line_->hasFocus() || !line_->isModified())) line_->setText(shown());
  if (combo_ != nullptr) {
    int index = combo_->findData(value);
    if (index < 0) {
      combo_->addItem(value, value);
      index = combo_->count() - 1;
    }
    combo_->setCurrentIndex(index);
  }
  mark_->setText(edited ? QStringLiteral("✎") : QString());
  mark_->setToolTip(edited ? tr("Edited: not the value the study opened with. Double-click the name to go back.") : QString());
  mark_->setAccessibleName(edited ? tr("edited") : QString());
  for (QWidget* widget : std::initializer_list<QWidget*>{strip_, line_, combo_}) {
    if (widget == nullptr) continue;
    widget->setEnabled(idle.isEmpty());
    if (widget == line_) line_->setReadOnly(false);
    if (!idle.isEmpty())
      widget->setToolTip(tr("Not now: %1").arg(idle));
    else if (widget != strip_)
      widget->setToolTip(text_of(parameter_.help));
  }
  name_->setEnabled(idle.isEmpty());
}

void RecipeRow::set_choices(const std::vector<std::string>& values) {
  if (combo_ == nullptr || parameter_.kind == ParameterKind::kFlag) return;
  combo_->clear();
  for (const std::string& value : values) combo_->addItem(text_of(value), text_of(value));
}

void RecipeRow::set_variations(const std::vector<Variation>& variations) {
  if (strip_ != nullptr) strip_->set_variations(variations);
}

void RecipeRow::set_derived(bool derived) {
  if (derive_ == nullptr) return;
  derive_->setChecked(derived);
  derive_->setEnabled(true);
  derive_->setToolTip(tr("%1 follows from the other sizes, so that all GPUs are used").arg(text_of(parameter_.label)));
  line_->setReadOnly(derived);
  strip_->setEnabled(!derived);
  if (derived) line_->setToolTip(tr("Follows from the other sizes; press = at another size to turn this one"));
}

void RecipeRow::set_locked(bool locked) {
  if (lock_ == nullptr) return;
  lock_->set_locked(locked);
  if (!locked) return;
  const QString why = tr("%1 is locked: unlock it to turn it").arg(text_of(parameter_.label));
  if (derive_ != nullptr) derive_->setEnabled(false);
  if (strip_ != nullptr) strip_->setEnabled(false);
  if (combo_ != nullptr) combo_->setEnabled(false);
  if (line_ != nullptr) line_->setReadOnly(true);
  for (QWidget* widget : std::initializer_list<QWidget*>{strip_, line_, combo_, derive_}) {
    if (widget != nullptr) widget->setToolTip(why);
  }
}

void RecipeRow::show_trouble(const QString& rule, const QStringList& legal) {
  while (QLayoutItem* item = buttons_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  trouble_->setVisible(!rule.isEmpty());
  rule_->setText(rule);
  if (rule.isEmpty()) return;
  for (const QString& value : legal) {
    auto* button = new QPushButton(tr("Use %1").arg(value), trouble_);
    button->setAccessibleName(tr("Set %1 to %2").arg(text_of(parameter_.label), value));
    connect(button, &QPushButton::clicked, this, [this, value] { emit entered(value, 0); });
    buttons_->addWidget(button);
  }
  buttons_->addStretch(1);
}

QString RecipeRow::trouble() const { return trouble_->isHidden() ? QString() : rule_->text(); }

void RecipeRow::focus_box() {
  if (line_ != nullptr) {
    line_->setFocus();
    line_->selectAll();
  } else {
    combo_->setFocus();
  }
}

bool RecipeRow::eventFilter(QObject* watched, QEvent* event) {
  if (watched == name_ && event->type() == QEvent::MouseButtonDblClick) {
    emit reset_asked();
    return true;
  }
  // The wheel scrolls the panel; it never turns a choice by accident.
  if (watched == combo_ && event->type() == QEvent::Wheel && !combo_->hasFocus()) {
    event->ignore();
    return true;
  }
  // A box takes Undo and Redo for what is being typed; with nothing typed they are the recipe's.
  if (watched == line_ && event->type() == QEvent::ShortcutOverride && !line_->isModified()) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace cpfit::gui
