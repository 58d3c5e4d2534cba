#include "calibrate/probe/progress.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace cpfit::probe {

namespace {

void put(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

}  // namespace

std::string progress_line(const std::string& probe, std::int64_t done, std::int64_t total, double seconds_left,
                          const std::string& outcome, const std::string& reason) {
  nlohmann::ordered_json line;
  line["probe"] = probe;
  line["done"] = done;
  line["total"] = total;
  line["seconds_left"] = seconds_left < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(seconds_left);
  line["outcome"] = outcome;
  if (!reason.empty()) line["reason"] = reason;
  // A reason may hold any bytes that a file name can: what is no UTF-8 is replaced.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void ProgressLines::enter(const std::string& probe) {
  probe_ = probe;
  done_ = 0;
  total_ = 0;
}

void ProgressLines::begin(std::int64_t total) {
  total_ = total;
  begin_ = Clock::now();
  print(total == 0 ? "done" : "running", "");
}

void ProgressLines::step() {
  ++done_;
  const bool last = done_ == total_;
  if (last || Clock::now() - printed_ >= std::chrono::milliseconds(100)) print(last ? "done" : "running", "");
}

void ProgressLines::fail(const std::string& reason) { print("failed", reason); }

void ProgressLines::report(const std::string& probe, std::int64_t done, std::int64_t total, double seconds_left,
                           const std::string& outcome, const std::string& reason) {
  const bool same = outcome == "running" && probe == probe_ && total == total_;
  probe_ = probe;
  done_ = done;
  total_ = total;
  if (same && Clock::now() - printed_ < std::chrono::milliseconds(100)) return;
  printed_ = Clock::now();
  if (speaks_) put(progress_line(probe, done, total, seconds_left, outcome, reason));
}

void ProgressLines::print(const std::string& outcome, const std::string& reason) {
  printed_ = Clock::now();
  if (!speaks_) return;
  const double passed = std::chrono::duration<double>(printed_ - begin_).count();
  const double left = done_ == 0 ? -1 : passed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  put(progress_line(probe_, done_, total_, left, outcome, reason));
}

}  // namespace cpfit::probe
