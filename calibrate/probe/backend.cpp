#include "calibrate/probe/backend.h"

#include <fmt/format.h>

#include "kernels/reference/cpu_operators.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

std::vector<std::string> backends() { return {"host"}; }

std::unique_ptr<kernels::Operators> make_operators(const std::string& backend, kernels::Number sum) {
  if (backend == "host") return kernels::make_cpu_operators(sum);
  throw Error(
      fmt::format("the backend '{}' is not part of this cpfit-bench, which has: {}", backend, fmt::join(backends(), ", ")));
}

}  // namespace cpfit::probe
