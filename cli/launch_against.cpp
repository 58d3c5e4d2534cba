#include "cli/launch_against.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "model/cluster/device_order.h"
#include "model/transformer/parameters.h"

namespace cpfit::cli {

namespace {

/// What the job trains otherwise than the scenario says: another model's figures are none of this job.
std::string other_model(const LaunchedModel& job, const Architecture& model) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* name, std::optional<std::int64_t> value, std::int64_t ours) {
    if (value && *value != ours) parts.push_back(fmt::format("{} {} against {}", name, *value, ours));
  };
  compare("layers", job.layers, model.layers);
  compare("hidden", job.hidden, model.hidden);
  compare("ffn_hidden", job.ffn_hidden, model.ffn_hidden);
  compare("heads", job.heads, model.heads);
  compare("kv_heads", job.kv_heads, model.kv_heads);
  compare("head_dim", job.head_dim, model.head_dim);
  compare("vocab", job.vocab, model.vocab);
  const double ours = static_cast<double>(count_parameters(model).total());
  constexpr double kSameSize = 0.3;  // names round: Llama 3 "8B" has 8.03e9, "1B" of Llama 3.2 has 1.24e9
  if (job.parameters && std::abs(ours / *job.parameters - 1.0) > kSameSize)
    parts.push_back(fmt::format("{:.4g} billion parameters against {:.4g}", *job.parameters * 1e-9, ours * 1e-9));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Whether node `n` of the job gives its ranks the GPUs in another order than the scenario's. Without orders ranks take them as
/// numbered, whichever GPUs a job may see.
bool other_devices(const std::vector<std::string>& job, const DeviceOrders& scenario, std::size_t n) {
  if (job.empty() && scenario.empty()) return false;
  std::vector<std::int32_t> ours;
  if (!scenario.empty()) ours = scenario[n % scenario.size()];
  if (job.empty()) return !std::ranges::is_sorted(ours);
  const Outcome<std::vector<std::int32_t>> theirs = parse_device_order(job[n % job.size()]);
  if (!theirs.ok()) return !std::ranges::is_sorted(ours);  // cannot be known; worth saying where the order matters
  return ours.empty() || std::ranges::is_sorted(ours) ? !std::ranges::is_sorted(*theirs) : *theirs != ours;
}

void compare_devices(const LaunchReading& reading, const Cluster& cluster, Problems& notes) {
  for (std::int64_t n = 0; n < cluster.nodes; ++n) {
    const auto node = static_cast<std::size_t>(n);
    const DeviceOrders& orders = cluster.device_orders;
    if (!other_devices(reading.device_orders, orders, node)) continue;
    const std::string variable = devices_variable(cluster);
    const std::string ours = orders.empty() ? "takes the GPUs as numbered"
                                            : fmt::format("has {}={}", variable, device_order_text(orders[node % orders.size()]));
    const std::string theirs =
        reading.device_orders.empty()
            ? fmt::format("does not set {}", variable)
            : fmt::format("sets {}={}", variable, reading.device_orders[node % reading.device_orders.size()]);
    notes.push_back({"launch.other_devices", "", fmt::format("on node {} the job {}, the scenario {}", n, theirs, ours),
                     "figures of this scenario are those of its own order: set the variable where the job's processes start, or "
                     "change [cluster] device_order"});
    return;
  }
}

}  // namespace

Problems against_scenario(LaunchFormat format, const LaunchReading& reading, const Scenario& scenario) {
  Problems notes;
  if (reading.sequence && *reading.sequence != scenario.training.sequence) {
    notes.push_back({"launch.other_sequence", "",
                     fmt::format("the job trains {} tokens per sequence, the scenario {}", reading.sequence->count(),
                                 scenario.training.sequence.count()),
                     "figures of this scenario are not those of the job"});
  }
  if (reading.global_batch && *reading.global_batch != scenario.training.global_batch) {
    notes.push_back({"launch.other_batch", "",
                     fmt::format("the job trains {} sequences per step, the scenario {}", *reading.global_batch,
                                 scenario.training.global_batch),
                     "figures of this scenario are not those of the job"});
  }
  if (const std::string other = other_model(reading.model, scenario.model); !other.empty()) {
    notes.push_back({"launch.other_model", "",
                     fmt::format("the job trains another model than {}: {}", scenario.model.name, other),
                     "figures of this scenario are not those of the job: name the job's model in the scenario"});
  }
  const bool script = format == LaunchFormat::kMegatron || format == LaunchFormat::kBridge;
  if (script || !reading.device_orders.empty()) compare_devices(reading, scenario.cluster, notes);
  return notes;
}

}  // namespace cpfit::cli
