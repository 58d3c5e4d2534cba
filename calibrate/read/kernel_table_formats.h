// What the readers of kernel tables share: one format is its columns and a reader per measurement of a row. Private to
// calibrate/read.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibrate/read/kernel_table.h"

namespace cpfit {

class CsvRow;

namespace kernel_table {

/// What a row became: a measurement, or the reason why not.
using RowResult = std::variant<KernelMeasurement, std::string>;
using Reader = RowResult (*)(const CsvRow&);

struct Format {
  const char* source;
  std::vector<const char*> columns;  // that only this format has together
  std::vector<Reader> readers;       // each gives one measurement per row
  bool continuous = false;           // see KernelTable
};

/// Extracts of other tools' tables: microseconds instead of milliseconds, shares of peak instead of times.
[[nodiscard]] const std::vector<Format>& reference_formats();

/// Concatenation (g++ 12 warns of overlapping copies when operator+ does it).
[[nodiscard]] std::string joined(std::initializer_list<std::string_view> parts);
[[nodiscard]] std::string unknown_gpu(std::string_view printed);

/// Attended pairs of q queries under a causal mask; `window` > 0: each sees at most that many keys.
[[nodiscard]] double causal_pairs(std::int64_t q, std::int64_t window);
[[nodiscard]] AttentionShape square(std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t kv_heads,
                                    std::int64_t d, bool causal);
/// TFLOP/s to seconds with FLOPs counted as the source counts them: `pairs` per head, backward 2.5 x, both 3.5 x.
[[nodiscard]] Seconds time_from_rate(const AttentionShape& shape, double pairs, MeasuredPass pass, double tflops);

/// "b=1, m=4096, layout=TN" -> the number after "m=".
[[nodiscard]] std::optional<std::int64_t> field(std::string_view shape, const std::string& key);
/// "all_gather", "alltoall", ... as tools print collectives.
[[nodiscard]] std::optional<CollectiveKind> collective_printed(std::string_view name);

/// What aiconfigurator's tables of collectives within a node call their columns, beside "nccl_version" and "dtype".
struct CollectiveColumns {
  const char *kind, *ranks, *bytes, *time, *gpu;
  double time_unit;  // s
};
[[nodiscard]] RowResult read_collective(const CsvRow& row, const CollectiveColumns& columns);

}  // namespace kernel_table
}  // namespace cpfit
