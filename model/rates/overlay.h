// A calibration over the defaults: which of its rows speak of a device and its links, and the tables with those rows in place of
// the defaults'. Rows of another GPU are never taken over: that GPU's shares of peak would pass for measured ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/gpu.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

/// One curve as a line of a table, for people.
struct Surface {
  std::string device;  // GPU preset or host; of collectives and links the link class
  std::string name;    // "gemm bf16", "attention cudnn bf16 forward", "all_gather on 8"
  std::string range;   // "m 1024-8192, n 1024-65536, k 1024-65536"
  FitQuality quality;
  friend bool operator==(const Surface&, const Surface&) = default;
};
/// In the order of rates.toml: gemm, attention, memory, collective, link, training, launch, overlap.
[[nodiscard]] std::vector<Surface> surfaces_of(const RateTables& tables);

/// Of `measured`, what speaks of this GPU: its own kernels, and collectives, links and slowdowns of the link classes it has (its
/// scale-up link, PCIe generation, sockets, NICs). Training factors and launch costs of its generation or of all.
[[nodiscard]] RateTables rows_for(const RateTables& measured, const Gpu& gpu);

/// `base` with the rows of `over` in front, and without its own rows of the same key. The version names both.
[[nodiscard]] RateTables overlaid(const RateTables& base, const RateTables& over);

/// The names of the links that a GPU's messages may cross, as rates.toml spells them: "nvlink4", "pcie5", "socket", "nic", ...
[[nodiscard]] std::vector<std::string> links_of(const Gpu& gpu);

[[nodiscard]] bool empty(const RateTables& tables);

}  // namespace cpfit
