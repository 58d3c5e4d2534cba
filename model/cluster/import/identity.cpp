#include "model/cluster/import/identity.h"

#include <fmt/format.h>

#include "model/cluster/gpu.h"
#include "model/cluster/import/scan.h"
#include "model/cluster/preset_table.h"

namespace cpfit {
namespace {

constexpr const char* kFile = "presets/pci_devices.toml";

void take(ImportedHost& host, const std::string& gpu, std::string reason, bool assumed) {
  host.gpu = gpu;
  host.gpu_reason = std::move(reason);
  host.gpu_assumed = assumed;
}

}  // namespace

void identify_by_pci(ImportedHost& host, const std::string& vendor_device) {
  if (!host.gpu.empty()) return;
  for (const PresetTable& row : PresetTable::rows(kFile, "device")) {
    if (row.text("id") != vendor_device) continue;
    const bool relative = row.has("product");
    take(host, row.text("gpu"),
         relative ? fmt::format("PCI device {} is {}", vendor_device, row.text("product"))
                  : fmt::format("PCI device {}", vendor_device),
         relative);
    return;
  }
  host.gpu_reason = fmt::format("PCI device {}, which no preset stands for", scan::shown(vendor_device));
}

void identify_by_architecture(ImportedHost& host, std::int32_t sm, const std::string& gcn, std::int32_t nvlinks) {
  if (!host.gpu.empty() || !host.gpu_reason.empty()) return;
  const std::string shown_gcn = scan::shown(gcn);
  if (!gcn.empty()) {
    const std::string name = gcn.starts_with("gfx") ? gcn.substr(3) : gcn;
    constexpr std::int32_t kMi300xUnits = 304, kMi250Units = 110;
    if ((name == "942" || name == "941" || name == "940") && sm == kMi300xUnits) {
      take(host, "MI300X", fmt::format("gcn {} with {} compute units", shown_gcn, sm), true);
    } else if ((name == "90a" || name == "910") && sm <= kMi250Units) {
      take(host, "MI250X-GCD", fmt::format("gcn {}", shown_gcn), true);
    } else {
      host.gpu_reason = fmt::format("gcn {} with {} compute units, which no preset stands for", shown_gcn, sm);
    }
    return;
  }
  const char* sxm = sm == 70    ? "V100-SXM2-32GB"
                    : sm == 80  ? "A100-SXM4-80GB"
                    : sm == 90  ? "H100-SXM5-80GB"
                    : sm == 100 ? "B200-SXM"
                    : sm == 103 ? "B300-SXM"
                                : nullptr;
  const Outcome<Gpu> gpu = sxm != nullptr ? find_gpu(sxm) : Outcome<Gpu>(Problems{});
  if (gpu && nvlinks == gpu->scale_up_links) {
    take(host, sxm, fmt::format("sm {} with {} NVLinks", sm, nvlinks), true);
  } else if (sm > 0) {
    host.gpu_reason = fmt::format("sm {} with {} NVLinks, which several or no presets have", sm, nvlinks);
  }
}

void identify_by_name(ImportedHost& host, const std::string& product) {
  if (!host.gpu.empty()) return;
  const Outcome<Gpu> gpu = find_gpu(product);
  if (gpu) take(host, gpu->name, product, false);
}

void identify_by_links(ImportedHost& host, std::int32_t nvlinks, bool mesh, std::size_t gpus) {
  if (!host.gpu.empty() || nvlinks == 0) return;
  const bool bridged = mesh && gpus > 2 && host.bonded.size() < gpus;  // pairs of cards under one bridge each
  const char* name = nvlinks == 18   ? "H100-SXM5-80GB"
                     : nvlinks == 12 ? (bridged ? "A100-PCIe-80GB" : "A100-SXM4-80GB")
                     : nvlinks == 6  ? "V100-SXM2-32GB"
                                     : nullptr;
  if (name != nullptr) take(host, name, fmt::format("{} NVLinks per GPU", nvlinks), true);
  if (name == nullptr) host.gpu_reason = fmt::format("{} NVLinks per GPU, which fits no preset or several", nvlinks);
}

}  // namespace cpfit
