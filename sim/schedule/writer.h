// The pen of the schedules: kernels, messages and collectives of simulated ranks, with the rule that the next kernel of a rank
// waits for what its stream was told to wait for (cudaStreamWaitEvent), collected as gates.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/program_builder.h"
#include "sim/schedule/step_network.h"

namespace cpfit::schedule {

/// Where in the step an activity belongs.
struct Place {
  std::int32_t layer = -1;
  std::int32_t micro_batch = -1;
  std::int32_t chunk = 0;
  engine::StepPass pass = engine::StepPass::kForward;
};

class Writer {
 public:
  /// `slowness` (ranks): kernels of a simulated rank take that many times as long.
  Writer(const SimulatedRanks& ranks, StepNetwork& network, engine::ProgramBuilder& program, std::vector<double> slowness)
      : ranks_(ranks),
        network_(network),
        program_(program),
        slowness_(std::move(slowness)),
        gates_(static_cast<std::size_t>(ranks.count())) {}

  [[nodiscard]] const SimulatedRanks& ranks() const { return ranks_; }
  [[nodiscard]] StepNetwork& network() { return network_; }
  [[nodiscard]] engine::ProgramBuilder& program() { return program_; }

  [[nodiscard]] engine::TagId tag(const std::string& name, engine::Work work, const Place& place,
                                  engine::TrafficAxis axis = engine::TrafficAxis::kNone);

  /// A kernel on `lane` of `rank`. On the compute stream it waits for the rank's gates. `launches`: kernels the host launches.
  engine::ActivityId kernel(std::int32_t rank, engine::LaneKind lane, engine::TagId tag, engine::Picoseconds time,
                            std::int32_t launches, const Place& place);

  /// The next kernel on the rank's compute stream waits until `activity` has ended.
  void gate(std::int32_t rank, engine::ActivityId activity);
  /// Moves the rank's gates onto `activity`'s slot on `lane` (a communicator told to wait for the compute stream's waits).
  void take_gates(std::int32_t rank, engine::ActivityId activity, engine::LaneId lane);
  /// `activity`'s slot on `lane` waits for the rank's gates too; they stay.
  void wait_gates(std::int32_t rank, engine::ActivityId activity, engine::LaneId lane);
  /// Every activity that what comes next may wait for.
  template <class Visit>
  void visit_references(Visit&& visit) {
    for (std::vector<engine::ActivityId>& gates : gates_) {
      for (engine::ActivityId& gate : gates) visit(gate);
    }
  }
  /// What the rank's compute stream did last; kNone at the beginning.
  [[nodiscard]] engine::ActivityId last(std::int32_t rank);

  /// A message between two simulated ranks; the caller adds what its ends wait for. The sender holds SMs from its post on.
  engine::ActivityId message(std::int32_t from, std::int32_t to, engine::LaneKind send, engine::LaneKind receive,
                             engine::TagId tag, const Transfer& transfer, const Place& place);
  [[nodiscard]] engine::LaneId lane(std::int32_t rank, engine::LaneKind kind) { return program_.lane(rank, kind); }

  /// A collective of simulated members on one lane kind, posted as soon as that lane is free.
  engine::ActivityId posted(std::span<const std::int32_t> members, engine::LaneKind kind, engine::TagId tag,
                            const Transfer& transfer, const Place& place);
  /// A collective of simulated members on one lane kind. Every member posts it when its compute stream (and its gates) are done.
  engine::ActivityId collective(std::span<const std::int32_t> members, engine::LaneKind kind, engine::TagId tag,
                                const Transfer& transfer, const Place& place);
  /// The same, and every member's next kernel waits for it.
  engine::ActivityId waited_collective(std::span<const std::int32_t> members, engine::LaneKind kind, engine::TagId tag,
                                       const Transfer& transfer, const Place& place);

 private:
  [[nodiscard]] engine::Spec spec(engine::TagId tag, const Transfer& transfer, const Place& place) const;
  const SimulatedRanks& ranks_;
  StepNetwork& network_;
  engine::ProgramBuilder& program_;
  std::vector<double> slowness_;                        // (ranks)
  std::vector<std::vector<engine::ActivityId>> gates_;  // (ranks)
  std::vector<engine::LaneId> lanes_;                   // scratch
  std::vector<engine::HoldId> holds_;                   // scratch
};

}  // namespace cpfit::schedule
