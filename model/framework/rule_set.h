// What a framework does that changes memory or time, as policies; no code asks for a framework's name. Read from
// model/presets/frameworks.toml, a source per policy (frameworks.md, cp_model.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/quantity/problem.h"
#include "model/recipe/recipe.h"

namespace cpfit {

enum class AttentionBackend : std::uint8_t { kCudnn, kFlash2, kFlash3, kUnfused };
enum class DkvWire : std::uint8_t { kNominal, kFp32 };  // dtype of dKV on the ring
enum class RingBuffers : std::uint8_t {
  kAllSteps,
  kTwoSlots
};  // TE keeps cp KV buffers and all partial outputs until forward ends
enum class KvExchange : std::uint8_t { kRing, kAllGatherOnce };  // PyTorch's "ring" is one all-gather in forward

struct RuleSet {
  std::string name;     // "megatron-core"
  std::string version;  // what was read, e.g. "Megatron-LM d98e8a6, TransformerEngine d0067d0"
  std::string source;

  // Context parallelism: the ring.
  RingBuffers ring_buffers = RingBuffers::kAllSteps;
  DkvWire dkv_wire = DkvWire::kNominal;
  bool dkv_homecoming_hop = false;  // fp32-dKV codes need cp hops instead of cp-1
  bool accumulate_fp32 = false;     // out and dQ accumulators in fp32
  bool reverse_ring_in_backward = true;
  bool two_compute_streams = true;  // TE forward alternates two streams
  KvExchange kv_exchange = KvExchange::kRing;
  bool kv_in_one_message = true;         // K and V concatenated, else two messages per step
  bool shared_dkv_communicator = false;  // KV and dKV serialise on one communicator
  std::vector<CpComm> cp_comms = {CpComm::kP2p, CpComm::kAllGather, CpComm::kA2a, CpComm::kA2aP2p};
  std::vector<ShardLayout> shard_layouts = {ShardLayout::kZigzag};
  std::int32_t cp_chunk_multiple = 2;     // s % (multiple * cp) == 0
  bool sequence_multiple_has_tp = false;  // torchtitan: s % (2*cp*tp)

  // Memory.
  double loss_bytes_per_logit = 6.0;              // at the loss peak: bf16 logits + fp32 copy
  double loss_saved_bytes_per_logit = 4.0;        // kept from loss forward to its backward
  double mlp_activation_bytes_per_ffn = 6.0;      // gated MLP: bytes saved per F element per token (Megatron 6, unfused 8)
  double norm_activation_bytes_per_hidden = 8.0;  // two norm inputs + two norm outputs, per H element per token
  double extra_gradient_bytes = 0.0;              // nanotron: bf16 DDP buckets beside the fp32 accumulator, if dp > 1
  bool grad_buffer_padding = true;                // Megatron contiguous buffers: bucket end to lcm(D,128), start to 64 elements
  bool wgrad_scratch = false;                     // one bf16 scratch weight gradient per distinct weight shape
  bool fsdp_per_layer = false;                    // zero3 unit = one layer (FSDP2)
  double fixed_workspace_mib = 96.0;              // inside the allocator, Hopper and later
  double reserved_over_allocated = 1.05;          // allocator factor
  double cuda_context_gib = 0.6;                  // outside the allocator
  double nccl_mib_per_communicator = 400.0;

  // Time.
  AttentionBackend attention_backend = AttentionBackend::kCudnn;
  bool fused_elementwise = true;            // fused norms/activation/rope, else eager (x3 traffic)
  double elementwise_traffic_factor = 2.2;  // fwd+bwd per token and layer, times 2*(30H + 8F)/tp bytes (accuracy_notes 3.3)
  double dp_exposed_share = 0.37;           // of RS + AG when overlapped, beyond what does not fit
  double tp_exposed_share = 0.65;           // with overlap
  Bytes grad_bucket = Bytes(256e6);
  bool tp_overlap_available = true;
  bool tp_backward_async = true;  // backward re-gathers saved inputs under dgrad and scatters dgrad under wgrad
  double pp_exposed_share = 0.7;  // of overlapped (interleaved) pipeline messages; fitted, accuracy_notes 3.3
  bool fp8_param_gather = false;  // FP8 primary weights are gathered in one byte
  bool grad_reduce_in_last_micro_batch_only = true;

  // Legality.
  std::vector<LayoutKind> layout_kinds = {LayoutKind::kEven, LayoutKind::kEmbeddingAndLossAsLayers, LayoutKind::kFirstLast,
                                          LayoutKind::kExplicit};
  bool interleaving_needs_micro_batches_multiple_of_pp = true;
  std::vector<StateSharding> state_shardings = {StateSharding::kNone, StateSharding::kZero1};
  bool kv_heads_replicated_over_tp =
      true;                                // tp > kv_heads: each KV head lives on tp/kv_heads ranks, else tp must divide kv_heads
  bool kv_heads_repeated_for_a2a = false;  // a2a degree > KV heads of a rank: KV is repeated before the exchange (HF, ALST)
  bool gradient_sharding_with_pp = false;  // zero2 and zero3 together with pp > 1 (torchtitan, Meta), else refused (DeepSpeed)
  std::int32_t micro_batches_short_of_pp = 1 << 20;  // m >= pp - this: nanotron 1, PyTorch schedules 0, Megatron any
};

/// All rule sets of the embedded frameworks.toml, in file order. Parsed once per call: keep the result.
[[nodiscard]] std::vector<RuleSet> framework_presets();

/// One rule set by name; a problem with the nearest name otherwise.
[[nodiscard]] Outcome<RuleSet> find_framework(const std::string& name);

}  // namespace cpfit
