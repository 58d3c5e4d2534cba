// Opening: what a file is, and what the window does with it.
#include <QFileDialog>
#include <QFileInfo>
#include <QInputDialog>

#include "db/query/runs.h"
#include "db/store/calibration_store.h"
#include "db/store/validation_store.h"
#include "db/store/verification_store.h"
#include "gui/calibration/calibration_view.h"
#include "gui/look/figures.h"
#include "gui/step/step_view.h"
#include "gui/study/scenario_text.h"
#include "gui/window/dropped_file.h"
#include "gui/window/examples.h"
#include "gui/window/main_window.h"
#include "model/quantity/text.h"

namespace cpfit::gui {

namespace {

QString without_study(const QString& name) {
  return QObject::tr("%1 belongs into a study: open a scenario or an example first, then drop it again.").arg(name);
}

}  // namespace

void MainWindow::ask_and_open() {
  const QString path = QFileDialog::getOpenFileName(this, tr("Open"), QString(),
                                                    tr("What cpfit reads (*.toml *.sqlite *.db *.json *.xml *.txt "
                                                       "*.gz);;Scenarios (*.toml);;Databases (*.sqlite *.db);;All files (*)"));
  if (!path.isEmpty()) open_path(path);
}

bool MainWindow::take_opened(const Problems& problems, const QString& path) {
  if (!problems.empty()) {
    QString sentence = text_of(to_text(problems.front()));
    if (problems.size() > 1) sentence += tr(" (and %1 more)").arg(problems.size() - 1);
    say(sentence, true);
    return false;
  }
  recent_ = with_recent(recent_, path);
  say(tr("Opened %1").arg(text_of(document_.design().scenario->name)));
  return true;
}

bool MainWindow::open_example(const QString& path) {
  const std::string text = example_text(path);
  if (text.empty()) {
    say(tr("There is no bundled example %1.").arg(path), true);
    return false;
  }
  return take_opened(document_.open_text(text, path), path);
}

bool MainWindow::open_path(const QString& path) {
  if (!example_text(path).empty() && !QFileInfo::exists(path)) return open_example(path);
  const FileNature nature = nature_of_file(path);
  const QString name = QFileInfo(path).fileName();
  try {
    switch (nature.kind) {
      case FileKind::kScenario:
        return take_opened(document_.open_file(path), path);
      case FileKind::kDatabase:
        return open_database(path);
      case FileKind::kModelConfig:
        return use_model_config(path);
      case FileKind::kTopology:
        return use_topology(path);
      case FileKind::kTrace:
        return overlay_trace(path);
      case FileKind::kMeasurement:
        if (!document_.is_open()) {
          say(without_study(name), true);
          return false;
        }
        show_dock(QStringLiteral("calibration"));
        static_cast<CalibrationView*>(view(QStringLiteral("calibration")))->fit_file(path);
        say(tr("Rates are being fitted to the measurement %1.").arg(name));
        return true;
      case FileKind::kPlanResult:
        say(tr("%1 is the printed result of a plan: open its scenario, or the database it was stored in.").arg(name), true);
        return false;
      case FileKind::kUnknown:
        break;
    }
  } catch (const Error& error) {
    say(text_of(error.what()), true);
    return false;
  }
  say(nature.sentence, true);
  return false;
}

bool MainWindow::open_database(const QString& path) {
  const Store store = open_store(to_std(path), {.access = StoreAccess::kRead});
  const std::vector<RunSummary> runs = list_runs(store);
  if (runs.empty()) {
    // Calibrations, validations and verifications are of use beside any study.
    if (document_.is_open() &&
        !(list_calibrations(store).empty() && list_validations(store).empty() && list_verifications(store).empty())) {
      database_.open(path);
      recent_ = with_recent(recent_, path);
      show_dock(QStringLiteral("calibration"));
      say(tr("%1 holds no runs, but what it knows of calibrations and validations lies beside the study.")
              .arg(QFileInfo(path).fileName()));
      return true;
    }
    say(tr("%1 holds no runs yet: `cpfit plan SCENARIO --db \"%2\"` stores one.").arg(QFileInfo(path).fileName(), path), true);
    return false;
  }
  std::size_t chosen = 0;
  if (runs.size() > 1 && isVisible() && !property("unattended").toBool()) {
    QStringList names;
    for (const RunSummary& run : runs)
      names.append(tr("run %1: %2%3")
                       .arg(static_cast<qint64>(run.run))
                       .arg(text_of(run.scenario_name),
                            run.ship.empty() ? tr(", nothing ships") : tr(", ships %1").arg(text_of(run.ship))));
    bool accepted = false;
    const QString name = QInputDialog::getItem(
        this, tr("Open a run"), tr("Runs in %1, youngest first:").arg(QFileInfo(path).fileName()), names, 0, false, &accepted);
    if (!accepted) return false;
    chosen = static_cast<std::size_t>(std::max<qsizetype>(0, names.indexOf(name)));
  }
  const RunSummary& run = runs[chosen];
  const Outcome<PlanResult> result = load_run(store, run.run);
  if (!result.ok()) {
    say(text_of(to_text(result.problems().front())), true);
    return false;
  }
  const QString scenario_path = text_of(result->provenance.scenario_path);
  if (!take_opened(document_.open_text(result->provenance.scenario_text, scenario_path), scenario_path)) return false;
  recent_ = with_recent(recent_, path);
  const std::string& recipe_text = run.ship.empty() ? run.control : run.ship;
  if (const Outcome<Recipe> recipe = parse_recipe(recipe_text, document_.design().recipe); !recipe_text.empty() && recipe.ok())
    document_.set_recipe(*recipe, run.ship.empty() ? tr("Control of run %1").arg(static_cast<qint64>(run.run))
                                                   : tr("Recipe that run %1 ships").arg(static_cast<qint64>(run.run)));
  database_.open(path, run.run);
  say(tr("Run %1 of %2, by cpfit %3 with %4")
          .arg(static_cast<qint64>(run.run))
          .arg(QFileInfo(path).fileName(), text_of(run.tool_version), text_of(run.rates_version)));
  return true;
}

bool MainWindow::overlay_trace(const QString& path) {
  const QString name = QFileInfo(path).fileName();
  if (!document_.is_open()) {
    say(tr("A trace is laid beside the step of a study: open a scenario or an example first, then drop %1 again.").arg(name),
        true);
    return false;
  }
  const QString trouble = static_cast<StepView*>(view(QStringLiteral("step")))->overlay_trace(path);
  if (!trouble.isEmpty()) {
    say(trouble, true);
    return false;
  }
  show_dock(QStringLiteral("step"));
  say(tr("%1 lies beside the predicted step, aligned by its beginning.").arg(name));
  return true;
}

bool MainWindow::use_model_config(const QString& path) {
  const QString name = QFileInfo(path).fileName();
  if (!document_.is_open()) {
    say(without_study(name), true);
    return false;
  }
  const Design& design = document_.design();
  std::string text = without_toml_section(without_toml_key(design.scenario->text, "", "model"), "model");
  text = with_toml_value(text, "training", "sequence_length", toml_string(print_tokens(design.training().sequence)));
  text = with_toml_value(text, "model", "config", toml_string(to_std(QFileInfo(path).absoluteFilePath())));
  const Outcome<Design> changed = reread(design, text);
  if (!changed.ok()) {
    say(text_of(to_text(changed.problems().front())), true);
    return false;
  }
  document_.set_design(*changed, tr("Model of %1").arg(name));
  say(tr("The model is now the one of %1; Ctrl+Z takes it back.").arg(name));
  return true;
}

bool MainWindow::use_topology(const QString& path) {
  const QString name = QFileInfo(path).fileName();
  if (!document_.is_open()) {
    say(without_study(name), true);
    return false;
  }
  const Design& design = document_.design();
  std::string text = without_toml_section(without_toml_key(design.scenario->text, "", "cluster"), "cluster");
  text = with_toml_value(text, "cluster", "topology", toml_string(to_std(QFileInfo(path).absoluteFilePath())));
  const Outcome<Design> changed = reread(design, text);
  if (!changed.ok()) {
    say(tr("%1 (other tools' formats: `cpfit topology import \"%2\"` makes a topology of them)")
            .arg(text_of(to_text(changed.problems().front())), path),
        true);
    return false;
  }
  document_.set_design(*changed, tr("Cluster of %1").arg(name));
  say(tr("The cluster is now the one of %1; Ctrl+Z takes it back.").arg(name));
  return true;
}

}  // namespace cpfit::gui
