#include "gui/recipe/recipe_panel.h"

#include <QLabel>
#include <QPainter>
#include <QScrollArea>
#include <QVBoxLayout>

#include "gui/look/figures.h"
#include "gui/recipe/recipe_row.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {

namespace {

QLabel* header(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  QFont font = label->font();
  font.setBold(true);
  label->setFont(font);
  label->setContentsMargins(0, 8, 0, 2);
  return label;
}

}  // namespace

RecipePanel::RecipePanel(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent)
    : StudyView(QStringLiteral("recipe"), tr("Recipe"), parent),
      document_(document),
      live_(live),
      selection_(selection),
      scroll_(new QScrollArea(this)),
      content_(new QWidget),
      equation_(new QLabel),
      guard_(new QLabel) {
  build();
  connect(&document_, &StudyDocument::opened_changed, this, [this] {
    unread_.clear();
    for (auto& [key, row] : rows_) {
      if (document_.is_open()) row->set_choices(values_along(document_.design(), key));
    }
    refresh();
  });
  connect(&live_, &LiveEstimate::estimate_changed, this, [this] {
    unread_.clear();
    refresh();
  });
  connect(&live_, &LiveEstimate::variations_changed, this, [this](const QString& key) {
    if (RecipeRow* row = this->row(to_std(key))) {
      row->set_variations(live_.variations(to_std(key)));
      if (!row->trouble().isEmpty()) refresh();
    }
  });
  connect(&document_, &StudyDocument::derived_changed, this, &RecipePanel::refresh);
  connect(&document_, &StudyDocument::locks_changed, this, &RecipePanel::refresh);
  connect(&selection_, &Selection::changed, this, [this](const Selected& before, const QObject* origin) {
    if (origin == this || selection_.now().parameter.isEmpty() || selection_.now().parameter == before.parameter) return;
    go_to(to_std(selection_.now().parameter));
  });
}

void RecipePanel::build() {
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(10, 4, 8, 10);
  column->setSpacing(2);
  std::string_view group;
  for (const Parameter& parameter : parameters()) {
    if (parameter.group != group) {
      if (group == "Parallel sizes") column->addWidget(equation_);
      if (group == "Memory") column->addWidget(guard_);
      group = parameter.group;
      column->addWidget(header(text_of(group), content_));
    }
    auto* row = new RecipeRow(parameter, content_);
    const std::string key(parameter.key);
    rows_[key] = row;
    column->addWidget(row);
    connect(row, &RecipeRow::entered, this, [this, key](const QString& value, int gesture) { enter(key, value, gesture); });
    connect(row, &RecipeRow::reset_asked, this, [this, key] { (void)document_.reset_value(key); });
    connect(row, &RecipeRow::lock_asked, this, [this, key](bool locked) { document_.set_locked(key, locked); });
    connect(row, &RecipeRow::derived_asked, this, [this, key] {
      document_.set_derived(key);
      refresh();
    });
    connect(row, &RecipeRow::refused, this, &RecipePanel::said);
  }
  column->addStretch(1);
  equation_->setContentsMargins(0, 2, 0, 0);
  for (QLabel* label : {equation_, guard_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  guard_->setAccessibleName(tr("Equal comparison"));
  equation_->setAccessibleName(tr("World size"));
  guard_->setForegroundRole(QPalette::BrightText);
  guard_->hide();
  scroll_->setWidget(content_);
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll_);
  setMinimumWidth(358);
}

RecipeRow* RecipePanel::row(const std::string& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : found->second;
}

void RecipePanel::go_to(const std::string& key) {
  RecipeRow* target = row(key);
  if (target == nullptr) return;
  scroll_->ensureWidgetVisible(target, 0, 60);
  target->focus_box();
}

void RecipePanel::enter(const std::string& key, const QString& value, int gesture) {
  const Problems problems = document_.set_value(key, to_std(value), gesture);
  if (problems.empty()) {
    unread_.erase(key);
  } else {
    unread_[key] = sentence_of(problems.front());
    emit said(unread_[key]);
  }
  refresh();
}

void RecipePanel::refresh() {
  content_->setEnabled(document_.is_open());
  if (!document_.is_open()) return;
  const Design& design = document_.design();
  // The first problem of each row; a row shows one rule at a time.
  std::map<std::string, QString> rules;
  for (const Problem& problem : live_.now().problems) {
    std::string key = parameter_of(problem);
    if (!has_row(key)) key = "dp";
    rules.try_emplace(key, sentence_of(problem));
  }
  for (const auto& [key, text] : unread_) rules[key] = text;
  for (auto& [key, row] : rows_) {
    const std::string value = value_of(design, key);
    row->show_value(text_of(value), value != value_of(document_.opened(), key), text_of(idle_reason(design, key)));
    row->set_derived(document_.derived() == key);
    row->set_locked(document_.locks().contains(key));
    const auto rule = rules.find(key);
    QStringList legal;
    // Of a value that is held no other is proposed.
    if (rule != rules.end() && !document_.locks().contains(key)) {
      for (const std::string& near : nearest_legal(live_.variations(key))) legal.append(text_of(near));
    }
    row->show_trouble(rule == rules.end() ? QString() : rule->second, legal);
  }
  equation_->setText(text_of(world_equation(design)));
  const bool filled = design.recipe.world() == design.scenario->cluster.gpus();
  equation_->setForegroundRole(filled ? QPalette::PlaceholderText : QPalette::BrightText);
  guard_->setVisible(!live_.now().not_of_cp.empty());
  if (!live_.now().not_of_cp.empty()) {
    guard_->setText(QStringLiteral("≠ ") + tr("Not an equal comparison: it %1.").arg(text_of(live_.now().not_of_cp)));
  }
  tell();
}

bool RecipePanel::has_row(const std::string& key) const { return rows_.contains(key); }

QString RecipePanel::summary() const {
  return document_.is_open() ? text_of(to_text(document_.design().recipe)) : tr("No study is open");
}

QString RecipePanel::csv() const {
  if (!document_.is_open()) return {};
  QString text = tr("parameter,value,unit,source,locked") + QLatin1Char('\n');
  for (const Parameter& parameter : parameters()) {
    const std::string value = value_of(document_.design(), parameter.key);
    text += csv_field(text_of(parameter.key)) + QLatin1Char(',') + csv_field(text_of(value)) + QLatin1Char(',') +
            text_of(parameter.unit) + QLatin1Char(',') +
            (value == value_of(document_.opened(), parameter.key) ? tr("scenario") : tr("edited")) + QLatin1Char(',') +
            (document_.locks().contains(parameter.key) ? tr("locked") : QString()) + QLatin1Char('\n');
  }
  return text;
}

QString RecipePanel::command() const {
  return document_.is_open() ? simulate_command(document_.path(), document_.design()) : QString();
}

void RecipePanel::paint_on(QPainter& painter) {
  painter.fillRect(rect(), palette().color(QPalette::Window));
  render(&painter, {}, {}, DrawWindowBackground | DrawChildren);
}

}  // namespace cpfit::gui
