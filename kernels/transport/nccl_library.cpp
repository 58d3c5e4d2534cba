#include "kernels/transport/nccl_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/transport/loaded_library.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

NcclFunctions load_nccl(const std::vector<std::string>& names) {
  // Communicators may outlive whoever asked: the library is never unloaded.
  const auto* library = new LoadedLibrary(names);
  if (!library->loaded()) {
    throw Error(
        fmt::format("NCCL is not on this machine ({}): GPUs cannot send to each other; install libnccl2, or name its "
                    "folder in LD_LIBRARY_PATH",
                    fmt::join(names, ", ")));
  }
  NcclFunctions found;
  const auto find = [&](const char* symbol, auto& function) {
    if (!library->find(symbol, function))
      throw Error(fmt::format("the NCCL of this machine has no {}: it is older than 2.14; install a newer libnccl2", symbol));
  };
  find("ncclGetVersion", found.get_version);
  find("ncclGetUniqueId", found.get_unique_id);
  find("ncclGetErrorString", found.error_string);
  find("ncclGetLastError", found.last_error);
  find("ncclCommInitRankConfig", found.init_rank);
  find("ncclCommFinalize", found.finalize);
  find("ncclCommDestroy", found.destroy);
  find("ncclCommAbort", found.abort);
  find("ncclCommGetAsyncError", found.async_error);
  find("ncclGroupStart", found.group_start);
  find("ncclGroupEnd", found.group_end);
  find("ncclSend", found.send);
  find("ncclRecv", found.receive);
  find("ncclAllGather", found.all_gather);
  find("ncclReduceScatter", found.reduce_scatter);
  find("ncclAllReduce", found.all_reduce);
  return found;
}

const NcclFunctions& nccl() {
  static const NcclFunctions functions = load_nccl({"libnccl.so.2", "libnccl.so"});
  return functions;
}

}  // namespace cpfit::kernels
