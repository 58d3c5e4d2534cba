// Ranks as processes with one GPU each, messages by NCCL on a stream of their own: a batch is one NCCL group, which starts after
// the operators called before it and delays the ones called after wait(). nccl.h stays behind this header.
//
// Failure: the communicator is non-blocking and every wait of the host looks at its state, so nobody hangs in NCCL. A batch that
// could begin and has not ended within the timeout, or an error that NCCL reports, aborts the communicator, and the call that the
// host is in throws; it may be a wait of the operators (download, finish), because a GPU's rank waits nowhere else. Every rank
// sees it by its own clock. Afterwards the transport only refuses.
//
// Collectives: all_gather over all ranks is NCCL's own, everything over part of the ranks is made of batches. Reductions are
// batches too, added in ascending order of ranks, so that a result has the same bits as on every other transport; NCCL's own
// (native_reductions) sum in the order of its rings and trees, round differently, and are what the frameworks run: for timing.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "kernels/core/transport.h"
#include "kernels/cuda/cuda_operators.h"

namespace cpfit::kernels {

/// What the ranks of one communicator must share before it exists (ncclUniqueId).
struct NcclId {
  std::array<std::byte, 128> bytes{};
};

/// Of a new communicator; on one rank, the others get it from there.
[[nodiscard]] NcclId make_nccl_id();
/// Rank 0 makes one and sends it to all over a transport of host memory (MPI).
[[nodiscard]] NcclId share_nccl_id(Transport& host);
/// Rank 0 makes one and leaves it in a folder that all ranks see, for launchers without MPI. `job` names this start of this job
/// among all others that use the folder, e.g. "$SLURM_JOB_ID.$SLURM_STEP_ID"; a file that is already there is refused by rank 0.
/// The file appears whole (written aside, then renamed); remove_nccl_id takes it away when the communicator exists.
[[nodiscard]] NcclId share_nccl_id(const std::filesystem::path& folder, const std::string& job, std::int32_t rank,
                                   std::chrono::milliseconds timeout);
void remove_nccl_id(const std::filesystem::path& folder, const std::string& job);

struct NcclOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // of making the communicator, and of every batch
  bool native_reductions = false;
};

/// Returns when all `size` ranks have called it. Borrows the operators, whose device and stream it uses.
[[nodiscard]] std::unique_ptr<Transport> make_nccl_transport(DeviceOperators& operators, const NcclId& id, std::int32_t rank,
                                                             std::int32_t size, const NcclOptions& options = {});

/// "2.28.9", of the library that is loaded; empty where there is none.
[[nodiscard]] std::string nccl_version();

}  // namespace cpfit::kernels
