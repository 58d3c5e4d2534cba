#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/databases.h"

namespace cpfit::fuzz {

std::span<const Target> targets() {
  static const Target kTargets[] = {
      {"scenario", scenario, "examples"},
      {"study", study, "examples", 200},
      {"recipe", recipe},
      {"quantity", quantity},
      {"config_json", config_json, "tests/fixtures/config_json"},
      {"topology", topology, "", 1000},
      {"import_topology", import_topology, "tests/fixtures/topology", 1000},
      {"launch", launch},
      {"oom", oom},
      {"measurement", measurement, "", 2000, measurement_seeds},
      {"calibrate_import", calibrate_import},
      {"published", published},
      {"calibration", calibration, "", 1000, calibration_seeds},
      {"trace", trace},
      {"trace_nsys", trace_nsys, "", 500, [] { return std::vector<std::string>{"", nsys_database()}; }},
      {"trace_kernels", trace_kernels},
      {"job_log", job_log, "tests/fixtures/logs"},
      {"memory_snapshot", memory_snapshot, "tests/fixtures/snapshots"},
      {"database", database, "", 200, [] { return std::vector<std::string>{"", std::string("\0\x50\x11\x09\x41\xff", 6)}; }},
      {"database_cells", database_cells, "", 200, [] { return std::vector<std::string>{std::string(24, '\3')}; }},
      {"tensors", tensors, "", 200, tensor_seeds},
      {"bundle", bundle, "", 1000, bundle_seeds},
  };
  return kTargets;
}

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace cpfit::fuzz
