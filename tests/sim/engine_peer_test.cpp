// The same flows in SimGrid: both engines mean max-min fairness, so both must end every exchange at the same time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/sim/engine_simgrid.h"
#include "tests/sim/engine_workload.h"

namespace cpfit::engine {
namespace {

/// Relative to the time of the exchange: 1e-9. Messages are 256 MiB (0.02 s at full speed) so that rounding upward to a
/// picosecond, at most once per change of a rate, is far below that.
void expect_agreement(const Workload& workload) {
  const Peer peer = run_in_simgrid(workload);
  if (!peer.absent.empty()) GTEST_SKIP() << peer.absent;
  const WorkloadProgram program = to_program(workload);
  const Outcome<engine::Run> ours = run(program.program);
  ASSERT_TRUE(ours.ok());
  const std::vector<std::vector<double>> times = completions(program, *ours);
  ASSERT_EQ(times.size(), peer.completions.size());
  double worst = 0;
  for (std::size_t s = 0; s < times.size(); ++s) {
    ASSERT_EQ(times[s].size(), peer.completions[s].size());
    for (std::size_t e = 0; e < times[s].size(); ++e) {
      worst = std::max(worst, std::abs(times[s][e] - peer.completions[s][e]) / peer.completions[s][e]);
    }
  }
  EXPECT_LT(worst, 1e-9);
}

TEST(EnginePeer, RingOfAllHosts) { expect_agreement(jittered_ring(16, 50, 256.0 * 1048576)); }
TEST(EnginePeer, RingsUnderAnOversubscribedSpineWithAllToAll) { expect_agreement(oversubscribed(32, 30, 256.0 * 1048576)); }

}  // namespace
}  // namespace cpfit::engine
