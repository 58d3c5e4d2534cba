// Which GPU preset a file means: by PCI device number (model/presets/pci_devices.toml), by compute capability, by NVLinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/cluster/import/imported.h"

namespace cpfit {

inline constexpr std::int32_t kMostNvlinks = 18;  // of one GPU, up to Blackwell

/// "10de:2330" (lower case). Fills gpu, gpu_reason and gpu_assumed; keeps the reason when no preset has the device.
void identify_by_pci(ImportedHost& host, const std::string& vendor_device);
/// NVIDIA: sm 80, 90 ... with the NVLinks of one GPU (0: not known). AMD: gcn "90a", "gfx942" with its compute units.
void identify_by_architecture(ImportedHost& host, std::int32_t sm, const std::string& gcn, std::int32_t nvlinks);
/// A product name: "Tesla V100-SXM3-32GB-H".
void identify_by_name(ImportedHost& host, const std::string& product);
/// NVLinks of one GPU; `mesh`: joined directly. Weak: several GPUs have the same number.
void identify_by_links(ImportedHost& host, std::int32_t nvlinks, bool mesh, std::size_t gpus);

}  // namespace cpfit
