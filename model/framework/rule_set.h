// What a framework does that changes memory or time, as policies; no code asks for a framework's name. Read from
// model/presets/frameworks.toml, a source per policy (frameworks.md, cp_model.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/recipe/recipe.h"

namespace cpfit {

/// Triton: the FlashAttention of Triton's tutorial and its kin, before FlashAttention-2.
enum class AttentionBackend : std::uint8_t { kCudnn, kFlash2, kFlash3, kUnfused, kTriton };
/// What overlap_tp does. User buffers: a ring gather passes under all but one of tp pieces of the product that needs it, a
/// scatter in four chunks under its product. Own shard: a gather passes under the product of the rank's own shard, one piece of
/// tp, which needs no gathered input; nothing hides a scatter in forward.
enum class TpOverlap : std::uint8_t { kNone, kUserBuffers, kOwnShard };
enum class DkvWire : std::uint8_t { kNominal, kFp32 };  // dtype of dKV on the ring
enum class RingBuffers : std::uint8_t {
  kAllSteps,
  kTwoSlots
};  // TE keeps cp KV buffers and all partial outputs until forward ends
/// How p2p moves K and V. PyTorch's "ring" is one all-gather in forward. Balanced pairs (DistFlashAttention, causal masks):
/// shards of consecutive tokens; in step t a rank fetches K and V straight from t ranks before it, and a rank that has none
/// before it computes with the queries of the rank t before it round the ring instead: cp/2 + 1 steps.
enum class KvExchange : std::uint8_t { kRing, kAllGatherOnce, kBalancedPairs };
/// What recompute = selective drops and repeats in backward.
enum class SelectiveRecompute : std::uint8_t {
  kCoreAttention,       // only the attention core (Korthikanti et al.); nothing to drop with a flash kernel
  kNormsAndActivation,  // both norm outputs and the MLP's activation product (Megatron-Kwai)
  kEverySecondMatmul    // torchtitan "op": keeps attention's output and the 1st, 3rd, ... matmul of a layer
};

/// A policy's value came from here; `policy` is the key in frameworks.toml.
struct PolicySource {
  std::string policy;
  std::string source;
};

struct RuleSet {
  std::string name;     // "megatron-core"
  std::string version;  // what was read, e.g. "Megatron-LM d98e8a6, TransformerEngine d0067d0"
  std::string source;
  std::vector<PolicySource> policy_sources;  // those a rule set names itself, then those of its base

  // Context parallelism: the ring.
  RingBuffers ring_buffers = RingBuffers::kAllSteps;
  DkvWire dkv_wire = DkvWire::kNominal;
  bool dkv_homecoming_hop = false;  // fp32-dKV codes need cp hops instead of cp-1
  bool accumulate_fp32 = false;     // out and dQ accumulators in fp32
  bool reverse_ring_in_backward = true;
  bool two_compute_streams = true;  // TE forward alternates two streams
  KvExchange kv_exchange = KvExchange::kRing;
  bool kv_in_one_message = true;           // K and V concatenated, else two messages per step
  bool kv_heads_repeated_in_ring = false;  // GQA's K and V are repeated to all query heads before they travel
  bool backward_rotates_queries = false;   // BurstAttention: Q, dO, LSE and delta travel with dQ; K, V, dK and dV stay
  bool ring_pair_communicators = false;    // each pair of ring neighbours has its own: PyTorch's isend and irecv, not batched
  bool shared_dkv_communicator = false;    // KV and dKV serialise on one communicator
  std::vector<Axis> axes = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};  // along which the code cuts; degrees of others are 1
  std::vector<CpComm> cp_comms = {CpComm::kP2p, CpComm::kAllGather, CpComm::kA2a, CpComm::kA2aP2p};
  std::vector<ShardLayout> shard_layouts = {ShardLayout::kZigzag};
  std::int32_t cp_chunk_multiple = 2;     // s % (multiple * cp) == 0
  bool sequence_multiple_has_tp = false;  // torchtitan: s % (2*cp*tp)

  // Memory: the saved activations. T tokens per rank and micro-batch, H hidden, F MLP width; "per" means per element and token.
  double norm_activation_bytes_per_hidden = 8.0;  // two norm inputs + two norm outputs (nanotron: 16, copies of q, k, v, out)
  double mlp_activation_bytes_per_ffn = 6.0;      // gated MLP: gate, up, product (Megatron 6; unfused 8 with silu's output)
  bool sequence_first_attention = true;           // [s, b, ...]: FlashAttention's output is copied back, so one more when b > 1
  bool unfused_attention_buffer = false;          // Megatron "local": one persistent b*a/tp*s*s buffer for the scores
  SelectiveRecompute selective_recompute = SelectiveRecompute::kCoreAttention;
  bool a2a_keeps_both_outputs = true;  // of attention, on either side of the head exchange; else the backward sends it again
  bool recompute_mlp = false;          // the MLP half of a layer can run again by itself (recompute = mlp)
  /// Share of the sequence, from its end, whose attention output a full recompute keeps: 1 and attention's forward does not run
  /// again, 0.5 (BurstEngine's sequence-level selective checkpoint) and its first half does, a quarter of the causal pairs.
  double checkpoint_kept_attention = 0.0;
  bool fp8_saves_low_precision = true;  // saved linear inputs are the FP8 copies (torchao keeps BF16)
  bool fp8_weight_cache = true;         // FP8 copies of BF16 weights live for the whole step

  // Memory: loss and head. Bytes per logit of the rank (T*V/tp).
  double loss_bytes_per_logit = 6.0;           // at the loss peak: bf16 logits + fp32 copy
  double loss_saved_bytes_per_logit = 4.0;     // kept from loss forward to its backward, per micro-batch in between
  double loss_backward_bytes_per_logit = 2.0;  // while the head's gradients are formed: the bf16 gradient
  double loss_traffic_bytes_per_logit = 0.0;   // read and written by the loss's kernels; 0: a fused loss, 6 + 3 * saved

  // Memory: states.
  double extra_gradient_bytes = 0.0;          // nanotron: bf16 DDP buckets beside the fp32 accumulator, if dp > 1
  double gathered_parameter_bytes = 0.0;      // nanotron zero1: the step's flat all-gather output stays till the next step
  bool fp16_keeps_master_gradients = true;    // fp32 copies of fp16 gradients live from the step to the next forward
  double zero3_weight_bytes = 4.0;            // FSDP2: fp32 shards; Megatron-FSDP: bf16
  double zero3_optimizer_bytes = 8.0;         // FSDP2: two moments; Megatron-FSDP: also a master
  double zero3_reduce_bytes = 4.0;            // dtype of the gradient reduce-scatter
  bool zero3_unsharded_through_step = false;  // with pp > 1 a stage's weights are not resharded after forward
  bool optimizer_on_host = false;             // BurstEngine: moments and master live in host memory
  bool grad_buffer_padding = true;            // Megatron contiguous buffers: bucket end to lcm(D,128)
  bool wgrad_scratch = false;                 // one bf16 scratch weight gradient per distinct weight shape
  bool fsdp_per_layer = false;                // zero3 unit = one layer (FSDP2)
  bool dense_attention_mask = false;          // the loader builds a boolean b*s*s mask per micro-batch

  // Memory: hidden tensors (T*H*2, /tp with SP) that are nobody's activation.
  double resident_hidden_tensors = 2.0;       // between steps, per model chunk when pp > 1: last stage input and its gradient
  bool resident_hidden_always_whole = false;  // nanotron: also at pp = 1, and not sharded over tp
  double pipeline_hidden_tensors = 3.0;       // at the peak when pp > 1: receive and send buffers in flight
  bool pipeline_outputs_deallocated = false;  // outputs are freed once sent: a first stage that receives no input has none

  // Memory: workspaces and what lies around the allocator.
  bool te_workspace = true;                 // TransformerEngine GEMMs: 32 MiB + 1 KiB on Hopper and later, 4 MiB before
  std::int32_t cublas_workspaces = 2;       // PyTorch: one per thread that calls cuBLAS (forward, autograd)
  bool deterministic = false;               // CUBLAS_WORKSPACE_CONFIG=:4096:8 (32 MiB each) and deterministic attention
  double reserved_over_allocated = 1.05;    // allocator factor
  double reserved_over_allocated_tp = 0.0;  // added when tp > 1: blocks held by the collectives' stream
  /// 95th percentile of measured over predicted reserved bytes of runs that lived, less 1; 0: not measured, and the upper bound
  /// has the ledger's own spread.
  double reserved_spread = 0.0;
  double tp_stream_bytes_per_hidden = 0.0;  // cached unsharded TP buffers, times T*H, when tp > 1
  double cuda_context_gib = 0.6;            // outside the allocator
  double nccl_mib_per_communicator = 400.0;

  // Time.
  AttentionBackend attention_backend = AttentionBackend::kCudnn;          // Hopper
  AttentionBackend attention_backend_ampere = AttentionBackend::kFlash2;  // and Ada: TransformerEngine prefers cuDNN from sm90 on
  AttentionBackend attention_backend_blackwell = AttentionBackend::kCudnn;
  bool fused_elementwise = true;         // fused norms/activation/rope, else eager (x3 traffic)
  bool fused_merges = false;             // eager code that compiles the merge of a ring step's output into one kernel
  double residual_traffic_factor = 1.0;  // these three: traffic of norms and residual additions, of RoPE with the copies of
  double rope_traffic_factor = 1.0;      //   q, k, v around it, of the activation function over that of fused kernels
  double activation_traffic_factor = 1.0;
  double dp_exposed_share = 0.37;       // of RS + AG when overlapped, beyond what does not fit; 0: not measured, by the schedule
  Bytes grad_bucket = Bytes(256e6);     // of a collective that reduces gradients; at least grad_bucket_per_rank a rank
  Bytes grad_bucket_per_rank;           // Megatron: 1 M elements, so that a bucket outlasts its ring's latency
  bool buckets_on_every_stage = false;  // Megatron cuts the gradients of the first stage's first chunk only
  bool buckets_of_whole_tensors = false;  // PyTorch DDP closes a bucket with the tensor that fills it: a larger one stands alone
  bool separate_projections = false;      // q, k and v, gate and up are products of their own, their input gradients added up
  TpOverlap tp_overlap = TpOverlap::kUserBuffers;
  bool tp_backward_async = true;    // backward re-gathers saved inputs under dgrad and scatters dgrad under wgrad
  bool tp_regathers_inputs = true;  // else gathered inputs are kept, or gathered by what is recomputed
  bool tp_copies_sequence = false;  // collectives cut the first dimension: whole sequences are copied around them
  bool pp_messages_split =
      false;  // without sequence parallelism each TP rank sends its part, which is gathered behind the message
  double pp_exposed_share = 0.7;                    // of overlapped (interleaved) pipeline messages; fitted, accuracy_notes 3.3
  bool fp8_param_gather = false;                    // primary weights are FP8 (no BF16 copy) and gathered in one byte
  double accumulation_traffic_per_parameter = 0.0;  // bytes of a separate pass that adds each micro-batch's gradients; 0: fused
  double zero3_copy_bytes = 0.0;                    // per parameter and micro-batch: copies around gathers and reductions
  bool zero3_waits = false;                         // each tensor is gathered and reduced by itself, with nothing beside it
  /// Host time of one call of an eager layer: Python, autograd and dispatcher, for every kernel and collective that operators.h
  /// counts, on a DGX H100's CPU (elsewhere times Cluster::cpu_slowdown). 0: not measured, the driver's launch alone.
  double host_call_us = 0.0;
  bool host_reads_loss = false;        // each micro-batch's loss, before the host goes on: its kernels give it no lead
  double shard_host_operations = 0.0;  // per tensor and rank of a gather (zero3: a reduction too), one host launch each
  bool recompute_ends_early = false;   // with the last tensor that backward needs: not a layer's last scatter

  // Legality.
  std::vector<LayoutKind> layout_kinds = {LayoutKind::kEven, LayoutKind::kEmbeddingAndLossAsLayers, LayoutKind::kFirstLast,
                                          LayoutKind::kExplicit};
  bool interleaving_needs_micro_batches_multiple_of_pp = true;
  std::vector<StateSharding> state_shardings = {StateSharding::kNone, StateSharding::kZero1};
  std::vector<StateSharding> partial_shardings;  // of these, those whose groups may be smaller than dp*cp (state_shards)
  bool shard_groups_hold_cp = false;             // FSDP2: a mesh of dp_shard x cp, so that a group holds whole context groups
  bool replica_reduce_stream = false;            // FSDP: the all-reduce over replicas runs beside the next reduce-scatter
  std::vector<Schedule> schedules = {Schedule::kOneFOneB, Schedule::kInterleaved, Schedule::kGpipe};
  bool kv_heads_replicated_over_tp =
      true;                                // tp > kv_heads: each KV head lives on tp/kv_heads ranks, else tp must divide kv_heads
  bool kv_heads_repeated_for_a2a = false;  // a2a degree > KV heads of a rank: KV is repeated before the exchange (HF, ALST)
  bool gradient_sharding_with_pp = false;  // zero2 and zero3 together with pp > 1 (torchtitan, Meta), else refused (DeepSpeed)
  std::int32_t micro_batches_short_of_pp = 1 << 20;  // m >= pp - this: nanotron 1, PyTorch schedules 0, Megatron any
};

/// Bytes of gradients in one collective over `ranks`.
[[nodiscard]] inline Bytes gradient_bucket(const RuleSet& rules, std::int64_t ranks) {
  return std::max(rules.grad_bucket, rules.grad_bucket_per_rank * static_cast<double>(ranks));
}

/// The backend on a GPU generation ("ampere", "hopper", "blackwell", as in gpus.toml). Scores are formed by plain products,
/// whatever the framework prefers, where no fused kernel trains: before Ampere (FlashAttention 2 and cuDNN's engines need compute
/// capability 8.0), and for head sizes above 256 or no multiple of 8 (limits of both libraries).
[[nodiscard]] inline AttentionBackend attention_backend_on(const RuleSet& rules, std::string_view generation,
                                                           std::int64_t head_dim) {
  constexpr std::int64_t kLargestHead = 256, kHeadStep = 8;
  if (generation == "volta" || head_dim > kLargestHead || head_dim % kHeadStep != 0) return AttentionBackend::kUnfused;
  if (generation == "ampere" || generation == "ada") return rules.attention_backend_ampere;
  if (generation == "blackwell") return rules.attention_backend_blackwell;
  return rules.attention_backend;
}

/// Rule sets of a TOML text: [[framework]] tables whose policies are [value, "source"]; `base` names an earlier one whose
/// values are taken over. Problems name the rule set and the key.
[[nodiscard]] Outcome<std::vector<RuleSet>> read_frameworks(std::string_view toml);

/// All rule sets of the embedded frameworks.toml, in file order. Parsed once per call: keep the result.
[[nodiscard]] std::vector<RuleSet> framework_presets();

/// One rule set by name; a problem with the nearest name otherwise.
[[nodiscard]] Outcome<RuleSet> find_framework(const std::string& name);

}  // namespace cpfit
