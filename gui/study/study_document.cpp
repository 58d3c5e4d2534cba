#include "gui/study/study_document.h"

#include <QFile>
#include <QSaveFile>
#include <QUndoCommand>

#include "gui/look/figures.h"
#include "gui/study/recipe_values.h"
#include "gui/study/scenario_text.h"

namespace cpfit::gui {

/// From one design to another.
class DesignCommand : public QUndoCommand {
 public:
  DesignCommand(StudyDocument& document, Design after, const QString& what, int gesture)
      : QUndoCommand(what), document_(document), before_(document.design()), after_(std::move(after)), gesture_(gesture) {}
  void undo() override { document_.take(before_); }
  void redo() override { document_.take(after_); }
  [[nodiscard]] int id() const override { return gesture_ > 0 ? 1 : -1; }
  bool mergeWith(const QUndoCommand* other) override {
    const auto& later = static_cast<const DesignCommand&>(*other);
    if (later.gesture_ != gesture_) return false;
    after_ = later.after_;
    setText(later.text());
    return true;
  }

 private:
  StudyDocument& document_;
  Design before_, after_;
  int gesture_;
};

StudyDocument::StudyDocument(QObject* parent) : QObject(parent) { undo_.setUndoLimit(1000); }

Problems StudyDocument::open_file(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) {
    return {{"gui.unreadable", to_std(path), to_std(QStringLiteral("the file cannot be read: ") + file.errorString()),
             "check the path and its permissions"}};
  }
  return open_text(file.readAll().toStdString(), path);
}

Problems StudyDocument::open_text(const std::string& text, const QString& path) {
  Outcome<Scenario> read = read_scenario(text, to_std(path));
  if (!read.ok()) return read.problems();
  const auto scenario = std::make_shared<const Scenario>(std::move(read).value());
  opened_ = {scenario, opening_recipe(*scenario), nullptr};
  design_ = opened_;
  path_ = path;
  derived_ = "dp";
  locks_.clear();
  baseline_.reset();
  undo_.clear();
  emit opened_changed();
  emit design_changed();
  return {};
}

void StudyDocument::close() {
  design_ = opened_ = {};
  path_.clear();
  locks_.clear();
  baseline_.reset();
  undo_.clear();
  emit opened_changed();
}

void StudyDocument::start_from(const Recipe& recipe) {
  if (undo_.count() > 0 || !is_open() || !broken_locks(locks_, design_.recipe, recipe).empty()) return;
  opened_.recipe = recipe;
  take(opened_);
}

Problems StudyDocument::refuse(Problem problem) {
  emit refused(sentence_of(problem));
  return {std::move(problem)};
}

void StudyDocument::take(const Design& design) {
  design_ = design;
  emit design_changed();
}

Problems StudyDocument::set_value(std::string_view key, const std::string& value, int gesture) {
  if (!is_open()) return {};
  const std::string before = value_of(design_, key);
  if (before == value) return {};
  if (locks_.contains(key)) return refuse(locked_problem(key, design_.recipe));
  Outcome<Design> changed = with_value(design_, key, value, derived_);
  if (!changed.ok()) return changed.problems();
  const Parameter* parameter = find_parameter(key);
  const QString label = parameter != nullptr ? text_of(parameter->label) : text_of(key);
  return set_design(*changed, QStringLiteral("%1 %2 → %3").arg(label, text_of(before), text_of(value_of(*changed, key))),
                    gesture);
}

Problems StudyDocument::set_recipe(const Recipe& recipe, const QString& what) {
  Design changed = design_;
  changed.recipe = recipe;
  return set_design(changed, what);
}

Problems StudyDocument::set_design(const Design& design, const QString& what, int gesture) {
  if (!is_open() || same_design(design, design_)) return {};
  if (Problems broken = broken_locks(locks_, design_.recipe, design.recipe); !broken.empty())
    return refuse(std::move(broken.front()));
  undo_.push(new DesignCommand(*this, design, what, gesture));
  return {};
}

Problems StudyDocument::reset_value(std::string_view key) {
  return is_open() ? set_value(key, value_of(opened_, key)) : Problems{};
}

void StudyDocument::set_derived(const std::string& key) {
  if (derived_ == key || !is_degree(key) || locks_.contains(key)) return;
  derived_ = key;
  emit derived_changed();
}

void StudyDocument::set_locked(const std::string& key, bool locked) {
  Locks locks = locks_;
  if (locked)
    locks.insert(key);
  else
    locks.erase(key);
  set_locks(std::move(locks));
}

void StudyDocument::set_locks(Locks locks) {
  std::erase_if(locks, [](const std::string& key) { return !is_lockable(key); });
  if (!is_open() || locks == locks_) return;
  locks_ = std::move(locks);
  std::string derived = derived_within(locks_, derived_);
  const bool other = derived != derived_;
  derived_ = std::move(derived);
  emit locks_changed();
  if (other) emit derived_changed();
}

void StudyDocument::pin_baseline(Baseline baseline) {
  baseline_ = std::move(baseline);
  emit baseline_changed();
}

void StudyDocument::unpin_baseline() {
  baseline_.reset();
  emit baseline_changed();
}

Problems StudyDocument::save(const QString& path) {
  const Outcome<std::string> text = scenario_text(design_);
  if (!text.ok()) return text.problems();
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text->data(), static_cast<qint64>(text->size())) < 0 || !file.commit()) {
    return {{"gui.unwritable", to_std(path), to_std(QStringLiteral("the file cannot be written: ") + file.errorString()),
             "choose another folder, or free some space"}};
  }
  path_ = path;
  undo_.setClean();
  return {};
}

QString calibration_option(const Design& design) {
  if (design.calibration == nullptr || design.calibration->from.empty()) return {};
  const QString from = text_of(design.calibration->from);
  const bool file = from.endsWith(QStringLiteral(".toml"));
  return QStringLiteral(" --calibration \"%1\"")
      .arg(file ? from : from + QLatin1Char(':') + text_of(design.calibration->calibration.short_id()));
}

QString simulate_command(const QString& path, const Design& design, const QString& more) {
  const std::string recipe = to_text(design.recipe, design.scenario->base);
  return QStringLiteral("cpfit simulate \"%1\" --recipe \"%2\"%3%4").arg(path, text_of(recipe), calibration_option(design), more);
}

}  // namespace cpfit::gui
