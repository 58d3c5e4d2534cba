// From a recipe to the arguments of a real training job, and back: values in, values out, no files and no clocks. Only names
// that were read in the framework's own sources or documents are written; what a format has no name for is listed, and
// combinations that a framework accepts but does not do, or does wrongly, are refused with the reason and the repair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/recipe/recipe.h"
#include "model/recipe/training.h"

namespace cpfit {

enum class LaunchFormat : std::uint8_t { kMegatron, kBridge, kTorchtitan, kDeepspeed };
[[nodiscard]] std::string_view name_of(LaunchFormat format);  // "megatron", "bridge", "torchtitan", "deepspeed"
[[nodiscard]] Outcome<LaunchFormat> parse_launch_format(std::string_view text);
/// Where the names of a format were read: projects and versions.
[[nodiscard]] std::string_view names_read_in(LaunchFormat format);
/// The rule set a recipe has that was read from this format.
[[nodiscard]] std::string_view framework_of(LaunchFormat format);
/// Whether what a rule set counts is what the arguments of this format start.
[[nodiscard]] bool starts(LaunchFormat format, std::string_view framework);

/// What is launched. `generation` is the GPU's, as in gpus.toml ("ampere", "hopper", "blackwell"); empty: unknown.
struct LaunchCase {
  Recipe recipe;
  Training training;
  std::int64_t layers = 0;         // of the model; 0: unknown
  std::int32_t gpus_per_node = 8;  // processes of one node
  std::string generation;
  std::vector<std::string> device_orders;  // GPUs in the order of the ranks ("0,2,1,3"); nodes take them in turns
  std::string devices_variable = "CUDA_VISIBLE_DEVICES";
};

/// One argument: of the program that starts the processes (torchrun, deepspeed) or of the training script.
struct LaunchArgument {
  std::string name;                 // "--context-parallel-size", "model.context_parallel_size", "zero_optimization.stage"
  std::vector<std::string> values;  // none: a switch
  std::string recipe_key;           // what it carries ("cp"); "training" for lengths and batches, "world" for process counts
  std::string reason;
  bool of_launcher = false;
};

struct LaunchVariable {
  std::string name;
  std::string value;  // empty: must not be set
  std::string reason;
  std::vector<std::string> by_node = {};  // in place of `value`: node n has entry n % size
};

/// A choice of the recipe that these arguments do not hold. Choices that the framework cannot follow at all are refused.
struct Unexpressed {
  std::string recipe_key;
  std::string value;
  std::string reason;
  bool elsewhere = false;  // to be set outside these arguments, as the reason says; false: nothing of the job depends on it
};

struct Launch {
  LaunchFormat format = LaunchFormat::kMegatron;
  std::int64_t world = 0;
  std::vector<LaunchArgument> arguments;
  std::vector<LaunchVariable> environment;
  std::vector<Unexpressed> unexpressed;
};

/// The arguments of a recipe. Problems "launch.*": a rule set of another framework, choices this format has no name for, and
/// combinations the framework would refuse, ignore or do wrongly.
[[nodiscard]] Outcome<Launch> write_launch(LaunchFormat format, const LaunchCase& what);

/// As a person pastes it: environment, launcher and script for megatron and bridge; a TOML file for torchtitan, a JSON one
/// for deepspeed. read_launch reads it back.
[[nodiscard]] std::string to_text(const Launch& launch);
/// The same for a file, with the reasons as comments in front; JSON has no comments.
[[nodiscard]] std::string to_annotated_text(const Launch& launch);
/// The name and its values, as one writes them behind each other.
[[nodiscard]] std::vector<std::string> words_of(const LaunchArgument& argument);

/// The model as far as the arguments name it; none: not named.
struct LaunchedModel {
  std::optional<std::int64_t> layers, hidden, ffn_hidden, heads, kv_heads, head_dim, vocab;
  std::optional<double> parameters;  // where only a size is named (torchtitan's flavor "70B")
};

/// What a job's arguments say. Keys of the recipe that no argument names hold what the framework then does.
struct LaunchReading {
  Recipe recipe;
  std::optional<Tokens> sequence;
  std::optional<std::int64_t> global_batch;
  std::optional<std::int64_t> world;  // as the launcher states it
  LaunchedModel model;
  std::vector<std::string> device_orders;  // every value that CUDA_VISIBLE_DEVICES (or AMD's) is given, as written
  std::vector<std::string> passed_over;    // names that say nothing of a recipe
  Problems notes;                          // harmless, but not what was meant
};

/// Reads a script, an argument list or a configuration file of that framework. `gpus`: processes of the job where the text does
/// not say; `layers` of the model where the text counts layers per stage but names no total (torchtitan). Problems as
/// write_launch, and "launch.unreadable", "launch.world_unknown".
[[nodiscard]] Outcome<LaunchReading> read_launch(LaunchFormat format, std::string_view text,
                                                 std::optional<std::int64_t> gpus = std::nullopt, std::int64_t layers = 0);

}  // namespace cpfit
