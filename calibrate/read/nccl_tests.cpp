// Output of NVIDIA/nccl-tests (and AMD's rccl-tests) as printed: one or several tests in one text, mixed with lines of mpirun and
// NCCL's log. Which columns there are is read from the header line ("size count type redop root time algbw busbw #wrong time
// ..."); older versions print "error" for "#wrong" and no root.
#include <algorithm>
#include <cmath>
#include <set>

#include "calibrate/read/imported.h"
#include "calibrate/read/kernel_table_formats.h"
#include "calibrate/read/text_lines.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

namespace {

struct Columns {
  std::size_t size = 0, redop = 0, count = 0;  // count: cells of a row
  bool has_redop = false;
  struct Timing {
    std::size_t time = 0, algbw = 0, busbw = 0, wrong = 0;
    bool has_wrong = false;
  };
  std::vector<Timing> timings;  // out of place, then in place
};

/// "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"
std::optional<Columns> columns_of(std::string_view line) {
  std::vector<std::string_view> words = words_of(line);
  if (!words.empty() && words.front() == "#") words.erase(words.begin());
  if (words.size() < 5 || words[0] != "size" || words[1] != "count") return std::nullopt;
  Columns columns;
  columns.count = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "redop") {
      columns.redop = i;
      columns.has_redop = true;
    } else if (words[i] == "time") {
      columns.timings.push_back({i, 0, 0, 0, false});
    } else if (!columns.timings.empty()) {
      Columns::Timing& timing = columns.timings.back();
      if (words[i] == "algbw") timing.algbw = i;
      if (words[i] == "busbw") timing.busbw = i;
      if (words[i] == "#wrong" || words[i] == "error") {
        timing.wrong = i;
        timing.has_wrong = true;
      }
    }
  }
  if (columns.timings.empty()) return std::nullopt;
  return columns;
}

std::optional<CollectiveKind> test_named(std::string_view text) {
  static constexpr std::pair<std::string_view, CollectiveKind> kTests[] = {{"all_reduce", CollectiveKind::kAllReduce},
                                                                           {"all_gather", CollectiveKind::kAllGather},
                                                                           {"reduce_scatter", CollectiveKind::kReduceScatter},
                                                                           {"alltoall", CollectiveKind::kAllToAll},
                                                                           {"sendrecv", CollectiveKind::kSendRecv},
                                                                           {"AllReduce", CollectiveKind::kAllReduce},
                                                                           {"AllGather", CollectiveKind::kAllGather},
                                                                           {"ReduceScatter", CollectiveKind::kReduceScatter},
                                                                           {"AlltoAll", CollectiveKind::kAllToAll},
                                                                           {"SendRecv", CollectiveKind::kSendRecv}};
  for (const auto& [name, kind] : kTests) {
    if (text.find(name) != std::string_view::npos) return kind;
  }
  return std::nullopt;
}

/// Names of tests whose figures have no place in the rates.
std::string_view other_test(std::string_view text) {
  for (const std::string_view name : {"broadcast_perf", "scatter_perf", "gather_perf", "reduce_perf", "hypercube_perf"}) {
    const std::size_t at = text.find(name);
    if (at != std::string_view::npos && (at == 0 || text[at - 1] != '_')) return name;
  }
  return {};
}

/// What the ratio of both bandwidths and the operation tell where no line names the test.
std::optional<CollectiveKind> kind_from(double ratio, std::int64_t ranks, bool reduces) {
  const double n = static_cast<double>(ranks);
  const auto near = [&](double factor) { return std::abs(ratio / factor - 1) < 0.02; };
  if (ranks <= 2) return std::nullopt;  // 2(n-1)/n is 1 and (n-1)/n is 1/2: all-reduce looks like send-receive
  if (near(2 * (n - 1) / n) && reduces) return CollectiveKind::kAllReduce;
  if (near((n - 1) / n) && reduces) return CollectiveKind::kReduceScatter;
  return std::nullopt;  // all-gather and all-to-all share a factor
}

/// One test under way: what its header said.
struct Test {
  std::optional<CollectiveKind> kind;
  std::string other;  // a test that is not read
  std::optional<Columns> columns;
  std::set<std::string> hosts;
  std::int64_t ranks = 0;
  std::string gpu;  // as printed
  bool mixed = false;
};

class Reader {
 public:
  Reader(const std::string& path, const ImportHints& options) : options_(options) {
    file_.path = path;
    from_name_ = test_named(path.substr(path.find_last_of('/') + 1));
  }

  void line(std::string_view line, long number) {
    if (line.find("nThread") != std::string_view::npos && line.find("minBytes") != std::string_view::npos) {
      // A new test; what named it may stand just before.
      test_ = Test{announced_, announced_other_, std::nullopt, {}, 0, {}, false};
      announced_.reset();
      announced_other_.clear();
      return;
    }
    if (line.find("_perf") != std::string_view::npos || line.find("Collective test starting") != std::string_view::npos) {
      const std::string_view other = other_test(line);
      const std::optional<CollectiveKind> kind = other.empty() ? test_named(line) : std::nullopt;
      if (kind || !other.empty()) {
        announced_ = kind;
        announced_other_ = other;
      }
      return;
    }
    versions(line);
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() > 6 && words[0] == "#" && words[1] == "Rank") return device(words, line);
    if (auto columns = columns_of(line)) {
      test_.columns = std::move(columns);
      return;
    }
    if (test_.columns && words.size() >= test_.columns->count && number_of<std::int64_t>(words[0])) row(words, number);
  }

  Outcome<ImportedFile> finish() {
    if (file_.table.rows.empty() && file_.table.unused.empty())
      return Problem{"import.empty", file_.path, "nccl-tests output without a line of results",
                     "give the whole output of a test, its table included"};
    std::string names;
    for (const std::string& name : kinds_) names += (names.empty() ? "" : ", ") + name;
    file_.format = "nccl-tests" + (names.empty() ? std::string() : " " + names);
    file_.table.path = file_.path;
    file_.table.own_run = true;
    file_.table.network_rate = options_.network_rate;
    file_.table.source = "nccl-tests" + (file_.machine.nccl.empty() ? std::string() : ", NCCL " + file_.machine.nccl);
    return std::move(file_);
  }

 private:
  void versions(std::string_view line) {
    if (const std::size_t at = line.find("NCCL version "); at != std::string_view::npos)
      file_.machine.nccl = std::string(words_of(line.substr(at + 13)).empty() ? "" : words_of(line.substr(at + 13))[0]);
    const std::string_view coded = value_after(line, "nccl-library");
    if (const auto code = number_of<int>(coded); code && *code >= 10000 && file_.machine.nccl.empty()) {
      file_.machine.nccl =
          std::to_string(*code / 10000) + "." + std::to_string(*code / 100 % 100) + "." + std::to_string(*code % 100);
    }
    if (const std::size_t plus = file_.machine.nccl.find("+cuda"); plus != std::string::npos) {
      file_.machine.cuda = file_.machine.nccl.substr(plus + 5);
      file_.machine.nccl.resize(plus);
    }
  }

  /// "#  Rank  0 Group  0 Pid  12574 on HOST device  0 [0000:06:00] NVIDIA H100 80GB HBM3"
  void device(const std::vector<std::string_view>& words, std::string_view line) {
    if (words[2] == "0" && test_.ranks > 0) {  // the header of another test begins
      test_.hosts.clear();
      test_.ranks = 0;
      test_.gpu.clear();
    }
    ++test_.ranks;
    const auto on = std::find(words.begin(), words.end(), "on");
    if (on != words.end() && on + 1 != words.end()) {
      const std::string host((*(on + 1)));
      test_.hosts.insert(host);
      if (std::find(file_.machine.hosts.begin(), file_.machine.hosts.end(), host) == file_.machine.hosts.end())
        file_.machine.hosts.push_back(host);
    }
    const std::size_t bracket = line.find(']');
    const std::string printed(bracket == std::string_view::npos ? "" : trimmed(line.substr(bracket + 1)));
    test_.mixed = test_.mixed || (!test_.gpu.empty() && test_.gpu != printed);
    test_.gpu = printed;
    file_.machine.gpu = printed;
    file_.machine.gpus_per_host =
        static_cast<std::int32_t>(test_.ranks / std::max<std::int64_t>(1, static_cast<std::int64_t>(test_.hosts.size())));
  }

  void leave(long number, std::string reason) { file_.table.unused.push_back({number, std::move(reason)}); }

  void row(const std::vector<std::string_view>& words, long number) {
    const Columns& columns = *test_.columns;
    const auto bytes = number_of<double>(words[columns.size]);
    if (!bytes || *bytes <= 0) return leave(number, "size 0: nothing was moved");
    if (!test_.other.empty()) return leave(number, test_.other + " has no place in the rates");
    if (test_.ranks < 2) return leave(number, test_.ranks == 1 ? "one rank: nothing crossed a link" : "no line names the ranks");
    std::string gpu = options_.gpu.empty() ? gpu_preset_of(test_.gpu) : options_.gpu;
    if (gpu.empty()) return leave(number, kernel_table::unknown_gpu(test_.gpu) + ": say which with --gpu");
    if (test_.mixed) return leave(number, "ranks on different GPUs");

    // Out of place as the training libraries call it; in place where the former is missing.
    std::string trouble = "no time";
    for (const Columns::Timing& timing : columns.timings) {
      const auto us = number_of<double>(words[timing.time]);
      const auto algbw = number_of<double>(words[timing.algbw]), busbw = number_of<double>(words[timing.busbw]);
      if (!us || *us <= 0) continue;
      if (timing.has_wrong) {
        const auto wrong = number_of<double>(words[timing.wrong]);
        if (wrong && *wrong > 0.01) {  // "error" of older versions is a difference of sums
          trouble = "the test reports wrong results";
          continue;
        }
      }
      std::optional<CollectiveKind> kind = test_.kind ? test_.kind : from_name_;
      if (!kind && algbw && busbw && *algbw > 1) {
        const bool reduces = columns.has_redop && words[columns.redop] != "none";
        kind = kind_from(*busbw / *algbw, test_.ranks, reduces);
      }
      if (!kind) return leave(number, "no line names the test: keep the line that starts it, or name the file after it");
      kinds_.insert(std::string(name_of(*kind)));
      const auto nodes = static_cast<std::int64_t>(std::max<std::size_t>(1, test_.hosts.size()));
      CollectiveMeasurement what{*kind, test_.ranks, nodes, Bytes(*bytes), file_.machine.nccl};
      file_.table.rows.push_back({number, std::move(gpu), std::move(what), microseconds(*us)});
      return;
    }
    leave(number, trouble);
  }

  const ImportHints& options_;
  ImportedFile file_;
  Test test_;
  std::optional<CollectiveKind> announced_, from_name_;
  std::string announced_other_;
  std::set<std::string> kinds_;
};

}  // namespace

bool looks_like_nccl_tests(std::string_view text) {
  return text.find("algbw") != std::string_view::npos && text.find("busbw") != std::string_view::npos &&
         (text.find("# nThread") != std::string_view::npos || text.find("#       size") != std::string_view::npos ||
          text.find("# Using devices") != std::string_view::npos);
}

Outcome<ImportedFile> read_nccl_tests(std::string_view text, const std::string& path, const ImportHints& options) {
  Reader reader(path, options);
  each_line(text, [&](std::string_view line, long number) { reader.line(line, number); });
  return reader.finish();
}

}  // namespace cpfit
