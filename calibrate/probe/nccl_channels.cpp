#include "calibrate/probe/nccl_channels.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace cpfit::probe {

std::optional<std::int32_t> channels_per_peer(std::string_view log) {
  constexpr std::string_view kWords = " p2p channels per peer";
  const std::size_t words = log.rfind(kWords);
  if (words == std::string_view::npos) return std::nullopt;
  std::size_t begin = words;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  std::int32_t channels = 0;
  const auto [end, failure] = std::from_chars(log.data() + begin, log.data() + words, channels);
  if (failure != std::errc() || end != log.data() + words || channels < 1) return std::nullopt;
  return channels;
}

NcclLog::NcclLog() {
  if (std::getenv("NCCL_DEBUG") != nullptr || std::getenv("NCCL_DEBUG_FILE") != nullptr) return;
  std::error_code failure;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failure);
  if (failure) return;
  path_ = (folder / fmt::format("cpfit-bench-nccl-{}.log", ::getpid())).string();
  ::setenv("NCCL_DEBUG", "INFO", 0);
  ::setenv("NCCL_DEBUG_SUBSYS", "INIT", 0);
  ::setenv("NCCL_DEBUG_FILE", path_.c_str(), 0);
}

NcclLog::~NcclLog() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

std::optional<std::int32_t> NcclLog::channels_per_peer() const {
  if (path_.empty()) return std::nullopt;
  std::ifstream file(path_);
  const std::string log{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return probe::channels_per_peer(log);
}

}  // namespace cpfit::probe
