// The resources of a step and what draws on them: directed links of the topology, the SMs and the memory bandwidth of every
// simulated GPU.
//
// Memory bandwidth: a kernel that is timed by what it moves takes all that is attainable (rates: memory), a transfer inside the
// scale-up domain one byte where it is read and one where it is written for each on the wire, and a reduction one more for what
// it adds to (derived; NCCL may stage and take more). Slower links leave the memory alone: a NIC brings a sixtieth of its rate.
// So do tensor-parallel collectives, which only products run beside. The SMs of an overlapped collective are counted apart
// (rates: overlap, whose source leaves memory out); of both the scarcer decides.
//
// What a transfer attains alone comes from the same fitted curves as the screen's (rates: alpha, attainable share of a link, size
// curves of collectives); what it gets beside others from max-min fair shares of the links on its routes. A link's capacity
// is its raw capacity times the share that a message attains of it, so that n transfers at once get what the screen's n-th of a
// link gives. Where replicas are folded (simulated_ranks.h) the flows of the ranks that are not simulated count as weight on
// every link they have in common with a simulated one.
#pragma once

#include <array>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "model/rates/gpu_rates.h"
#include "sim/engine/program_builder.h"
#include "sim/schedule/simulated_ranks.h"
#include "sim/screen/screen.h"

namespace cpfit::schedule {

/// What an activity that communicates needs: see engine::Activity.
struct Transfer {
  engine::Picoseconds fixed = 0;
  double amount = 0;  // bytes
  double cap = 1;     // bytes per picosecond
  engine::PatternId pattern = engine::kNone;
  LinkClass slowest = LinkClass::kNvlink;  // decides how much a kernel beside it is slowed
  bool by_copy_engine = false;             // takes no SMs
  bool has_own_channels = false;           // a message of a group within one domain: all channels that lead to its peer
  [[nodiscard]] bool empty() const { return fixed == 0 && amount == 0; }
};

class StepNetwork {
 public:
  StepNetwork(const ScreenContext& context, const Recipe& recipe, const SimulatedRanks& ranks, engine::ProgramBuilder& program);

  /// `messages` messages of `bytes` together from one simulated rank to another; `pair`: over a communicator of their own.
  [[nodiscard]] Transfer message(std::int32_t from, std::int32_t to, Bytes bytes, std::int32_t messages, bool pair = false);

  /// A collective of one group of `ranks` (0: as many as its shape says), `members` its simulated ones, `bytes` as
  /// collective_time wants them; the flows of all simulated members are part of it.
  [[nodiscard]] Transfer collective(CollectiveKind kind, GroupShape shape, std::span<const std::int32_t> members, Bytes bytes,
                                    std::int64_t ranks = 0);

  /// The SMs of a simulated rank's GPU, all of them.
  [[nodiscard]] engine::PatternId kernel(std::int32_t rank) const { return kernel_[static_cast<std::size_t>(rank)]; }
  /// The same for a kernel that its memory traffic bounds, and all of the GPU's memory bandwidth.
  [[nodiscard]] engine::PatternId memory_kernel(std::int32_t rank) const {
    return memory_kernel_[static_cast<std::size_t>(rank)];
  }
  /// What the kernel of a transfer takes of them while it is posted: 1 - 1/slowdown (rates: overlap).
  [[nodiscard]] engine::HoldId hold(std::int32_t rank, const Transfer& transfer);

 private:
  using Weights = std::map<std::int32_t, double>;  // link -> bytes per byte of the transfer
  [[nodiscard]] Transfer new_message(std::int32_t from, std::int32_t to, Bytes bytes, std::int32_t messages, bool pair);
  /// Routes into route_; how many ways there are, equal parts over each.
  std::size_t find_ways(std::int64_t from, std::int64_t to, bool pair);
  void add_route(std::int64_t from, std::int64_t to, double weight, Weights& weights, bool pair = false);
  void add_images(std::int64_t from, std::int64_t to, double weight, Weights& weights, bool pair = false);
  /// `cap`: what a collective attains alone, to which links' claims are cut; 0 for a message.
  [[nodiscard]] engine::PatternId pattern_of(const Weights& weights, double cap, std::vector<engine::Use> memory);
  [[nodiscard]] Transfer new_collective(CollectiveKind kind, GroupShape shape, std::span<const std::int32_t> members, Bytes bytes,
                                        std::int64_t ranks);
  [[nodiscard]] engine::ResourceId resource_of(std::int32_t link);
  [[nodiscard]] double attainable(const Link& link) const;  // bytes per picosecond

  const ScreenContext& context_;
  const Recipe& recipe_;
  const SimulatedRanks& ranks_;
  engine::ProgramBuilder& program_;
  std::vector<engine::PatternId> kernel_;         // (ranks)
  std::vector<engine::PatternId> memory_kernel_;  // (ranks)
  std::vector<engine::ResourceId> sm_, memory_;   // (ranks)
  static constexpr engine::HoldId kUnknownHold = -2;
  std::vector<std::array<engine::HoldId, 2 * kLinkClasses>> holds_;  // (ranks, link class of collectives, of messages)
  std::map<std::int32_t, engine::ResourceId> resource_;              // link -> resource
  struct KnownMessage {
    std::int32_t to, messages;
    double bytes;
    bool pair;
    Transfer transfer;
  };
  std::vector<std::vector<KnownMessage>> messages_;  // (ranks) those a rank sends: few kinds, asked for again and again
  /// Kind, shape, first member, simulated members, bytes, ranks: a group is known by its first member and its size.
  using CollectiveKey = std::tuple<CollectiveKind, GroupShape, std::int32_t, std::size_t, double, std::int64_t>;
  std::map<CollectiveKey, Transfer> collectives_;
  std::vector<std::int32_t> route_;
  std::vector<std::size_t> way_ends_;
};

}  // namespace cpfit::schedule
