// Context-parallel attention of one layer, forward and backward, as the implementations in the field order it. Each function runs
// on one rank: it computes with Operators and talks through a Transport; all ranks call it with the same Method and Layer. Source
// of the orders: cp_model.md A.1-A.6.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/cut.h"
#include "kernels/core/operators.h"
#include "kernels/core/transport.h"

namespace cpfit::kernels {

enum class Exchange : std::uint8_t { kRing, kAllGather, kAllToAll, kAllToAllRing, kDoubleRing };

/// In which type the sums over ring steps are kept: the inputs' own (bf16 adds, as TransformerEngine) or sum_number() (fp32). A
/// double ring keeps dQ and dKV in sum_number() inside its first window whatever is said here; false: cast at the window's edge.
struct Accumulation {
  bool wide_out = true;
  bool wide_dq = true;
  bool wide_dkv = true;  // on the wire too
};

/// Errors that somebody has really made, planted so that the suite proves it would see them (cp_model.md F).
enum class Fault : std::uint8_t {
  kNone,
  kSeamOffByOne,        // position at a shard seam one too low
  kMaskShiftedByBlock,  // the mask of the neighbouring ring step
  kPermutationNotInverted,
  kMergeThroughExp,
  kDkvOneHopShort,
  kKvOfStepZero,   // backward reads the KV of step 0 on every step
  kLengthFloored,  // real length rounded down to a multiple of cp
  kPaddedKeyAttended,
  kGradientDividedByCp,  // the last three belong to the block (verify/), which reduces gradients and loss
  kLabelsShiftedAfterShard,
  kLossMeanOfMeans,
};

struct Method {
  std::string name;  // "te_p2p", "fp32_ring", "all_gather", … as printed
  Exchange exchange = Exchange::kRing;
  Accumulation accumulation;
  bool deferred_output =
      false;  // TransformerEngine: keep every partial out, correct after the last step; else merge as they come
  bool reversed_backward = false;  // TransformerEngine: the backward ring turns the other way and ends on the diagonal; its dKV
                                   // rides with the KV one step late. Else: dKV in its own messages, one hop home at the end
  std::int32_t a2a_degree = 1;     // kAllToAllRing: u ranks exchange heads, cp / u form the ring
  bool repeat_kv = false;   // all-to-all with fewer KV heads than ranks: each is sent to several ranks, their gradients summed
                            // (HF/ALST); else refused (TransformerEngine, DeepSpeed)
  std::int32_t window = 1;  // kDoubleRing: ranks of an inner ring
  Fault fault = Fault::kNone;
};

struct Layer {
  Heads heads;
  Mask mask;
  Cut queries;
  Cut keys;                       // equal to `queries` but for cross attention
  Number number = Number::kBf16;  // of q, k, v, out, dout and the gradients handed back
};

/// What the backward pass needs again. `kv`: what the implementation keeps beside the caller's shard (the last received shard, or
/// the exchanged heads); empty: nothing. After an all-to-all over u ranks lse, q, out and kv are [u * s_q][h / u * dim]: all the
/// tokens of the group, some of the heads.
struct Forward {
  Array out;  // [s_q][h_q * v_dim], always this rank's shard
  Array lse;  // of the kernels' rows and heads: see lse_of_shard
  Array kv_key, kv_value;
  std::int32_t kv_owner = 0;         // whose shard kv is
  Array exchanged_q, exchanged_out;  // empty: the shard itself
};
struct Gradients {
  Array dq, dk, dv;
};

/// Empty when the method can run this layer on `cp` ranks; else why not and what would do (heads that do not divide, a window
/// that the exchange cannot serve, …), for a person.
[[nodiscard]] std::string why_not(const Method& method, const Layer& layer, std::int32_t cp);

/// q, k, v: this rank's shard.
[[nodiscard]] Forward attend(const Method& method, const Layer& layer, Operators& operators, Transport& transport, const View& q,
                             const View& k, const View& v);
[[nodiscard]] Gradients attend_backward(const Method& method, const Layer& layer, Operators& operators, Transport& transport,
                                        const Forward& forward, const View& q, const View& k, const View& v, const View& dout);

/// lse of this rank's own queries, [s_q][h_q]. After an all-to-all it is sent home: not part of a training step, all ranks call
/// it.
[[nodiscard]] Array lse_of_shard(const Method& method, const Layer& layer, Operators& operators, Transport& transport,
                                 const Forward& forward);

/// What gather_rows takes to bring rank-major results (row rank * tokens_per_rank + local) into the order of the sequence:
/// unshard_rows, or what the fault kPermutationNotInverted makes of it. Whoever puts a method's results together asks here.
[[nodiscard]] std::vector<std::int32_t> result_rows(const Method& method, const Cut& cut, const Mask& mask);

/// The methods that the suite runs and the frameworks use, by name.
[[nodiscard]] const std::vector<Method>& methods();

}  // namespace cpfit::kernels
