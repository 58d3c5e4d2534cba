#include "model/launch/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "model/launch/formats.h"
#include "model/recipe/recipe_names.h"

namespace cpfit {

namespace {

struct FormatRow {
  LaunchFormat format;
  std::string_view name, read_in, framework;
};
constexpr FormatRow kFormats[] = {
    {LaunchFormat::kMegatron, "megatron",
     "Megatron-LM: megatron/training/arguments.py (000c4ac), "
     "core/transformer/pipeline_parallel_layer_layout.py (00caa53), the Megatron-FSDP guide",
     "megatron-core"},
    {LaunchFormat::kBridge, "bridge",
     "Megatron-Bridge: docs/megatron-lm-to-megatron-bridge.md (167ba2a), scripts/translate_mlm_to_bridge.py (158aa4e), "
     "training/config.py (4feb11f, 003e863), mixed_precision.py (0509780), comm_overlap.py (0685ff5)",
     "megatron-bridge"},
    {LaunchFormat::kTorchtitan, "torchtitan",
     "torchtitan: torchtitan/config/job_config.py (6404b93), a form with TOML files; PyTorch's get_schedule_class", "torchtitan"},
    {LaunchFormat::kDeepspeed, "deepspeed",
     "DeepSpeed: runtime/config.py (029f12b), runtime/zero/config.py (1b88ac3), "
     "runtime/sequence_parallel/ulysses_sp.py (016d2f7)",
     "deepspeed-ulysses"},
};

const FormatRow& row_of(LaunchFormat format) { return kFormats[static_cast<std::size_t>(format)]; }

std::string quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" |*()[]$&;<>'\"") == std::string::npos;
  return plain ? value : "'" + value + "'";
}

bool is_literal(const std::string& value) {
  return value == "true" || value == "false" || (!value.empty() && value.find_first_not_of("-0123456789") == std::string::npos);
}

std::string shell_text(const Launch& launch) {
  std::string text;
  for (const LaunchVariable& variable : launch.environment) {
    if (!variable.by_node.empty()) {
      text += fmt::format("case $((NODE_RANK % {})) in\n", variable.by_node.size());
      for (std::size_t n = 0; n < variable.by_node.size(); ++n)
        text += fmt::format("  {}) export {}={} ;;\n", n, variable.name, variable.by_node[n]);
      text += "esac\n";
      continue;
    }
    text += variable.value.empty() ? fmt::format("unset {}\n", variable.name)
                                   : fmt::format("export {}={}\n", variable.name, variable.value);
  }
  const bool hydra = launch.format == LaunchFormat::kBridge;
  std::string launcher = "torchrun", script = hydra ? " scripts/training/run_recipe.py" : " pretrain_gpt.py";
  for (const LaunchArgument& argument : launch.arguments) {
    if (argument.of_launcher) {
      launcher += fmt::format(" {} {}", argument.name, fmt::join(argument.values, " "));
    } else if (hydra) {
      const bool list = argument.values.size() > 1 || argument.name == "model.recompute_modules";
      script +=
          fmt::format(" \\\n  {}={}", argument.name,
                      list ? quoted(fmt::format("[{}]", fmt::join(argument.values, ","))) : quoted(argument.values.front()));
    } else {
      script += fmt::format(" \\\n  {}", argument.name);
      for (const std::string& value : argument.values) script += " " + quoted(value);
    }
  }
  return text + launcher + script + "\n";
}

std::string toml_text(const Launch& launch) {
  std::string text, section, launcher;
  for (const LaunchArgument& argument : launch.arguments) {
    if (argument.of_launcher) {
      launcher += fmt::format(" {} {}", argument.name, argument.values.front());
      continue;
    }
    const std::size_t dot = argument.name.find('.');
    if (argument.name.substr(0, dot) != section) {
      section = argument.name.substr(0, dot);
      text += fmt::format("\n[{}]\n", section);
    }
    const std::string& value = argument.values.front();
    const std::string printed = is_literal(value) ? value : "\"" + value + "\"";
    text += fmt::format("{} = {}\n", argument.name.substr(dot + 1),
                        argument.name == "model.converters" ? "[" + printed + "]" : printed);
  }
  return "# torchrun" + launcher + "\n" + text;
}

std::string json_text(const Launch& launch) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  for (const LaunchArgument& argument : launch.arguments) {
    if (argument.of_launcher) continue;
    nlohmann::ordered_json* at = &root;
    std::size_t begin = 0;
    for (std::size_t dot = argument.name.find('.'); dot != std::string::npos; dot = argument.name.find('.', begin)) {
      at = &(*at)[argument.name.substr(begin, dot - begin)];
      begin = dot + 1;
    }
    const std::string& value = argument.values.front();
    (*at)[argument.name.substr(begin)] = is_literal(value) ? nlohmann::ordered_json::parse(value) : nlohmann::ordered_json(value);
  }
  return root.dump(2) + "\n";
}

}  // namespace

std::string_view name_of(LaunchFormat format) { return row_of(format).name; }
std::string_view names_read_in(LaunchFormat format) { return row_of(format).read_in; }
std::string_view framework_of(LaunchFormat format) { return row_of(format).framework; }

bool starts(LaunchFormat format, std::string_view framework) {
  // The other variants of Megatron need flags beside the recipe (fused loss, local kernels, determinism) or are other programs.
  return framework == framework_of(format) || (format == LaunchFormat::kMegatron && framework == "megatron-2024");
}

Outcome<LaunchFormat> parse_launch_format(std::string_view text) {
  std::vector<std::string> known;
  for (const FormatRow& row : kFormats) {
    if (row.name == text) return row.format;
    known.emplace_back(row.name);
  }
  return unknown_word("launch.unknown_format", "--format", text, known);
}

Outcome<Launch> write_launch(LaunchFormat format, const LaunchCase& what) {
  switch (format) {
    case LaunchFormat::kMegatron:
      return launch::write_megatron(what);
    case LaunchFormat::kBridge:
      return launch::write_bridge(what);
    case LaunchFormat::kTorchtitan:
      return launch::write_torchtitan(what);
    case LaunchFormat::kDeepspeed:
      break;
  }
  return launch::write_deepspeed(what);
}

std::string to_text(const Launch& launch) {
  switch (launch.format) {
    case LaunchFormat::kTorchtitan:
      return toml_text(launch);
    case LaunchFormat::kDeepspeed:
      return json_text(launch);
    case LaunchFormat::kMegatron:
    case LaunchFormat::kBridge:
      break;
  }
  return shell_text(launch);
}

std::vector<std::string> words_of(const LaunchArgument& argument) {
  std::vector<std::string> words{argument.name};
  words.insert(words.end(), argument.values.begin(), argument.values.end());
  return words;
}

std::string to_annotated_text(const Launch& launch) {
  if (launch.format == LaunchFormat::kDeepspeed) return to_text(launch);
  std::string text;
  for (const LaunchVariable& row : launch.environment) text += fmt::format("# {}: {}\n", row.name, row.reason);
  for (const LaunchArgument& row : launch.arguments) text += fmt::format("# {}: {}\n", fmt::join(words_of(row), " "), row.reason);
  for (const Unexpressed& row : launch.unexpressed) {
    const std::string choice = row.recipe_key == "training" ? row.value : fmt::format("{}={}", row.recipe_key, row.value);
    text += fmt::format("# {} is not written: {}\n", choice, row.reason);
  }
  return text + to_text(launch);
}

namespace {

/// Which GPUs the script gives its processes, in the order of its lines: a `case` on the node assigns several.
void take_device_orders(const launch::Settings& settings, LaunchReading& reading) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"}) {
    std::erase(reading.passed_over, name);
    for (const launch::Setting& setting : settings.options) {
      if (setting.name == name && !setting.values.empty()) reading.device_orders.push_back(setting.values.front());
    }
  }
}

}  // namespace

Outcome<LaunchReading> read_launch(LaunchFormat format, std::string_view text, std::optional<std::int64_t> gpus,
                                   std::int64_t layers) {
  constexpr std::size_t kLongest = 4u << 20;
  if (text.size() > kLongest) {
    return Problem{"launch.unreadable", "", "the text is longer than 4 MiB", "paste the arguments only"};
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool options = text.find("--") != std::string_view::npos;
  const auto read = [&](const Outcome<launch::Settings>& settings) -> Outcome<LaunchReading> {
    switch (format) {
      case LaunchFormat::kMegatron:
        return launch::read_megatron(*settings, gpus, format);
      case LaunchFormat::kBridge:
        return launch::read_bridge(*settings, gpus);
      case LaunchFormat::kTorchtitan:
        return launch::read_torchtitan(*settings, gpus, layers);
      case LaunchFormat::kDeepspeed:
        break;
    }
    return launch::read_deepspeed(*settings, gpus);
  };
  const auto with = [&](const Outcome<launch::Settings>& settings) -> Outcome<LaunchReading> {
    if (!settings.ok()) return settings.problems();
    Outcome<LaunchReading> reading = read(settings);
    if (reading.ok()) take_device_orders(*settings, reading.value());
    return reading;
  };
  if (begin == std::string_view::npos) {
    return Problem{"launch.unreadable", "", "there is no text", "paste the job's arguments or its configuration file"};
  }
  if (format == LaunchFormat::kDeepspeed || text[begin] == '{') return with(launch::read_json(text));
  if (format == LaunchFormat::kTorchtitan && !options) return with(launch::read_toml(text));
  if (format == LaunchFormat::kTorchtitan && text.find("\n[") != std::string_view::npos) return with(launch::read_toml(text));
  const bool yaml = format == LaunchFormat::kBridge && text.find('=') == std::string_view::npos && !options;
  return with(yaml ? launch::read_yaml(text) : Outcome<launch::Settings>(launch::read_words(text)));
}

}  // namespace cpfit
