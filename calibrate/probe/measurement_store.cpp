#include "calibrate/probe/measurement_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace cpfit::probe {

namespace {

constexpr std::uintmax_t kLeastSpace = std::uintmax_t{16} << 20;  // a full measurement with its windows is a few MiB

MeasuredPoint* find(std::vector<MeasuredPoint>& points, const std::string& probe, const std::vector<MeasuredAxis>& axes) {
  const auto found = std::ranges::find_if(points, [&](const MeasuredPoint& p) { return p.probe == probe && p.axes == axes; });
  return found == points.end() ? nullptr : &*found;
}

Problem cannot_write(const std::filesystem::path& path, const std::string& why) {
  return {"bench.out", path.string(), why, "Give --out a file in a folder that can be written and has room."};
}

}  // namespace

std::string why_not_continue(const MeasurementFile& before, const MeasurementFile& now) {
  const auto differs = [](const char* what, const auto& there, const auto& here) {
    return there == here ? std::string() : fmt::format("it holds {} {}, this run has {}", what, there, here);
  };
  const MeasuredMachine& a = before.machine;
  const MeasuredMachine& b = now.machine;
  const auto hosts = [](const MeasuredMachine& machine) { return fmt::format("{}", fmt::join(machine.hosts, " ")); };
  for (const std::string& text :
       {differs("figures of the backend", before.backend, now.backend), differs("figures of ranks:", before.ranks, now.ranks),
        differs("figures of ranks per host:", before.ranks_per_host, now.ranks_per_host),
        differs("figures of cpfit-bench", before.tool_version, now.tool_version), differs("smoke =", before.smoke, now.smoke),
        differs("figures of seed", before.seed, now.seed), differs("figures of the machine", hosts(a), hosts(b)),
        differs("figures of the processor", a.cpu, b.cpu), differs("figures of cores:", a.cores, b.cores),
        differs("figures of the GPU", a.gpu, b.gpu), differs("figures of GPUs:", a.gpus_per_host, b.gpus_per_host),
        differs("figures of driver", a.driver, b.driver), differs("figures of CUDA", a.cuda, b.cuda),
        differs("figures of NCCL", a.nccl, b.nccl), differs("figures of cuDNN", a.cudnn, b.cudnn),
        differs("figures of MPI", a.mpi, b.mpi), differs("figures of BLAS", a.blas, b.blas),
        differs("figures of the link", a.link, b.link)}) {
    if (!text.empty()) return text;
  }
  return "";
}

Outcome<MeasurementStore> MeasurementStore::open(const std::filesystem::path& path, MeasurementFile file) {
  MeasurementStore store(path, std::move(file));
  if (path.empty()) return store;
  std::error_code reason;
  if (std::filesystem::is_directory(path, reason)) return cannot_write(path, "this is a folder");
  if (std::filesystem::exists(path, reason)) {
    Outcome<MeasurementFile> before = read_measurement(path);
    if (!before.ok()) {
      Problems problems = before.problems();
      problems.front().message = "this file is there already and cannot be continued: " + problems.front().message;
      problems.front().repair = "Give --out another file; nothing was changed in this one.";
      return problems;
    }
    if (const std::string why = why_not_continue(*before, store.file_); !why.empty()) {
      return Problem{"bench.other_measurement", path.string(), "this file is of another measurement: " + why,
                     "Give --out another file; nothing was changed in this one."};
    }
    store.file_.started_at = before->started_at;
    store.file_.points = std::move(before.value().points);
    store.taken_over_ = static_cast<std::int64_t>(store.file_.points.size());
  }
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::filesystem::space_info space = std::filesystem::space(folder, reason);
  if (reason) return cannot_write(path, fmt::format("its folder cannot be used: {}", reason.message()));
  if (space.available < kLeastSpace) {
    return cannot_write(path, fmt::format("its disk has {} MiB left, 16 MiB are needed", space.available >> 20));
  }
  try {
    store.write();
  } catch (const Error& failure) {
    return cannot_write(path, failure.what());
  }
  return store;
}

bool MeasurementStore::has(const std::string& probe, const std::vector<MeasuredAxis>& axes) const {
  return std::ranges::any_of(file_.points, [&](const MeasuredPoint& point) {
    return point.outcome != MeasuredOutcome::kFailed && point.probe == probe && point.axes == axes;
  });
}

void MeasurementStore::add(MeasuredPoint point) {
  if (MeasuredPoint* const old = find(file_.points, point.probe, point.axes); old != nullptr) {
    *old = std::move(point);
  } else {
    file_.points.push_back(std::move(point));
  }
  write();
}

void MeasurementStore::write() const {
  if (!path_.empty()) write_measurement(file_, path_);
}

}  // namespace cpfit::probe
