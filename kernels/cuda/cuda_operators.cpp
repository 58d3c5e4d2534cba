#include "kernels/cuda/cuda_operators.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/core/require.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/launch.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

namespace {

using cuda::check;

/// The stream, shared with every array that is freed on it.
class OwnedStream {
 public:
  explicit OwnedStream(int device) : device_(device) {
    check(cudaSetDevice(device), "choosing the device");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  ~OwnedStream() {
    (void)cudaSetDevice(device_);
    (void)cudaStreamDestroy(stream_);  // what is on it still runs to its end
  }
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

class OwnedEvent {
 public:
  OwnedEvent() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event"); }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  ~OwnedEvent() { (void)cudaEventDestroy(event_); }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

template <class Element, class Round>
void write_rounded(std::span<const double> values, std::byte* to, const Round& round) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Element element = round(values[i]);
    std::memcpy(to + i * sizeof(Element), &element, sizeof element);
  }
}
template <class Element>
void read_as_double(const std::byte* from, std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Element element;
    std::memcpy(&element, from + i * sizeof(Element), sizeof element);
    if constexpr (sizeof(Element) == 2) {
      values[i] = static_cast<double>(static_cast<float>(element));
    } else {
      values[i] = static_cast<double>(element);
    }
  }
}

void require_shape(const View& view, std::int64_t rows, std::int64_t row_elements, const char* what) {
  require(view.rows == rows && view.row_elements == row_elements, "CUDA: {}: {} x {}, {} x {} expected", what, view.rows,
          view.row_elements, rows, row_elements);
}
void require_number(const View& view, Number number, const char* what) {
  require(view.number == number, "CUDA: {}: {}, {} expected", what, name_of(view.number), name_of(number));
}

class CudaOperators final : public DeviceOperators {
 public:
  CudaOperators(int device, Number sum, AttentionPath path)
      : device_(device), sum_(sum), stream_(std::make_shared<OwnedStream>(device)) {
    target_.stream = stream_->get();
    check(cudaDeviceGetAttribute(&target_.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "asking the device");
    // Freed memory stays in the pool: giving it back at every wait would make every step allocate anew.
    cudaMemPool_t pool = nullptr;
    check(cudaDeviceGetDefaultMemPool(&pool, device), "asking for the memory pool");
    auto keep = std::numeric_limits<std::uint64_t>::max();
    check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "setting the memory pool");
    if (path == AttentionPath::kCudnn) cudnn_ = cuda::make_cudnn_attention();
  }

  [[nodiscard]] CUstream_st* stream() const override { return target_.stream; }
  [[nodiscard]] int device() const override { return device_; }
  [[nodiscard]] AttentionPathCounts attention_paths() const override { return counts_; }
  [[nodiscard]] Number sum_number() const override { return sum_; }

  void watch(const std::shared_ptr<const void>& owner, std::function<void()> check_now) override {
    watches_.push_back({owner, std::move(check_now)});
  }

  // --- memory

  Array allocate(Number number, std::int64_t rows, std::int64_t row_elements) override {
    use_device("allocate");
    const std::int64_t bytes = std::max<std::int64_t>(rows * row_elements * bytes_of(number), 1);
    void* data = nullptr;
    check(cudaMallocAsync(&data, static_cast<std::size_t>(bytes), target_.stream), "allocate");
    std::shared_ptr<void> storage(data, [stream = stream_](void* freed) { (void)cudaFreeAsync(freed, stream->get()); });
    check(cudaMemsetAsync(data, 0, static_cast<std::size_t>(bytes), target_.stream), "allocate");
    return {std::move(storage), number, rows, row_elements};
  }

  Array upload(Number number, std::int64_t rows, std::int64_t row_elements, std::span<const double> values) override {
    require(static_cast<std::int64_t>(values.size()) == rows * row_elements, "CUDA: upload: {} values for {} x {}", values.size(),
            rows, row_elements);
    std::vector<std::byte> host(values.size() * static_cast<std::size_t>(bytes_of(number)));
    switch (number) {
      case Number::kFp64:
        write_rounded<double>(values, host.data(), [](double x) { return x; });
        break;
      case Number::kFp32:
        write_rounded<float>(values, host.data(), [](double x) { return static_cast<float>(x); });
        break;
      case Number::kBf16:
        write_rounded<__nv_bfloat16>(values, host.data(), [](double x) { return __double2bfloat16(x); });
        break;
      case Number::kFp16:
        write_rounded<__half>(values, host.data(), [](double x) { return __double2half(x); });
        break;
      case Number::kInt32:
        require(false, "CUDA: upload: integers go through upload_int");
    }
    return upload_bytes(number, rows, row_elements, host.data());
  }

  Array upload_int(std::int64_t rows, std::int64_t row_elements, std::span<const std::int32_t> values) override {
    require(static_cast<std::int64_t>(values.size()) == rows * row_elements, "CUDA: upload_int: {} values for {} x {}",
            values.size(), rows, row_elements);
    return upload_bytes(Number::kInt32, rows, row_elements, values.data());
  }

  std::vector<double> download(const View& view) override {
    std::vector<double> values(static_cast<std::size_t>(view.elements()));
    std::vector<std::byte> host(static_cast<std::size_t>(view.bytes()));
    wait_watching("download");
    if (!host.empty()) {
      check(cudaMemcpyAsync(host.data(), view.data, host.size(), cudaMemcpyDeviceToHost, target_.stream), "download");
      check(cudaStreamSynchronize(target_.stream), "download");
    }
    switch (view.number) {
      case Number::kFp64:
        read_as_double<double>(host.data(), values);
        break;
      case Number::kFp32:
        read_as_double<float>(host.data(), values);
        break;
      case Number::kBf16:
        read_as_double<__nv_bfloat16>(host.data(), values);
        break;
      case Number::kFp16:
        read_as_double<__half>(host.data(), values);
        break;
      case Number::kInt32:
        read_as_double<std::int32_t>(host.data(), values);
        break;
    }
    return values;
  }

  void copy(const View& from, const View& to) override {
    use_device("copy");
    require(from.elements() == to.elements(), "CUDA: copy: {} elements to {}", from.elements(), to.elements());
    if (from.number != to.number) return cuda::launch_convert(target_, from, to);
    if (from.data == to.data || from.elements() == 0) return;
    check(cudaMemcpyAsync(to.data, from.data, static_cast<std::size_t>(from.bytes()), cudaMemcpyDeviceToDevice, target_.stream),
          "copy");
  }

  void fill(const View& to, double value) override {
    use_device("fill");
    cuda::launch_fill(target_, to, value);
  }

  void gather_rows(const View& from, const View& index, const View& to) override {
    use_device("gather_rows");
    require(index.number == Number::kInt32 && index.elements() == to.rows, "CUDA: gather_rows: {} {} for {} rows",
            index.elements(), name_of(index.number), to.rows);
    require(from.number == to.number && from.row_elements == to.row_elements, "CUDA: gather_rows: {} x {} from {} x {}",
            to.row_elements, name_of(to.number), from.row_elements, name_of(from.number));
    cuda::launch_gather_rows(target_, from, index, to);
  }

  void pack_columns(const View& from, std::int64_t begin, const View& to) override {
    copy_columns(from, begin, to, 0, to.row_elements, "pack_columns");
  }
  void unpack_columns(const View& from, const View& to, std::int64_t begin) override {
    copy_columns(from, 0, to, begin, from.row_elements, "unpack_columns");
  }

  // --- attention of one block

  void forward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& out,
               const View& lse) override {
    use_device("forward");
    const cuda::BlockInputs block = inputs(heads, mask, q, k, v, "forward");
    require_shape(out, q.rows, heads.q * heads.v_dim, "forward, out");
    require_result(out, q.number, "forward, out");
    require_row_values(lse, q.rows, heads.q, "forward, lse");
    if (cudnn_ != nullptr && cudnn_->forward(target_, block, out, lse)) {
      ++counts_.cudnn;
      return;
    }
    if (sum_ == Number::kFp32 && cuda::tensor_cores_take(block)) {
      ++counts_.tensor_cores;
      if (q.number == Number::kBf16) return cuda::launch_tensor_core_forward<__nv_bfloat16>(target_, block, out, lse);
      return cuda::launch_tensor_core_forward<__half>(target_, block, out, lse);
    }
    ++counts_.plain;
    switch (q.number) {
      case Number::kFp64:
        return cuda::launch_plain_forward<double, double>(target_, block, out, lse);
      case Number::kFp32:
        return cuda::launch_plain_forward<float, float>(target_, block, out, lse);
      case Number::kBf16:
        return cuda::launch_plain_forward<__nv_bfloat16, float>(target_, block, out, lse);
      case Number::kFp16:
        return cuda::launch_plain_forward<__half, float>(target_, block, out, lse);
      case Number::kInt32:
        break;
    }
  }

  void row_delta(const Heads& heads, const View& out, const View& dout, const View& delta) override {
    use_device("row_delta");
    require_shape(out, delta.rows, heads.q * heads.v_dim, "row_delta, out");
    require_shape(dout, delta.rows, heads.q * heads.v_dim, "row_delta, dout");
    require_result(out, dout.number, "row_delta, out");
    require_row_values(delta, delta.rows, heads.q, "row_delta, delta");
    cuda::launch_row_delta(target_, heads, out, dout, delta);
    if (cudnn_ != nullptr) remember_out(out, dout.number, delta);
  }

  void backward(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v, const View& dout,
                const View& lse, const View& delta, const View& dq, const View& dk, const View& dv) override {
    use_device("backward");
    const cuda::BlockInputs block = inputs(heads, mask, q, k, v, "backward");
    require_shape(dout, q.rows, heads.q * heads.v_dim, "backward, dout");
    require_number(dout, q.number, "backward, dout");
    require_row_values(lse, q.rows, heads.q, "backward, lse");
    require_row_values(delta, q.rows, heads.q, "backward, delta");
    require_shape(dq, q.rows, q.row_elements, "backward, dq");
    require_shape(dk, k.rows, k.row_elements, "backward, dk");
    require_shape(dv, v.rows, v.row_elements, "backward, dv");
    for (const View& view : {dq, dk, dv}) require_result(view, q.number, "backward, a gradient");
    const cuda::BlockGradients gradients = {dout, lse, delta, dq, dk, dv};
    if (cudnn_ != nullptr) {
      const View out = remembered_out(delta);
      if (out.data != nullptr && cudnn_->backward(target_, block, out, gradients)) {
        ++counts_.cudnn;
        return;
      }
    }
    if (sum_ == Number::kFp32 && cuda::tensor_cores_take(block)) {
      ++counts_.tensor_cores;
      if (q.number == Number::kBf16) return cuda::launch_tensor_core_backward<__nv_bfloat16>(target_, block, gradients);
      return cuda::launch_tensor_core_backward<__half>(target_, block, gradients);
    }
    ++counts_.plain;
    switch (q.number) {
      case Number::kFp64:
        return cuda::launch_plain_backward<double, double>(target_, block, gradients);
      case Number::kFp32:
        return cuda::launch_plain_backward<float, float>(target_, block, gradients);
      case Number::kBf16:
        return cuda::launch_plain_backward<__nv_bfloat16, float>(target_, block, gradients);
      case Number::kFp16:
        return cuda::launch_plain_backward<__half, float>(target_, block, gradients);
      case Number::kInt32:
        break;
    }
  }

  // --- sums

  void merge(const Heads& heads, MergeForm form, const View& part, const View& part_lse, const View& sum,
             const View& sum_lse) override {
    use_device("merge");
    require_combination(heads, part, sum, "merge");
    require_row_values(part_lse, sum.rows, heads.q, "merge, part_lse");
    require_row_values(sum_lse, sum.rows, heads.q, "merge, sum_lse");
    cuda::launch_merge(target_, heads, form, part, part_lse, sum, sum_lse);
  }

  void merge_lse(MergeForm form, const View& part_lse, const View& sum_lse) override {
    use_device("merge_lse");
    require_row_values(sum_lse, sum_lse.rows, sum_lse.row_elements, "merge_lse, sum_lse");
    require_row_values(part_lse, sum_lse.rows, sum_lse.row_elements, "merge_lse, part_lse");
    cuda::launch_merge_lse(target_, form, part_lse, sum_lse);
  }

  void add_weighted(const Heads& heads, const View& part, const View& part_lse, const View& total_lse, const View& sum) override {
    use_device("add_weighted");
    require_combination(heads, part, sum, "add_weighted");
    require_row_values(part_lse, sum.rows, heads.q, "add_weighted, part_lse");
    require_row_values(total_lse, sum.rows, heads.q, "add_weighted, total_lse");
    cuda::launch_add_weighted(target_, heads, part, part_lse, total_lse, sum);
  }

  void add(const View& part, const View& sum) override {
    use_device("add");
    require_shape(part, sum.rows, sum.row_elements, "add");
    cuda::launch_add(target_, part, sum);
  }

  void finish() override { wait_watching("finish"); }

 private:
  struct Watch {
    std::weak_ptr<const void> owner;
    std::function<void()> check_now;
  };
  /// The final output that a delta was made from: cuDNN's backward wants it.
  struct RememberedOut {
    View delta;
    Array out;
  };

  void use_device(const char* operation) const { check(cudaSetDevice(device_), operation); }

  Array upload_bytes(Number number, std::int64_t rows, std::int64_t row_elements, const void* host) {
    Array array = allocate(number, rows, row_elements);
    const View view = array;
    if (view.elements() > 0) {
      check(cudaMemcpyAsync(view.data, host, static_cast<std::size_t>(view.bytes()), cudaMemcpyHostToDevice, target_.stream),
            "upload");
      check(cudaStreamSynchronize(target_.stream), "upload");  // the host's memory may go when this returns
    }
    return array;
  }

  /// Until everything on the stream is done, looking after those who watch.
  void wait_watching(const char* operation) {
    use_device(operation);
    check(cudaEventRecord(done_.get(), target_.stream), operation);
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const cudaError_t status = cudaEventQuery(done_.get());
      if (status != cudaErrorNotReady) check(status, operation);
      std::erase_if(watches_, [](const Watch& watch) { return watch.owner.expired(); });
      for (const Watch& watch : watches_) watch.check_now();
      if (status == cudaSuccess) return;
      // Short waits spin, so that a measurement does not pay for a sleep; long ones leave the core to others.
      if (std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(2)) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  [[nodiscard]] cuda::BlockInputs inputs(const Heads& heads, const BlockMask& mask, const View& q, const View& k, const View& v,
                                         const char* operation) const {
    require(heads.kv > 0 && heads.q % heads.kv == 0, "CUDA: {}: {} query heads over {} key heads", operation, heads.q, heads.kv);
    require(heads.scale > 0, "CUDA: {}: scale {}: the running maximum is of raw scores", operation, heads.scale);
    require_shape(q, q.rows, heads.q * heads.qk_dim, operation);
    require_shape(k, k.rows, heads.kv * heads.qk_dim, operation);
    require_shape(v, k.rows, heads.kv * heads.v_dim, operation);
    require_number(k, q.number, operation);
    require_number(v, q.number, operation);
    require((q.number == Number::kFp64) == (sum_ == Number::kFp64) && q.number != Number::kInt32, "CUDA: {}: {} with sums in {}",
            operation, name_of(q.number), name_of(sum_));
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    require(q.rows < kMost && k.rows < kMost, "CUDA: {}: {} queries, {} keys", operation, q.rows, k.rows);
    if (mask.kind == attention::BlockKind::kMixed) {
      require(mask.query_range.number == Number::kInt32 && mask.key_position.number == Number::kInt32, "CUDA: {}: a mask of {}",
              operation, name_of(mask.query_range.number));
      require_shape(mask.query_range, q.rows, 2, operation);
      require_shape(mask.key_position, k.rows, 1, operation);
    }
    return {heads, mask, q, k, v};
  }
  void require_result(const View& view, Number inputs_number, const char* what) const {
    require(view.number == inputs_number || view.number == sum_, "CUDA: {}: {}, {} or {} expected", what, name_of(view.number),
            name_of(inputs_number), name_of(sum_));
  }
  void require_row_values(const View& view, std::int64_t rows, std::int64_t heads, const char* what) const {
    require_shape(view, rows, heads, what);
    require_number(view, sum_, what);
  }
  static void require_combination(const Heads& heads, const View& part, const View& sum, const char* operation) {
    require_shape(sum, sum.rows, heads.q * heads.v_dim, operation);
    require_shape(part, sum.rows, sum.row_elements, operation);
  }

  void copy_columns(const View& from, std::int64_t from_begin, const View& to, std::int64_t to_begin, std::int64_t count,
                    const char* operation) {
    use_device(operation);
    require(from.rows == to.rows && from.number == to.number && from_begin + count <= from.row_elements &&
                to_begin + count <= to.row_elements,
            "CUDA: {}: columns {} + {} of {} x {} to {} + {} of {} x {}", operation, from_begin, count, from.rows,
            from.row_elements, to_begin, count, to.rows, to.row_elements);
    cuda::launch_copy_columns(target_, from, from_begin, to, to_begin, count);
  }

  /// A copy, because the view is borrowed; of the last two calls, because a block's backward follows its delta.
  void remember_out(const View& out, Number number, const View& delta) {
    Array kept = allocate(number, out.rows, out.row_elements);
    copy(out, kept);
    // What was remembered for memory that has been given out anew is of another call.
    const auto begin = [](const View& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
    std::erase_if(remembered_, [&](const RememberedOut& entry) {
      return begin(entry.delta) < begin(delta) + static_cast<std::uintptr_t>(delta.bytes()) &&
             begin(delta) < begin(entry.delta) + static_cast<std::uintptr_t>(entry.delta.bytes());
    });
    if (remembered_.size() == 2) remembered_.erase(remembered_.begin());
    remembered_.push_back({delta, std::move(kept)});
  }
  /// The rows of the output that belong to these rows of delta; no data when they are not known.
  [[nodiscard]] View remembered_out(const View& delta) const {
    for (const RememberedOut& entry : remembered_) {
      const std::int64_t offset = static_cast<const std::byte*>(delta.data) - static_cast<const std::byte*>(entry.delta.data);
      const std::int64_t row_bytes = delta.row_elements * bytes_of(delta.number);
      if (delta.row_elements != entry.delta.row_elements || row_bytes == 0 || offset < 0 || offset % row_bytes != 0) continue;
      if (offset / row_bytes + delta.rows <= entry.delta.rows) return entry.out.view().slice(offset / row_bytes, delta.rows);
    }
    return {};
  }

  int device_;
  Number sum_;
  std::shared_ptr<OwnedStream> stream_;
  cuda::Target target_;
  OwnedEvent done_;
  std::vector<Watch> watches_;
  std::unique_ptr<cuda::CudnnAttention> cudnn_;
  std::vector<RememberedOut> remembered_;
  AttentionPathCounts counts_;
};

}  // namespace

int device_count() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

std::string why_no_cuda() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess) return fmt::format("no CUDA device can be used here: {}", cudaGetErrorString(status));
  if (devices == 0) return "no CUDA device is here";
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "asking the device");
  if (major < 8) return fmt::format("the CUDA device has compute capability {}.x; 8.0 or later is needed", major);
  return {};
}

std::string why_not(AttentionPath path) { return path == AttentionPath::kCudnn ? cuda::why_no_cudnn() : std::string(); }

std::unique_ptr<DeviceOperators> make_cuda_operators(int device, Number sum, AttentionPath path) {
  require(sum == Number::kFp64 || sum == Number::kFp32, "make_cuda_operators: sums in {}", name_of(sum));
  if (const std::string reason = why_no_cuda(); !reason.empty()) throw Error(reason);
  check(cudaSetDevice(device), "choosing the device");
  return std::make_unique<CudaOperators>(device, sum, path);
}

MemoryAccess memory_access_of(DeviceOperators& operators) {
  return {[&operators] { operators.finish(); },
          [&operators](void* to, const void* from, std::int64_t bytes) {
            check(cudaSetDevice(operators.device()), "copying a message");
            check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, operators.stream()),
                  "copying a message");
            check(cudaStreamSynchronize(operators.stream()), "copying a message");
          }};
}

bool cuda::tensor_cores_take(const BlockInputs& block) {
  const Heads& heads = block.heads;
  if (block.q.number != Number::kBf16 && block.q.number != Number::kFp16) return false;
  if (heads.qk_dim % 8 != 0 || heads.v_dim % 8 != 0 || heads.qk_dim > 192 || heads.v_dim > 128) return false;
  for (const View& view : {block.q, block.k, block.v}) {
    if (reinterpret_cast<std::uintptr_t>(view.data) % 16 != 0) return false;
  }
  return true;
}

}  // namespace cpfit::kernels
