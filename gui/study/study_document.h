// The study being designed: the only place that changes a recipe. Every change is an undo command; the moves of one gesture
// merge.
#pragma once

#include <QObject>
#include <QString>
#include <QUndoStack>
#include <optional>
#include <string>
#include <string_view>

#include "gui/study/design.h"
#include "gui/study/locks.h"
#include "model/record/candidate.h"

namespace cpfit::gui {

/// What others are compared with.
struct Baseline {
  Design design;
  Candidate candidate;
  QString name;
};

class StudyDocument : public QObject {
  Q_OBJECT
 public:
  explicit StudyDocument(QObject* parent = nullptr);

  [[nodiscard]] bool is_open() const { return !design_.empty(); }
  [[nodiscard]] const Design& design() const { return design_; }
  [[nodiscard]] const Design& opened() const { return opened_; }  // as read: what a double-click on a row goes back to
  [[nodiscard]] const QString& path() const { return path_; }     // as a command line would name it
  [[nodiscard]] bool is_example() const { return path_.startsWith(QStringLiteral("examples/")); }
  [[nodiscard]] QUndoStack& undo() { return undo_; }
  /// Empty where every degree is locked.
  [[nodiscard]] const std::string& derived() const { return derived_; }
  [[nodiscard]] const Locks& locks() const { return locks_; }
  [[nodiscard]] const std::optional<Baseline>& baseline() const { return baseline_; }

  /// Opens a scenario; undo and baseline begin anew. On problems the open study stays.
  [[nodiscard]] Problems open_file(const QString& path);
  [[nodiscard]] Problems open_text(const std::string& text, const QString& path);
  void close();

  /// The recipe a search found for the study as opened: taken over in place, no undo command, unless something was edited since.
  void start_from(const Recipe& recipe);

  /// Sets one parameter. Problems: what could not be read, or is locked. `gesture`: moves with the same positive number merge
  /// into one command.
  Problems set_value(std::string_view key, const std::string& value, int gesture = 0);
  /// Problems: a locked choice would change; nothing was taken over then.
  Problems set_recipe(const Recipe& recipe, const QString& what);
  Problems set_design(const Design& design, const QString& what, int gesture = 0);
  Problems reset_value(std::string_view key);

  /// The degree that fills the cluster: tp, cp, pp or dp.
  void set_derived(const std::string& key);

  /// Holds a choice whatever is searched or proposed, until it is unlocked. A degree that followed from the others no longer
  /// does: another one follows. Undo goes past locks: what a person did comes back as it was.
  void set_locked(const std::string& key, bool locked);
  void set_locks(Locks locks);

  void pin_baseline(Baseline baseline);
  void unpin_baseline();

  /// Writes the scenario with this recipe. Problems: a form that cannot be edited, a file that cannot be written.
  [[nodiscard]] Problems save(const QString& path);

 signals:
  void opened_changed();
  void design_changed();
  void baseline_changed();
  void derived_changed();
  void locks_changed();
  /// A locked choice would have changed: nothing did.
  void refused(const QString& sentence);

 private:
  friend class DesignCommand;
  Problems refuse(Problem problem);
  void take(const Design& design);
  QUndoStack undo_;
  Design design_, opened_;
  QString path_;
  std::string derived_ = "dp";
  Locks locks_;
  std::optional<Baseline> baseline_;
};

/// ` --calibration "…"` of a command line; empty where the study rests on the defaults.
[[nodiscard]] QString calibration_option(const Design& design);

/// `cpfit simulate …` that shows the same: the scenario's path and what the recipe changes in it.
[[nodiscard]] QString simulate_command(const QString& path, const Design& design, const QString& more = {});

}  // namespace cpfit::gui
