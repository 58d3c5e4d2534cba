#include "model/cluster/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "model/cluster/preset_table.h"

namespace cpfit {
namespace {

constexpr const char* kGpuFile = "presets/gpus.toml";

std::string folded(const std::string& name) {  // case and the usual separators do not matter
  std::string out;
  for (char c : name) {
    if (c == ' ' || c == '_') c = '-';
    out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return out;
}

struct Entry {
  Gpu gpu;
  std::vector<std::string> aliases;
};

Entry read(const PresetTable& row) {
  Entry entry;
  Gpu& gpu = entry.gpu;
  gpu.name = row.text("name");
  entry.aliases = row.texts("aliases");
  gpu.vendor = row.text("vendor");
  gpu.generation = row.text("generation");
  gpu.memory = row.bytes("memory");
  gpu.memory_usable = row.has("memory_usable") ? row.bytes("memory_usable") : gpu.memory * row.number("usable_share");
  gpu.hbm = row.rate("hbm");
  gpu.bf16 = tflops(row.number("bf16_tflops"));
  gpu.fp16 = tflops(row.number("fp16_tflops"));
  gpu.fp8 = tflops(row.has("fp8_tflops") ? row.number("fp8_tflops") : 0.0);
  gpu.fp4 = tflops(row.has("fp4_tflops") ? row.number("fp4_tflops") : 0.0);
  gpu.sm_count = static_cast<std::int32_t>(row.number("sm_count"));
  gpu.l2 = row.bytes("l2");
  gpu.scale_up = row.rate("scale_up");
  gpu.scale_up_links = static_cast<std::int32_t>(row.number("links"));
  gpu.pcie = row.rate("pcie");
  gpu.scale_up_link = row.text("scale_up_link");
  gpu.source = row.text("source");
  gpu.assumed = !row.texts("assumed").empty();
  return entry;
}

std::vector<Entry> entries() {
  std::vector<Entry> all;
  for (const PresetTable& row : PresetTable::rows(kGpuFile, "gpu")) all.push_back(read(row));
  return all;
}

}  // namespace

std::vector<Gpu> gpu_presets() {
  std::vector<Gpu> gpus;
  for (Entry& entry : entries()) gpus.push_back(std::move(entry.gpu));
  return gpus;
}

Outcome<Gpu> find_gpu(const std::string& name) {
  const std::string wanted = folded(name);
  std::vector<std::string> known;
  for (Entry& entry : entries()) {
    const auto matches = [&](const std::string& alias) { return folded(alias) == wanted; };
    if (matches(entry.gpu.name) || std::any_of(entry.aliases.begin(), entry.aliases.end(), matches)) return std::move(entry.gpu);
    known.push_back(entry.gpu.name);
    for (const std::string& alias : entry.aliases) known.push_back(folded(alias));
  }
  std::string nearest = nearest_name(name, known);
  if (nearest.empty()) nearest = nearest_name(wanted, known);
  return Problem{"gpu.unknown", name, fmt::format("no GPU is called '{}'", name),
                 nearest.empty() ? "`cpfit presets gpus` lists the GPUs" : fmt::format("did you mean '{}'?", nearest)};
}

}  // namespace cpfit
