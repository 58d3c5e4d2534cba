// NCCL's functions, looked for when the first of them is needed: a cpfit-bench that was built with NCCL starts, and measures the
// host or one GPU, on machines that have none. Types come from nccl.h, so that a signature that changed does not compile.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

namespace cpfit::kernels {

struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
};

/// Of the library that is loaded, which stays loaded. Throws Error that says what to install where there is none, or where it
/// lacks a function (older than 2.14, the first with ncclCommFinalize).
[[nodiscard]] const NcclFunctions& nccl();

/// The same from the first library of these names, for tests.
[[nodiscard]] NcclFunctions load_nccl(const std::vector<std::string>& names);

}  // namespace cpfit::kernels
