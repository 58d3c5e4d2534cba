// One line at a time, by framework. What each prints: job_log.h.
#include <algorithm>
#include <utility>

#include "calibrate/read/log_builder.h"
#include "calibrate/read/text_lines.h"

namespace cpfit::joblog {

namespace {

constexpr double kMega = 1024.0 * 1024.0, kGiga = 1024.0 * kMega;
constexpr double kMostBytes = 1e14;  // what a device can hold, generously

double bytes_after(std::string_view line, std::string_view key, double unit) {
  return positive_after(line, key, kMostBytes / unit) * unit;
}

/// Calls `use(rank, text)` for what follows each "[Rank N]"; ranks that print at once end up on one line.
template <class Use>
bool each_rank(std::string_view line, Use use) {
  bool any = false;
  for (std::size_t at = line.find("[Rank "); at != std::string_view::npos;) {
    const std::size_t next = line.find("[Rank ", at + 1);
    const std::string_view part = line.substr(at, next == std::string_view::npos ? next : next - at);
    if (const std::optional<std::int64_t> rank = count_after(part, "[Rank "); rank && *rank < (1 << 24)) {
      use(*rank, part);
      any = true;
    }
    at = next;
  }
  return any;
}

/// "  name ..... value" of Megatron's block and of DeepSpeed's configuration.
bool dotted(std::string_view line, std::string_view& name, std::string_view& value) {
  const std::size_t dots = line.find(" ..");
  if (dots == std::string_view::npos) return false;
  std::size_t end = dots + 1;
  while (end < line.size() && line[end] == '.') ++end;
  name = trimmed(line.substr(0, dots));
  if (const std::size_t blank = name.rfind(' '); blank != std::string_view::npos) name.remove_prefix(blank + 1);
  value = trimmed(line.substr(end));
  return !name.empty();
}

void take_argument(std::string_view line, Builder& into) {
  constexpr std::size_t kMostArguments = 4096, kLongestValue = 4096;
  std::string_view name, value;
  if (!dotted(line, name, value) || into.facts.arguments.size() >= kMostArguments || value.size() > kLongestValue) return;
  into.facts.arguments.emplace_back(name, value);
  const auto number = number_of<std::int64_t>(value);
  if (!number || *number < 1) return;
  if (name == "world_size") into.facts.world = number;
  if (name == "seq_length") into.facts.sequence = number;
  if (name == "global_batch_size") into.facts.global_batch = number;
  if (name == "micro_batch_size") into.facts.micro_batch = number;
  if (name == "tensor_model_parallel_size") into.facts.tp = number;
  if (name == "context_parallel_size") into.facts.cp = number;
  if (name == "pipeline_model_parallel_size") into.facts.pp = number;
}

void take_iteration(const LogLine& line, Builder& into) {
  const std::string_view text = line.text;
  JobStep step;
  step.line = line.number;
  const std::size_t elapsed = text.find("elapsed time per iteration (ms)");
  const std::size_t at = text.rfind("iteration ", elapsed == 0 ? 0 : elapsed - 1);
  const std::optional<std::int64_t> iteration =
      at == std::string_view::npos ? std::nullopt : count_after(text.substr(at), "iteration ");
  step.seconds = positive_after(text, "elapsed time per iteration (ms):", 1e12) / 1e3;
  if (!iteration || step.seconds <= 0) {
    ++into.unreadable;
    return;
  }
  step.iteration = *iteration;
  step.tflops_per_gpu = positive_after(text, "throughput per GPU (TFLOP/s/GPU):", 1e6);
  if (step.tflops_per_gpu <= 0) step.tflops_per_gpu = std::exchange(into.bridge_tflops, 0);
  step.tokens_per_second_per_gpu = positive_after(text, "tokens per gpu per second (tgs):", 1e12);
  step.global_batch = count_after(text, "global batch size:").value_or(0);
  step.skipped = count_after(text, "number of skipped iterations:").value_or(0);
  step.nan = count_after(text, "number of nan iterations:").value_or(0);
  step.loss = number_after(text, "lm loss:");
  into.bridge_tflops = 0;
  into.step(StepKind::kIteration, line.rank, step);
}

/// "4.19M", "23.3G": three digits and a power of 1000.
double human_after(std::string_view line, std::string_view key) {
  const std::string_view rest = after(line, key);
  const std::optional<double> value = rest.empty() ? std::nullopt : number_at(rest);
  if (!value || *value <= 0 || *value > 1e6) return 0;
  const std::size_t unit = rest.find_first_not_of("0123456789.");
  const char letter = unit == std::string_view::npos ? ' ' : rest[unit];
  for (const auto& [name, power] :
       {std::pair('K', 1e3), std::pair('M', 1e6), std::pair('B', 1e9), std::pair('G', 1e9), std::pair('T', 1e12)}) {
    if (letter == name) return *value * power;
  }
  return *value;
}

/// The numbers of "[4, 2]", in order.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < text.size() && text[i] != ']';) {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
    if (const auto number = number_of<std::int64_t>(text.substr(i, end - i))) numbers.push_back(*number);
    i = end + 1;
  }
  return numbers;
}

/// "Building 2-D device mesh with ['dp_shard', 'cp'], [4, 2]".
void take_mesh(std::string_view text, Builder& into) {
  const std::size_t names_end = text.find(']');
  if (names_end == std::string_view::npos) return;
  const std::vector<std::int64_t> sizes = numbers_in(text.substr(text.find('[', names_end) + 1));
  JobFacts& facts = into.facts;
  facts.tp = facts.cp = facts.pp = facts.world = 1;
  std::size_t i = 0;
  for (std::size_t at = text.find('\''); at < names_end && i < sizes.size(); ++i) {
    const std::size_t end = text.find('\'', at + 1);
    if (end > names_end) break;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    if (sizes[i] < 1 || sizes[i] > (1 << 24)) return;
    facts.world = std::min<std::int64_t>(*facts.world * sizes[i], std::int64_t{1} << 40U);
    if (name == "tp") facts.tp = sizes[i];
    if (name == "cp") facts.cp = sizes[i];
    if (name == "pp") facts.pp = sizes[i];
    at = text.find('\'', end + 1);
  }
}

}  // namespace

bool take_megatron(const LogLine& line, Builder& into) {
  const std::string_view text = line.text;
  if (into.in_arguments) {
    if (text.find("-- end of arguments --") != std::string_view::npos) {
      into.in_arguments = false;
    } else {
      take_argument(text, into);
    }
    if (text.find("elapsed time per iteration (ms)") == std::string_view::npos) return true;
    into.in_arguments = false;  // the end was lost
  }
  if (text.find("-- arguments --") != std::string_view::npos) {
    into.in_arguments = true;
    into.facts = {};
    into.begins();
    return true;
  }
  if (text.find("elapsed time per iteration (ms)") != std::string_view::npos) {
    into.seen(JobFramework::kMegatron);
    take_iteration(line, into);
    // A memory line of another rank may stand behind it.
    if (text.find(" memory (") == std::string_view::npos) return true;
  }
  if (text.find("MODEL_TFLOP/s/GPU") != std::string_view::npos && text.find("Step Time :") != std::string_view::npos) {
    into.seen(JobFramework::kBridge);
    into.bridge_tflops = positive_after(text, "GPU utilization:", 1e6);
    return true;
  }
  if (text.find(" memory (MB) |") != std::string_view::npos) {
    into.seen(JobFramework::kMegatron);
    return each_rank(text, [&](std::int64_t rank, std::string_view part) {
      into.memory(rank, {rank, line.number, bytes_after(part, "| allocated:", kMega),
                         bytes_after(part, "| max allocated:", kMega), bytes_after(part, "| max reserved:", kMega)});
    });
  }
  if (text.find(" memory (GB) |") != std::string_view::npos) {
    into.seen(JobFramework::kBridge);
    return each_rank(text, [&](std::int64_t rank, std::string_view part) {
      into.memory(rank, {rank, line.number, bytes_after(part, "| mem-allocated-gigabytes:", 1e9),
                         bytes_after(part, "| mem-max-allocated-gigabytes:", 1e9),
                         bytes_after(part, "| mem-max-reserved-gigabytes:", 1e9)});
    });
  }
  return false;
}

bool take_torchtitan(const LogLine& line, Builder& into) {
  const std::string_view text = line.text;
  if (const std::string_view mesh = after(text, "-D device mesh with "); !mesh.empty()) {
    take_mesh(mesh, into);
    return true;
  }
  if (text.find("global batch size ") != std::string_view::npos && text.find("sequence length ") != std::string_view::npos) {
    into.facts.global_batch = count_after(text, "global batch size ");
    into.facts.micro_batch = count_after(text, "local batch size ");
    into.facts.sequence = count_after(text, "sequence length ");
    if (text.find("Training starts") != std::string_view::npos || text.find("Trainer is initialized") != std::string_view::npos)
      into.begins();
    return true;
  }
  if (const std::string_view peak = after(text, "Peak FLOPS used for computing MFU:"); !peak.empty()) {
    into.facts.peak_flops = positive_after(text, "Peak FLOPS used for computing MFU:", 1e18);
    return true;
  }
  if (const std::string_view gpu = after(text, " capacity: "); !gpu.empty() && gpu.find(" with ") != std::string_view::npos) {
    into.facts.gpu = std::string(gpu.substr(0, std::min<std::size_t>(gpu.find(" with "), 100)));
    return true;
  }
  const std::size_t at = text.find("step:");
  if (at == std::string_view::npos || text.find(" tps:") == std::string_view::npos) return false;
  if (text.substr(0, at).ends_with("validate ")) return true;
  into.seen(JobFramework::kTorchtitan);
  const std::string_view rest = text.substr(at);
  JobStep step;
  step.line = line.number;
  const std::optional<std::int64_t> iteration = count_after(rest, "step:");
  step.tokens_per_second_per_gpu = positive_after(rest, " tps:", 1e12);
  if (!iteration || step.tokens_per_second_per_gpu <= 0) {
    ++into.unreadable;
    return true;
  }
  step.iteration = *iteration;
  step.tflops_per_gpu = positive_after(rest, " tflops:", 1e6);
  step.mfu = positive_after(rest, " mfu:", 1e3) / 100.0;
  step.loss = number_after(rest, "loss:");
  into.step(StepKind::kTitan, line.rank, step);
  into.memory(line.rank, {line.local ? -1 : line.rank, line.number, 0, 0, bytes_after(rest, " memory:", kGiga)});
  return true;
}

bool take_deepspeed(const LogLine& line, Builder& into) {
  const std::string_view text = line.text;
  if (text.find("DeepSpeedEngine configuration:") != std::string_view::npos) {
    into.seen(JobFramework::kDeepspeed);
    into.begins();
    return true;
  }
  if (text.find("[config.py:") != std::string_view::npos) {
    std::string_view name, value;
    if (!dotted(text, name, value)) return false;
    const auto number = number_of<std::int64_t>(value);
    if (number && *number > 0) {
      if (name == "train_batch_size") into.facts.global_batch = number;
      if (name == "train_micro_batch_size_per_gpu") into.facts.micro_batch = number;
      if (name == "world_size") into.facts.world = number;
    }
    return true;
  }
  if (text.find("CurrSamplesPerSec=") != std::string_view::npos) {
    into.seen(JobFramework::kDeepspeed);
    JobStep step;
    step.line = line.number;
    const std::optional<std::int64_t> iteration = count_after(text, "global_step=");
    step.samples_per_second = positive_after(text, "CurrSamplesPerSec=", 1e12);
    if (!iteration || step.samples_per_second <= 0) {
      ++into.unreadable;
      return true;
    }
    step.iteration = *iteration;
    into.step(StepKind::kDeepspeed, line.rank, step);
    into.memory(line.rank, {line.local ? -1 : line.rank, line.number, bytes_after(text, " MemAllocated=", kGiga),
                            bytes_after(text, "MaxMemAllocated=", kGiga), 0});
    return true;
  }
  if (text.find("Max_MA ") != std::string_view::npos && text.find("MA ") != std::string_view::npos) {
    into.seen(JobFramework::kDeepspeed);
    into.memory(line.rank, {line.local ? -1 : line.rank, line.number, 0, bytes_after(text, "Max_MA ", kGiga),
                            bytes_after(text, "Max_CA ", kGiga)});
    return true;
  }
  if (text.find("max_mem_allocated:") != std::string_view::npos) {
    into.seen(JobFramework::kDeepspeed);
    into.memory(line.rank, {line.local ? -1 : line.rank, line.number, 0, bytes_after(text, "max_mem_allocated:", kGiga),
                            bytes_after(text, "max_cache_allocated:", kGiga)});
    return true;
  }
  return false;
}

bool take_nanotron(const LogLine& line, Builder& into) {
  const std::string_view text = line.text;
  if (text.find("time_per_iteration_ms:") != std::string_view::npos && text.find("iteration:") != std::string_view::npos) {
    into.seen(JobFramework::kNanotron);
    JobStep step;
    step.line = line.number;
    const std::optional<std::int64_t> iteration = count_after(text, "iteration:");
    step.seconds = human_after(text, "time_per_iteration_ms:") / 1e3;
    if (!iteration || step.seconds <= 0) {
      ++into.unreadable;
      return true;
    }
    step.iteration = *iteration;
    step.tokens_per_second_per_gpu = human_after(text, "tokens_per_sec_per_gpu:");
    step.tflops_per_gpu = human_after(text, "model_tflops_per_gpu:");
    step.loss = number_after(text, "lm_loss:");
    into.step(StepKind::kNanotron, line.rank, step);
    into.memory(line.rank, {line.local ? -1 : line.rank, line.number, human_after(text, "cuda_memory_allocated:"), 0,
                            human_after(text, "cuda_max_memory_reserved:")});
    return true;
  }
  if (text.find("Peak allocated ") != std::string_view::npos && text.find("MiB") != std::string_view::npos) {
    into.seen(JobFramework::kNanotron);
    into.memory(line.rank, {line.local ? -1 : line.rank, line.number, 0, bytes_after(text, "Peak allocated ", kMega),
                            bytes_after(text, "Peak reserved:", kMega)});
    return true;
  }
  return false;
}

}  // namespace cpfit::joblog
