#include "calibrate/read/job_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "calibrate/read/log_builder.h"
#include "model/quantity/counted.h"

namespace cpfit {

namespace joblog {

namespace {

/// The smaller of two figures of which 0 means nothing.
double least_said(double a, double b) { return a <= 0 ? b : b <= 0 ? a : std::min(a, b); }

}  // namespace

std::optional<double> number_at(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::array<char, 48> digits{};
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size() && size < digits.size(); ++i) {
    const char c = text[i];
    const bool thousands = c == ',' && i > 0 && i + 3 < text.size() && text[i - 1] >= '0' && text[i - 1] <= '9' &&
                           text[i + 1] >= '0' && text[i + 1] <= '9' && text[i + 2] >= '0' && text[i + 2] <= '9' &&
                           text[i + 3] >= '0' && text[i + 3] <= '9';
    if (thousands) continue;
    const bool sign = (c == '-' || c == '+') && (size == 0 || digits[size - 1] == 'e' || digits[size - 1] == 'E');
    const bool exponent = (c == 'e' || c == 'E') && size > 0;
    if (!(c >= '0' && c <= '9') && c != '.' && !sign && !exponent) break;
    digits[size++] = c;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + size, value);
  if (error != std::errc{} || end == digits.data() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string_view after(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + key.size());
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

double positive_after(std::string_view line, std::string_view key, double most) {
  const std::optional<double> value = number_after(line, key);
  return value && *value > 0 && *value < most ? *value : 0;
}

std::optional<std::int64_t> count_after(std::string_view line, std::string_view key) {
  const std::optional<double> value = number_after(line, key);
  if (!value || *value < 0 || *value > 1e15 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

void Builder::merge(JobAttempt& attempt, const JobStep& step) {
  // Ranks drift by a few lines, not more: look back a little.
  constexpr std::size_t kBack = 256;
  std::vector<JobStep>& steps = attempt.steps;
  std::size_t i = steps.size();
  const std::size_t from = i > kBack ? i - kBack : 0;
  while (i > from && steps[i - 1].iteration > step.iteration) --i;
  if (i > 0 && steps[i - 1].iteration == step.iteration) {
    JobStep& known = steps[i - 1];
    known.seconds = std::max(known.seconds, step.seconds);
    for (const auto rate :
         {&JobStep::samples_per_second, &JobStep::tokens_per_second_per_gpu, &JobStep::tflops_per_gpu, &JobStep::mfu})
      known.*rate = least_said(known.*rate, step.*rate);
    known.global_batch = std::max(known.global_batch, step.global_batch);
    known.skipped = std::max(known.skipped, step.skipped);
    known.nan = std::max(known.nan, step.nan);
    if (!known.loss) known.loss = step.loss;
    return;
  }
  steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(i), step);
}

void Builder::step(StepKind kind, std::int64_t rank, const JobStep& step) {
  Track& track = tracks_[static_cast<std::size_t>(kind)];
  if (steps_ >= kMostSteps || (track.ranks.size() >= kMostRanks && !track.ranks.contains(rank))) {
    full_ = true;
    return;
  }
  RankState& state = track.ranks[rank];
  if (!state.began) {
    state.began = true;
    state.starts = starts_;
  } else {
    const bool again = starts_ > state.starts;
    const std::int64_t slack = rank < 0 && !again ? std::max<std::int64_t>(1, state.stride) : 0;
    if (again ? step.iteration <= state.last : step.iteration < state.last - slack) {
      ++state.attempt;
      state.stride = 0;
      state.last = 0;
    } else if (step.iteration > state.last) {
      state.stride = std::max(state.stride, step.iteration - state.last);
    }
    state.starts = starts_;
  }
  state.last = std::max(state.last, step.iteration);
  if (track.attempts.size() <= state.attempt) track.attempts.resize(state.attempt + 1);
  const std::size_t before = track.attempts[state.attempt].steps.size();
  merge(track.attempts[state.attempt], step);
  steps_ += track.attempts[state.attempt].steps.size() - before;
}

void Builder::memory(std::int64_t rank, const JobMemory& memory) {
  if (memory.allocated <= 0 && memory.peak_allocated <= 0 && memory.peak_reserved <= 0) return;
  if (memory_.size() >= kMostRanks && !memory_.contains(rank)) {
    full_ = true;
    return;
  }
  JobMemory& known = memory_[rank];
  if (known.line == 0) known.line = memory.line;
  known.rank = memory.rank;
  known.allocated = std::max(known.allocated, memory.allocated);
  known.peak_allocated = std::max(known.peak_allocated, memory.peak_allocated);
  known.peak_reserved = std::max(known.peak_reserved, memory.peak_reserved);
}

bool Builder::any() const { return !memory_.empty() || steps_ > 0; }

void Builder::finish(JobLog& log) {
  for (std::size_t kind = 0; kind < kStepKinds && log.attempts.empty(); ++kind) {
    for (JobAttempt& attempt : tracks_[kind].attempts) {
      if (!attempt.steps.empty()) log.attempts.push_back(std::move(attempt));
    }
  }
  for (const auto& [rank, memory] : memory_) log.memory.push_back(memory);
  log.facts = std::move(facts);
  // A job that DeepSpeed runs prints Megatron's line too, Bridge prints more than Megatron.
  for (const JobFramework framework : {JobFramework::kDeepspeed, JobFramework::kBridge, JobFramework::kMegatron,
                                       JobFramework::kTorchtitan, JobFramework::kNanotron}) {
    if (!seen_[static_cast<std::size_t>(framework)]) continue;
    log.framework = framework;
    break;
  }
  for (const JobAttempt& attempt : log.attempts) {
    for (const JobStep& step : attempt.steps) {
      log.skipped += step.skipped;
      log.nan += step.nan;
    }
  }
  if (full_) {
    log.remarks.push_back({"log.too_long", log.path,
                           fmt::format("more than {} steps or {} ranks: the rest was not read", kMostSteps, kMostRanks),
                           "cut the log"});
  }
  if (unreadable > 0) {
    log.remarks.push_back({"log.unreadable_lines", log.path,
                           fmt::format("{} lines of a known form hold no usable figure and were left out", unreadable), ""});
  }
}

}  // namespace joblog

std::string_view name_of(JobFramework framework) {
  switch (framework) {
    case JobFramework::kMegatron:
      return "Megatron-LM";
    case JobFramework::kBridge:
      return "Megatron-Bridge";
    case JobFramework::kTorchtitan:
      return "torchtitan";
    case JobFramework::kDeepspeed:
      return "DeepSpeed";
    case JobFramework::kNanotron:
      break;
  }
  return "nanotron";
}

Outcome<JobLog> read_job_log(std::istream& stream, const std::string& path) {
  JobLog log;
  log.path = path;
  joblog::Builder builder;
  LogLines lines(stream);
  bool last_dropped = false;
  for (LogLine line; lines.next(line);) {
    log.lines = line.number;
    if (lines.binary())
      return Problem{"log.binary", path, "is no text: it holds zero bytes", "name a log, a trace, a memory snapshot or a table"};
    if (!line.complete) {  // a number may be cut in its middle
      last_dropped = !line.text.empty();
      break;
    }
    (void)(joblog::take_deepspeed(line, builder) || joblog::take_megatron(line, builder) ||
           joblog::take_nanotron(line, builder) || joblog::take_torchtitan(line, builder));
  }
  if (stream.bad()) return Problem{"log.unreadable", path, "cannot be read to its end", "check the disk"};
  if (!builder.any()) {
    return Problem{
        "log.unknown", path,
        builder.unreadable > 0 ? fmt::format("{} lines look like steps, but none holds a usable figure", builder.unreadable)
                               : std::string("holds no step of a known framework"),
        "known are the logs of Megatron-LM, Megatron-Bridge, torchtitan, DeepSpeed and nanotron; Kineto and Nsight traces, "
        "PyTorch memory snapshots, and tables in published columns (docs/ingest.md)"};
  }
  builder.finish(log);
  if (last_dropped) {
    log.remarks.push_back(
        {"log.last_line", fmt::format("{}:{}", path, log.lines), "the last line has no end and was left out", ""});
  }
  if (lines.cut() > 0) {
    log.remarks.push_back(
        {"log.long_lines", path, fmt::format("{} cut at {} bytes", counted(lines.cut(), "line"), kLongestLine), ""});
  }
  return log;
}

Outcome<JobLog> read_job_log(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open() || file.peek() == std::ifstream::traits_type::eof()) {
    return Problem{"log.unreadable", path,
                   file.is_open() ? std::string("is empty or no file") : fmt::format("cannot be read: {}", std::strerror(errno)),
                   "check the path"};
  }
  return read_job_log(file, path);
}

}  // namespace cpfit
