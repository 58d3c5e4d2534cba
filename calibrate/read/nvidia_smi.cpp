// nvidia-smi as printed: -q (any -d sections of it), the plain table, and --query-gpu with --format=csv. It measures nothing by
// itself; it says under which driver, clocks, power limit and throttling the machine's figures came about.
#include <algorithm>
#include <map>

#include "calibrate/read/imported.h"
#include "calibrate/read/text_lines.h"

namespace cpfit {

namespace {

/// What is kept of one GPU.
struct State {
  std::string name;
  double clock = 0, max_clock = 0;      // MHz, of the SMs
  double limit = 0, default_limit = 0;  // W
  std::int64_t memory_mib = 0;
  std::vector<std::string> reasons;  // active ones that slow the clock
};

/// "1695 MHz" -> 1695; 0 for "N/A".
double leading_number(std::string_view text) {
  text = trimmed(text);
  return number_of<double>(text.substr(0, text.find_first_not_of("0123456789."))).value_or(0);
}

/// "81559 MiB"; what no GPU has counts as nothing.
std::int64_t mebibytes(std::string_view text) {
  constexpr double kMost = 1e9;
  const double value = leading_number(text);
  return value <= kMost ? static_cast<std::int64_t>(value) : 0;
}

/// Reasons that say nothing is wrong: no work, or a person's own setting.
bool harmless(std::string_view reason) {
  return reason == "Idle" || reason == "Applications Clocks Setting" || reason == "Display Clock Setting" ||
         reason == "Sync Boost";
}

void finish(const std::vector<State>& gpus, ImportedFile& file) {
  MeasuredMachine& machine = file.machine;
  std::vector<double> clocks;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const State& gpu = gpus[i];
    if (machine.gpu.empty()) machine.gpu = gpu.name;
    if (!gpu.name.empty() && gpu.name != machine.gpu) file.remarks.push_back("GPUs differ: " + machine.gpu + " and " + gpu.name);
    if (gpu.memory_mib > 0 && machine.gpu_memory_bytes == 0) machine.gpu_memory_bytes = gpu.memory_mib << 20;
    if (gpu.clock > 0) clocks.push_back(gpu.clock);
    if (gpu.limit > 0) {
      machine.power_limit_watts = machine.power_limit_watts ? std::min(*machine.power_limit_watts, gpu.limit) : gpu.limit;
      if (gpu.default_limit > 0 && gpu.limit < gpu.default_limit) {
        file.remarks.push_back("GPU " + std::to_string(i) + ": power limit " + std::to_string(static_cast<int>(gpu.limit)) +
                               " W, below its default of " + std::to_string(static_cast<int>(gpu.default_limit)) + " W");
      }
    }
    for (const std::string& reason : gpu.reasons) {
      const std::string text = "GPU " + std::to_string(i) + ": " + reason;
      machine.throttled += (machine.throttled.empty() ? "" : ", ") + text;
      file.remarks.push_back(text + " is active: figures measured then are too slow");
    }
  }
  machine.gpus_per_host = static_cast<std::int32_t>(gpus.size());
  if (!clocks.empty()) {
    std::sort(clocks.begin(), clocks.end());
    machine.clocks_mhz = ClockRange{clocks.front(), clocks[clocks.size() / 2], clocks.back()};
  }
}

std::size_t indent_of(std::string_view line) { return line.find_first_not_of(" \t"); }

/// -q: "key : value" lines under headings; sections are told by their indentation.
std::vector<State> read_query(std::string_view text, ImportedFile& file) {
  std::vector<State> gpus;
  std::vector<std::pair<std::size_t, std::string>> headings;  // indentation, title
  each_line(text, [&](std::string_view line, long) {
    const std::string_view plain = trimmed(line);
    if (plain.empty() || plain.front() == '=') return;
    const std::size_t indent = indent_of(line);
    while (!headings.empty() && headings.back().first >= indent) headings.pop_back();
    const std::size_t colon = line.find(" : ");
    if (colon == std::string_view::npos || (indent == 0 && plain.starts_with("GPU "))) {
      if (indent == 0 && plain.starts_with("GPU ")) gpus.emplace_back();
      headings.emplace_back(indent, std::string(plain));
      return;
    }
    const std::string_view key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 3));
    const auto under = [&](std::string_view title) {
      return std::any_of(headings.begin(), headings.end(), [&](const auto& heading) { return heading.second == title; });
    };
    if (key == "Driver Version") file.machine.driver = value;
    if (key == "CUDA Version") file.machine.cuda = value;
    if (gpus.empty()) return;
    State& gpu = gpus.back();
    if (key == "Product Name") gpu.name = value;
    if (key == "Total" && under("FB Memory Usage")) gpu.memory_mib = mebibytes(value);
    if (key == "SM" && under("Clocks")) gpu.clock = leading_number(value);
    if (key == "SM" && under("Max Clocks")) gpu.max_clock = leading_number(value);
    const bool module = under("Module Power Readings") || under("GPU Memory Power Readings");
    if (!module && (key == "Current Power Limit" || key == "Power Limit")) gpu.limit = leading_number(value);
    if (!module && key == "Default Power Limit") gpu.default_limit = leading_number(value);
    if ((under("Clocks Event Reasons") || under("Clocks Throttle Reasons")) && value == "Active" && !harmless(key)) {
      gpu.reasons.emplace_back(key);
    }
  });
  return gpus;
}

/// The plain table: driver and CUDA in its head, then per GPU a line with its name and one with "99W / 350W".
std::vector<State> read_table(std::string_view text, ImportedFile& file) {
  std::vector<State> gpus;
  each_line(text, [&](std::string_view line, long) {
    const auto word_after = [&](std::string_view key) -> std::string {
      const std::size_t at = line.find(key);
      if (at == std::string_view::npos) return {};
      const auto words = words_of(line.substr(at + key.size()));
      return words.empty() ? std::string() : std::string(words[0]);
    };
    if (line.find("NVIDIA-SMI") != std::string_view::npos) {
      file.machine.driver = word_after("Driver Version:");
      file.machine.cuda = word_after("CUDA Version:");
    }
    if (line.find("Processes:") != std::string_view::npos) return;
    const auto words = words_of(line);
    if (words.size() > 4 && words[0] == "|" && number_of<int>(words[1]) == std::optional<int>(static_cast<int>(gpus.size())) &&
        line.find(" | ") != std::string_view::npos && line.find(':') != std::string_view::npos) {
      State gpu;  // "|   0  NVIDIA H100 80GB HBM3          On  | 00000000:06:00.0 Off | ..."
      for (std::size_t i = 2; i < words.size() && words[i] != "|" && words[i] != "On" && words[i] != "Off"; ++i)
        gpu.name += (gpu.name.empty() ? "" : " ") + std::string(words[i]);
      gpus.push_back(std::move(gpu));
    }
    if (!gpus.empty() && line.find("W / ") != std::string_view::npos && line.find("MiB") != std::string_view::npos) {
      gpus.back().limit = leading_number(line.substr(line.find("W / ") + 4));
      const std::size_t slash = line.find("MiB / ");
      if (slash != std::string_view::npos) gpus.back().memory_mib = mebibytes(line.substr(slash + 6));
    }
  });
  return gpus;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    cells.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

/// --query-gpu=name,driver_version,clocks.sm,... --format=csv: the header names what was asked, "clocks.current.sm [MHz]".
std::vector<State> read_csv(std::string_view text, ImportedFile& file) {
  std::vector<State> gpus;
  std::vector<std::string> columns;
  std::map<std::string, std::size_t> seen;  // a log repeats its GPUs: by uuid, bus id or index
  each_line(text, [&](std::string_view line, long) {
    if (trimmed(line).empty()) return;
    const auto cells = cells_of(line);
    if (columns.empty()) {
      for (const std::string_view cell : cells) columns.emplace_back(cell.substr(0, cell.find(" [")));
      return;
    }
    State gpu;
    std::string identity;
    for (std::size_t i = 0; i < std::min(cells.size(), columns.size()); ++i) {
      const std::string& column = columns[i];
      const std::string_view value = cells[i];
      if (column == "name" || column == "gpu_name") gpu.name = value;
      if (column == "driver_version") file.machine.driver = value;
      if (column == "clocks.sm" || column == "clocks.current.sm") gpu.clock = leading_number(value);
      if (column == "clocks.max.sm") gpu.max_clock = leading_number(value);
      if (column == "power.limit" || column == "enforced.power.limit") gpu.limit = leading_number(value);
      if (column == "power.default_limit") gpu.default_limit = leading_number(value);
      if (column == "memory.total") gpu.memory_mib = mebibytes(value);
      if (column == "uuid" || column == "pci.bus_id" || column == "index") identity += std::string(value) + " ";
      const bool reason = column.starts_with("clocks_throttle_reasons.") || column.starts_with("clocks_event_reasons.");
      const std::string word = reason ? column.substr(column.find('.') + 1) : std::string();
      if (reason && value == "Active" && word != "gpu_idle" && word != "applications_clocks_setting" && word != "active" &&
          word != "sync_boost")
        gpu.reasons.push_back(word);
    }
    if (identity.empty()) identity = std::to_string(gpus.size());
    if (const auto known = seen.find(identity); known != seen.end()) {
      State& before = gpus[known->second];
      before.clock = before.clock > 0 && gpu.clock > 0 ? std::min(before.clock, gpu.clock) : std::max(before.clock, gpu.clock);
      for (const std::string& reason : gpu.reasons) {
        if (std::find(before.reasons.begin(), before.reasons.end(), reason) == before.reasons.end())
          before.reasons.push_back(reason);
      }
      return;
    }
    seen.emplace(identity, gpus.size());
    gpus.push_back(std::move(gpu));
  });
  return gpus;
}

bool is_query(std::string_view text) { return text.find("NVSMI LOG") != std::string_view::npos; }
bool is_csv(std::string_view text) {
  const std::string_view head = text.substr(0, text.find('\n'));
  return head.find(',') != std::string_view::npos &&
         (head.find("driver_version") != std::string_view::npos || head.find("clocks.") != std::string_view::npos ||
          head.find("power.limit") != std::string_view::npos);
}

}  // namespace

bool looks_like_nvidia_smi(std::string_view text) {
  return is_query(text) || text.find("| NVIDIA-SMI") != std::string_view::npos || is_csv(text);
}

Outcome<ImportedFile> read_nvidia_smi(std::string_view text, const std::string& path) {
  ImportedFile file;
  file.path = file.table.path = path;
  file.format = is_query(text) ? "nvidia-smi -q" : is_csv(text) ? "nvidia-smi --query-gpu" : "nvidia-smi";
  file.table.source = file.format;
  const std::vector<State> gpus = is_query(text) ? read_query(text, file)
                                  : is_csv(text) ? read_csv(text, file)
                                                 : read_table(text, file);
  if (gpus.empty()) return Problem{"import.empty", path, "nvidia-smi output without a GPU", "run it on a node that has one"};
  finish(gpus, file);
  return file;
}

}  // namespace cpfit
