#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <system_error>
#include <thread>
#include <vector>

#include "kernels/core/require.h"
#include "kernels/transport/nccl_library.h"
#include "kernels/transport/nccl_transport.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder, const std::string& job) { return folder / ("cpfit-nccl-id-" + job); }

void write_whole(const fs::path& file, const NcclId& id) {
  if (fs::exists(file)) {
    throw Error(
        fmt::format("NCCL: {} is already there: an earlier start used the same name; remove it, or name this start differently",
                    file.string()));
  }
  const fs::path aside = file.string() + ".part";
  std::ofstream out(aside, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(id.bytes.data()), static_cast<std::streamsize>(id.bytes.size()));
  out.close();
  std::error_code reason;
  if (out) fs::rename(aside, file, reason);
  if (!out || reason) throw Error(fmt::format("NCCL: rank 0 cannot write {}: {}", file.string(), reason.message()));
}

NcclId read_when_there(const fs::path& file, std::int32_t rank, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  NcclId id;
  for (;;) {
    std::ifstream in(file, std::ios::binary);
    if (in.read(reinterpret_cast<char*>(id.bytes.data()), static_cast<std::streamsize>(id.bytes.size()))) return id;
    if (std::chrono::steady_clock::now() > end) {
      throw Error(fmt::format("NCCL: rank {} waited {} ms for {} from rank 0; do all nodes see this folder?", rank,
                              timeout.count(), file.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

NcclId make_nccl_id() {
  ncclUniqueId made;
  static_assert(sizeof(made) == sizeof(NcclId));
  const ncclResult_t result = nccl().get_unique_id(&made);
  if (result != ncclSuccess) throw Error(fmt::format("NCCL: making a unique id: {}", nccl().error_string(result)));
  NcclId id;
  std::memcpy(id.bytes.data(), &made, sizeof made);
  return id;
}

NcclId share_nccl_id(Transport& host) {
  NcclId id;
  const View view = {id.bytes.data(), Number::kInt32, static_cast<std::int64_t>(id.bytes.size()) / bytes_of(Number::kInt32), 1};
  std::vector<Message> batch;
  if (host.rank() == 0) {
    id = make_nccl_id();
    for (std::int32_t peer = 1; peer < host.size(); ++peer) batch.push_back(send_to(peer, view));
  } else {
    batch.push_back(receive_from(0, view));
  }
  host.wait(host.start(batch));
  return id;
}

NcclId share_nccl_id(const fs::path& folder, const std::string& job, std::int32_t rank, std::chrono::milliseconds timeout) {
  const fs::path file = file_of(folder, job);
  if (rank != 0) return read_when_there(file, rank, timeout);
  const NcclId id = make_nccl_id();
  write_whole(file, id);
  return id;
}

void remove_nccl_id(const fs::path& folder, const std::string& job) {
  std::error_code ignored;  // another rank was faster
  fs::remove(file_of(folder, job), ignored);
}

std::string nccl_version() {
  int version = 0;
  try {
    if (nccl().get_version(&version) != ncclSuccess) return "unknown";
  } catch (const Error&) {
    return "";
  }
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace cpfit::kernels
