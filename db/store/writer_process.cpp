#include "db/store/writer_process.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

namespace cpfit {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

/// Field 22 of /proc/PID/stat (proc(5)): start time in clock ticks since boot. 0: there is no such process.
std::int64_t start_ticks_of(std::int64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');  // the name may itself hold blanks and brackets
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return 0;  // killed, and not yet collected by its parent
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  std::int64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

}  // namespace

WriterProcess this_process() {
  const std::int64_t process = ::getpid();
  return {host_name() + " " + boot_id(), process, start_ticks_of(process)};
}

WriterLife life_of(const WriterProcess& writer) {
  const std::string host = host_name();
  if (writer.host == host + " " + boot_id()) {
    return start_ticks_of(writer.process) == writer.start_ticks ? WriterLife::kAlive : WriterLife::kDead;
  }
  const bool same_host_other_boot = writer.host.substr(0, writer.host.find(' ')) == host;
  return same_host_other_boot ? WriterLife::kDead : WriterLife::kUnknown;
}

}  // namespace cpfit
