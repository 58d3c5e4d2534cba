// The file that a measurement grows in, on rank 0: what is there already is kept when it is of the same machine and the same
// question, and after every point the file is written anew, whole. Without a path nothing is read or written.
#pragma once

#include <filesystem>
#include <string>

#include "model/record/measurement.h"

namespace cpfit::probe {

/// Empty when a measurement that begins as `now` may go on in the file that holds `before`; else why not, for a person: another
/// backend, other ranks, another machine or versions, another seed, smoke beside earnest.
[[nodiscard]] std::string why_not_continue(const MeasurementFile& before, const MeasurementFile& now);

class MeasurementStore {
 public:
  /// `file`: head and machine, no points. Reads what is at `path`, and writes it at once, so that a folder that cannot be written
  /// or a full disk is known before anything is measured. The problem says what to do about a file that cannot be continued.
  [[nodiscard]] static Outcome<MeasurementStore> open(const std::filesystem::path& path, MeasurementFile file);

  /// Measured or skipped before: not to be done again. One that failed is.
  [[nodiscard]] bool has(const std::string& probe, const std::vector<MeasuredAxis>& axes) const;
  /// Replaces a point of the same place. Throws Error when the file cannot be written.
  void add(MeasuredPoint point);
  /// Clocks and throttling of the run so far.
  void set_machine(const MeasuredMachine& machine) { file_.machine = machine; }
  [[nodiscard]] const MeasurementFile& file() const { return file_; }
  /// Points taken over from an earlier run.
  [[nodiscard]] std::int64_t taken_over() const { return taken_over_; }
  void write() const;

 private:
  MeasurementStore(std::filesystem::path path, MeasurementFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  MeasurementFile file_;
  std::int64_t taken_over_ = 0;
};

}  // namespace cpfit::probe
