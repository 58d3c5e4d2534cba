// ibnetdiscover output: a block per switch and per channel adapter, a line per port:
//   Switch 65 "S-guid" # "MF0;leaf001:MQM9701/U1" ...
//   [1] "H-guid"[1](portguid) # "node001 mlx5_5" lid 647 4xNDR
//   [35] "S-guid"[32] # "MF0;spine001:..." lid 236 4xNDR
// Hosts are the adapters whose description reads "HOST DEVICE"; the switches they hang on are leaves.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"

namespace cpfit {
namespace {

constexpr std::size_t kMostAdapters = 1'000'000;

/// "4xNDR" -> 50 GB/s. Per lane in Gb/s after line coding: IBTA.
std::optional<BytesPerSecond> port_rate(std::string_view word) {
  constexpr std::pair<std::string_view, double> kLane[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 13.64},
                                                           {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};
  const std::size_t x = word.find('x');
  if (x == std::string_view::npos) return std::nullopt;
  const auto lanes = scan::whole(word.substr(0, x));
  if (!lanes || *lanes < 1 || *lanes > 12) return std::nullopt;
  for (const auto& [name, gigabits] : kLane) {
    if (word.substr(x + 1) == name) return gb_per_s(static_cast<double>(*lanes) * gigabits / 8);
  }
  return std::nullopt;
}

/// What stands between the first quotes at or after `from`; `from` moves behind them.
std::optional<std::string_view> quoted(std::string_view line, std::size_t& from) {
  const std::size_t open = line.find('"', from);
  if (open == std::string_view::npos) return std::nullopt;
  const std::size_t close = line.find('"', open + 1);
  if (close == std::string_view::npos) return std::nullopt;
  from = close + 1;
  return line.substr(open + 1, close - open - 1);
}

/// "MF0;leaf001:MQM9701/U1" -> "leaf001".
std::string switch_name(std::string_view description) {
  const std::size_t semicolon = description.find(';');
  if (semicolon != std::string_view::npos) description.remove_prefix(semicolon + 1);
  return scan::shown(description.substr(0, description.find(':')));
}

class FabricReader {
 public:
  explicit FabricReader(const std::string& where) : where_(where) {}

  Problems line(std::string_view text, std::size_t number) {
    if (text.starts_with("Switch") || text.starts_with("Ca") || text.starts_with("Rt")) return block(text, number);
    if (text.starts_with('[') && !self_.empty()) return port(text, number);
    if (scan::trimmed(text).empty()) self_.clear();
    return {};
  }

  Outcome<ImportedTopology> finish() {
    if (ports_.empty()) {
      return scan::problem("no_links", where_, 0, "the file holds no cable: it ends after the headers",
                           "it was cut: save the whole output of `ibnetdiscover`");
    }
    ImportedFabric fabric;
    make_switches(fabric);
    make_hosts(fabric);
    if (fabric.hosts.empty())
      return scan::problem("no_nodes", where_, 0, "no adapter is described as \"HOST DEVICE\": hosts cannot be told",
                           "run ibnetdiscover with a node-name map, or set node descriptions (rdma-ndd)");
    make_trunks(fabric);
    ImportedTopology imported;
    imported.format = TopologyFormat::kIbnetdiscover;
    imported.where = where_;
    const auto leaves = std::count_if(fabric.switches.begin(), fabric.switches.end(), [](const auto& s) { return s.leaf; });
    imported.summary = fmt::format("a fabric of {} leaf and {} other switches with {} hosts of {} NICs", leaves,
                                   static_cast<std::ptrdiff_t>(fabric.switches.size()) - leaves, fabric.hosts.size(),
                                   fabric.hosts[0].ports.size());
    imported.notes = std::move(notes_);
    imported.holds = std::move(fabric);
    return imported;
  }

 private:
  Problems block(std::string_view text, std::size_t number) {
    std::size_t from = 0;
    const auto id = quoted(text, from);
    if (!id || id->size() < 3) return {scan::problem("syntax", where_, number, "a block without its quoted id")};
    self_ = *id;
    listed_.insert(self_);
    const auto description = quoted(text, from);
    names_[self_] = std::string(description.value_or(""));
    return limit(number);
  }

  Problems limit(std::size_t number) const {
    if (names_.size() <= kMostAdapters) return {};
    return {scan::problem("too_large", where_, number, fmt::format("more than {} adapters and switches", kMostAdapters))};
  }

  Problems port(std::string_view text, std::size_t number) {
    const std::size_t close = text.find(']');
    const auto own = scan::whole(text.substr(1, close == std::string_view::npos ? 0 : close - 1));
    std::size_t from = 0;
    const auto peer = quoted(text, from);
    if (!own || !peer || peer->size() < 3)
      return {scan::problem("syntax", where_, number, fmt::format("'{}' is no port line", scan::shown(text)))};
    const std::string_view after = text.substr(from);
    const std::size_t end = after.find(']');
    const auto far =
        after.starts_with('[') && end != std::string_view::npos ? scan::whole(after.substr(1, end - 1)) : std::nullopt;
    if (!far) return {scan::problem("syntax", where_, number, "the port of the far end is missing")};
    const std::string other(*peer);
    const std::size_t hash = text.find('#', from);
    std::size_t comment = hash == std::string_view::npos ? text.size() : hash;
    const auto description = quoted(text, comment);
    names_.try_emplace(other, std::string(description.value_or("")));
    const std::vector<std::string_view> words = scan::words(text);
    const std::optional<BytesPerSecond> rate = words.empty() ? std::nullopt : port_rate(words.back());
    if (!rate) ++without_rate_;
    Port a{self_, *own}, b{other, *far};
    if (b < a) std::swap(a, b);
    ports_.try_emplace({a, b}, rate.value_or(BytesPerSecond{}));
    return limit(number);
  }

  static bool is_switch(const std::string& id) { return id.starts_with("S-"); }

  void make_switches(ImportedFabric& fabric) {
    std::size_t named_only = 0;
    for (const auto& [id, name] : names_) {
      if (!is_switch(id)) continue;
      number_[id] = static_cast<std::int32_t>(fabric.switches.size());
      fabric.switches.push_back({switch_name(name), false});
      if (!listed_.contains(id)) ++named_only;
    }
    if (named_only > 0)
      notes_.push_back(
          fmt::format("{} switches are named by others but have no block of their own: the file is an excerpt", named_only));
    if (without_rate_ > 0) notes_.push_back(fmt::format("{} ports give no rate that is known: left out", without_rate_));
  }

  void make_hosts(ImportedFabric& fabric) {
    // Host -> device -> (switch, rate), of every adapter that hangs on a switch.
    std::map<std::string, std::map<std::string, ImportedFabric::Port>> found;
    std::set<std::string> unnamed;
    for (const auto& [ends, rate] : ports_) {
      const auto& [a, b] = ends;
      if (is_switch(a.id) == is_switch(b.id)) continue;
      const Port& adapter = is_switch(a.id) ? b : a;
      const Port& at = is_switch(a.id) ? a : b;
      const std::string& description = names_[adapter.id];
      if (description.find("Aggregation Node") != std::string::npos) continue;  // inside the switch
      fabric.switches[static_cast<std::size_t>(number_[at.id])].leaf = true;
      const std::vector<std::string_view> words = scan::words(description);
      if (words.size() != 2 || words[1].find_first_of("0123456789") == std::string_view::npos || !(rate.value() > 0)) {
        unnamed.insert(adapter.id);
        continue;
      }
      std::string device = scan::shown(words[1]);
      if (adapter.port > 1) device += fmt::format(" port {}", adapter.port);
      found[scan::shown(words[0])].try_emplace(device, ImportedFabric::Port{number_[at.id], rate, device});
    }
    if (!unnamed.empty())
      notes_.push_back(fmt::format("{} adapters do not say which host they are in: left out", unnamed.size()));
    std::map<std::size_t, std::size_t> by_count;
    for (const auto& [name, devices] : found) ++by_count[devices.size()];
    std::size_t usual = 0, most = 0;
    for (const auto& [count, hosts] : by_count) {
      if (hosts >= most) {
        usual = count;
        most = hosts;
      }
    }
    std::vector<std::string> order;
    for (const auto& [name, devices] : found) {
      if (devices.size() == usual && order.size() < kMostHosts) order.push_back(name);
    }
    std::sort(order.begin(), order.end(), [](const std::string& a, const std::string& b) { return scan::natural_less(a, b); });
    if (order.size() < found.size()) {
      notes_.push_back(fmt::format("{} hosts do not have {} NICs as most do: left out", found.size() - order.size(), usual));
    }
    fabric.ports_counted = true;
    for (const std::string& name : order) {
      ImportedFabric::Host host{name, {}};
      for (const auto& [device, port] : found[name]) host.ports.push_back(port);
      std::sort(host.ports.begin(), host.ports.end(),
                [](const auto& a, const auto& b) { return scan::natural_less(a.label, b.label); });
      fabric.hosts.push_back(std::move(host));
    }
  }

  void make_trunks(ImportedFabric& fabric) {
    std::map<std::pair<std::int32_t, std::int32_t>, ImportedFabric::Trunk> trunks;
    for (const auto& [ends, rate] : ports_) {
      const auto& [a, b] = ends;
      if (!is_switch(a.id) || !is_switch(b.id) || a.id == b.id || !(rate.value() > 0)) continue;
      const std::int32_t from = number_[a.id], to = number_[b.id];
      auto& trunk = trunks.try_emplace({from, to}, ImportedFabric::Trunk{from, to, BytesPerSecond{}, 0}).first->second;
      trunk.rate = *trunk.rate + rate;
      ++trunk.lanes;
    }
    for (auto& [ends, trunk] : trunks) fabric.trunks.push_back(trunk);
  }

  struct Port {
    std::string id;
    std::int64_t port = 0;
    bool operator<(const Port& other) const { return std::tie(id, port) < std::tie(other.id, other.port); }
  };

  const std::string& where_;
  std::string self_;
  std::map<std::string, std::string> names_;  // id -> description
  std::set<std::string> listed_;
  std::map<std::pair<Port, Port>, BytesPerSecond> ports_;
  std::map<std::string, std::int32_t> number_;
  std::vector<std::string> notes_;
  std::size_t without_rate_ = 0;
};

}  // namespace

Outcome<ImportedTopology> import_ibnetdiscover(std::string_view text, const std::string& where) {
  FabricReader reader(where);
  std::size_t number = 0;
  for (const std::string_view line : scan::lines(text)) {
    if (Problems found = reader.line(line, ++number); !found.empty()) return found;
  }
  return reader.finish();
}

}  // namespace cpfit
