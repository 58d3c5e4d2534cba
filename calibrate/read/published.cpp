#include "calibrate/read/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "calibrate/read/csv.h"
#include "calibrate/read/published_adapters.h"
#include "calibrate/read/published_kernels.h"

namespace cpfit {

namespace {

using published::Adapter;

/// A family of tables: the columns that only it has together, most special first. No adapter: a kernel table.
struct Family {
  std::string_view name;
  std::vector<std::string_view> columns;
  Adapter adapter;
};

const std::vector<Family>& families() {
  using namespace published;
  static const std::vector<Family> kFamilies = {
      {"megatron_lm_ci_golden", {"args", "mem_allocated_bytes_last", "peak_mem_bytes"}, read_megatron_functional_test},
      {"simumax_b200_measured", {"peak_reserved_gib", "max_allocated_mb_by_rank"}, read_simumax},
      {"hf_ultrascale_bench_sweep", {"after_pp_fix", "mem_alloc_gib", "mem_reserved_gib", "grad_accum"}, read_nanotron_sweep},
      {"hf_ultrascale_playbook", {"figure", "max_micro_batch_that_fits"}, read_playbook_figure},
      {"kwai_atc24", {"offload_alpha", "layers_per_virtual_stage"}, read_kwai},
      {"nemo_long_sequence", {"variant", "seq_k_published"}, read_nemo_long_sequence},
      {"nemo_2407_summary", {"task", "revisions_with_same_numbers"}, read_nemo_summary},
      {"dgxc_benchmarking", {"task", "step_time_raw", "etp"}, read_dgxc},
      {"megatron_bridge_performance", {"container", "value_in_parentheses"}, read_megatron_bridge},
      {"megatron_papers", {"aggregate_pflops", "model_parallel_size"}, read_megatron_paper},
      {"llama3_paper_table4", {"batch_per_dp", "tokens_per_batch"}, read_llama3_table},
      {"torchtitan", {"variant", "local_batch", "memory_definition"}, read_torchtitan},
      {"usp_paper", {"ulysses", "ring", "fwd_iters_per_s"}, read_usp_paper},
      {"usp_readme_bench", {"ulysses", "ring", "group_num", "iters_per_s"}, read_usp_operator},
      {"ring_flash_attention_readme", {"tokens_per_gpu", "api", "iters_per_s"}, read_ring_flash_operator},
      {"burstengine_kernels", {"pass_", "fwd_ms", "time_ms", "mem_mb"}, read_burstengine_operator},
      {"burst_attention_readme", {"cp_method", "head_dim", "pass_", "time_ms"}, read_burst_operator},
      {"burstengine", {"seq_k", "std", "raw"}, read_burstengine},
      {"distflashattn", {"seq_per_gpu_k", "max_total_seq_k"}, read_distflashattn},
      {"internevo_performance", {"micro_num", "tokens_per_s_per_gpu"}, read_internevo},
      {"mosaic_llm_foundry", {"hfu", "activation_cpu_offload"}, read_llm_foundry},
      {"misc_training", {"tokens_per_step", "samples_per_s", "max_context_tokens"}, read_misc_training},
      {"vtrain_ground_truth", {"set", "iteration_time_ms"}, read_vtrain},
      {"cp_inference_meta", {"new_tokens", "cached_tokens", "miss_rate", "metric"}, read_prefill_inference},
      {"ring_attention_paper", {"max_context_k_tokens"}, read_ring_attention_paper},
      {"fpdt_ulysses_offload", {"strategy", "max_len_published"}, read_fpdt},
      {"galvatron_llama2_7b_profile", {"kind", "parallel", "rank", "metric"}, read_galvatron},
      {"aiconfigurator_gemm", {"system", "m", "n", "k", "latency_ms"}, nullptr},
      {"aiconfigurator_context_attention", {"system", "isl", "heads", "latency_ms"}, nullptr},
      {"aiconfigurator_nccl", {"system", "collective", "size_bytes", "latency_ms"}, nullptr},
      {"cudnn_sdpa", {"q_seqlen", "kv_seqlen", "attn_mask"}, nullptr},
      {"cudnn_norms", {"norm_type", "fwd_gbps", "bwd_gbps"}, nullptr},
      {"flash_attention_kernels", {"kernel", "pass_", "head_dim", "tflops"}, nullptr},
      {"gemm", {"op", "m", "n", "k", "tflops", "time_ms"}, nullptr},
      {"simumax_kernel_efficiency", {"op", "peak_tflops", "shape", "efficiency"}, nullptr},
      {"nccl_busbw", {"collective", "nodes", "busbw_gbps"}, nullptr},
      {"model_architectures", {"arch_key", "raw_json"}, read_architecture},
      {"megatron_moe_modelzoo_and_llama",
       {"model", "seq_len", "tp", "pp", "cp", "ep", "arch_key", "tflops_per_gpu"},
       published::read_model_zoo},
      {"common training columns", {"gpu", "model", "seq_len"}, read_common_training},
  };
  return kFamilies;
}

const Family* family_of(const CsvTable& csv) {
  for (const Family& family : families()) {
    if (csv.has_all(family.columns)) return &family;
  }
  return nullptr;
}

/// The family that shares most of its columns with the header, as a share of its own.
const Family& nearest_family(const CsvTable& csv) {
  const auto share = [&](const Family& family) {
    const auto had = std::count_if(family.columns.begin(), family.columns.end(), [&](auto column) { return csv.has(column); });
    return static_cast<double>(had) / static_cast<double>(family.columns.size());
  };
  return *std::max_element(families().begin(), families().end(),
                           [&](const auto& a, const auto& b) { return share(a) < share(b); });
}

Problem unknown_columns(const CsvTable& csv) {
  for (const auto& [separator, name] : {std::pair{';', "semicolons"}, {'\t', "tabs"}}) {
    if (csv.columns().size() == 1 && csv.columns().front().find(separator) != std::string::npos)
      return {"published.separator", csv.path() + ":1", fmt::format("its columns are separated by {}", name),
              "save it with commas; a cell that holds one stands in double quotes"};
  }
  const Family& nearest = nearest_family(csv);
  std::string missing;
  for (const auto column : nearest.columns) {
    if (!csv.has(column)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", column);
  }
  return {"published.columns", csv.path() + ":1", "the columns are not those of a table of published measurements",
          fmt::format("nearest is {}: it also needs {}", nearest.name, missing)};
}

/// Cells that hold a number or nothing in every table of training runs. An unreadable one is not a blank: the row is refused.
constexpr std::string_view kCounts[] = {
    "layers",      "hidden",       "ffn_hidden",   "heads",        "kv_heads", "head_dim", "vocab", "seq_len", "tokens_per_step",
    "micro_batch", "global_batch", "grad_accum",   "batch_per_dp", "tp",       "pp",       "vpp",   "cp",      "dp",
    "ulysses",     "ring",         "nodes_or_gpus"};
constexpr std::string_view kFigures[] = {"step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "total_tokens_per_s",
                                         "samples_per_s"};

/// The first cell that is neither blank nor a number above 0, as a sentence; empty when all are.
std::string unreadable_cell(const published::Row& row) {
  const auto wrong = [](std::optional<double> value) { return !value || !(*value >= 0.0) || *value > 1e18; };
  const auto said = [&](std::string_view column) { return fmt::format("{} is not a number: '{}'", column, row.text(column)); };
  for (const std::string_view column : kCounts) {
    if (row.blank(column)) continue;
    const std::optional<std::int64_t> whole = row.integer(column);
    if (wrong(whole ? std::optional(static_cast<double>(*whole)) : row.number(column))) return said(column);
  }
  for (const std::string_view column : kFigures) {
    if (!row.blank(column) && wrong(row.figure(column))) return said(column);
  }
  if (!row.blank("mfu") && wrong(row.share("mfu"))) return said("mfu");
  return {};
}

Outcome<MeasuredTable> read_table(const CsvTable& csv, const Family& family) {
  published::Reading reading(csv.path(), std::string(family.name));
  if (family.adapter == nullptr) {
    const auto kernels = read_kernel_table(csv);
    if (!kernels) return kernels.problems();
    published::add_kernels(*kernels, reading);
  } else {
    for (std::size_t index = 0; index < csv.size(); ++index) {
      const published::Row row(csv.row(index));
      if (std::string trouble = unreadable_cell(row); !trouble.empty())
        reading.skip(row, std::move(trouble));
      else
        family.adapter(row, reading);
    }
  }
  return std::move(reading).take();
}

Outcome<MeasuredTable> read_any(const CsvTable& csv) {
  const Family* family = family_of(csv);
  if (family == nullptr) return unknown_columns(csv);
  return read_table(csv, *family);
}

}  // namespace

Outcome<MeasuredTable> read_published(const std::string& path) {
  const auto csv = CsvTable::load(path);
  if (!csv) return csv.problems();
  return read_any(*csv);
}

Outcome<MeasuredTable> read_published_text(std::string_view text, const std::string& path) {
  const auto csv = CsvTable::parse(text, path);
  if (!csv) return csv.problems();
  return read_any(*csv);
}

std::vector<std::string> published_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.name);
  return names;
}

}  // namespace cpfit
