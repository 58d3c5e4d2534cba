// One GPU model of the data sheets (model/presets/gpus.toml, a source per row). Rates are peaks, dense, not sparse.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit {

struct Gpu {
  std::string name;        // "H100-SXM5-80GB"
  std::string vendor;      // "nvidia", "amd"
  std::string generation;  // "ampere", "hopper", "blackwell": key into rates.toml
  Bytes memory;            // nominal capacity
  Bytes memory_usable;     // what the driver reports as total (measured where known, else nominal less the known share)
  BytesPerSecond hbm;
  FlopsPerSecond bf16;
  FlopsPerSecond fp16;
  FlopsPerSecond fp8;  // 0 when not supported
  FlopsPerSecond fp4;  // 0 when not supported
  std::int32_t sm_count = 0;
  Bytes l2;
  BytesPerSecond scale_up;    // NVLink/xGMI, one direction, all links; 0 when none
  BytesPerSecond pcie;        // x16, one direction
  std::string scale_up_link;  // link class in links/rates: "nvlink4", "xgmi3", ""
  std::string source;
  std::int32_t scale_up_links = 0;  // NVLinks or xGMI links that make up `scale_up`
  bool assumed = false;             // some field rests on no read source
  FlopsPerSecond fp32;              // best measured, of a processor that computes in fp32; 0 for the GPUs of the data sheets
};

[[nodiscard]] std::vector<Gpu> gpu_presets();
[[nodiscard]] Outcome<Gpu> find_gpu(const std::string& name);

}  // namespace cpfit
