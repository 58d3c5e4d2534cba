#include "model/launch/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "model/launch/settings.h"
#include "model/recipe/recipe_names.h"

namespace cpfit {

namespace {

struct FormatRow {
  LaunchFormat format;
  std::string_view name, read_in, framework;
};
constexpr FormatRow kFormats[] = {
    {LaunchFormat::kMegatron, "megatron",
     "Megatron-LM megatron/training/arguments.py and core's configuration classes (main, 2026), Megatron-FSDP guide",
     "megatron-core"},
    {LaunchFormat::kBridge, "bridge",
     "Megatron-Bridge docs/megatron-lm-to-megatron-bridge.md, mixed_precision.py, comm_overlap.py", "megatron-bridge"},
    {LaunchFormat::kTorchtitan, "torchtitan", "torchtitan torchtitan/config/job_config.py, the last form with TOML files",
     "torchtitan"},
    {LaunchFormat::kDeepspeed, "deepspeed", "DeepSpeed configuration JSON and ulysses_sp.register_with_transformers",
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
    text += variable.value.empty() ? fmt::format("unset {}\n", variable.name)
                                   : fmt::format("export {}={}\n", variable.name, variable.value);
  }
  const bool hydra = launch.format == LaunchFormat::kBridge;
  std::string launcher = "torchrun", script = hydra ? " pretrain.py" : " pretrain_gpt.py";
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
  std::string text, section;
  for (const LaunchArgument& argument : launch.arguments) {
    if (argument.of_launcher) {
      text = fmt::format("# torchrun {} {}\n", argument.name, argument.values.front()) + text;
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
  return text;
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

Outcome<LaunchReading> read_launch(LaunchFormat format, std::string_view text, std::optional<std::int64_t> gpus,
                                   std::int64_t layers) {
  constexpr std::size_t kLongest = 4u << 20;
  if (text.size() > kLongest) {
    return Problem{"launch.unreadable", "", "the text is longer than 4 MiB", "paste the arguments only"};
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool options = text.find("--") != std::string_view::npos;
  const auto with = [&](const Outcome<launch::Settings>& settings) -> Outcome<LaunchReading> {
    if (!settings.ok()) return settings.problems();
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
