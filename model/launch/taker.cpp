#include "model/launch/taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace cpfit::launch {

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

LaunchedModel launched_model(Taker& taker) {
  LaunchedModel model;
  model.layers = taker.number("--num-layers");
  model.hidden = taker.number("--hidden-size");
  model.ffn_hidden = taker.number("--ffn-hidden-size");
  model.heads = taker.number("--num-attention-heads");
  model.kv_heads = taker.number("--num-query-groups");
  model.head_dim = taker.number("--kv-channels");
  model.vocab = taker.number("--vocab-size");
  return model;
}

namespace {

/// torchrun's words that say how its processes meet and are watched, not how many there are; both spellings are its own.
constexpr std::string_view kMeeting[] = {"node-rank",
                                         "master-addr",
                                         "master-port",
                                         "rdzv-backend",
                                         "rdzv-endpoint",
                                         "rdzv-id",
                                         "rdzv-conf",
                                         "standalone",
                                         "max-restarts",
                                         "start-method",
                                         "local-addr",
                                         "monitor-interval",
                                         "role",
                                         "module",
                                         "no-python",
                                         "run-path",
                                         "log-dir",
                                         "redirects",
                                         "tee",
                                         "logs-specs",
                                         "event-log-handler",
                                         "virtual-local-rank",
                                         "local-ranks-filter",
                                         "numa-binding",
                                         "signals-to-handle",
                                         "duplicate-stdout-filters",
                                         "duplicate-stderr-filters"};

void take_meeting(Taker& taker) {
  for (const std::string_view word : kMeeting) {
    std::string name = "--" + std::string(word);
    (void)taker.take(name);
    std::replace(name.begin() + 2, name.end(), '-', '_');
    (void)taker.take(name);
  }
}

/// A count of the launcher; "2:2" counts as 2, "gpu" and "auto" as not said.
std::optional<std::int64_t> launcher_count(Taker& taker, const std::string& name) {
  const std::string text = taker.word(name);
  if (text == "gpu" || text == "auto" || text == "cpu") return std::nullopt;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return taker.number(name);
  if (text.substr(0, colon) != text.substr(colon + 1)) {
    taker.problem("launch.world_size", name, fmt::format("'{}' lets the job shrink and grow: a recipe has one size", text),
                  "write the number of nodes that it runs on");
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + colon, value);
  if (error == std::errc{} && end == text.data() + colon) return value;
  return taker.number(name);  // which says what is wrong
}

}  // namespace

std::optional<std::int64_t> launched_world(Taker& taker) {
  const auto either = [&](const char* one, const char* two) {
    const std::optional<std::int64_t> first = launcher_count(taker, one);
    return first ? first : launcher_count(taker, two);
  };
  take_meeting(taker);
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

void note_offload(LaunchReading& reading, const std::string& name) {
  reading.notes.push_back({"launch.offload", name, "states or activations leave the GPU, which no recipe says",
                           "figures of this recipe count them on the GPU, and no traffic to the host"});
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

}  // namespace cpfit::launch
