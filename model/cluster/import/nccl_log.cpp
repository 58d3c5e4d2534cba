// NCCL_DEBUG=INFO logs, old and new wording: "Channel 00/02 : 0 1 2 3" (the ring), "Ring 00 : 3 -> 0 -> 1", and
// "Channel 00/0 : 0[0] -> 1[1] [send] via P2P/CUMEM" (one connection). Lines of several hosts and jobs may be mixed.
#include <fmt/format.h>

#include <map>
#include <set>

#include "model/cluster/import/formats.h"
#include "model/cluster/import/scan.h"

namespace cpfit {
namespace {

constexpr std::size_t kMostRings = 4096;
constexpr std::size_t kMostConnections = 1'000'000;

/// "12" of "12[a000]" and of "12".
std::optional<std::int64_t> rank_of(std::string_view word) { return scan::whole(word.substr(0, word.find('['))); }

class LogReader {
 public:
  void line(std::string_view text) {
    const std::size_t mark = text.find("NCCL INFO ");
    if (mark == std::string_view::npos) return;
    const std::string_view prefix = text.substr(0, text.find(':'));
    if (hosts_.size() < kMostHosts) hosts_.insert(std::string(prefix));
    const std::vector<std::string_view> words = scan::words(text.substr(mark + 10));
    if (words.size() < 4) return;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] == "nranks") ranks_ = std::max(ranks_, scan::whole(words[i + 1]).value_or(0));
    }
    if (words[0] == "Ring" && words[2] == ":" && words.size() >= 8 && words[4] == "->" && words[6] == "->") {
      follow(words[1], words[3], words[5]);
      follow(words[1], words[5], words[7]);
    } else if (words[0] == "Channel" && words[2] == ":") {
      channel(words);
    }
  }

  ImportedOrder order() {
    ImportedOrder order;
    for (const auto& [channel, members] : written_) order.rings.push_back({fmt::format("channel {}", channel), members});
    for (const auto& [channel, next] : next_) {
      if (written_.contains(channel)) continue;
      std::vector<std::string> members;
      std::int64_t rank = next.begin()->first;
      do {
        members.push_back(std::to_string(rank));
        const auto found = next.find(rank);
        rank = found == next.end() ? -1 : found->second;
      } while (rank >= 0 && rank != next.begin()->first && members.size() <= next.size());
      if (rank == next.begin()->first && members.size() == next.size()) {
        order.rings.push_back({fmt::format("channel {}", channel), members});
      } else {
        ++open_;
      }
    }
    order.transports.assign(transports_.begin(), transports_.end());
    return order;
  }
  [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }
  [[nodiscard]] std::size_t open() const { return open_; }
  [[nodiscard]] std::size_t connections() const { return connections_; }
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }

 private:
  /// "00/02" and "00/0" and "00": the channel.
  static std::optional<std::int64_t> channel_of(std::string_view word) { return scan::whole(word.substr(0, word.find('/'))); }

  void follow(std::string_view channel_word, std::string_view from, std::string_view to) {
    const auto channel = channel_of(channel_word), a = rank_of(from), b = rank_of(to);
    if (!channel || !a || !b || *channel >= static_cast<std::int64_t>(kMostRings) || connections_ >= kMostConnections) return;
    constexpr std::int64_t kMostRanks = std::int64_t{1} << 24;  // GPUs of any cluster: beyond, a number is damaged
    if (std::max(*a, *b) >= kMostRanks) return;
    next_[*channel].try_emplace(*a, *b);
    ranks_ = std::max(ranks_, std::max(*a, *b) + 1);
  }

  void channel(const std::vector<std::string_view>& words) {
    const auto number = channel_of(words[1]);
    if (!number || *number >= static_cast<std::int64_t>(kMostRings)) return;
    if (words.size() >= 6 && words[4] == "->") {  // a[x] -> b[y] [send] via T
      if (++connections_ > kMostConnections) return;
      for (std::size_t i = 6; i + 1 < words.size(); ++i) {
        if (words[i] != "via") continue;
        std::string transport = scan::shown(words[i + 1]);
        if (transport.starts_with("NET/")) {  // NET/IB/3/GDRDMA: the device is one of several
          const std::size_t device = transport.find('/', 4);
          const std::size_t end = device == std::string::npos ? device : transport.find('/', device + 1);
          transport = transport.substr(0, device) + (end == std::string::npos ? "" : transport.substr(end));
        }
        if (transports_.size() < kMostDevices) ++transports_[transport];
        // Trees use channels too: only a channel whose every rank has one successor makes a ring, checked in order().
        follow(words[1], words[3], words[5]);
      }
      return;
    }
    std::vector<std::string> members;
    for (std::size_t i = 3; i < words.size(); ++i) {
      const auto rank = scan::whole(words[i]);
      if (!rank || members.size() >= kMostHosts) return;
      ranks_ = std::max(ranks_, *rank + 1);
      members.push_back(std::to_string(*rank));
    }
    written_.try_emplace(*number, std::move(members));
  }

  std::set<std::string> hosts_;
  std::map<std::int64_t, std::vector<std::string>> written_;
  std::map<std::int64_t, std::map<std::int64_t, std::int64_t>> next_;
  std::map<std::string, std::int64_t> transports_;
  std::size_t connections_ = 0, open_ = 0;
  std::int64_t ranks_ = 0;
};

}  // namespace

Outcome<ImportedTopology> import_nccl_log(std::string_view text, const std::string& where) {
  const std::string plain = scan::without_escapes(text);
  LogReader reader;
  for (const std::string_view line : scan::lines(plain)) reader.line(line);
  ImportedOrder order = reader.order();
  if (order.rings.empty() && reader.connections() == 0 && reader.open() == 0) {
    return scan::problem("no_ring", where, 0, "the log holds no ring and no connection",
                         "run the job with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH");
  }
  ImportedTopology imported;
  imported.format = TopologyFormat::kNcclLog;
  imported.where = where;
  imported.summary =
      fmt::format("the order of {} ranks on {} hosts in {} rings", reader.ranks(), reader.hosts(), order.rings.size());
  if (reader.open() > 0)
    imported.notes.push_back(fmt::format("{} channels are known in part: their connections close no ring", reader.open()));
  imported.holds = std::move(order);
  return imported;
}

}  // namespace cpfit
