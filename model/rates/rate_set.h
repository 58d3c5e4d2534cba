// Fitted rate surfaces: how long one operator takes on one GPU or one link class. Coefficients come from rates.toml (written
// by `cpfit calibrate fit`), each with its source, residual and range of validity. Evaluation says whether the point lies in
// the measured range and how uncertain it is. A RateSet is immutable; evaluation does not allocate.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/cluster/gpu.h"
#include "model/cluster/topology.h"
#include "model/quantity/problem.h"
#include "model/quantity/units.h"

namespace cpfit {

enum class MathKind : std::uint8_t { kBf16, kFp8Tensor, kFp8Block, kMxfp8, kNvfp4, kFp32 };  // kFp32: processors (host backend)
enum class AttentionPass : std::uint8_t { kForward, kBackward };
enum class AttentionLibrary : std::uint8_t { kCudnn, kFlash2, kFlash3, kTrtllm, kOwn };  // kOwn: cpfit-bench's own kernels
enum class CollectiveKind : std::uint8_t { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kSendRecv };
enum class Evidence : std::uint8_t { kMeasured, kFitted, kAssumed };  // where a number comes from

/// What else decides a collective's speed, beside kind, link and number of ranks. kUsual: members next to each other in rank
/// order, floating-point numbers. kStrided: members apart in rank order (all such groups at once), as data-parallel groups are.
/// kInt8Sums: sums of 8-bit integers, which the switch of NVLink 4 and later does not add; for comparison with tables only.
enum class CollectiveForm : std::uint8_t { kUsual, kStrided, kInt8Sums };
[[nodiscard]] constexpr CollectiveForm form_of_stride(std::int64_t stride) {
  return stride > 1 ? CollectiveForm::kStrided : CollectiveForm::kUsual;
}

/// A time with its trust.
struct Rated {
  Seconds time;
  float relative_sigma = 0.0f;  // one standard deviation, relative
  bool in_range = true;         // inside the range of validity of the surface
  Evidence evidence = Evidence::kFitted;
};

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;  // C(m,n) = A(m,k) B(k,n)
};

/// Work of one attention kernel. `pairs` is attended (query, key) pairs per head; q_len and kv_len its rectangle.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t q_len = 0, kv_len = 0;
  double pairs = 0;    // s*s/2 causal, q*kv dense
  bool causal = true;  // diagonal inside: lower efficiency than a dense rectangle
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t head_dim = 128;
  std::int64_t head_dim_v = 0;      // 0: as head_dim
  MathKind math = MathKind::kBf16;  // inputs of the two or five matmuls
  bool deterministic = false;       // backward with a fixed order of additions
};

/// Every table of rates.toml; defined in rates/rate_tables.h.
struct RateTables;

/// The coefficients of one GPU, opaque to callers; defined in rates/gpu_rates.cpp's companion header gpu_rates.h.
struct GpuRates;

class RateSet {
 public:
  RateSet();
  ~RateSet();
  RateSet(RateSet&&) noexcept;
  RateSet& operator=(RateSet&&) noexcept;

  /// Reads rates.toml text. Problems name the table and key.
  [[nodiscard]] static Outcome<RateSet> parse(std::string_view toml_text);
  /// The same from tables; `origin` stands in the problem.
  [[nodiscard]] static Outcome<RateSet> from_tables(RateTables tables, const std::string& origin = "rates.toml");
  /// The embedded default (model/presets/rates.toml).
  [[nodiscard]] static RateSet defaults();
  [[nodiscard]] const std::string& version() const { return version_; }

  /// Rates of one GPU: its own fit, or its generation's scaled by peak (evidence: assumed).
  [[nodiscard]] const GpuRates& of(const Gpu& gpu) const;

 private:
  struct Body;
  std::string version_;
  std::unique_ptr<Body> body_;
};

// Isolated kernels, as the published kernel tables measure them; `warm` as in curves.h.
[[nodiscard]] Rated gemm_time(const GpuRates& rates, const GemmShape& shape, MathKind math, double warm = 0.0);
[[nodiscard]] Rated attention_time(const GpuRates& rates, const AttentionShape& shape, AttentionPass pass,
                                   AttentionLibrary library, double warm = 0.0);
/// Memory-bound kernel that moves `traffic` bytes (read + written) in `kernels` launches.
[[nodiscard]] Rated memory_time(const GpuRates& rates, Bytes traffic, int kernels);
/// Norms alone, by whose kernels; one call, all of its launches.
enum class NormKernels : std::uint8_t { kCudnn, kPytorch, kCompiled };  // kCompiled: by torch.compile
struct NormShape {
  NormKernels kernels = NormKernels::kCudnn;
  AttentionPass pass = AttentionPass::kForward;
  Bytes traffic;          // read and written at least: x and y forward; x, dy and dx backward
  std::int64_t row = 0;   // elements of a row
  std::int64_t rows = 0;  // how many
  bool layer_norm = false;
};
[[nodiscard]] Rated norm_time(const GpuRates& rates, const NormShape& shape);
/// Operators inside a training step against isolated kernels, see rates.toml [training]: how warm the step keeps the GPU, and
/// factors >= 1 on time for what is left.
struct TrainingFactors {
  double gemm = 1.0;
  double attention = 1.0;
  double gemm_warm = 0.0, attention_warm = 0.0;
};
[[nodiscard]] TrainingFactors training_factors(const GpuRates& rates, MathKind math, AttentionLibrary library);
[[nodiscard]] Seconds launch_cost(const GpuRates& rates, bool graph);  // host time per kernel launch

/// One message of `bytes` between two neighbours over a link class; `rate` is the capacity share the topology gives.
[[nodiscard]] Rated message_time(const GpuRates& rates, LinkClass link, BytesPerSecond rate, Seconds latency, Bytes bytes);
/// A ring collective on `ranks`; `bytes` is the full buffer S (gathered size for AG, input size for RS and AR, per-rank
/// input size for all-to-all); `rate` the bus rate the topology gives. A form that was not measured on so many ranks counts as
/// the usual one.
[[nodiscard]] Rated collective_time(const GpuRates& rates, CollectiveKind kind, LinkClass link, BytesPerSecond rate,
                                    Seconds latency, std::int64_t ranks, Bytes bytes,
                                    CollectiveForm form = CollectiveForm::kUsual);
/// Slowdown (>= 1) of compute kernels while communication kernels run beside them, by link class.
[[nodiscard]] double overlap_slowdown(const GpuRates& rates, LinkClass link);
/// The same beside a message to one peer, which over NVLink has more channels than a collective.
[[nodiscard]] double message_overlap_slowdown(const GpuRates& rates, LinkClass link);

}  // namespace cpfit
