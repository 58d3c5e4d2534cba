// cpfit topology place: the optimiser's placement beside the default one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/topology/import_command.h"
#include "cli/topology/placement_study.h"
#include "cli/topology/show.h"
#include "model/cluster/device_order.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/plan/placement_text.h"
#include "sim/plan/step_flows.h"

namespace cpfit::cli {

namespace {

struct PlaceArguments {
  std::string what;
  ImportOptions import;
  PlacementOptions placement;
  std::size_t links = 8;
  bool json = false;
};

/// One link under both placements.
struct LinkPair {
  LinkLoad before, after;
  [[nodiscard]] Seconds busier() const { return max(before.busy, after.busy); }
};

/// Every link that carries something under either, busiest first.
std::vector<LinkPair> paired(const PlacementAdvice& advice) {
  std::map<std::pair<std::string, std::string>, LinkPair> known;
  for (const LinkLoad& load : advice.links_before) known[{load.from, load.to}].before = load;
  for (const LinkLoad& load : advice.links_after) known[{load.from, load.to}].after = load;
  std::vector<LinkPair> pairs;
  for (auto& [ends, pair] : known) {
    pair.before.from = pair.after.from = ends.first;
    pair.before.to = pair.after.to = ends.second;
    pairs.push_back(pair);
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const LinkPair& a, const LinkPair& b) { return a.busier() > b.busier(); });
  return pairs;
}

std::string costs_text(const PlacementStudy& study, const PlacementAdvice& advice) {
  const Topology& topology = *study.cluster().topology;
  Table table({{"per layer and micro-batch", false}, {"now", false}, {"best", false}});
  const auto row = [&](const std::string& name, const auto& cell) { table.row({name, cell(advice.before), cell(advice.after)}); };
  for (const auto& [name, part] : {std::pair{"cp", &PlacementPrice::cp}, std::pair{"tp", &PlacementPrice::tp},
                                   std::pair{"pp", &PlacementPrice::pp}, std::pair{"dp", &PlacementPrice::dp}}) {
    if ((advice.before.*part).value() > 0.0 || (advice.after.*part).value() > 0.0)
      row(name, [&](const PlacementPrice& price) { return print_time(price.*part); });
  }
  row("all", [](const PlacementPrice& price) { return print_time(price.total()); });
  if (!advice.before.ring.empty() && !advice.after.ring.empty()) {
    row("slowest CP hop",
        [](const PlacementPrice& price) { return fmt::format("GPU {} -> {}", price.slowest.from_gpu, price.slowest.to_gpu); });
    row("  its route",
        [&](const PlacementPrice& price) { return route_text(topology, price.slowest.from_gpu, price.slowest.to_gpu); });
    row("  its share", [](const PlacementPrice& price) {
      return fmt::format("{}, {} flow{}", print_rate(price.slowest.network.rate), price.slowest.network.flows,
                         price.slowest.network.flows == 1 ? "" : "s");
    });
    row("  a KV message", [](const PlacementPrice& price) { return print_time(price.slowest.message); });
    row("CP hops", [](const PlacementPrice& price) { return std::to_string(price.counts.hops); });
    row("  leave the node", [](const PlacementPrice& price) { return std::to_string(price.counts.leaving); });
    row("  cross rails", [](const PlacementPrice& price) { return std::to_string(price.counts.cross_rail); });
    row("  cross sockets", [](const PlacementPrice& price) { return std::to_string(price.counts.cross_socket); });
  }
  return table.text();
}

std::string classes_text(const PlacementStudy& study, const PlacementAdvice& advice) {
  const Topology& topology = *study.cluster().topology;
  const std::vector<ClassLoad> before = class_loads(topology, advice.links_before),
                               after = class_loads(topology, advice.links_after);
  Table table({{"links of class", false}, {"bytes now"}, {"busiest now"}, {"bytes best"}, {"busiest best"}});
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].bytes.value() <= 0.0 && after[i].bytes.value() <= 0.0) continue;
    table.row({std::string(name_of(before[i].link_class)), print_bytes(before[i].bytes), print_time(before[i].busiest),
               print_bytes(after[i].bytes), print_time(after[i].busiest)});
  }
  return table.text();
}

/// Links whose load the placement changes first: of alike neighbours in the list one line.
std::string pairs_text(const std::vector<LinkPair>& pairs, std::size_t limit) {
  Table table({{"link", false}, {"bytes now"}, {"busy now"}, {"bytes best"}, {"busy best"}, {"alike"}});
  std::size_t rows = 0;
  const auto alike = [](const LinkPair& a, const LinkPair& b) {
    return a.before.bytes == b.before.bytes && a.before.busy == b.before.busy && a.after.bytes == b.after.bytes &&
           a.after.busy == b.after.busy;
  };
  for (std::size_t begin = 0; begin < pairs.size() && rows < limit; ++rows) {
    std::size_t end = begin;
    while (end < pairs.size() && alike(pairs[begin], pairs[end])) ++end;
    const LinkPair& pair = pairs[begin];
    table.row({pair.before.from + " -> " + pair.before.to, print_bytes(pair.before.bytes), print_time(pair.before.busy),
               print_bytes(pair.after.bytes), print_time(pair.after.busy), std::to_string(end - begin)});
    begin = end;
  }
  return table.text();
}

Json classes_json(const Topology& topology, const std::vector<LinkLoad>& links) {
  Json json = Json::object();
  for (const ClassLoad& load : class_loads(topology, links)) {
    if (load.bytes.value() > 0.0)
      json[std::string(name_of(load.link_class))] = {{"bytes", load.bytes.value()}, {"busiest_seconds", load.busiest.value()}};
  }
  return json;
}

/// What a scenario's [cluster] says for plan and simulate to count with the orders.
std::string scenario_line(const DeviceOrders& orders) {
  std::vector<std::string> texts;
  for (const std::vector<std::int32_t>& order : orders) texts.push_back(fmt::format("\"{}\"", device_order_text(order)));
  const std::string all = fmt::format("{}", fmt::join(texts, ", "));
  return fmt::format("device_order = {} in [cluster] of a scenario", texts.size() == 1 ? all : "[" + all + "]");
}

int place_json(const PlacementStudy& study, const PlacementAdvice& advice, const std::string& rails) {
  const Topology& topology = *study.cluster().topology;
  Json json;
  json["cluster"] = study.cluster().name;
  json["gpus"] = study.cluster().gpus();
  json["recipe"] = to_text(study.recipe());
  json["model"] = study.context().model.name;
  json["sequence_tokens"] = study.context().training.sequence.count();
  json["global_batch"] = study.context().training.global_batch;
  json["better"] = advice.better;
  json["tried"] = advice.tried;
  json["sentence"] = advice.sentence;
  json["rails"] = rails.empty() ? Json(nullptr) : Json(rails);
  Recipe placed = study.recipe();
  placed.rank_order = advice.after.placement.rank_order;
  json["recipe_best"] = to_text(placed);
  const DeviceOrders orders = device_orders(study.cluster(), advice.after.placement);
  json["devices"] = device_lines(study.cluster(), orders);
  json["device_order"] = Json::array();
  for (const std::vector<std::int32_t>& order : orders) json["device_order"].push_back(device_order_text(order));
  for (const auto& [name, price, links] :
       {std::tuple{"before", &advice.before, &advice.links_before}, std::tuple{"after", &advice.after, &advice.links_after}}) {
    json[name] = price_json(*price);
    json[name]["link_classes"] = classes_json(topology, *links);
    json[name]["links"] = to_json(*links);
  }
  print_json(json);
  return kDone;
}

int run_place(const PlaceArguments& arguments) {
  const Outcome<Cluster> cluster = find_topology(arguments.what, arguments.import);
  const Outcome<PlacementStudy> study =
      cluster.ok() ? PlacementStudy::build(*cluster, arguments.placement) : Outcome<PlacementStudy>(cluster.problems());
  if (!study.ok()) {
    print_problems(study.problems());
    return kBadInput;
  }
  if (study->recipe().world() > kPlacedRanks) {
    print_problems({{"topology.large", "--recipe",
                     fmt::format("{} ranks; placements are searched up to {}", study->recipe().world(), kPlacedRanks),
                     "lower dp: the nodes of other dp ranks repeat what the first ones do"}});
    return kBadInput;
  }
  if (!study->routed()) {
    print_problems({{"topology.unreachable", arguments.what, "members of a group have no route between them",
                     "cpfit topology check names the pairs"}});
    return kBadInput;
  }
  const PlacementAdvice advice = optimise_placement(study->context(), study->recipe());
  const std::string rails = rail_sentence(study->context(), study->recipe(), advice.before);
  if (arguments.json) return place_json(*study, advice, rails);
  const auto title = [](const std::string& text) { return styled(text, Style::kBold); };
  fmt::print("{}\n{}\n", wrapped(title(to_text(study->recipe())), 2),
             wrapped(fmt::format("{} on {} ({}); {} tried", study->subject(), cluster->name, counted(cluster->gpus(), "GPU"),
                                 counted(advice.tried, "placement")),
                     2));
  fmt::print("now:  {}\nbest: {}\n\n", advice.before.placement.name, advice.better ? advice.after.placement.name : "the same");
  fmt::print("{}\n{}\n", title("Communication, nothing hidden"), costs_text(*study, advice));
  fmt::print("{}\n{}", title("Bytes and busy time by class of link, per optimizer step"), classes_text(*study, advice));
  if (arguments.links > 0)
    fmt::print("\n{}\n{}", title("Busiest links, per optimizer step"), pairs_text(paired(advice), arguments.links));
  fmt::print("{}\n\n", wrapped("Collectives are counted as rings in rank order; libraries order theirs themselves.", 0));
  if (!rails.empty()) fmt::print("{}\n", wrapped(rails, 2));
  fmt::print("{}\n", styled(wrapped(advice.sentence, 2), advice.better ? Style::kGood : Style::kPlain));
  if (advice.after.placement.rank_order != study->recipe().rank_order)
    fmt::print("  rank_order={} in the recipe\n", to_text(advice.after.placement.rank_order));
  const DeviceOrders orders = device_orders(*cluster, advice.after.placement);
  for (const std::string& line : device_lines(*cluster, orders)) fmt::print("  {}\n", line);
  if (!orders.empty()) fmt::print("  {}\n", scenario_line(orders));
  return kDone;
}

}  // namespace

void add_topology_place(CLI::App& topology, int& exit_code) {
  auto arguments = std::make_shared<PlaceArguments>();
  CLI::App* command = topology.add_subcommand(
      "place", "A better placement of a recipe's ranks: rank order, order of the GPUs; bytes and time per link before and after");
  command->add_option("cluster", arguments->what, "Preset (cpfit presets clusters) or topology file (docs/topology.md)")
      ->required();
  command->add_option("--nodes", arguments->import.nodes, "Nodes (default: 1, or what the file says)")
      ->check(CLI::Range(1, 1 << 20));
  add_import_options(*command, arguments->import);
  add_placement_options(*command, arguments->placement);
  command->get_option("--recipe")->required();
  command->add_option("--links", arguments->links, "Links listed (0: none)")->capture_default_str()->check(CLI::Range(0, 10000));
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run_place(*arguments); });
}

}  // namespace cpfit::cli
