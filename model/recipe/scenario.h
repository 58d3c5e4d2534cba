// A scenario: the question a person asks, read from a TOML file (examples/). Every "auto" is resolved by sim/plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/cluster/cluster.h"
#include "model/quantity/problem.h"
#include "model/recipe/legality.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"
#include "model/transformer/architecture.h"

namespace cpfit {

/// Values to try per axis; empty = auto (every legal value).
struct SearchSpace {
  std::vector<std::int32_t> tp, cp, pp, dp, vpp, micro_batch;
  std::vector<CpComm> cp_comm;
  std::vector<std::int32_t> a2a_degree, window;
  std::vector<Recompute> recompute;
  std::vector<StateSharding> state_sharding;
  std::vector<std::int32_t> state_shards;  // 0: all data ranks
  std::vector<ShardLayout> shard_layout;
  std::vector<StageLayout> stage_layout;
  std::optional<bool> sequence_parallel;
};

struct Requirements {
  double memory_margin_share = 0.05;   // of the device's capacity that must stay free, beyond the upper bound's own spread
  double exposed_budget_share = 0.05;  // of the step that CP communication may stay exposed and still count as hidden
  double min_tokens_per_second_per_gpu = 0.0;
  double throughput_tolerance_share =
      0.05;  // a smaller CP degree may be this much slower than the fastest feasible recipe and still ship
};

/// Versions that the scenario's cluster runs, as far as it states them: a calibration made under others is stale.
struct StatedSoftware {
  std::string driver, cuda, nccl, cudnn, mpi;
};

/// A file that the scenario names (config.json, topology file), as read: part of what a run is computed from.
struct ScenarioInput {
  std::string path;
  std::string text;
};

struct Scenario {
  std::string name;
  Architecture model;
  Cluster cluster;
  Training training;
  Recipe base;  // what holds where neither the search nor a command line says otherwise: [recipe], axes of one value, precision
  SearchSpace search;
  Requirements requirements;
  StatedSoftware software;
  std::string text;  // the file as read, stored with the run
  std::string path;
  std::vector<ScenarioInput> inputs;  // files the scenario names
};

/// Reads a scenario from TOML text. `path` is used in messages and to resolve relative paths of config.json and topology files.
/// Problems: syntax (line, column), unknown keys with a suggestion, unit mistakes, impossible values, unknown presets, MoE
/// models.
[[nodiscard]] Outcome<Scenario> read_scenario(const std::string& text, const std::string& path);

/// The case of one recipe on this scenario's cluster. Refers to its arguments: they must outlive it.
[[nodiscard]] LegalityCase legality_case(const Scenario& scenario, const RuleSet& rules, const Recipe& recipe);

/// Reads the file; an unreadable file is a Problem (a person's input).
[[nodiscard]] Outcome<Scenario> load_scenario(const std::string& path);

}  // namespace cpfit
