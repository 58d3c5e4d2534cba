#include "model/rates/rate_tables.h"

#include <toml++/toml.h>
#include <array>
#include <cmath>

namespace cpfit {

namespace {

/// Reads one [[table]] of rates.toml: every key by name and kind, every miss a Problem that names table, row and key.
class Row {
 public:
  Row(const toml::table& table, std::string where, Problems& problems)
      : table_(table), where_(std::move(where)), problems_(problems) {}

  [[nodiscard]] double number(const char* key) const {
    if (const auto value = table_[key].value<double>(); value && std::isfinite(*value)) return *value;
    miss(key, "a number");
    return 0.0;
  }
  /// A whole number that counts something.
  [[nodiscard]] std::int64_t count(const char* key) const {
    constexpr double kMost = 1e15;
    const double value = number(key);
    if (value >= 0.0 && value <= kMost && value == std::floor(value)) return static_cast<std::int64_t>(value);
    miss(key, "a whole number from 0");
    return 0;
  }
  [[nodiscard]] std::int64_t count_or(const char* key, std::int64_t fallback) const {
    return table_.contains(key) ? count(key) : fallback;
  }
  [[nodiscard]] double number_or(const char* key, double fallback) const { return table_.contains(key) ? number(key) : fallback; }
  [[nodiscard]] double microseconds(const char* key) const { return number(key) * 1e-6; }
  [[nodiscard]] double milliseconds(const char* key) const { return number(key) * 1e-3; }
  [[nodiscard]] std::string text(const char* key) const {
    if (auto value = table_[key].value<std::string>()) return *value;
    miss(key, "a text");
    return {};
  }
  [[nodiscard]] std::string text_or_empty(const char* key) const { return table_.contains(key) ? text(key) : std::string(); }
  template <class Value>
  [[nodiscard]] Value one_of(const char* key, std::optional<Value> (*named)(std::string_view)) const {
    const std::string name = text(key);
    if (const auto value = named(name)) return *value;
    if (!name.empty()) problems_.push_back({"rates.unknown_name", where_ + "." + key, "'" + name + "' is not known", ""});
    return Value{};
  }
  [[nodiscard]] FittedRange range(const char* key) const {
    const toml::array* pair = table_[key].as_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_number() || !(*pair)[1].is_number()) {
      miss(key, "a pair [low, high]");
      return {};
    }
    const double low = (*pair)[0].value_or(0.0), high = (*pair)[1].value_or(0.0);
    if (!std::isfinite(low) || !std::isfinite(high)) miss(key, "two finite numbers");
    return {low, high};
  }
  [[nodiscard]] FitQuality quality() const {
    FitQuality quality;
    quality.rows = count_or("rows", 0);
    quality.held_out = count_or("held_out", 0);
    quality.median_error = number("median_error");
    quality.p90_error = number("p90_error");
    quality.noise = number_or("noise", 0);
    quality.evidence = one_of("evidence", evidence_named);
    quality.source = text("source");
    return quality;
  }
  [[nodiscard]] const toml::table& table() const { return table_; }
  [[nodiscard]] const std::string& where() const { return where_; }
  void miss(const char* key, const char* what) const {
    problems_.push_back({"rates.missing_key", where_ + "." + key, std::string("expected ") + what, ""});
  }

 private:
  const toml::table& table_;
  std::string where_;
  Problems& problems_;
};

FittedDevice read_device(const Row& row) {
  FittedDevice device;
  device.gpu = row.text("gpu");
  device.generation = row.text("generation");
  device.scale_up_link = row.text_or_empty("scale_up_link");
  device.peaks.sm_count = row.number("sm_count");
  device.peaks.hbm = row.number("hbm_gb_per_s") * 1e9;
  const double fp8 = row.number("fp8_tflops") * 1e12;
  device.peaks.math = {row.number("bf16_tflops") * 1e12,        fp8, fp8, fp8, row.number("fp4_tflops") * 1e12,
                       row.number_or("fp32_tflops", 0.0) * 1e12};
  return device;
}

GemmRow read_gemm(const Row& row) {
  GemmRow gemm;
  gemm.gpu = row.text("gpu");
  gemm.math = row.one_of("math", math_named);
  GemmCurve& curve = gemm.curve;
  curve.launch = row.microseconds("launch_us");
  curve.peak_share = row.number("peak_share");
  curve.k_half = row.number("k_half");
  curve.wave_rounding = row.number("wave_rounding");
  curve.small_tile_share = row.number("small_tile_share");
  curve.sustained_loss = row.number("sustained_loss");
  curve.sustained = row.milliseconds("sustained_ms");
  curve.m = row.range("m");
  curve.n = row.range("n");
  curve.k = row.range("k");
  curve.quality = row.quality();
  return gemm;
}

AttentionRow read_attention(const Row& row) {
  AttentionRow attention;
  attention.gpu = row.text("gpu");
  attention.library = row.one_of("library", library_named);
  attention.math = row.one_of("math", math_named);
  attention.pass = row.one_of("pass", pass_named);
  AttentionCurve& curve = attention.curve;
  curve.launch = row.microseconds("launch_us");
  curve.peak_share = row.number("peak_share");
  curve.half = row.number("half_pairs");
  curve.wave_rounding = row.number("wave_rounding");
  curve.diagonal = row.number("diagonal_pairs");
  curve.share_64 = row.number("share_64");
  curve.share_192 = row.number("share_192");
  curve.share_256 = row.number("share_256");
  curve.causal_share = row.number_or("causal_share", 1.0);
  curve.deterministic_share = row.number("deterministic_share");
  curve.sustained_loss = row.number("sustained_loss");
  curve.sustained = row.milliseconds("sustained_ms");
  curve.preparation = row.number_or("preparation_passes", 0);
  curve.q_len = row.range("q_len");
  curve.kv_len = row.range("kv_len");
  curve.heads = row.range("batch_heads");
  curve.quality = row.quality();
  return attention;
}

MemoryRow read_memory(const Row& row) {
  MemoryRow memory;
  memory.gpu = row.text("gpu");
  memory.kernels = row.text("kernels");
  memory.pass = row.one_of("pass", pass_named);
  memory.curve.launch = row.microseconds("launch_us");
  memory.curve.hbm_share = row.number("hbm_share");
  // Files of before had row_half and statistics in elements, of norms alone; no plan rests on those.
  memory.curve.row_time = row.number_or("row_ns", 0.0) * 1e-9;
  memory.curve.element_time = row.number_or("element_ps", 0.0) * 1e-12;
  memory.curve.statistics = row.number_or("statistics_ns", 0.0) * 1e-9;
  memory.curve.tile = row.number_or("tile", 0.0);
  memory.curve.looped_from = row.number_or("looped_from", 0.0);
  memory.curve.resident = row.number_or("resident", 0.0);
  memory.curve.wave_rounding = row.number_or("wave_rounding", 0.0);
  memory.curve.reread = row.number_or("reread", 0.0);
  memory.curve.kept_row = row.number_or("kept_row", 0.0);
  memory.curve.column_start = row.number_or("column_us", 0.0) * 1e-6;
  memory.curve.column_row = row.number_or("column_row_ns", 0.0) * 1e-9;
  memory.curve.traffic = row.range("traffic_bytes");
  memory.curve.quality = row.quality();
  return memory;
}

CollectiveRow read_collective(const Row& row, Problems& problems) {
  CollectiveRow collective;
  collective.link = row.text("link");
  collective.kind = row.one_of("kind", collective_named);
  if (row.table().contains("form")) collective.form = row.one_of("form", form_named);
  CollectiveCurve& curve = collective.curve;
  curve.ranks = row.count("ranks");
  const toml::array* pieces = row.table()["pieces"].as_array();
  if (pieces == nullptr || pieces->empty() || pieces->size() > curve.pieces.size()) {
    row.miss("pieces", "one to six pieces [from bytes, to bytes, alpha us, bus share]");
    return collective;
  }
  for (const toml::node& node : *pieces) {
    const toml::array* piece = node.as_array();
    if (piece == nullptr || piece->size() != 4) {
      problems.push_back(
          {"rates.piece", row.where() + ".pieces", "a piece has four numbers: from bytes, to bytes, alpha us, bus share", ""});
      continue;
    }
    const auto at = [&](std::size_t i) { return (*piece)[i].value_or(0.0); };
    if (!std::isfinite(at(0) + at(1) + at(2) + at(3))) row.miss("pieces", "finite numbers");
    curve.pieces[static_cast<std::size_t>(curve.piece_count++)] = {at(0), at(1), at(2) * 1e-6, at(3)};
  }
  curve.quality = row.quality();
  collective.raw = row.number_or("raw_gb_per_s", 0.0) * 1e9;
  return collective;
}

LinkRow read_link(const Row& row) {
  LinkRow link;
  link.link = row.text("link");
  link.curve.alpha = row.microseconds("alpha_us");
  link.curve.share = row.number("share");
  link.curve.half_bytes = row.number("half_bytes");
  link.curve.peer_rate = row.number_or("peer_gb_per_s", 0.0) * 1e9;
  link.curve.quality = row.quality();
  return link;
}

TrainingRow read_training(const Row& row) {
  TrainingRow training;
  training.generation = row.text_or_empty("generation");
  if (row.table().contains("math")) training.math = row.one_of("math", math_named);
  if (row.table().contains("library")) training.library = row.one_of("library", library_named);
  training.gemm_factor = row.number_or("gemm_factor", 1.0);
  training.attention_factor = row.number_or("attention_factor", 1.0);
  training.gemm_warm = row.number_or("gemm_warm", 0.0);
  training.attention_warm = row.number_or("attention_warm", 0.0);
  training.quality = row.quality();
  return training;
}

LaunchRow read_launch(const Row& row) {
  return {row.text_or_empty("generation"), row.microseconds("eager_us"), row.microseconds("graph_us"), row.quality()};
}

OverlapRow read_overlap(const Row& row) {
  return {row.text("link"), row.text_or_empty("generation"),        row.number("slowdown"),
          row.quality(),    row.number_or("message_slowdown", 1.0), row.number_or("peer_channels_per_link", 0.0)};
}

template <class Read>
void each_row(const toml::table& root, const char* name, Problems& problems, Read read) {
  const toml::array* rows = root[name].as_array();
  if (rows == nullptr) return;
  std::size_t index = 0;
  for (const toml::node& node : *rows) {
    const std::string where = std::string(name) + "[" + std::to_string(index++) + "]";
    if (const toml::table* table = node.as_table()) {
      read(Row(*table, where, problems));
    } else {
      problems.push_back({"rates.shape", where, "expected a table", ""});
    }
  }
}

}  // namespace

Outcome<RateTables> parse_rate_tables(std::string_view toml_text) {
  toml::table root;
  try {
    root = toml::parse(toml_text);
  } catch (const toml::parse_error& error) {
    return Problem{"rates.syntax", "rates.toml:" + std::to_string(error.source().begin.line), std::string(error.description()),
                   ""};
  }
  RateTables tables;
  Problems problems;
  if (const auto version = root["version"].value<std::string>()) {
    tables.version = *version;
  } else {
    problems.push_back({"rates.missing_key", "version", "expected a text", ""});
  }
  each_row(root, "device", problems, [&](const Row& row) { tables.devices.push_back(read_device(row)); });
  each_row(root, "gemm", problems, [&](const Row& row) { tables.gemm.push_back(read_gemm(row)); });
  each_row(root, "attention", problems, [&](const Row& row) { tables.attention.push_back(read_attention(row)); });
  each_row(root, "memory", problems, [&](const Row& row) { tables.memory.push_back(read_memory(row)); });
  each_row(root, "collective", problems, [&](const Row& row) { tables.collective.push_back(read_collective(row, problems)); });
  each_row(root, "link", problems, [&](const Row& row) { tables.link.push_back(read_link(row)); });
  each_row(root, "training", problems, [&](const Row& row) { tables.training.push_back(read_training(row)); });
  each_row(root, "launch", problems, [&](const Row& row) { tables.launch.push_back(read_launch(row)); });
  each_row(root, "overlap", problems, [&](const Row& row) { tables.overlap.push_back(read_overlap(row)); });
  if (!problems.empty()) return problems;
  return tables;
}

}  // namespace cpfit
