// Which process writes a run, kept in the run's row so that a run whose writer was killed can be told from one that is still
// being written. Private to db.
#pragma once

#include <cstdint>
#include <string>

namespace cpfit {

struct WriterProcess {
  std::string host;              // host name and boot id: after a reboot no process of before lives
  std::int64_t process = 0;      // its number
  std::int64_t start_ticks = 0;  // since boot; tells it from a later process with the same number
  friend bool operator==(const WriterProcess&, const WriterProcess&) = default;
};

[[nodiscard]] WriterProcess this_process();

enum class WriterLife : std::uint8_t { kAlive, kDead, kUnknown };  // unknown: on another host

[[nodiscard]] WriterLife life_of(const WriterProcess& writer);

}  // namespace cpfit
