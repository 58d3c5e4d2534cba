#include "calibrate/read/published_row.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "calibrate/read/kernel_table.h"
#include "model/cluster/cluster_spec.h"
#include "model/quantity/text.h"

namespace cpfit::published {

namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The number a text starts with, and what follows it.
std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return std::pair{value, trimmed(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)))};
}

/// "131,072" without its separators; the text itself where a comma does not stand before three digits.
std::string ungrouped(std::string_view text) {
  std::string plain;
  const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      plain += text[i];
      continue;
    }
    if (!(i > 0 && digit(i - 1) && digit(i + 1) && digit(i + 2) && digit(i + 3)) || digit(i + 4)) return std::string(text);
  }
  return plain;
}

/// Columns that count tokens.
bool of_tokens(std::string_view column) { return column.ends_with("_len") || contains_word(column, "tokens"); }

constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kClusterOf{{
    {"A100-SXM4-80GB", "dgx-a100"},
    {"A100-SXM4-40GB", "a100-40gb-8x200g-roce"},
    {"A100-PCIe-80GB", "pcie-8gpu-a100"},
    {"A800-SXM4-80GB", "a800-8x200g"},
    {"H100-SXM5-80GB", "dgx-h100"},
    {"H800-SXM5-80GB", "h800-8x400g"},
    {"H200-SXM-141GB", "dgx-h200"},
    {"B200-SXM", "dgx-b200"},
    {"B300-SXM", "dgx-b300"},
    {"GB200", "gb200-nvl72"},
    {"GB300", "gb300-nvl72"},
    {"V100-SXM2-32GB", "dgx1-v100"},
    {"L20", "pcie-8gpu-l20"},
    {"L40S", "pcie-8gpu-l40s"},
    {"MI300X", "mi300x-8way"},
}};

}  // namespace

bool contains_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

std::optional<double> Row::share(std::string_view column) const {
  const auto leading = leading_number(text(column));
  if (!leading) return std::nullopt;
  if (leading->second.starts_with("%")) return leading->first / 100;
  if (!leading->second.empty()) return std::nullopt;
  return leading->first > 1 ? leading->first / 100 : leading->first;
}

std::optional<double> Row::count(std::string_view column) const {
  const std::string plain = ungrouped(text(column));
  const auto leading = leading_number(plain);
  if (!leading) return std::nullopt;
  if (leading->second.empty()) return leading->first;
  if (leading->second == "k" || leading->second == "K") return leading->first * 1e3;
  if (leading->second == "M") return leading->first * 1e6;
  if (leading->second == "B") return leading->first * 1e9;
  return std::nullopt;
}

std::optional<std::int64_t> Row::integer(std::string_view column) const {
  if (const auto plain = row_.integer(column)) return plain;
  if (of_tokens(column)) {
    std::string tokens = ungrouped(text(column));
    if (const std::size_t word = tokens.find(" tok"); word != std::string::npos) tokens.resize(word);
    const Outcome<Tokens> parsed = parse_tokens(tokens);
    return parsed.ok() ? std::optional(parsed->count()) : std::nullopt;
  }
  const auto value = count(column);
  constexpr double kMost = 9e15;  // below it every whole number is a double
  if (!value || *value != std::floor(*value) || std::abs(*value) > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<double> Row::figure(std::string_view column) const {
  if (const auto value = count(column)) return value;
  if (!column.ends_with("_s") || column.find("per_s") != std::string_view::npos) return std::nullopt;
  const Outcome<Seconds> time = parse_time(text(column));
  return time.ok() ? std::optional(time->value()) : std::nullopt;
}

bool Row::says(std::string_view column, std::string_view word) const { return contains_word(text(column), word); }

std::string cluster_preset_of(std::string_view gpu) {
  const std::string device = contains_word(gpu, "L20") ? "L20" : gpu_preset_of(gpu);
  for (const auto& [name, cluster] : kClusterOf) {
    if (name == device) return std::string(cluster);
  }
  return {};
}

Reading::Reading(std::string path, std::string family) {
  table_.path = std::move(path);
  table_.family = std::move(family);
}

std::optional<Cluster> Reading::cluster(const std::string& preset, std::int64_t gpus, BytesPerSecond node_rate) {
  const auto key = std::tuple(preset, gpus, node_rate.value());
  if (const auto found = clusters_.find(key); found != clusters_.end()) return found->second;
  std::optional<Cluster> cluster;
  if (auto found = find_cluster_spec(preset); found.ok()) {
    ClusterSpec spec = std::move(found).value();
    if (node_rate.value() > 0 && spec.nics > 0) spec.nic_rate = BytesPerSecond(node_rate.value() / spec.nics);
    const std::int64_t nodes = std::max<std::int64_t>(1, (gpus + spec.gpus - 1) / spec.gpus);
    if (auto whole = build_cluster(spec, nodes); whole.ok()) cluster = std::move(whole).value();
  }
  clusters_.emplace(key, cluster);
  return cluster;
}

std::shared_ptr<const RuleSet> Reading::rules(const std::string& name) {
  if (const auto found = rules_.find(name); found != rules_.end()) return found->second;
  auto preset = find_framework(name);
  std::shared_ptr<const RuleSet> rules;
  if (preset.ok()) rules = std::make_shared<const RuleSet>(std::move(preset).value());
  rules_.emplace(name, rules);
  return rules;
}

std::shared_ptr<const RuleSet> Reading::rules(const std::string& name, const std::string& key,
                                              const std::function<void(RuleSet&)>& change) {
  const std::string whole = name + " with " + key;
  if (const auto found = rules_.find(whole); found != rules_.end()) return found->second;
  const auto preset = rules(name);
  std::shared_ptr<const RuleSet> changed;
  if (preset) {
    RuleSet set = *preset;
    change(set);
    changed = std::make_shared<const RuleSet>(std::move(set));
  }
  rules_.emplace(whole, changed);
  return changed;
}

}  // namespace cpfit::published
