// How tools print the GPUs that the presets know.
#include <algorithm>
#include <array>
#include <utility>

#include "calibrate/read/kernel_table.h"

namespace cpfit {

namespace {

// First match wins: more specific words first. Words are compared without case and separators.
constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kWords{{
    {"gb300", "GB300"},
    {"gb200", "GB200"},
    {"b300", "B300-SXM"},
    {"b200", "B200-SXM"},
    {"gh200", ""},  // its own power limit and memory: not the H200 of the presets
    {"h200nvl", ""},
    {"h200", "H200-SXM-141GB"},
    {"h100pcie", "H100-PCIe-80GB"},
    {"h100", "H100-SXM5-80GB"},
    {"h800", "H800-SXM5-80GB"},
    {"h20", "H20-SXM-96GB"},
    {"a100pcie", "A100-PCIe-80GB"},
    {"a100sxm440gb", "A100-SXM4-40GB"},
    {"a100", "A100-SXM4-80GB"},
    {"a800", "A800-SXM4-80GB"},
    {"l40s", "L40S"},
    {"v100", "V100-SXM2-32GB"},
    {"mi300x", "MI300X"},
    {"mi325x", "MI325X"},
    {"mi250x", "MI250X"},
}};

}  // namespace

std::string gpu_preset_of(std::string_view printed) {
  std::string plain;
  for (const char c : printed) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  for (const auto& [word, preset] : kWords) {
    if (plain.find(word) != std::string::npos) return std::string(preset);
  }
  return {};
}

}  // namespace cpfit
