// A measured run translated into cpfit's terms, and how a prediction scored against it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/framework/rule_set.h"
#include "model/recipe/scenario.h"
#include "model/record/measured_kernel.h"
#include "model/transformer/flops.h"

namespace cpfit {

enum class Metric : std::uint8_t {
  kStepSeconds,
  kTokensPerSecondPerGpu,
  kTflopsPerGpu,
  kMfu,
  kPeakBytes,
  kResidentBytes,
  kReservedBytes,
  kKernelSeconds,
  kCollectiveSeconds,
  kExposedSeconds  // of messages that a ring attention step waits for; may be 0, so its errors are shares of the whole step
};
[[nodiscard]] std::string_view name_of(Metric metric);

/// One row of a published table as a person would describe it to cpfit. A reader (calibrate/read) makes it, sim/evaluate predicts
/// it.
struct MeasuredRun {
  std::int64_t line = 0;  // of the CSV file, header = 1
  std::string label;
  Scenario scenario;                 // model, cluster, training; base holds the recipe as far as it is known
  std::vector<std::string> unknown;  // recipe fields the source does not say ("recompute", "layout"): searched and marked
  std::vector<std::pair<Metric, double>>
      measured;                    // in the unit of the metric's name: seconds, bytes, tokens/s, TFLOP/s; MFU a share
  FlopsConvention flops;           // under which TFLOP/s and MFU were counted
  double peak_flops_for_mfu = 0;   // the denominator the source used, FLOP/s
  std::optional<bool> died;        // out of memory, where the file tells
  std::int32_t memory_stage = -1;  // stage the memory figures belong to; -1 worst
  double extra_seconds = 0;        // documented stall of that software (e.g. polling p2p), a named physical input
  std::string group;               // scoring group ("healthy", "before_pipeline_repair", ...)

  // Physical inputs that a recipe does not hold: how that software and that cluster differed from the presets.
  std::int64_t gpus = 0;  // GPUs of the run; fewer than the cluster's when a node is used in part. 0: all of them
  std::shared_ptr<const RuleSet>
      rules;  // what the rows' own arguments change in the rule set; null: the preset of base.framework
  Seconds forward_floor, backward_floor;  // least time of one layer and micro-batch (measured host or network latency)
  Seconds layer_latency;                  // of its ten collectives of tensor parallelism, beyond what their rates explain
  BytesPerSecond bus_rate;                // all-reduce of 1 GiB over all GPUs in that job, as nccl-tests' busbw; 0: not measured
  Seconds border_latency;                 // what a gather or scatter takes per node beyond its rate, measured in that job
  Seconds border_latency_all_reduce;      // the same of an all-reduce
  BytesPerSecond domain_rate;             // all-gather of 256 MiB over one node's GPUs in that job, the same way; 0: not measured
  double held_hidden_bytes = 0;           // of reserved memory in blocks that another stream holds, per token and hidden element
  std::int32_t rails_of_part = 0;       // NICs of a node over which a gradient group with some of its GPUs sends; 0: one a member
  double activation_offload = 0;        // share of every in-flight chunk's saved activations that lies in host memory
  std::vector<std::string> conditions;  // these inputs in words, with their source
};

struct SkippedRow {
  std::int64_t line = 0;
  std::string reason;
  friend bool operator==(const SkippedRow&, const SkippedRow&) = default;
};

struct MeasuredTable {
  std::string path;
  std::string family;  // how the table was recognised: "megatron_lm_ci_golden", "nccl_busbw", ...
  std::vector<MeasuredRun> runs;
  std::vector<MeasuredKernel> kernels;
  std::vector<SkippedRow> skipped;
};

struct ValidationRow {
  std::int64_t line = 0;
  std::string label;
  Metric metric;
  double measured = 0, predicted = 0, low = 0, high = 0;
  double error = 0;  // predicted/measured - 1; of kExposedSeconds (predicted - measured) over the measured step
  std::string group;
  std::string searched;  // fields the source does not say, found by search: "recompute,vpp"; empty when all were printed
  friend bool operator==(const ValidationRow&, const ValidationRow&) = default;
};

struct MetricSummary {
  Metric metric;
  std::int64_t rows = 0;
  double mape = 0, median_abs_error = 0, max_abs_error = 0, bias = 0;  // fractions; bias = median signed error
  double coverage = 0;                                                 // share of measured values inside [low, high]
  friend bool operator==(const MetricSummary&, const MetricSummary&) = default;
};

/// Errors of the rows of one scoring group.
struct GroupSummary {
  std::string group;
  std::vector<MetricSummary> summary;
  friend bool operator==(const GroupSummary&, const GroupSummary&) = default;
};

struct OutOfMemoryScore {
  std::int64_t rows = 0, decided = 0, right = 0, at_risk = 0, dead_called_fits = 0, live_called_oom = 0;
  friend bool operator==(const OutOfMemoryScore&, const OutOfMemoryScore&) = default;
};

struct ValidationResult {
  std::string path;
  std::vector<ValidationRow> rows;
  std::vector<MetricSummary> summary;
  std::vector<GroupSummary> groups;  // by scoring group, where a file has more than one
  std::optional<OutOfMemoryScore> out_of_memory;
  std::vector<SkippedRow> skipped;
  friend bool operator==(const ValidationResult&, const ValidationResult&) = default;
};

}  // namespace cpfit
