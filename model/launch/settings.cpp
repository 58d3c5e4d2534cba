#include "model/launch/settings.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/quantity/text_file.h"
#include "model/recipe/recipe_names.h"

namespace cpfit::launch {

namespace {

struct Word {
  std::string text;
  int line = 1;
};

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (const char c : text) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return true;
}

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  int line = 1, begun = 1;
  const auto end_word = [&] {
    if (inside) words.push_back({word, begun});
    word.clear();
    inside = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!inside) begun = line;
    if (c == '\n') ++line;
    if (quote == 0 && c == '#' && !inside) {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      ++i;
      if (text[i] == '\n') {
        ++line;
        if (quote == 0) end_word();
      } else {
        inside = true;
        word += text[i];
      }
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (c == ' ' || c == '\n' || c == '\t') {  // a quoted list of arguments ("--a 1 --b 2"): cut like an unquoted one
        const std::size_t equals = word.find('=');
        if (word.starts_with("-") || word.empty()) {
          end_word();
        } else if (equals != std::string::npos && is_name(word.substr(0, equals))) {
          word = word.substr(equals + 1);
          inside = !word.empty();
          end_word();
        } else {
          end_word();
        }
        begun = line;
      } else {
        inside = true;
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';' || c == '(' || c == ')') {
      if ((c == '(' || c == ')') && word.starts_with("E") && word.find('t') != std::string::npos) {
        word += c;  // a pipeline layout: "E|(t|)*3,L"
      } else {
        end_word();
        if (c == '\n' || c == ';') words.push_back({"\n", line});
      }
    } else {
      inside = true;
      word += c;
    }
  }
  end_word();
  return words;
}

/// Text that grows beyond this by its variables (A=$A$A, again and again) is left as it stands.
constexpr std::size_t kLongestWord = 64u << 10;

std::string replaced(const std::string& text, const std::map<std::string, std::string>& variables) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    std::size_t end = i + 1;
    std::string name, otherwise = text.substr(i);
    if (end < text.size() && text[end] == '{') {
      const std::size_t close = text.find('}', end);
      if (close == std::string::npos) return out + text.substr(i);
      const std::string inner = text.substr(end + 1, close - end - 1);
      const std::size_t colon = inner.find(":-");
      name = inner.substr(0, colon);
      otherwise = colon == std::string::npos ? text.substr(i, close + 1 - i) : inner.substr(colon + 2);
      end = close + 1;
    } else {
      while (end < text.size() && is_name("a" + text.substr(end, 1))) ++end;
      name = text.substr(i + 1, end - i - 1);
      otherwise = text.substr(i, end - i);
    }
    const auto found = variables.find(name);
    out += found == variables.end() ? otherwise : found->second;
    if (out.size() > kLongestWord && out.size() > text.size()) return text;
    i = end - 1;
  }
  return out;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::string unquoted(std::string text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

/// "[2, 4]" -> 2, 4; anything else is one value.
std::vector<std::string> values_of(const std::string& text) {
  const std::string plain = trimmed(text);
  if (plain.size() < 2 || plain.front() != '[' || plain.back() != ']') return {unquoted(plain)};
  std::vector<std::string> values;
  std::istringstream stream(plain.substr(1, plain.size() - 2));
  for (std::string part; std::getline(stream, part, ',');) {
    if (const std::string value = unquoted(trimmed(part)); !value.empty()) values.push_back(value);
  }
  return values;
}

std::string text_of(const nlohmann::json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

constexpr int kDeepest = 64;

bool flatten(const nlohmann::json& value, const std::string& name, Settings& into, int depth) {
  if (depth > kDeepest) return false;
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items()) {
      if (!flatten(inner, name.empty() ? key : name + "." + key, into, depth + 1)) return false;
    }
    return true;
  }
  Setting setting{name, {}, name};
  if (value.is_array()) {
    for (const auto& inner : value) setting.values.push_back(text_of(inner));
  } else if (!value.is_null()) {
    setting.values.push_back(text_of(value));
  }
  into.options.push_back(std::move(setting));
  return true;
}

void flatten(const toml::node& node, const std::string& name, Settings& into) {
  const auto text = [](const toml::node& leaf) {
    if (const auto value = leaf.value<std::string>(); value && leaf.is_string()) return *value;
    if (const auto value = leaf.value<bool>(); value && leaf.is_boolean()) return std::string(*value ? "true" : "false");
    if (const auto value = leaf.value<std::int64_t>(); value && leaf.is_integer()) return std::to_string(*value);
    if (const auto value = leaf.value<double>()) return fmt::format("{}", *value);
    return std::string("?");
  };
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, inner] : *table) {
      const std::string word(key.str());
      flatten(inner, name.empty() ? word : name + "." + word, into);
    }
    return;
  }
  Setting setting{name, {}, fmt::format("line {}", node.source().begin.line)};
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& inner : *array) setting.values.push_back(text(inner));
  } else {
    setting.values.push_back(text(node));
  }
  into.options.push_back(std::move(setting));
}

}  // namespace

Settings read_words(std::string_view text) {
  Settings settings;
  Setting* open = nullptr;
  for (const Word& word : words_of(text)) {
    const std::string plain = replaced(word.text, settings.variables);
    const std::string where = fmt::format("line {}", word.line);
    const std::size_t equals = plain.find('=');
    if (plain == "\n") {
      open = nullptr;  // values stand on the line of their option, or after a continuation
    } else if (plain.size() > 2 && plain.starts_with("--")) {
      settings.options.push_back({plain.substr(0, equals), {}, where});
      if (equals != std::string::npos) settings.options.back().values = values_of(plain.substr(equals + 1));
      open = equals == std::string::npos ? &settings.options.back() : nullptr;
    } else if (equals != std::string::npos && is_name(plain.substr(0, equals))) {
      settings.variables[plain.substr(0, equals)] = plain.substr(equals + 1);
      settings.options.push_back({plain.substr(0, equals), values_of(plain.substr(equals + 1)), where});
      open = nullptr;
    } else if (equals != std::string::npos && equals > 0 && plain.find('.') < equals) {  // Hydra: group.name=value
      const std::size_t begin = plain.find_first_not_of('+');
      settings.options.push_back({plain.substr(begin, equals - begin), values_of(plain.substr(equals + 1)), where});
      open = nullptr;
    } else if (plain == "export" || plain == "unset") {
      open = nullptr;
    } else if (open != nullptr) {
      open->values.push_back(plain);
    }
  }
  return settings;
}

Outcome<Settings> read_yaml(std::string_view text) {
  Settings settings;
  struct Level {
    std::size_t indent;
    std::string name;
  };
  std::vector<Level> levels;
  std::istringstream stream{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (const std::size_t comment = line.find(" #"); comment != std::string::npos) line.resize(comment);
    const std::string plain = trimmed(line);
    if (plain.empty() || plain[0] == '#' || plain == "---") continue;
    const std::size_t indent = line.find_first_not_of(' ');
    if (plain.starts_with("- ") && !settings.options.empty() && !levels.empty()) {
      settings.options.back().values.push_back(unquoted(trimmed(plain.substr(2))));
      continue;
    }
    const std::size_t colon = plain.find(':');
    if (colon == std::string::npos || line.find('\t') < indent) {
      return Problem{"launch.unreadable", fmt::format("line {}", number), fmt::format("'{}' is not 'key: value'", plain),
                     "paste the YAML configuration with blanks as indentation"};
    }
    while (!levels.empty() && levels.back().indent >= indent) levels.pop_back();
    const std::string key = unquoted(trimmed(plain.substr(0, colon)));
    const std::string name = levels.empty() ? key : levels.back().name + "." + key;
    levels.push_back({indent, name});
    const std::string value = trimmed(plain.substr(colon + 1));
    settings.options.push_back(
        {name, value.empty() ? std::vector<std::string>{} : values_of(value), fmt::format("line {}", number)});
  }
  return settings;
}

Outcome<Settings> read_toml(std::string_view text) {
  try {
    Settings settings;
    flatten(toml::parse(text), "", settings);
    return settings;
  } catch (const toml::parse_error& error) {
    return Problem{"launch.unreadable", fmt::format("line {}", error.source().begin.line), std::string(error.description()),
                   "paste the TOML file or the arguments of the job"};
  }
}

Outcome<Settings> read_json(std::string_view text) {
  Settings settings;
  const bool deep = json_nesting(text) > kMostNesting;
  const nlohmann::json parsed = deep ? nlohmann::json() : nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object() || !flatten(parsed, "", settings, 0)) {
    return Problem{"launch.unreadable", "", "this is not a JSON object", "paste the whole configuration, braces included"};
  }
  return settings;
}

Taker::Taker(const Settings& settings) : settings_(settings) {
  for (const Setting& setting : settings.options) last_[setting.name] = &setting;
}

const Setting* Taker::take(const std::string& name) {
  const auto found = last_.find(name);
  if (found == last_.end()) return nullptr;
  taken_[name] = true;
  return found->second;
}

bool Taker::has(const std::string& name) const { return last_.contains(name); }

std::optional<std::int64_t> Taker::number(const std::string& name) {
  const Setting* setting = take(name);
  if (setting == nullptr || (setting->values.size() == 1 && (setting->values[0] == "null" || setting->values[0] == "None")))
    return std::nullopt;
  const std::string text = setting->values.empty() ? "" : setting->values.front();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() || value > (std::int64_t{1} << 40) || value < -1) {
    problem("launch.not_a_number", setting->where, fmt::format("{} is '{}', not a whole number", name, text),
            text.find('$') != std::string::npos ? "write the value the variable has" : "write a whole number");
    return std::nullopt;
  }
  return value;
}

std::int64_t Taker::number(const std::string& name, std::int64_t otherwise) {
  const std::optional<std::int64_t> value = number(name);
  if (value && (*value < 1 || *value > kMaxDegree)) {
    problem("launch.not_a_degree", last_.at(name)->where, fmt::format("{} is {}", name, *value),
            fmt::format("write a whole number from 1 to {}", kMaxDegree));
    return otherwise;
  }
  return value.value_or(otherwise);
}

bool Taker::flag(const std::string& name, bool otherwise) {
  const Setting* setting = take(name);
  if (setting == nullptr) return otherwise;
  if (setting->values.empty()) return true;
  const std::string& text = setting->values.front();
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  return name.starts_with("--");  // a switch with a stray word after it
}

std::string Taker::word(const std::string& name, const std::string& otherwise) {
  const Setting* setting = take(name);
  return setting == nullptr || setting->values.empty() ? otherwise : setting->values.front();
}

std::vector<std::int64_t> Taker::numbers(const std::string& name) {
  std::vector<std::int64_t> out;
  const Setting* setting = take(name);
  if (setting == nullptr) return out;
  for (const std::string& text : setting->values) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMaxDegree) {
      problem("launch.not_a_degree", setting->where, fmt::format("{} holds '{}'", name, text),
              "write whole numbers of at least 1");
      return {};
    }
    out.push_back(value);
  }
  return out;
}

std::optional<std::string> Taker::variable(const std::string& name) const {
  const auto found = settings_.variables.find(name);
  return found == settings_.variables.end() ? std::nullopt : std::optional(found->second);
}

void Taker::problem(const std::string& code, const std::string& where, const std::string& message, const std::string& repair) {
  problems.push_back({code, where, message, repair});
}

std::vector<std::string> Taker::rest() const {
  std::vector<std::string> names;
  for (const auto& [name, setting] : last_) {
    if (!taken_.contains(name) && !setting->values.empty()) names.push_back(name);
    if (!taken_.contains(name) && setting->values.empty() && name.starts_with("--")) names.push_back(name);
  }
  return names;
}

std::optional<std::int64_t> launched_world(Taker& taker) {
  const auto either = [&](const char* one, const char* two) {
    const std::optional<std::int64_t> first = taker.number(one);
    return first ? first : taker.number(two);
  };
  std::optional<std::int64_t> nodes = either("--nnodes", "--num_nodes");
  std::optional<std::int64_t> each = either("--nproc-per-node", "--nproc_per_node");
  if (!each) each = taker.number("--num_gpus");
  if (!each) return std::nullopt;
  const std::int64_t world = nodes.value_or(1) * *each;
  if (*each < 1 || nodes.value_or(1) < 1 || *each > kMaxWorld || nodes.value_or(1) > kMaxWorld || world > kMaxWorld) {
    taker.problem("launch.world_size", "", "the launcher starts no sensible number of processes",
                  "check nodes and processes per node");
    return std::nullopt;
  }
  return world;
}

void resolve_dp(Recipe& recipe, std::optional<std::int64_t> stated, std::optional<std::int64_t> gpus, Taker& taker) {
  if (stated && gpus && *stated != *gpus) {
    taker.problem("launch.world_size", "", fmt::format("the launcher starts {} processes, but {} GPUs were said", *stated, *gpus),
                  "leave one of them out");
    return;
  }
  const std::optional<std::int64_t> world = stated ? stated : gpus;
  const std::int64_t model = std::int64_t{recipe.tp} * recipe.cp * recipe.pp;
  if (!world) {
    taker.problem("launch.world_unknown", "", "nothing says how many processes the job has, so dp is unknown",
                  "paste the launcher's line too (--nnodes, --nproc-per-node), or say --gpus");
  } else if (*world < 1 || *world % model != 0 || *world / model > kMaxDegree) {
    taker.problem(
        "launch.world_size", "",
        fmt::format("{} processes are no multiple of tp {} x cp {} x pp {} = {}", *world, recipe.tp, recipe.cp, recipe.pp, model),
        fmt::format("start {} processes, or change a degree", (std::max<std::int64_t>(*world, 1) + model - 1) / model * model));
  } else {
    recipe.dp = static_cast<std::int32_t>(*world / model);
  }
}

void Writer::add(const std::string& name, std::vector<std::string> values, const std::string& key, const std::string& reason) {
  launch.arguments.push_back({name, std::move(values), key, reason, false});
}
void Writer::number(const std::string& name, std::int64_t value, const std::string& key, const std::string& reason) {
  add(name, {std::to_string(value)}, key, reason);
}
void Writer::cannot(const std::string& key, const std::string& value, const std::string& reason, const std::string& repair) {
  problems.push_back({"launch.not_expressible", key,
                      fmt::format("{} cannot say {}={}: {}", name_of(launch.format), key, value, reason), repair});
}
void Writer::elsewhere(const std::string& key, const std::string& value, const std::string& reason) {
  launch.unexpressed.push_back({key, value, reason, true});
}
void Writer::without_effect(const std::string& key, const std::string& value, const std::string& reason) {
  launch.unexpressed.push_back({key, value, reason, false});
}
void Writer::refuse(const std::string& code, const std::string& where, const std::string& message, const std::string& repair) {
  problems.push_back({code, where, message, repair});
}

void list_without_effect(Writer& writer, const Recipe& recipe, ShardLayout shards_as) {
  const auto list = [&](bool differs, const char* key, const std::string& value, const char* reason) {
    if (!differs) return;
    for (const Unexpressed& row : writer.launch.unexpressed) {
      if (row.recipe_key == key) return;
    }
    writer.without_effect(key, value, reason);
  };
  if (recipe.cp == 1) {
    const char* why = "without effect: cp is 1";
    list(recipe.cp_comm != CpComm::kP2p, "cp_comm", std::string(name_of(recipe.cp_comm)), why);
    list(recipe.shard_layout != shards_as, "shard_layout", std::string(name_of(recipe.shard_layout)), why);
  }
  const bool groups = recipe.cp > 1 && (recipe.cp_comm == CpComm::kA2a || recipe.cp_comm == CpComm::kA2aP2p);
  list(!groups && recipe.a2a_degree != 1, "a2a_degree", std::to_string(recipe.a2a_degree),
       "without effect: no all-to-all of this exchange is smaller than cp");
  list(recipe.window != 1, "window", std::to_string(recipe.window), "without effect: not a double ring");
  list(recipe.tp == 1 && !recipe.sequence_parallel, "sequence_parallel", "false", "without effect: tp is 1");
  if (recipe.pp == 1) {
    list(recipe.stage_layout.kind != LayoutKind::kEven, "stage_layout", to_text(recipe.stage_layout),
         "without effect on one stage");
    list(recipe.schedule == Schedule::kGpipe, "schedule", "gpipe", "without effect on one stage");
    if (recipe.vpp > 1) {
      writer.refuse("launch.interleaving", "vpp", "interleaving needs at least two pipeline stages",
                    "set vpp to 1 or pp above 1");
    }
  }
  list(recipe.vpp == 1 && !recipe.overlap_p2p, "overlap_p2p", "false", "without effect: not interleaved");
  list(recipe.state_sharding == StateSharding::kNone && !recipe.overlap_param_gather, "overlap_param_gather", "false",
       "without effect: no parameter is gathered");
}

void list_training(Writer& writer, const Training& training) {
  if (training.mask.kind == MaskKind::kDocuments) {
    writer.elsewhere(
        "training", "mask=documents",
        "attention stays inside documents only when the data pipeline packs them and passes their lengths: without that the "
        "job attends across them");
  } else if (training.mask.kind == MaskKind::kFull) {
    writer.elsewhere("training", "mask=full", "the model is causal unless its own code says otherwise");
  } else if (training.mask.kind == MaskKind::kSlidingWindow) {
    writer.elsewhere("training", "mask=sliding_window", "the window is an argument of the model");
  }
  if (training.optimizer != OptimizerKind::kAdam) {
    writer.elsewhere("training", fmt::format("optimizer={}", name_of(training.optimizer)),
                     "the job's optimizer is its own argument; with plain Adam it needs more memory than planned");
  }
  if (training.vocab_divisor != 128) {
    writer.elsewhere("training", fmt::format("vocab_divisor={}", training.vocab_divisor),
                     "how the vocabulary is padded is an argument of the model");
  }
}

bool check_framework(Writer& writer, const Recipe& recipe) {
  if (starts(writer.launch.format, recipe.framework)) return true;
  writer.refuse("launch.framework", "framework",
                fmt::format("the recipe's figures are those of {}, but {} arguments start {}", recipe.framework,
                            name_of(writer.launch.format), framework_of(writer.launch.format)),
                fmt::format("plan with framework={}, or choose another --format", framework_of(writer.launch.format)));
  return false;
}

void add_torchrun(Writer& writer, const LaunchCase& what) {
  std::int64_t each = std::max<std::int32_t>(1, what.gpus_per_node);
  while (what.recipe.world() % each != 0) --each;
  const std::string reason = fmt::format("tp*cp*pp*dp = {} processes, one per GPU", what.recipe.world());
  writer.launch.arguments.push_back({"--nnodes", {std::to_string(what.recipe.world() / each)}, "world", reason, true});
  writer.launch.arguments.push_back({"--nproc-per-node", {std::to_string(each)}, "world", reason, true});
}

Outcome<Launch> finish(Writer writer, const LaunchCase& what) {
  if (!writer.problems.empty()) return writer.problems;
  writer.launch.world = what.recipe.world();
  return std::move(writer.launch);
}

}  // namespace cpfit::launch
