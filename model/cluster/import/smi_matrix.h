// The connection matrix that `nvidia-smi topo -m` prints, as read: codes as written, before a graph is made of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/cluster/import/imported.h"
#include "model/quantity/problem.h"

namespace cpfit {

struct SmiMatrix {
  std::vector<std::string> names;               // columns, in their order: "GPU0", "NIC0", "mlx5_0": n
  std::vector<std::string> labels;              // the NIC legend's names where there is one, else as names: n
  std::vector<std::vector<std::string>> codes;  // n x n: "X", "NV18", "PIX" ...; SOC reads SYS; "" where the text is cut
  std::vector<std::string> affinity;            // NUMA node, else CPU list; "" when neither is there: n
  std::vector<std::string> notes;
};

/// Is this line a header of the matrix (GPU names, no codes)?
[[nodiscard]] bool is_smi_header(std::string_view line);
/// Problems: no matrix, cut at the right, unknown code, not symmetric, rows missing, MIG, too many devices.
[[nodiscard]] Outcome<SmiMatrix> read_smi_matrix(std::string_view text, const std::string& where);

/// A tree of PCIe switches, host bridges and NUMA nodes that gives these codes back. Adds a note where no tree does.
[[nodiscard]] ImportedHost host_of(const SmiMatrix& matrix, std::vector<std::string>& notes);

}  // namespace cpfit
