// nvbandwidth --json: a matrix of GB/s per test. Every test moves one size (512 MiB unless the file says otherwise), so a link
// gets its large-message rate from it, not a curve over sizes.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "calibrate/read/imported.h"
#include "calibrate/read/kernel_table_formats.h"
#include "calibrate/read/text_lines.h"

namespace cpfit {

namespace {

using Json = nlohmann::json;

/// Figures of a matrix, the empty ones ("N/A", zeros of the diagonal) left away. Both texts and numbers occur.
std::vector<double> figures(const Json& matrix) {
  std::vector<double> values;
  for (const Json& row : matrix) {
    if (!row.is_array()) continue;
    for (const Json& cell : row) {
      const std::optional<double> value = cell.is_number()   ? std::optional(cell.get<double>())
                                          : cell.is_string() ? number_of<double>(cell.get_ref<const std::string&>())
                                                             : std::nullopt;
      if (value && *value > 0) values.push_back(*value);
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
  return {};
}

/// Which link a test's name speaks of; empty: none of the rates'. `both`: both directions at the same time.
struct Crossing {
  std::string link;
  bool both = false, scale_up = false;
};
std::optional<Crossing> crossing_of(std::string_view name) {
  const bool both = name.find("bidirectional") != std::string_view::npos;
  if (name.find("latency") != std::string_view::npos || name.find("all_to") != std::string_view::npos ||
      name.find("_to_all") != std::string_view::npos || name.find("one_to") != std::string_view::npos ||
      name.find("local_copy") != std::string_view::npos)
    return std::nullopt;
  if (name.starts_with("device_to_device") || name.starts_with("multinode_device_to_device")) return Crossing{"", both, true};
  if (name.starts_with("host_to_device") || name.starts_with("device_to_host")) return Crossing{"pcie", both, false};
  return std::nullopt;
}

}  // namespace

bool looks_like_nvbandwidth(std::string_view text) {
  return text.find("\"nvbandwidth\"") != std::string_view::npos && text.find("\"testcases\"") != std::string_view::npos;
}

Outcome<ImportedFile> read_nvbandwidth(const std::string& text, const std::string& path, const ImportHints& options) {
  const std::size_t begin = std::min(text.find('{'), text.size());
  const Json root = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), nullptr, false);
  const auto found = root.find("nvbandwidth");
  if (root.is_discarded() || !root.is_object() || found == root.end() || !found->is_object()) {
    return Problem{"import.nvbandwidth", path, "this is not one whole JSON object",
                   "run nvbandwidth -j again and keep all of it"};
  }
  const Json& body = *found;
  ImportedFile file;
  file.path = file.table.path = path;
  file.table.own_run = true;
  file.format = "nvbandwidth";
  file.machine.driver = text_of(body, "Driver Version");
  if (const auto cuda = number_of<int>(text_of(body, "CUDA Runtime Version")); cuda && *cuda >= 1000) {
    file.machine.cuda = std::to_string(*cuda / 1000) + "." + std::to_string(*cuda % 1000 / 10);
  }
  if (const auto devices = body.find("GPU Device list"); devices != body.end() && devices->is_array() && !devices->empty()) {
    file.machine.gpus_per_host = static_cast<std::int32_t>(devices->size());
    if (devices->front().is_string()) {  // "0: NVIDIA H100 80GB HBM3 (00000000:06:00)"
      std::string_view name = devices->front().get_ref<const std::string&>();
      if (const std::size_t colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
      file.machine.gpu = trimmed(name.substr(0, name.rfind('(')));
    }
  }
  const std::string gpu = options.gpu.empty() ? gpu_preset_of(file.machine.gpu) : options.gpu;
  file.table.source = "nvbandwidth " + text_of(body, "version");
  if (const std::string error = text_of(body, "error"); !error.empty()) file.remarks.push_back("nvbandwidth reports: " + error);

  std::int64_t ordinal = 0;
  for (const Json& test : body.value("testcases", Json::array())) {
    ++ordinal;  // these stand for lines
    const std::string name = text_of(test, "name"), status = text_of(test, "status");
    const auto leave = [&](const std::string& reason) { file.table.unused.push_back({ordinal, name + ": " + reason}); };
    const std::optional<Crossing> crossing = crossing_of(name);
    const auto matrix = test.find("bandwidth_matrix");
    const std::vector<double> values = matrix == test.end() ? std::vector<double>() : figures(*matrix);
    if (status != "Passed" && !status.empty())
      leave("status " + status);
    else if (!crossing)
      leave("no link of the rates is measured by it");
    else if (gpu.empty())
      leave("no preset for GPU '" + file.machine.gpu + "': say which with --gpu");
    else if (values.empty())
      leave("an empty matrix");
    else {
      double mib = 512;
      if (const auto size = test.find("bufferSize"); size != test.end() && size->is_number()) mib = size->get<double>();
      const Bytes bytes(mib * 1024 * 1024);
      // Both directions are summed by the bidirectional tests.
      const double each = values[values.size() / 2] * (crossing->both ? 0.5 : 1.0);
      CollectiveMeasurement what{CollectiveKind::kSendRecv, 2, 1, bytes, file.machine.driver};
      what.link = crossing->link;
      what.both_ways = crossing->both;
      const double spread = (values.back() - values.front()) / (2 * values[values.size() / 2]);
      file.table.rows.push_back({ordinal, gpu, std::move(what), bytes / gb_per_s(each), spread});
    }
  }
  if (ordinal == 0) return Problem{"import.empty", path, "no test cases in it", "run nvbandwidth -j without an error"};
  return file;
}

}  // namespace cpfit
