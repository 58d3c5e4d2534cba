// A calibration: fitted rates with what they were fitted on and how far to trust them. A versioned record: its id is a hash of
// its content, so that the same figures from the same files are the same calibration wherever they are kept. As a file it is a
// rates.toml with a [calibration] section; the defaults that ship with cpfit are one too, marked assumed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/record/measurement.h"

namespace cpfit {

struct RateTables;

/// A file that the fit read.
struct CalibrationSource {
  std::string path, sha256, format;
  std::int64_t points = 0, left_out = 0;
  friend bool operator==(const CalibrationSource&, const CalibrationSource&) = default;
};

/// Something a prediction may want that was not measured; the defaults stand in.
struct CalibrationGap {
  std::string surface;  // "attention backward", "all_gather on 8"
  std::string reason;   // "no point", "head dimension 128 only"
  friend bool operator==(const CalibrationGap&, const CalibrationGap&) = default;
};

/// A measured point that a person kept out of the fit.
struct ExcludedPoint {
  std::string source;     // SHA-256 of its file
  std::int64_t line = 0;  // of that file, as its reader counts
  std::string point;      // "messages of 65536 bytes ...": tells several points of one line apart; see point_text
  std::string reason;
  friend bool operator==(const ExcludedPoint&, const ExcludedPoint&) = default;
};

struct Calibration {
  std::string id;  // 64 hexadecimal digits, over everything below but name and time; see calibration_id
  std::string name;
  std::int64_t created_unix_seconds = 0;  // 0: not known
  std::string tool_version;
  bool assumed = false;  // data-sheet defaults, not somebody's machine
  std::vector<CalibrationSource> sources;
  MeasuredMachine machine;          // of the measurements
  std::vector<std::string> groups;  // what communicated: "2 ranks over shared memory"
  std::vector<CalibrationGap> gaps;
  std::vector<ExcludedPoint> excluded;  // measured, and not fitted
  std::string rates_toml;               // the fitted rows alone
  friend bool operator==(const Calibration&, const Calibration&) = default;

  /// The digits people use.
  [[nodiscard]] std::string short_id() const { return id.substr(0, 12); }
};

/// 2: with excluded points, which an older cpfit would pass over in silence. Files without any are still of version 1.
inline constexpr int kCalibrationVersion = 2;

/// The hash that names the content.
[[nodiscard]] std::string calibration_id(const Calibration& calibration);

/// The file. Ends with a newline.
[[nodiscard]] std::string calibration_toml(const Calibration& calibration);

/// Reads a calibration file; a rates.toml without [calibration] is one named after `where`. Problems: calibration.syntax,
/// calibration.newer, calibration.content, and those of the rates.
[[nodiscard]] Outcome<Calibration> parse_calibration(const std::string& text, const std::string& where);

/// The defaults that ship.
[[nodiscard]] Calibration default_calibration();

/// Its rates. Problems as parse_rate_tables.
[[nodiscard]] Outcome<RateTables> tables_of(const Calibration& calibration);

/// Where two machines' software differs, one sentence each: "driver: 550.54 measured, 570.10 here". Texts that either side leaves
/// empty are not compared.
[[nodiscard]] std::vector<std::string> software_differences(const MeasuredMachine& measured, const MeasuredMachine& here);

}  // namespace cpfit
