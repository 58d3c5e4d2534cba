// Ranks as processes that mpirun or srun started: non-blocking messages on communicators of our own. Waiting polls, so that a
// deadline holds and a failure elsewhere is heard: a rank that fails tells all others, and each then throws with that message. A
// rank that dies is noticed by the launcher, which ends the job; ranks that hear nothing end it themselves at their deadline.
// mpi.h stays behind this header. One thread of a process uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/core/transport.h"

namespace cpfit::kernels {

/// MPI of this process, from its start to its end.
class MpiSession {
 public:
  MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();

  [[nodiscard]] std::int32_t rank() const { return rank_; }
  [[nodiscard]] std::int32_t size() const { return size_; }

 private:
  std::int32_t rank_ = 0;
  std::int32_t size_ = 1;
};

/// As the library names itself, its first line; may be asked without a session.
[[nodiscard]] std::string mpi_library_version();

class MpiTransport final : public Transport {
 public:
  static constexpr std::int64_t kPieceBytes = std::int64_t{1} << 30;  // MPI counts in int: a longer message goes in pieces

  /// All ranks of the session. `timeout`: of every wait for another rank. `grace`: when a rank fails, how long it waits for all
  /// others to know before it throws. The same piece size on every rank.
  explicit MpiTransport(std::chrono::milliseconds timeout, std::chrono::milliseconds grace = std::chrono::seconds(3),
                        std::int64_t piece_bytes = kPieceBytes);
  ~MpiTransport() override;

  [[nodiscard]] std::int32_t rank() const override;
  [[nodiscard]] std::int32_t size() const override;
  Ticket start(std::span<const Message> batch) override;
  void wait(Ticket ticket) override;
  [[nodiscard]] bool test(Ticket ticket) override;
  void barrier() override;

  /// How long a wait polls without a pause; afterwards it sleeps between polls, which leaves the processor to others and costs
  /// messages a part of their rate. For ranks that have a core each, and measure.
  void poll_without_pause(std::chrono::milliseconds spin);

  /// For the end of a rank that failed, the only thing it may still do with MPI: says why on standard error, tells the others
  /// (unless they told us, or know), and ends every process of the job.
  [[noreturn]] void abandon(const std::string& why);

 private:
  struct Requests;
  std::unique_ptr<Requests> requests_;
};

}  // namespace cpfit::kernels
