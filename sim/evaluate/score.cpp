#include "sim/evaluate/score.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cpfit {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

MetricSummary summary_of(Metric metric, const std::vector<const ValidationRow*>& rows) {
  MetricSummary summary{};
  summary.metric = metric;
  summary.rows = static_cast<std::int64_t>(rows.size());
  std::vector<double> errors, sizes;
  std::int64_t inside = 0;
  for (const ValidationRow* row : rows) {
    errors.push_back(row->error);
    sizes.push_back(std::abs(row->error));
    summary.mape += sizes.back();
    summary.max_abs_error = std::max(summary.max_abs_error, sizes.back());
    if (row->low <= row->measured && row->measured <= row->high) ++inside;
  }
  summary.mape /= static_cast<double>(rows.size());
  summary.median_abs_error = median(std::move(sizes));
  summary.bias = median(std::move(errors));
  summary.coverage = static_cast<double>(inside) / static_cast<double>(rows.size());
  return summary;
}

}  // namespace

std::vector<MetricSummary> summarize(const std::vector<ValidationRow>& rows) {
  std::map<Metric, std::vector<const ValidationRow*>> by_metric;
  for (const ValidationRow& row : rows) by_metric[row.metric].push_back(&row);
  std::vector<MetricSummary> summaries;
  for (const auto& [metric, of_metric] : by_metric) summaries.push_back(summary_of(metric, of_metric));
  return summaries;
}

std::vector<GroupSummary> summarize_groups(const std::vector<ValidationRow>& rows) {
  std::vector<std::string> names;
  for (const ValidationRow& row : rows) {
    if (std::find(names.begin(), names.end(), row.group) == names.end()) names.push_back(row.group);
  }
  if (names.size() < 2) return {};
  std::vector<GroupSummary> groups;
  for (const std::string& name : names) {
    std::vector<ValidationRow> of_group;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(of_group),
                 [&](const ValidationRow& row) { return row.group == name; });
    groups.push_back({name, summarize(of_group)});
  }
  return groups;
}

void count_verdict(OutOfMemoryScore& score, bool died, Fit verdict) {
  ++score.rows;
  if (verdict == Fit::kAtRisk) {
    ++score.at_risk;
    return;
  }
  ++score.decided;
  const bool called_dead = verdict == Fit::kOom;
  if (called_dead == died) ++score.right;
  if (died && !called_dead) ++score.dead_called_fits;
  if (!died && called_dead) ++score.live_called_oom;
}

}  // namespace cpfit
