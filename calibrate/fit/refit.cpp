#include "calibrate/fit/refit.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/fit/fit_imported.h"
#include "calibrate/fit/write_rates.h"
#include "model/rates/overlay.h"

namespace cpfit {

namespace {

struct PointText {
  std::string operator()(const GemmMeasurement& gemm) const {
    return fmt::format("gemm {}, m {}, n {}, k {}", name_of(gemm.math), gemm.shape.m, gemm.shape.n, gemm.shape.k);
  }
  std::string operator()(const AttentionMeasurement& a) const {
    const char* pass = a.pass == MeasuredPass::kForward    ? "forward"
                       : a.pass == MeasuredPass::kBackward ? "backward"
                                                           : "forward and backward";
    const AttentionShape& s = a.shape;
    return fmt::format("attention {} {} {}, {}q {}, kv {}, {} heads of {}{}, {}", name_of(a.library), name_of(s.math), pass,
                       s.batch == 1 ? std::string() : fmt::format("batch {}, ", s.batch), s.q_len, s.kv_len, s.heads, s.head_dim,
                       s.kv_heads == s.heads ? std::string() : fmt::format(" ({} of kv)", s.kv_heads),
                       s.causal ? "causal" : "full");
  }
  std::string operator()(const StreamMeasurement& stream) const {
    return fmt::format("memory {} {}, {:.0f} bytes{}", stream.kernels, name_of(stream.pass), stream.traffic.value(),
                       stream.row > 0 ? fmt::format(", rows of {}", stream.row) : std::string());
  }
  std::string operator()(const CollectiveMeasurement& c) const {
    return fmt::format("{} of {:.0f} bytes on {} ranks{}{}{}{}", name_of(c.kind), c.bytes.value(), c.ranks,
                       c.nodes > 1 ? fmt::format(" of {} nodes", c.nodes) : std::string(),
                       c.link.empty() ? std::string() : " over " + c.link, c.strided ? ", strided" : "",
                       c.kind != CollectiveKind::kSendRecv || c.both_ways ? "" : ", one way");
  }
};

Outcome<std::vector<ImportedFile>> read_again(const Calibration& before) {
  std::vector<ImportedFile> files;
  ImportHints hints;
  hints.gpu = before.machine.gpu;
  for (const CalibrationSource& source : before.sources) {
    Outcome<ImportedFile> file = import_file(source.path, hints);
    if (!file.ok()) return file.problems();
    if (!source.sha256.empty() && file->sha256 != source.sha256) {
      return Problem{"refit.source", source.path, "the file was changed since the fit",
                     "bring back the one with SHA-256 " + source.sha256.substr(0, 12) + ", or fit the file as a new calibration"};
    }
    files.push_back(std::move(file).value());
  }
  if (files.empty())
    return Problem{"refit.source", before.name, "the calibration names no file that it was fitted on", "fit its files again"};
  return files;
}

/// The raw rate of a node's NICs was said on the command line of the first fit and stands in no file: rows between nodes cannot
/// be made again, and are kept.
void take_over_fabric(const RateTables& before, RateTables& after, std::vector<std::string>& taken_over) {
  for (const CollectiveRow& row : before.collective) {
    const auto same = [&](const CollectiveRow& other) {
      return other.link == row.link && other.kind == row.kind && other.curve.ranks == row.curve.ranks;
    };
    if (row.link != "nic" || std::any_of(after.collective.begin(), after.collective.end(), same)) continue;
    after.collective.push_back(row);
    taken_over.push_back(fmt::format("{} on {} ranks between nodes", name_of(row.kind), row.curve.ranks));
  }
}

}  // namespace

std::string point_text(const KernelMeasurement& row) { return std::visit(PointText{}, row.what); }

Outcome<std::vector<ImportedFile>> without_points(std::vector<ImportedFile> files, const std::vector<ExcludedPoint>& excluded) {
  for (const ExcludedPoint& point : excluded) {
    if (point.reason.find_first_not_of(' ') == std::string::npos)
      return Problem{"exclude.reason", point.point, "it is not said why the point is left out", "give a reason"};
    bool found = false;
    for (ImportedFile& file : files) {
      if (file.sha256 != point.source) continue;
      const auto is = [&](const KernelMeasurement& row) { return row.line == point.line && point_text(row) == point.point; };
      const auto row = std::find_if(file.table.rows.begin(), file.table.rows.end(), is);
      if (row == file.table.rows.end()) continue;
      file.table.rows.erase(row);
      file.table.unused.push_back({point.line, "excluded: " + point.reason});
      found = true;
      break;
    }
    if (!found) {
      return Problem{"exclude.unknown", fmt::format("line {}", point.line),
                     "no file of the fit has the point '" + point.point + "'",
                     "choose a point of the files that the calibration names, each once"};
    }
  }
  return files;
}

Outcome<Refit> refit_without(const Calibration& before, const std::vector<ExcludedPoint>& excluded,
                             const std::string& tool_version, std::int64_t unix_seconds) {
  Outcome<std::vector<ImportedFile>> read = read_again(before);
  if (!read.ok()) return read.problems();
  const Outcome<std::vector<ImportedFile>> files = without_points(std::move(read).value(), excluded);
  if (!files.ok()) return files.problems();
  ImportedFit fit = fit_imported(*files, gpu_presets());
  Refit refit;
  const Outcome<RateTables> old = tables_of(before);
  if (!old.ok()) return old.problems();
  take_over_fabric(*old, fit.tables, refit.taken_over);
  if (empty(fit.tables)) {
    return Problem{"refit.nothing", before.name, "without these points no kind of kernel or link has enough left for a curve",
                   "leave fewer points out"};
  }
  refit.left_out = fit.left_out;
  refit.calibration = calibration_of(fit, *files, before.name, tool_version, unix_seconds);
  refit.calibration.excluded = excluded;
  refit.calibration.id = calibration_id(refit.calibration);
  return refit;
}

}  // namespace cpfit
