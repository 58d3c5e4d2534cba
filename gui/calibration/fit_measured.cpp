#include "gui/calibration/fit_measured.h"

#include <QFile>
#include <QSaveFile>

#include "calibrate/fit/fit_imported.h"
#include "db/store/calibration_store.h"
#include "gui/look/figures.h"
#include "gui/look/taken.h"
#include "model/rates/overlay.h"
#include "model/rates/rate_tables.h"

namespace cpfit::gui {

MeasuredFit fit_measured(const QString& path, const std::string& tool_version, std::int64_t unix_seconds) {
  const ImportedFile file = taken(import_file(to_std(path)));
  const ImportedFit fit = fit_imported({file}, gpu_presets());
  MeasuredFit result;
  for (const std::string& remark : file.remarks) result.remarks.append(text_of(remark));
  for (const std::string& reason : fit.left_out) result.remarks.append(QObject::tr("left out: %1").arg(text_of(reason)));
  if (empty(fit.tables)) {
    throw Error(to_std(
        QObject::tr("no kind of kernel or link has enough points for a curve%1")
            .arg(result.remarks.isEmpty() ? QString() : QStringLiteral(": ") + result.remarks.join(QStringLiteral("; ")))));
  }
  auto chosen = std::make_shared<ChosenCalibration>();
  chosen->calibration = calibration_of(fit, {file}, "", tool_version, unix_seconds);
  const QString written = path + QStringLiteral(".toml");
  const QString trouble = write_calibration(chosen->calibration, written);
  if (trouble.isEmpty())
    chosen->from = to_std(written);
  else
    result.remarks.append(trouble);
  result.chosen = std::move(chosen);
  return result;
}

QString write_calibration(const Calibration& calibration, const QString& file) {
  QSaveFile out(file);
  const QByteArray text = QByteArray::fromStdString(calibration_toml(calibration));
  if (out.open(QIODevice::WriteOnly) && out.write(text) == text.size() && out.commit()) return {};
  return QObject::tr("%1 cannot be written (%2): the calibration is in the window only").arg(file, out.errorString());
}

QString store_calibration(const Calibration& calibration, const QString& database) {
  try {
    StoreOptions options;
    options.patience = std::chrono::milliseconds(5000);
    Store store = open_store(to_std(database), options);
    (void)save_calibration(store, calibration, surfaces_of(taken(tables_of(calibration))));
  } catch (const Error& error) {
    return text_of(error.what());
  }
  return {};
}

std::shared_ptr<const ChosenCalibration> read_chosen(const std::string& from, const std::string& id) {
  auto chosen = std::make_shared<ChosenCalibration>();
  chosen->from = from;
  if (from.ends_with(".toml")) {
    QFile file(text_of(from));
    if (!file.open(QIODevice::ReadOnly)) throw Error(from + ": " + to_std(file.errorString()));
    chosen->calibration = taken(parse_calibration(file.readAll().toStdString(), from));
  } else {
    chosen->calibration = taken(find_calibration(open_store(from, {.access = StoreAccess::kRead}), id));
  }
  return chosen;
}

}  // namespace cpfit::gui
