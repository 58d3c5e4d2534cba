// From a measurement file to rates: read, fitted, and written beside it as a calibration file that command lines take, too.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <memory>
#include <string>

#include "gui/study/design.h"

namespace cpfit::gui {

struct MeasuredFit {
  std::shared_ptr<const ChosenCalibration> chosen;
  QStringList remarks;  // what to beware of, what had too few points; a sentence each
};

/// Reads whatever `cpfit calibrate import` reads, and fits it. The calibration file is `path` with .toml behind it; where it
/// cannot be written, that is a remark. Throws Error where nothing can be fitted.
[[nodiscard]] MeasuredFit fit_measured(const QString& path, const std::string& tool_version, std::int64_t unix_seconds);

/// Writes it as a calibration file. A sentence where that fails; empty when it is there.
[[nodiscard]] QString write_calibration(const Calibration& calibration, const QString& file);

/// Stores it in a database. A sentence where that fails; empty when it is there.
[[nodiscard]] QString store_calibration(const Calibration& calibration, const QString& database);

/// A calibration file, or one of a database by "FILE:ID". Throws Error.
[[nodiscard]] std::shared_ptr<const ChosenCalibration> read_chosen(const std::string& from, const std::string& id);

}  // namespace cpfit::gui
