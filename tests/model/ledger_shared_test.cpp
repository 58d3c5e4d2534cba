// The ledger against the raw sweep of the Ultrascale Playbook and Megatron-LM's golden values, read in place. What a row's
// columns do not say is skipped by rule. These tests assert accuracy over groups of rows, not row by row.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/model/memory_cases.h"
#include "tests/shared_folder.h"

namespace cpfit::test {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') {
      quoted = !quoted;
    } else if (letter == ',' && !quoted) {
      cells.emplace_back();
    } else if (letter != '\r') {
      cells.back() += letter;
    }
  }
  return cells;
}

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = fields(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = fields(line);
    Row row;
    for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i) row[names[i]] = cells[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::int64_t whole(const Row& row, const std::string& name, std::int64_t blank = 0) {
  const std::string& text = row.at(name);
  return text.empty() ? blank : static_cast<std::int64_t>(std::stod(text));
}

bool says(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

std::map<std::string, RuleSet> rule_sets() {
  std::map<std::string, RuleSet> sets;
  for (RuleSet& rules : framework_presets()) sets.emplace(rules.name, rules);
  return sets;
}

struct Errors {
  std::vector<double> signed_errors;  // predicted/measured - 1
  void add(double predicted, double measured) { signed_errors.push_back(predicted / measured - 1.0); }
  [[nodiscard]] double median_abs() const {
    std::vector<double> sorted;
    for (const double error : signed_errors) sorted.push_back(std::abs(error));
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double mean_abs() const {
    double sum = 0;
    for (const double error : signed_errors) sum += std::abs(error);
    return sum / static_cast<double>(signed_errors.size());
  }
  [[nodiscard]] double share_within(double limit) const {
    const auto inside = std::count_if(signed_errors.begin(), signed_errors.end(), [&](double e) { return std::abs(e) <= limit; });
    return static_cast<double>(inside) / static_cast<double>(signed_errors.size());
  }
};

// nanotron models/base.py: layers go to a stage until the running cost passes its share of the total.
ResolvedLayout nanotron_split(const Architecture& model, std::int32_t pp, bool inclusive) {
  const double layer =
      4.0 * static_cast<double>(model.hidden * model.hidden) + 3.0 * static_cast<double>(model.hidden * model.ffn_hidden);
  const double all = layer * static_cast<double>(model.layers) + static_cast<double>(model.vocab * model.hidden);
  ResolvedLayout layout;
  layout.layers_of_stage.assign(static_cast<std::size_t>(pp), 0);
  std::int32_t stage = 0;
  double running = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    ++layout.layers_of_stage[static_cast<std::size_t>(stage)];
    running += layer;
    const auto passed = [&] {
      const double share = all * (stage + 1) / pp;
      return inclusive ? running >= share : running > share;
    };
    while (stage < pp - 1 && passed()) ++stage;
  }
  layout.layers_of_chunk = layout.layers_of_stage;
  return layout;
}

TEST(LedgerOnSharedRows, NanotronSweepFirstStage) {
  CPFIT_REQUIRE_SHARED("published/hf_ultrascale_bench_sweep.csv");
  const auto sets = rule_sets();
  Errors resident, reserved, reserved_tp1;
  for (const Row& row : read_rows(shared_path("published/hf_ultrascale_bench_sweep.csv"))) {
    if (row.at("status") != "Success" || row.at("ffn_hidden").empty()) continue;
    LedgerCase c;
    c.model = llama(whole(row, "layers"), whole(row, "hidden"), whole(row, "ffn_hidden"), whole(row, "heads"),
                    whole(row, "kv_heads", whole(row, "heads")), 131072);
    c.model.tied_embeddings = row.at("tied_embeddings") == "True";
    c.training.sequence = Tokens(4096);
    c.recipe.tp = static_cast<std::int32_t>(whole(row, "tp"));
    c.recipe.pp = static_cast<std::int32_t>(whole(row, "pp"));
    c.recipe.dp = static_cast<std::int32_t>(whole(row, "dp"));
    c.recipe.micro_batch = static_cast<std::int32_t>(whole(row, "micro_batch"));
    c.recipe.state_sharding = says(row.at("sharding"), "1") ? StateSharding::kZero1 : StateSharding::kNone;
    c.training.global_batch = whole(row, "grad_accum") * c.recipe.micro_batch * c.recipe.dp;
    // Two states of the cluster are told apart by the intra-node all-reduce rate.
    c.rules = sets.at(std::stod(row.at("ar_intranode")) > 440 ? "nanotron-cached-tp" : "nanotron");
    c.gpu = gpu_of("hopper");
    c.layout = nanotron_split(c.model, c.recipe.pp, row.at("after_pp_fix") == "True");
    const StageMemory memory = stage_memory(c.at(), 0);
    resident.add(memory.resident.value() / kGiB, std::stod(row.at("mem_alloc_gib")));
    reserved.add(memory.reserved.value() / kGiB, std::stod(row.at("mem_reserved_gib")));
    if (c.recipe.tp == 1) reserved_tp1.add(memory.reserved.value() / kGiB, std::stod(row.at("mem_reserved_gib")));
  }
  ASSERT_GT(resident.signed_errors.size(), 800U);
  EXPECT_LT(resident.median_abs(), 0.015);
  EXPECT_LT(resident.mean_abs(), 0.025);
  EXPECT_LT(reserved.median_abs(), 0.05);
  EXPECT_LT(reserved.mean_abs(), 0.08);
  EXPECT_LT(reserved_tp1.median_abs(), 0.035);
}

std::string golden_rule_set(const Row& row) {
  const std::string& args = row.at("args");
  if (says(args, "transformer-impl=local")) return "megatron-core-local";
  const bool deterministic = says(args, "deterministic-mode");
  const std::string date = row.at("golden_last_commit").substr(row.at("golden_last_commit").size() - 10);
  // The TransformerEngine of the long-term container had no deterministic flash kernel before November 2025.
  const bool old_container = says(row.at("framework"), "lts") && date < "2025-11";
  if (says(args, "attention-backend=unfused") || (deterministic && old_container)) return "megatron-core-unfused";
  if (deterministic) return "megatron-core-deterministic";
  return says(row.at("model"), "cross_entropy_loss_fusion") ? "megatron-core-ci-jit-loss" : "megatron-core-ci";
}

bool golden_row_is_determined(const Row& row) {
  const std::string& model = row.at("model");
  if (!model.starts_with("gpt/") || whole(row, "hidden") != 512 || says(row.at("notes"), "copied golden file")) return false;
  for (const char* word : {"mla", "distill", "multi_dist", "uneven", "defer_embedding", "tunable", "uninstall_te"}) {
    if (says(model, word)) return false;
  }
  if (says(model, "loss_fusion") && says(row.at("golden_last_commit"), "2025-10")) return false;  // another loss and backend then
  return !says(row.at("precision"), "FP8") && !says(row.at("sharding"), "FSDP");
}

TEST(LedgerOnSharedRows, MegatronGoldenValuesLastRank) {
  CPFIT_REQUIRE_SHARED("published/megatron_lm_ci_golden.csv");
  const auto sets = rule_sets();
  Errors resident, peak;
  for (const Row& row : read_rows(shared_path("published/megatron_lm_ci_golden.csv"))) {
    if (!golden_row_is_determined(row)) continue;
    const std::string& args = row.at("args");
    const std::string& name = row.at("model");
    LedgerCase c;
    const bool gated = says(args, "swiglu");
    c.model = gpt(whole(row, "layers"), 512, gated ? 1344 : 2048, 8, 8, 50257, 1024);
    if (gated) c.model.activation = Activation::kSwiGlu;
    if (says(args, "position-embedding-type=rope")) c.model.position = PositionKind::kRope;
    if (says(name, "disable_bias_linear")) c.model.qkv_bias = c.model.attention_output_bias = c.model.mlp_bias = false;
    c.model.tied_embeddings = !says(args, "untie");
    c.model.qk_norm = says(name, "qk_layernorm");
    c.training.sequence = Tokens(1024);
    c.training.global_batch = 32;
    c.recipe.tp = static_cast<std::int32_t>(whole(row, "tp"));
    c.recipe.pp = static_cast<std::int32_t>(whole(row, "pp"));
    c.recipe.cp = static_cast<std::int32_t>(whole(row, "cp"));
    c.recipe.vpp = static_cast<std::int32_t>(whole(row, "vpp", 1));
    c.recipe.dp = static_cast<std::int32_t>(whole(row, "dp", 8 / (c.recipe.tp * c.recipe.pp * c.recipe.cp)));
    c.recipe.micro_batch = static_cast<std::int32_t>(whole(row, "micro_batch"));
    if (row.at("cp_method") == "a2a+p2p") {
      c.recipe.cp_comm = CpComm::kA2aP2p;
      c.recipe.a2a_degree = 2;
    }
    if (says(row.at("recompute"), "full")) c.recipe.recompute.kind = RecomputeKind::kFull;
    c.recipe.state_sharding = row.at("sharding").empty() ? StateSharding::kNone : StateSharding::kZero1;
    c.recipe.sequence_parallel = says(args, "sequence-parallel");
    if (row.at("precision") == "FP16") c.recipe.precision = Precision::kFp16;
    c.rules = sets.at(golden_rule_set(row));
    const std::string& gpu = row.at("gpu");
    c.gpu = gpu_of(gpu == "H100" ? "hopper" : gpu == "GB200" ? "blackwell" : "ampere");
    c.even();
    if (says(name, "account_for_embedding_loss")) {
      const std::int64_t each = (c.model.layers + 2) / (c.recipe.pp * c.recipe.vpp);
      c.layout.layers_of_chunk.assign(c.layout.layers_of_chunk.size(), static_cast<std::int32_t>(each));
      --c.layout.layers_of_chunk.front();
      --c.layout.layers_of_chunk.back();
      c.layout.layers_of_stage.assign(c.layout.layers_of_stage.size(), 0);
      for (std::size_t i = 0; i < c.layout.layers_of_chunk.size(); ++i) {
        c.layout.layers_of_stage[i % c.layout.layers_of_stage.size()] += c.layout.layers_of_chunk[i];
      }
    }
    const StageMemory memory = stage_memory(c.at(), c.recipe.pp - 1);
    resident.add(memory.resident.value(), std::stod(row.at("mem_allocated_bytes_last")));
    peak.add(memory.peak.value(), std::stod(row.at("peak_mem_bytes")));
  }
  ASSERT_GT(peak.signed_errors.size(), 250U);
  EXPECT_LT(resident.median_abs(), 0.01);
  EXPECT_LT(peak.median_abs(), 0.004);
  EXPECT_GT(peak.share_within(0.03), 0.96);
  EXPECT_GT(resident.share_within(0.02), 0.9);
}

}  // namespace
}  // namespace cpfit::test
