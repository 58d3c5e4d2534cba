// How many blocks NCCL's send/receive kernel has, from what NCCL itself says when a communicator is made: no call of its
// interface tells it. Its log is turned on for this process alone, into a file of its own that is gone once it is read; where
// somebody has set NCCL_DEBUG already, nothing is touched and the figure stays unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cpfit::probe {

/// Of "[0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 16 p2p channels per peer" the last
/// figure, of the last such line: an exchange with the neighbours runs one block on each of these channels.
[[nodiscard]] std::optional<std::int32_t> channels_per_peer(std::string_view log);

class NcclLog {
 public:
  /// Before NCCL's first communicator, which reads its environment once.
  NcclLog();
  ~NcclLog();
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;
  /// After a communicator was made; nothing where NCCL did not say.
  [[nodiscard]] std::optional<std::int32_t> channels_per_peer() const;

 private:
  std::string path_;  // empty: not ours
};

}  // namespace cpfit::probe
