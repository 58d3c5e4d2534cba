// One rank's part of a case, over any operators and any transport: the numbers are made from the case's seed on every rank, cut,
// attended forward and backward, and read back. In-process ranks, MPI processes and GPUs run this one text; what each leaves in a
// folder is judged by the process that started them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/operators.h"
#include "kernels/core/transport.h"
#include "kernels/verify/case.h"

namespace cpfit::kernels {

/// Results in local or in storage order of the tokens, row by row; shapes as in kernels/core/operators.h.
struct AttentionTensors {
  std::vector<double> out, lse, dq, dk, dv;
};

/// This rank's rows, in local order. All ranks of the transport call it with the same case; transport.size() must be its cp.
[[nodiscard]] AttentionTensors run_rank(const Case& verified, Operators& operators, Transport& transport);

/// All ranks' rows in storage order.
[[nodiscard]] AttentionTensors unshard(const Case& verified, const std::vector<AttentionTensors>& ranks);

/// FOLDER/case<index>.rank<rank>.bin, and back. Throws Error on a file that cannot be written, is missing or cut short.
void write_rank(const std::string& folder, std::int64_t index, std::int32_t rank, const AttentionTensors& tensors);
[[nodiscard]] AttentionTensors read_rank(const std::string& folder, std::int64_t index, std::int32_t rank);

}  // namespace cpfit::kernels
