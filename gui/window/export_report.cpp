// File > Export report: the study as one HTML file, computed and written beside the window.
#include <QApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QSaveFile>

#include "gui/equivalence/equivalence_view.h"
#include "gui/look/figures.h"
#include "gui/results/sweep_space.h"
#include "gui/study/simulator.h"
#include "gui/window/main_window.h"
#include "sim/report/study_report.h"

namespace cpfit::gui {

namespace {

struct ReportRequest {
  std::shared_ptr<const Scenario> scenario;
  std::shared_ptr<const RateSet> rates;
  std::optional<CalibrationUse> calibration;
  std::string named, proof, tool_version;
};

std::string rates_sentence(const CalibrationUse& use) {
  return to_std(QObject::tr("Rates: calibration '%1' (%2) over the defaults: %3 surfaces")
                    .arg(text_of(use.name), text_of(use.id.substr(0, 12)))
                    .arg(use.used.size()));
}

/// The page; empty where it was told to stop. Throws Error.
std::string page_of(const ReportRequest& request, const std::atomic<bool>& stop) {
  SearchControls controls;
  controls.stop = &stop;
  Outcome<report::ReportContent> computed = report::study_report(*request.scenario, *request.rates, request.named, controls);
  if (!computed.ok()) throw Error(to_text(computed.problems().front()));
  if (stop.load()) return {};
  report::ReportContent content = std::move(computed).value();
  const CalibrationUse* use = request.calibration ? &*request.calibration : nullptr;
  content.plan.provenance = provenance_of(*request.scenario, *request.rates, request.tool_version, use);
  if (use != nullptr) content.rates = rates_sentence(*use);
  content.proof = request.proof;
  return report::report_page(content);
}

}  // namespace

void MainWindow::ask_for_report() {
  const QString proposed = QFileInfo(document_.path()).completeBaseName() + QStringLiteral(".html");
  const QString path = QFileDialog::getSaveFileName(this, tr("Export report"), proposed, tr("Web pages (*.html)"));
  if (!path.isEmpty()) export_report(path);
}

void MainWindow::export_report(const QString& path) {
  if (!document_.is_open()) return;
  // The file's text with the edits of the question in it: what the report says it was computed from.
  const Outcome<std::shared_ptr<const Scenario>> scenario =
      sweep_scenario(document_.design(), sweep_axes(*document_.design().scenario));
  if (!scenario.ok()) return say(sentence_of(scenario.problems().front()), true);
  ReportRequest request{
      *scenario, live_.rates(), live_.calibration(), to_std(document_.path()), {}, to_std(QApplication::applicationVersion())};
  if (database_.content()) request.proof = to_std(view(QStringLiteral("equivalence"))->summary());
  say(tr("The report is being computed …"));
  jobs_.start_keeping(
      QStringLiteral("report"), tr("Report %1").arg(QFileInfo(path).fileName()),
      [request, path](const std::atomic<bool>& stop) -> std::any {
        const std::string page = page_of(request, stop);
        if (page.empty()) return QObject::tr("no report was written");
        QSaveFile file(path);
        if (!file.open(QIODevice::WriteOnly) || file.write(page.data(), static_cast<qint64>(page.size())) < 0 || !file.commit())
          throw Error(to_std(QObject::tr("%1 cannot be written: %2").arg(path, file.errorString())));
        return QObject::tr("Wrote %1").arg(path);
      },
      [this](const std::any& result) {
        say(std::any_cast<const QString&>(result));
        return said_;
      });
}

}  // namespace cpfit::gui
