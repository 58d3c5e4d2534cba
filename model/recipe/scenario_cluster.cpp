// The cluster of a scenario: a preset or a topology file, and how many nodes of it.
#include "model/cluster/cluster_part.h"
#include "model/cluster/device_order.h"
#include "model/cluster/topology_file.h"
#include "model/recipe/scenario_sections.h"

namespace cpfit::scenario {

namespace {

/// World failures while a cluster is put together (a file that vanished) are a person's input here.
template <class Build>
Outcome<Cluster> built(Build build) {
  try {
    return build();
  } catch (const Error& error) {
    return Problem{"scenario.cluster", "", error.what(), "check the path"};
  }
}

Outcome<Cluster> topology_of(const Reading& reading, const std::string& written, std::int64_t nodes) {
  const std::string file = reading.resolved(written);
  if (reading.files == nullptr) return load_cluster(file, nodes);
  const Outcome<std::string> text = reading.given(file);
  if (!text) return text.problems();
  return read_topology(*text, file, nodes);
}

/// One order for all hosts, or a list of orders that they take in turns.
DeviceOrders read_device_orders(Section& section) {
  DeviceOrders orders;
  const toml::node* found = section.node("device_order");
  const auto append = [&](const toml::node& item) {
    const auto* text = item.as_string();
    if (text == nullptr) {
      section.report("device_order", "scenario.wrong_type", fmt::format("cluster.device_order holds {}", type_text(item)),
                     "write \"0,2,1,3\", or a list of such texts for hosts that take turns");
      return;
    }
    Outcome<std::vector<std::int32_t>> order = parse_device_order(text->get());
    if (order)
      orders.push_back(std::move(order).value());
    else
      section.adopt("device_order", order.problems());
  };
  if (found == nullptr) return orders;
  const toml::array* list = found->as_array();
  if (list == nullptr) {
    append(*found);
  } else {
    for (const toml::node& item : *list) append(item);
    if (list->empty())
      section.report("device_order", "scenario.empty_list", "cluster.device_order is an empty list",
                     "leave it out: GPUs are then taken as they are numbered");
  }
  return orders;
}

}  // namespace

std::optional<Cluster> read_cluster(const toml::node& node, Reading& reading) {
  if (const auto* name = node.as_string()) {
    Outcome<Cluster> cluster = built([&] { return build_cluster(name->get(), 1); });
    if (cluster) return std::move(cluster).value();
    reading.adopt(node, "cluster", cluster.problems());
    return std::nullopt;
  }
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    reading.report(node, "scenario.wrong_type", fmt::format("cluster is {}", type_text(node)),
                   "write cluster = {preset = \"dgx-h100\", nodes = 2}");
    return std::nullopt;
  }
  const std::size_t before = reading.problems.size();
  Section section(*table, "cluster", reading);
  const std::optional<std::string> preset = section.text("preset");
  const std::optional<std::string> topology = section.text("topology");
  const std::optional<std::int64_t> nodes = section.integer("nodes", 1, kMaxWorld);
  const std::optional<std::int64_t> gpus = section.integer("gpus", 1, kMaxWorld);
  const std::optional<Bytes> gpu_memory = section.bytes("gpu_memory");
  DeviceOrders device_orders = read_device_orders(section);
  section.finish();
  if (preset && topology) {
    section.report("topology", "scenario.contradiction", "cluster names a preset and a topology file", "keep one of them");
  } else if (reading.problems.size() == before && !preset && !topology) {
    section.report("preset", "scenario.missing_key", "cluster names neither a preset nor a topology file",
                   "write preset = \"dgx-h100\" or topology = \"file.json\"");
  }
  if (nodes && gpus) section.report("gpus", "scenario.contradiction", "cluster gives nodes and gpus", "keep one of them");
  if (gpu_memory && gpu_memory->value() <= 0) {
    section.report("gpu_memory", "scenario.out_of_range", "cluster.gpu_memory is not above 0", "write a size like \"80 GiB\"");
  }
  if (reading.problems.size() > before) return std::nullopt;

  const std::string key = preset ? "preset" : "topology";
  const auto build = [&](std::int64_t count) {
    return built([&] { return preset ? build_cluster(*preset, count) : topology_of(reading, *topology, count); });
  };
  const auto refuse = [&](const std::string& at, const Problems& problems) {
    if (topology)
      section.adopt_file(at, problems);
    else
      section.adopt(at, problems);
  };
  std::int64_t count = nodes.value_or(preset ? 1 : 0);  // 0: as many as the topology file says
  if (gpus) {
    const Outcome<Cluster> one = build(1);
    if (!one) {
      refuse(key, one.problems());
      return std::nullopt;
    }
    const std::int64_t per_node = one->gpus_per_node;
    const std::int64_t whole = *gpus / per_node * per_node;
    if (*gpus < per_node ? per_node % *gpus != 0 : whole != *gpus) {
      section.report("gpus", "scenario.impossible", fmt::format("cluster.gpus is {}, a node has {}", *gpus, per_node),
                     *gpus < per_node ? fmt::format("write {}, or a number that divides it", per_node)
                                      : fmt::format("write {} or {}", whole, whole + per_node));
      return std::nullopt;
    }
    count = std::max<std::int64_t>(1, *gpus / per_node);
  }
  Outcome<Cluster> cluster = build(count);
  if (!cluster) {
    const std::string& code = cluster.problems().front().code;
    const bool of_count = code == "cluster.nodes" || code == "cluster.resize" || code == "topology.nodes";
    refuse(nodes && of_count ? "nodes" : key, cluster.problems());
    return std::nullopt;
  }
  if (gpus && *gpus < cluster->gpus()) cluster = part_of_node(std::move(cluster).value(), static_cast<std::int32_t>(*gpus));
  if (!device_orders.empty()) {
    cluster = with_device_orders(std::move(cluster).value(), std::move(device_orders));
    if (!cluster) {
      section.adopt("device_order", cluster.problems());
      return std::nullopt;
    }
  }
  if (gpu_memory) {
    cluster.value().gpu.memory = *gpu_memory;
    cluster.value().gpu.memory_usable = *gpu_memory;
  }
  if (topology) reading.remember(reading.resolved(*topology));
  return std::move(cluster).value();
}

}  // namespace cpfit::scenario
