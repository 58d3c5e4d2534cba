// Core attention of one layer with its context-parallel communication, forward and backward, ordered as each implementation
// orders it (cp_model.md A.2, A.5, A.6, G.3). Which implementation: policies of the rule set and the recipe's cp_comm, never a
// name.
//
//   all steps' buffers (TransformerEngine)  forward: two attention streams, the message of step i posted when its KV is here and
//   step
//     i-2 has left its stream; kernels enter the SMs in launch order; outputs are corrected after the last step. Backward: the
//     ring turns round; step i posts its message, computes, waits for that message and adds the partial dKV it brought; the last
//     one (dKV only) passes beside the diagonal block.
//   two slots (zhuzilin, double ring)       every step posts the next KV, computes, merges, waits. Backward: dKV of step i leaves
//   after
//     step i, is waited for after step i+1, and goes home in one hop more; on the KV communicator where they share one.
//   balanced pairs (DistFlashAttention)     K and V straight from their owner, queries to helpers, results one step later.
//   one gather (PyTorch)                    all KV gathered behind the own block; dKV permutes as above.
//   all_gather, a2a, a2a+p2p (TransformerEngine)  collectives in line with the compute stream, nothing hidden.
#pragma once

#include <vector>

#include "model/traffic/cp_traffic.h"
#include "sim/schedule/operator_times.h"
#include "sim/schedule/writer.h"

namespace cpfit::schedule {

class AttentionSchedule {
 public:
  /// All references must outlive the schedule.
  AttentionSchedule(const ScreenContext& context, const Recipe& recipe, const OperatorTimes& times, Writer& writer);

  /// Attention of the context group `ranks` (cp simulated ranks in ring order). `windowed`: which kind of layer.
  void forward(const std::vector<std::int32_t>& ranks, const Place& at, bool windowed);
  void backward(const std::vector<std::int32_t>& ranks, const Place& at, bool windowed);

 private:
  struct Ring;
  struct KvOnTheWay;
  /// How a message travels: streams at its ends, name, size.
  struct Wire {
    engine::LaneKind send, receive;
    engine::TagId tag;
    Bytes bytes;
    std::int32_t messages;
  };
  [[nodiscard]] Ring ring_of(const std::vector<std::int32_t>& ranks, std::size_t first, bool windowed, bool backward) const;
  void exchange(const std::vector<std::int32_t>& ranks, const CpPhaseTraffic& phase, std::int32_t count, const char* what,
                const Place& at);
  void ring_forward(const Ring& ring, const Place& at);
  void ring_backward(const Ring& ring, const Place& at);
  void prefetching_forward(const Ring& ring, const Place& at);
  void two_slot_forward(const Ring& ring, const Place& at);
  void waiting_backward(const Ring& ring, const Place& at);
  void homecoming_backward(const Ring& ring, const Place& at);
  void paired(const Ring& ring, const Place& at);
  [[nodiscard]] Transfer ring_message(std::int32_t from, std::int32_t to, Bytes bytes, std::int32_t messages);
  /// Both ends post it from their compute streams; `here` and `there` are what the ends wait for besides.
  engine::ActivityId posted_message(const Ring& ring, std::size_t from, std::size_t to, const Wire& wire, engine::ActivityId here,
                                    engine::ActivityId there, const Place& at);
  engine::ActivityId gather_once(const Ring& ring, Bytes bytes, const Place& at);
  void send_kv(const Ring& ring, std::size_t step, Bytes inner, Bytes outer, KvOnTheWay& kv, const Place& at);
  void wait_kv(const Ring& ring, std::size_t step, KvOnTheWay& kv);
  engine::ActivityId attention(const Ring& ring, std::size_t position, std::size_t step, engine::LaneKind lane, const Place& at);
  void merge(const Ring& ring, std::size_t position, engine::Picoseconds time, const Place& at);
  /// What has a number: "attention 3". Tags are asked for once per kernel, so they are kept.
  enum class Numbered : std::uint8_t { kAttention, kSendKv, kSendKvOuter, kSendKvDkv, kSendDkv };
  [[nodiscard]] engine::TagId step_tag(Numbered what, std::size_t step, const Place& at);

  const ScreenContext& context_;
  const Recipe& recipe_;
  const OperatorTimes& times_;
  Writer& writer_;
  CpTraffic traffic_;
  CpTensors tensors_;
  RingBackward travelling_;
  bool in_pairs_;
  bool own_channels_;                      // see ring_has_own_channels()
  std::vector<engine::TagId> tags_[5][3];  // (steps) by Numbered and pass
};

}  // namespace cpfit::schedule
