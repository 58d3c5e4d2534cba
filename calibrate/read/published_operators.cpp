// One attention operator over the ranks of a context-parallel group, as the authors of ring and exchange kernels time it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/read/published_adapters.h"

namespace cpfit::published {

namespace {

/// An operator under construction: what every table of operators says in its own columns.
struct OperatorDraft {
  MeasuredKernel kernel;
  std::string refused;
  std::int64_t gpus = 0;
  std::string cluster, framework;
  bool windows_of_one = false;  // InternEvo's ring of one rank per node: dK and dV are cast to 16 bits at every hop
  void refuse(std::string reason) {
    if (refused.empty()) refused = std::move(reason);
  }
};

/// Whole-sequence causal attention of the row's length, heads and batch.
OperatorDraft operator_of(const Row& row, const std::string& framework, std::string cluster) {
  OperatorDraft draft;
  draft.framework = framework;
  draft.cluster = cluster.empty() ? cluster_preset_of(row.text("gpu")) : std::move(cluster);
  draft.gpus = row.integer("nodes_or_gpus").value_or(0);
  MeasuredKernel& kernel = draft.kernel;
  kernel.line = row.line();
  kernel.kind = KernelKind::kDistributedAttention;
  kernel.library = AttentionLibrary::kFlash2;
  kernel.attention.batch = row.integer("micro_batch").value_or(1);
  kernel.attention.q_len = kernel.attention.kv_len = row.integer("seq_len").value_or(0);
  kernel.attention.heads = row.integer("heads").value_or(0);
  kernel.attention.kv_heads = row.integer("kv_heads").value_or(kernel.attention.heads);
  kernel.attention.head_dim = row.integer("head_dim").value_or(0);
  kernel.attention.causal = true;
  const double s = static_cast<double>(kernel.attention.q_len);
  kernel.attention.pairs = s * (s + 1) / 2;
  kernel.forward = row.says("pass_", "fwd");
  kernel.backward = row.says("pass_", "bwd");
  kernel.recipe.cp = static_cast<std::int32_t>(row.integer("cp").value_or(draft.gpus));
  if (row.blank("gpu")) draft.refuse("the GPU is not printed");
  if (draft.gpus == 0) draft.refuse("the number of GPUs is not printed");
  return draft;
}

void file(OperatorDraft draft, const Row& row, Reading& reading) {
  MeasuredKernel& kernel = draft.kernel;
  if (draft.cluster.empty()) draft.refuse(fmt::format("no preset for the device \"{}\"", row.text("gpu")));
  if (kernel.attention.q_len <= 0 || kernel.attention.heads <= 0 || kernel.attention.head_dim <= 0) {
    draft.refuse("the shape of the operator is not printed");
  }
  if (kernel.seconds <= 0)
    draft.refuse(row.says("notes", "OOM") || row.says("notes", "0 (did not run)") ? "did not run" : "no time printed");
  if (draft.refused.empty()) {
    if (auto cluster = reading.cluster(draft.cluster, draft.gpus)) {
      kernel.cluster = std::move(*cluster);
    } else {
      draft.refuse(fmt::format("no cluster preset \"{}\"", draft.cluster));
    }
  }
  if (draft.refused.empty()) {
    kernel.rules = draft.windows_of_one ? reading.rules(draft.framework, "windows of one rank",
                                                        [](RuleSet& rules) { rules.dkv_wire = DkvWire::kNominal; })
                                        : reading.rules(draft.framework);
    if (!kernel.rules) draft.refuse(fmt::format("no rule set \"{}\"", draft.framework));
  }
  if (!draft.refused.empty()) return reading.skip(row, std::move(draft.refused));
  kernel.recipe.framework = draft.framework;
  kernel.recipe.dp = 1;
  kernel.label = fmt::format("{} attention s={} b={} h={}/{} d={} {}{} {}", row.text("gpu"), kernel.attention.q_len,
                             kernel.attention.batch, kernel.attention.heads, kernel.attention.kv_heads, kernel.attention.head_dim,
                             kernel.forward ? "fwd" : "", kernel.backward ? "+bwd" : "", row.text("cp_method"));
  reading.add(std::move(kernel));
}

void shard_as(Recipe& recipe, std::string_view method) {
  recipe.shard_layout = contains_word(method, "zigzag") || contains_word(method, "load-balanced") ? ShardLayout::kZigzag
                        : contains_word(method, "stripe")                                         ? ShardLayout::kStriped
                                                                                                  : ShardLayout::kContiguous;
}

void exchange_and_ring(Recipe& recipe, std::int64_t exchange, std::int64_t ring) {
  recipe.cp = static_cast<std::int32_t>(exchange * ring);
  recipe.cp_comm = ring <= 1 ? CpComm::kA2a : exchange <= 1 ? CpComm::kP2p : CpComm::kA2aP2p;
  recipe.a2a_degree = recipe.cp_comm == CpComm::kP2p ? 1 : static_cast<std::int32_t>(exchange);
}

}  // namespace

namespace {

void set_length(AttentionShape& shape, std::int64_t length) {
  const double s = static_cast<double>(length);
  shape.q_len = shape.kv_len = length;
  shape.pairs = s * (s + 1) / 2;
}

/// What yunchang's tables mean by their cells, read off its scripts at the pictures' own commits.
///   - gqa.png and long_ctx_h*.png count the tokens of one GPU: "local seqlen=4K (global seqlen=32K)", "local seqlen=8K (global
///     seqlen=64K)" of the README that shows them.
///   - Pictures with all tokens on the axis: scripts/run_qkvpack_compare.sh has both head sizes, 128 and 32. Below 128k tokens
///     only 128 agrees with the times: 32768 tokens of 32 take four times as long per FLOP as 131072 of them, and as long as the
///     paper's 32768 of 128.
///   - The paper's Table 4 (A100): the script's SEQLEN=32768 says "128K" of what eight GPUs make 256K of; half of it would run at
///     a quarter of the speed of the lines above it. Table 3 (L20) agrees with 128K.
void read_as_yunchang_ran(const Row& row, MeasuredKernel& kernel, std::int64_t gpus) {
  AttentionShape& shape = kernel.attention;
  if (row.says("source_location", "gqa.png") || row.says("source_location", "long_ctx_h")) {
    set_length(shape, shape.q_len * gpus);
    return;
  }
  constexpr std::int64_t kLongest = 131072;
  if (row.says("source_location", "media/") && shape.head_dim == 32 && shape.q_len < kLongest) {
    shape.head_dim = 128;
    kernel.supposed = "head_dim";
  }
  if (row.says("source_location", "Table 4") && shape.q_len == kLongest) {
    set_length(shape, 2 * kLongest);
    kernel.supposed = "seq_len";
  }
}

}  // namespace

void read_usp_operator(const Row& row, Reading& reading) {
  OperatorDraft draft = operator_of(row, "ring-flash-attention",
                                    row.says("interconnect", "PCIe") && !row.says("gpu", "L20") ? "a100-pcie-4gpu" : "");
  Recipe& recipe = draft.kernel.recipe;
  read_as_yunchang_ran(row, draft.kernel, draft.gpus);
  draft.kernel.packed_qkv = contains_word(row.text("cp_method"), "qkvpack");
  // benchmark_longctx.py waits after every forward pass, benchmark_longctx_qkvpacked.py does not.
  draft.kernel.synchronized = row.says("pass_", "fwd") && !row.says("pass_", "bwd") && !draft.kernel.packed_qkv;
  exchange_and_ring(recipe, row.integer("ulysses").value_or(1), row.integer("ring").value_or(1));
  shard_as(recipe, row.text("cp_method"));
  // "group_num": query heads per KV head (1 = MHA). The paper prints 4 in its captions only.
  const std::int64_t group = row.integer("group_num").value_or(row.says("notes", "group_num 4") ? 4 : 1);
  draft.kernel.attention.kv_heads = std::max<std::int64_t>(1, draft.kernel.attention.heads / std::max<std::int64_t>(1, group));
  const auto rate = row.blank("iters_per_s") ? row.number("fwd_iters_per_s") : row.number("iters_per_s");
  if (rate && *rate > 0) draft.kernel.seconds = 1 / *rate;
  draft.kernel.group = fmt::format("{} {}", row.text("gpu"), row.text("pass_"));
  file(std::move(draft), row, reading);
}

namespace {

/// The four packings that benchmark_varlen_kvpacked_func.py takes in turn: cumulative lengths of one GPU's 8k tokens, each
/// document `ranks` times as long.
std::vector<std::vector<DocumentClass>> varlen_packings(std::int64_t ranks) {
  static const std::vector<std::vector<std::int64_t>> kEnds = {
      {8192}, {256, 7648, 8192}, {4096, 8192}, {3104, 6304, 7904, 8064, 8192}};
  std::vector<std::vector<DocumentClass>> packings;
  for (const auto& ends : kEnds) {
    std::vector<DocumentClass>& documents = packings.emplace_back();
    std::int64_t begin = 0;
    for (const std::int64_t end : ends) {
      documents.push_back({(end - begin) * ranks, 1.0});
      begin = end;
    }
  }
  return packings;
}

double mean_pairs(const std::vector<std::vector<DocumentClass>>& packings) {
  double pairs = 0;
  for (const auto& documents : packings) {
    for (const DocumentClass& each : documents) {
      const double n = static_cast<double>(each.length);
      pairs += each.count * n * (n + 1) / 2;
    }
  }
  return pairs / static_cast<double>(packings.size());
}

}  // namespace

void read_ring_flash_operator(const Row& row, Reading& reading) {
  const auto method = row.text("cp_method");
  const bool gathered = contains_word(method, "llama3");
  OperatorDraft draft = operator_of(row, gathered ? "llama3-meta" : "ring-flash-attention", "");
  draft.kernel.attention.batch = 1;
  if (gathered) draft.kernel.recipe.cp_comm = CpComm::kAllGather;
  shard_as(draft.kernel.recipe, method);
  if (row.says("api", "varlen")) {
    draft.kernel.packings = varlen_packings(std::max<std::int64_t>(1, draft.gpus));
    draft.kernel.attention.pairs = mean_pairs(draft.kernel.packings);
    draft.kernel.indexed_halves = draft.gpus > 1 && draft.kernel.recipe.shard_layout == ShardLayout::kZigzag && !gathered;
  } else if (draft.gpus == 1) {
    draft.kernel.kind = KernelKind::kAttention;
  }
  draft.kernel.packed_kv = true;  // benchmark_kvpacked_func.py, benchmark_varlen_kvpacked_func.py
  if (const auto rate = row.number("iters_per_s"); rate && *rate > 0) draft.kernel.seconds = 1 / *rate;
  draft.kernel.group = fmt::format("{} {}", row.text("gpu"), row.text("pass_"));
  file(std::move(draft), row, reading);
}

void read_burst_operator(const Row& row, Reading& reading) {
  OperatorDraft draft = operator_of(row, "burstengine", "");
  if (const auto ms = row.number("time_ms")) draft.kernel.seconds = *ms / 1e3;
  file(std::move(draft), row, reading);
}

void read_burstengine_operator(const Row& row, Reading& reading) {
  const auto method = row.text("cp_method");
  const bool megatron = contains_word(method, "megatron"), usp = contains_word(method, "usp");
  const bool burst = contains_word(method, "burst");  // the others run through InternEvo's ring (benchmark_doublering.py)
  OperatorDraft draft = operator_of(row, megatron ? "megatron-2024" : burst ? "burstengine" : "internevo", "burstengine-a800");
  if (usp) draft.windows_of_one = true;
  // exp_data.csv gives DoubleRing at 65,536 tokens what bench.md and kernel_perf.csv give it at 131,072.
  if (method == "DoubleRing" && row.says("source_location", "exp_data.csv")) {
    draft.refuse("the same benchmark's logs print this figure for another length");
  }
  if (usp && contains_word(method, "ring first")) draft.refuse("head exchange across nodes: no such placement in cpfit");
  Recipe& recipe = draft.kernel.recipe;
  constexpr std::int32_t kGpusPerNode = 8;
  if (usp) {
    exchange_and_ring(recipe, kGpusPerNode, std::max<std::int64_t>(1, draft.gpus / kGpusPerNode));  // heads first: inside a node
  } else if (!megatron && draft.gpus > kGpusPerNode) {
    recipe.cp_comm = CpComm::kDoubleRing;
    recipe.window = kGpusPerNode;
  }
  recipe.shard_layout = ShardLayout::kZigzag;
  // TFLOP/s per GPU of the causal half: forward 2 matmuls, backward 5, 2 FLOPs per multiply-add.
  const AttentionShape& shape = draft.kernel.attention;
  const double matmuls = (draft.kernel.forward ? 2.0 : 0.0) + (draft.kernel.backward ? 5.0 : 0.0);
  const double s = static_cast<double>(shape.q_len);
  const double flops = 2 * matmuls * s * s / 2 * static_cast<double>(shape.head_dim * shape.heads * shape.batch);
  const auto rate = row.number("tflops_per_gpu"), ms = row.number("time_ms");
  if (rate && *rate > 0 && draft.gpus > 0) {
    draft.kernel.seconds = flops / (*rate * 1e12 * static_cast<double>(draft.gpus));
    // Times printed in seconds with two decimals are rounded by up to 10 %.
    if (ms && std::abs(*ms / 1e3 / draft.kernel.seconds - 1) > 0.1) draft.refuse("its time and its rate contradict each other");
  } else if (ms) {
    draft.kernel.seconds = *ms / 1e3;
  }
  if (row.says("notes", "TFLOPs cell: OOM")) draft.refuse("the source marks the run as failed");
  draft.kernel.group = std::string(method);
  file(std::move(draft), row, reading);
}

void read_prefill_inference(const Row& row, Reading& reading) {
  const auto metric = row.text("metric");
  const bool attention = metric == "ATTN_us", message = metric == "SendRecv_us";
  if (!attention && !message) {
    return reading.skip(row, contains_word(metric, "TT")       ? "inference latency of a whole model"
                             : contains_word(metric, "decode") ? "decoding step"
                                                               : "inference operator that cpfit does not rate");
  }
  // Llama 3 405B: 128 query and 8 KV heads of 128 over tp ranks; the miss rate is the share of the context that is new.
  const auto tokens = row.number("seq_len"), value = row.number("value"), missed = row.share("miss_rate");
  const std::int64_t cp = row.integer("cp").value_or(0), tp = row.integer("tp").value_or(0);
  if (!tokens || !value || !missed || cp <= 0 || tp <= 0) return reading.skip(row, "the shape of the operator is not printed");
  auto cluster = reading.cluster("grand-teton-h100-96gb", row.integer("nodes_or_gpus").value_or(cp * tp));
  if (!cluster) return reading.skip(row, "no cluster preset \"grand-teton-h100-96gb\"");
  MeasuredKernel kernel;
  kernel.line = row.line();
  kernel.cluster = std::move(*cluster);
  kernel.seconds = *value * 1e-6;
  const std::int64_t heads = 128 / tp, kv_heads = std::max<std::int64_t>(1, 8 / tp), d = 128;
  const std::int64_t q_len = static_cast<std::int64_t>(*tokens * *missed) / cp, kv_len = static_cast<std::int64_t>(*tokens) / cp;
  const bool pass_q = row.says("cp_method", "pass-Q");
  if (attention) {
    kernel.kind = KernelKind::kAttention;
    kernel.library = AttentionLibrary::kFlash3;
    kernel.forward = true;
    kernel.attention.q_len = q_len;
    kernel.attention.kv_len = kv_len;
    kernel.attention.pairs = static_cast<double>(q_len) * static_cast<double>(kv_len);
    kernel.attention.causal = false;
    kernel.attention.heads = heads;
    kernel.attention.kv_heads = kv_heads;
    kernel.attention.head_dim = d;
    kernel.group = "ring step attention";
  } else {
    kernel.kind = KernelKind::kCollective;
    kernel.collective = CollectiveKind::kSendRecv;
    kernel.members = {tp, cp};
    constexpr double kBf16 = 2;
    kernel.bytes =
        Bytes(pass_q ? kBf16 * static_cast<double>(q_len * heads * d) : 2 * kBf16 * static_cast<double>(kv_len * kv_heads * d));
    kernel.group = "ring step message";
  }
  kernel.label = fmt::format("{} {} q={} kv={}", row.text("cp_method"), metric, q_len, kv_len);
  reading.add(std::move(kernel));
}

}  // namespace cpfit::published
