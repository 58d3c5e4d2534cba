#include "model/recipe/scenario_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "model/quantity/text.h"
#include "model/quantity/text_file.h"
#include "model/recipe/scenario.h"

namespace cpfit::scenario {

std::string_view type_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a fraction";
    case toml::node_type::boolean:
      return "a flag";
    default:
      return "a date or time";
  }
}

std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* fraction = node.as_floating_point()) return fmt::format("{}", fraction->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::string Reading::place(const toml::node& node) const {
  const toml::source_position at = node.source().begin;
  return at ? fmt::format("{}:{}:{}", path, at.line, at.column) : path;
}

std::string Reading::resolved(const std::string& written) const {
  const std::filesystem::path file(written);
  if (file.is_absolute()) return written;
  return (std::filesystem::path(path).parent_path() / file).string();
}

Outcome<std::string> Reading::given(const std::string& file) const {
  for (const ScenarioInput& input : *files) {
    if (input.path == file) return input.text;
  }
  return Problem{"scenario.file_not_given", file, "the scenario names this file, but its text was not kept with it",
                 "keep the file beside the scenario, or plan again"};
}

void Reading::remember(const std::string& file) {
  if (files != nullptr) {
    if (Outcome<std::string> text = given(file); text.ok()) inputs.emplace_back(file, std::move(text).value());
    return;
  }
  if (Outcome<std::string> text = read_text_file(file, kMostTableBytes, "scenario.file"); text.ok())
    inputs.emplace_back(file, std::move(text).value());
}

void Reading::report(const toml::node& node, std::string_view code, std::string message, std::string repair) {
  problems.push_back({std::string(code), place(node), std::move(message), std::move(repair)});
}

void Reading::adopt(const toml::node& node, std::string_view key, const Problems& found) {
  for (const Problem& problem : found) {
    problems.push_back({problem.code, place(node), fmt::format("{}: {}", key, problem.message), problem.repair});
  }
}

std::string Section::full_name(std::string_view key) const {
  return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
}

const toml::node* Section::node(std::string_view key) {
  known_.emplace_back(key);
  return table_.get(key);
}

void Section::wrong_type(const toml::node& found, std::string_view key, std::string_view wanted) {
  reading_.report(found, "scenario.wrong_type", fmt::format("{} is {}, it must be {}", full_name(key), type_text(found), wanted),
                  fmt::format("write {}", wanted));
}

std::optional<std::string> Section::text(std::string_view key) {
  const toml::node* found = node(key);
  if (found == nullptr) return std::nullopt;
  const auto* text = found->as_string();
  if (text == nullptr) {
    wrong_type(*found, key, "a text in quotes");
    return std::nullopt;
  }
  if (text->get().empty()) {
    reading_.report(*found, "scenario.empty", fmt::format("{} is empty", full_name(key)), "write a value or remove the key");
    return std::nullopt;
  }
  return text->get();
}

bool is_number(const std::string& written) {
  return !written.empty() && written.find_first_not_of("0123456789") == std::string::npos;
}

std::optional<std::int64_t> whole_number(const toml::node& node, std::string_view key, std::int64_t at_least,
                                         std::int64_t at_most, Reading& reading) {
  const auto* integer = node.as_integer();
  if (integer == nullptr) {
    const std::string written = scalar_text(node).value_or(std::string(type_text(node)));
    reading.report(node, "scenario.wrong_type",
                   fmt::format("{} is {} ({}), it must be a whole number", key, type_text(node), written),
                   node.is_string() && is_number(written)                       ? "remove the quotes"
                   : node.is_string() && written.find(',') != std::string::npos ? "write several values as a list: [1, 2]"
                                                                                : "write a whole number");
    return std::nullopt;
  }
  if (integer->get() < at_least || integer->get() > at_most) {
    reading.report(node, "scenario.out_of_range",
                   fmt::format("{} is {}, outside {} to {}", key, integer->get(), at_least, at_most),
                   fmt::format("write a whole number from {} to {}", at_least, at_most));
    return std::nullopt;
  }
  return integer->get();
}

std::optional<std::int64_t> Section::integer(std::string_view key, std::int64_t at_least, std::int64_t at_most) {
  const toml::node* found = node(key);
  return found == nullptr ? std::nullopt : whole_number(*found, full_name(key), at_least, at_most, reading_);
}

std::optional<double> Section::number(std::string_view key, double at_least, double at_most) {
  const toml::node* found = node(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) {
    wrong_type(*found, key, "a number");
    return std::nullopt;
  }
  const double value = found->value<double>().value_or(0.0);
  if (!(value >= at_least && value <= at_most)) {  // also refuses nan
    reading_.report(*found, "scenario.out_of_range",
                    fmt::format("{} is {}, outside {} to {}", full_name(key), value, at_least, at_most),
                    fmt::format("write a number from {} to {}", at_least, at_most));
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Section::flag(std::string_view key) {
  const toml::node* found = node(key);
  if (found == nullptr) return std::nullopt;
  const auto* flag = found->as_boolean();
  if (flag == nullptr) {
    wrong_type(*found, key, "true or false");
    return std::nullopt;
  }
  return flag->get();
}

std::optional<Tokens> token_count(const toml::node& node, std::string_view key, std::int64_t at_most, Reading& reading) {
  std::int64_t count = 0;
  if (const auto* text = node.as_string()) {
    const Outcome<Tokens> parsed = parse_tokens(text->get());
    if (!parsed) {
      reading.adopt(node, key, parsed.problems());
      return std::nullopt;
    }
    count = parsed->count();
  } else if (const auto* integer = node.as_integer()) {
    count = integer->get();
  } else {
    reading.report(node, "scenario.wrong_type", fmt::format("{} is {}, it must be a count of tokens", key, type_text(node)),
                   "write 131072 or \"128k\"");
    return std::nullopt;
  }
  if (count < 1 || count > at_most) {
    reading.report(node, "scenario.out_of_range",
                   fmt::format("{} is {} tokens, outside 1 to {}", key, count, print_tokens(Tokens(at_most))),
                   "write a count of tokens, like \"128k\"");
    return std::nullopt;
  }
  return Tokens(count);
}

std::optional<Tokens> Section::tokens(std::string_view key, std::int64_t at_most) {
  const toml::node* found = node(key);
  return found == nullptr ? std::nullopt : token_count(*found, full_name(key), at_most, reading_);
}

std::optional<Bytes> Section::bytes(std::string_view key) {
  const toml::node* found = node(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string() && !found->is_number()) {
    wrong_type(*found, key, "a size like \"80 GiB\"");
    return std::nullopt;
  }
  const Outcome<Bytes> parsed = parse_bytes(scalar_text(*found).value_or(""));
  if (!parsed) {
    adopt(key, parsed.problems());
    return std::nullopt;
  }
  return *parsed;
}

std::optional<double> Section::share(std::string_view key) {
  const toml::node* found = node(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string() && !found->is_number()) {
    wrong_type(*found, key, "a share like \"5 %\" or 0.05");
    return std::nullopt;
  }
  const Outcome<double> parsed = parse_share(scalar_text(*found).value_or(""));
  if (!parsed) {
    adopt(key, parsed.problems());
    return std::nullopt;
  }
  return *parsed;
}

const toml::table* Section::table(std::string_view key) {
  const toml::node* found = node(key);
  if (found == nullptr) return nullptr;
  if (!found->is_table()) wrong_type(*found, key, "a table");
  return found->as_table();
}

void Section::report(std::string_view key, std::string_view code, std::string message, std::string repair) {
  const toml::node* found = table_.get(key);
  reading_.report(found != nullptr ? *found : static_cast<const toml::node&>(table_), code, std::move(message),
                  std::move(repair));
}

void Section::adopt(std::string_view key, const Problems& found) {
  const toml::node* at = table_.get(key);
  reading_.adopt(at != nullptr ? *at : static_cast<const toml::node&>(table_), full_name(key), found);
}

void Section::adopt_file(std::string_view key, Problems found) {
  for (Problem& problem : found) {
    if (!problem.where.empty()) problem.message = fmt::format("{}: {}", problem.where, problem.message);
  }
  adopt(key, found);
}

namespace {

/// Where each key of a scenario lives, so that one written into the wrong table is sent home.
struct Home {
  std::string_view key;
  std::string_view table;
};
constexpr Home kHomes[] = {
    {"sequence_length", "training"},
    {"global_batch", "training"},
    {"global_batch_tokens", "training"},
    {"precision", "training"},
    {"optimizer", "training"},
    {"grad_dtype", "training"},
    {"framework", "training"},
    {"mask", "training"},
    {"cuda_graphs", "training"},
    {"vocab_divisor", "training"},
    {"nodes", "cluster"},
    {"gpus", "cluster"},
    {"topology", "cluster"},
    {"gpu_memory", "cluster"},
    {"device_order", "cluster"},
    {"tp", "search"},
    {"cp", "search"},
    {"pp", "search"},
    {"dp", "search"},
    {"vpp", "search"},
    {"micro_batch", "search"},
    {"cp_comm", "search"},
    {"a2a_degree", "search"},
    {"window", "search"},
    {"recompute", "search"},
    {"state_sharding", "search"},
    {"state_shards", "search"},
    {"shard_layout", "search"},
    {"stage_layout", "search"},
    {"sequence_parallel", "search"},
    {"rank_order", "recipe"},
    {"schedule", "recipe"},
    {"overlap_tp", "recipe"},
    {"overlap_grad_reduce", "recipe"},
    {"overlap_param_gather", "recipe"},
    {"overlap_p2p", "recipe"},
    {"memory_margin", "requirements"},
    {"exposed_budget", "requirements"},
    {"throughput_tolerance", "requirements"},
    {"min_tokens_per_second_per_gpu", "requirements"},
};

/// What people call our keys elsewhere.
struct Synonym {
  std::string_view theirs;
  std::string_view ours;
};
constexpr Synonym kSynonyms[] = {
    {"seq_length", "sequence_length"},
    {"seq_len", "sequence_length"},
    {"sequence", "sequence_length"},
    {"seq", "sequence_length"},
    {"global_batch_size", "global_batch"},
    {"gbs", "global_batch"},
    {"batch", "global_batch"},
    {"dtype", "precision"},
    {"micro_batch_size", "micro_batch"},
    {"mbs", "micro_batch"},
    {"num_nodes", "nodes"},
    {"num_layers", "layers"},
    {"hidden_size", "hidden"},
    {"intermediate_size", "ffn_hidden"},
    {"num_attention_heads", "heads"},
    {"num_key_value_heads", "kv_heads"},
    {"num_query_groups", "kv_heads"},
    {"vocab_size", "vocab"},
    {"margin", "memory_margin"},
    {"sp", "sequence_parallel"},
    {"zero", "state_sharding"},
};

}  // namespace

void Section::finish() {
  const auto is_known = [&](std::string_view key) { return std::find(known_.begin(), known_.end(), key) != known_.end(); };
  for (const auto& [name, value] : table_) {
    const std::string key(name.str());
    if (is_known(key)) continue;
    std::string repair;
    std::string_view ours = key;
    for (const Synonym& synonym : kSynonyms) {
      if (synonym.theirs == key) ours = synonym.ours;
    }
    if (is_known(ours)) repair = fmt::format("did you mean '{}'?", ours);
    for (const Home& home : kHomes) {
      if (!repair.empty() || home.key != ours || home.table == name_) continue;
      repair = ours == key ? fmt::format("it belongs under [{}]", home.table)
                           : fmt::format("did you mean '{}' under [{}]?", ours, home.table);
    }
    if (repair.empty()) {
      const std::string near = nearest_name(key, known_);
      std::sort(known_.begin(), known_.end());
      known_.erase(std::unique(known_.begin(), known_.end()), known_.end());
      repair = near.empty() ? fmt::format("known here are {}", fmt::join(known_, ", ")) : fmt::format("did you mean '{}'?", near);
    }
    reading_.report(
        value, "scenario.unknown_key",
        name_.empty() ? fmt::format("a scenario has no key '{}'", key) : fmt::format("[{}] has no key '{}'", name_, key), repair);
  }
}

}  // namespace cpfit::scenario
