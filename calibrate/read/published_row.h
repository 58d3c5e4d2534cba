// Private to calibrate/read: one row of a published table, and the table being filled from such rows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "calibrate/read/csv.h"
#include "model/record/validation.h"

namespace cpfit::published {

/// One row with the look-ups that adapters need. Valid while its table lives.
class Row {
 public:
  explicit Row(CsvRow row) : row_(row) {}
  [[nodiscard]] std::int64_t line() const { return row_.line(); }
  [[nodiscard]] std::string_view text(std::string_view column) const { return row_.text(column); }
  [[nodiscard]] bool blank(std::string_view column) const { return row_.blank(column); }
  [[nodiscard]] std::optional<double> number(std::string_view column) const { return row_.number(column); }
  /// A whole number as people print it: "8192", "8,192", "1.2e6"; "8k" and "1M" tokens are 2^13 and 2^20 as everywhere in cpfit,
  /// of anything else 8,000 and 10^6.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view column) const;
  /// A figure as people print it: "440", "12,800", "12.8k", "1.2e6"; "10.2 s" and "950 ms" in a column of seconds.
  [[nodiscard]] std::optional<double> figure(std::string_view column) const;
  /// "47.7%" and "44% of peak (...)" as shares; a bare number at most 1 is a share already, above it per cent.
  [[nodiscard]] std::optional<double> share(std::string_view column) const;
  /// "74.1k" as 74100, "16M" as 16e6, "70B" as 70e9, "12,800" as 12800, else a plain number.
  [[nodiscard]] std::optional<double> count(std::string_view column) const;
  /// Whether the cell contains the word, case ignored.
  [[nodiscard]] bool says(std::string_view column, std::string_view word) const;

 private:
  CsvRow row_;
};

[[nodiscard]] bool contains_word(std::string_view text, std::string_view word);  // case ignored

/// The cluster preset of a GPU as tables print it ("H100", "DGX-GB200", "A100-SXM4-80GB"): a node of that GPU with the fabric it
/// is usually sold with. Sources that print another fabric name their preset themselves. Empty when no preset has the GPU.
[[nodiscard]] std::string cluster_preset_of(std::string_view gpu);

/// The table being filled, and what is built once for many rows.
class Reading {
 public:
  explicit Reading(std::string path, std::string family);
  [[nodiscard]] MeasuredTable take() && { return std::move(table_); }

  void add(MeasuredRun run) { table_.runs.push_back(std::move(run)); }
  void add(MeasuredKernel kernel) { table_.kernels.push_back(std::move(kernel)); }
  void skip(const Row& row, std::string reason) { table_.skipped.push_back({row.line(), std::move(reason)}); }
  void skip(std::int64_t line, std::string reason) { table_.skipped.push_back({line, std::move(reason)}); }

  /// A cluster with at least that many GPUs; nothing when the preset is unknown.
  /// `node_rate`: what a node carries into the fabric, over all its NICs, where it differs from the preset's; 0: the preset's.
  [[nodiscard]] std::optional<Cluster> cluster(const std::string& preset, std::int64_t gpus, BytesPerSecond node_rate = {});
  /// A rule set by name, shared by all rows that use it; null when unknown.
  [[nodiscard]] std::shared_ptr<const RuleSet> rules(const std::string& name);
  /// The same with policies changed; `key` names the change, so that rows with the same change share one rule set.
  [[nodiscard]] std::shared_ptr<const RuleSet> rules(const std::string& name, const std::string& key,
                                                     const std::function<void(RuleSet&)>& change);

 private:
  MeasuredTable table_;
  std::map<std::tuple<std::string, std::int64_t, double>, std::optional<Cluster>> clusters_;
  std::map<std::string, std::shared_ptr<const RuleSet>> rules_;
};

/// An adapter turns one row into exactly one add() or skip().
using Adapter = void (*)(const Row& row, Reading& into);

}  // namespace cpfit::published
