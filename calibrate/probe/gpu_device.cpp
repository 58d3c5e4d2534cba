// A GPU: our kernels and cuDNN's, cuBLASLt's products, messages by NCCL between ranks with a GPU each, or in loopback by copies
// on a stream of their own. Times are between events on the operators' stream; nothing is on the default stream.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "calibrate/probe/bench_device.h"
#include "calibrate/probe/gpu_messages.h"
#include "calibrate/probe/gpu_product.h"
#include "calibrate/probe/nccl_channels.h"
#include "calibrate/probe/node_share.h"
#include "calibrate/probe/nvml.h"
#include "kernels/core/require.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/cuda_loopback.h"
#include "kernels/cuda/cuda_operators.h"
#include "kernels/cuda/cudnn_attention.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

namespace {

using kernels::Number;
using kernels::cuda::check;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class TimedEvent {
 public:
  TimedEvent() { check(cudaEventCreate(&event_), "making an event"); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { (void)cudaEventDestroy(event_); }
  [[nodiscard]] cudaEvent_t get() const { return event_; }
  [[nodiscard]] double seconds_from(const TimedEvent& first) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first.event_, event_), "timing");
    return milliseconds / 1000.0;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Marks are events on the operators' stream, so a wait that delays the stream is seen between two of them: exposed time is
/// measured on the device. The end of a batch is seen by the host, which has nothing else to do by then, on a clock that was set
/// together with the first event.
class GpuPassClock final : public PassClock {
 public:
  explicit GpuPassClock(kernels::DeviceOperators& operators) : operators_(operators) {}

  void restart() override {
    used_ = 0;
    operators_.finish();
    check(cudaEventRecord(first_.get(), operators_.stream()), "timing");
    check(cudaEventSynchronize(first_.get()), "timing");
    begin_ = Clock::now();
  }
  std::size_t mark() override {
    if (used_ == events_.size()) events_.push_back(std::make_unique<TimedEvent>());
    check(cudaEventRecord(events_[used_]->get(), operators_.stream()), "timing");
    return used_++;
  }
  [[nodiscard]] double now() const override { return seconds_since(begin_); }
  [[nodiscard]] std::vector<double> seconds() override {
    operators_.finish();
    std::vector<double> seconds;
    for (std::size_t i = 0; i < used_; ++i) seconds.push_back(events_[i]->seconds_from(first_));
    return seconds;
  }
  [[nodiscard]] bool host_waits() const override { return false; }

 private:
  kernels::DeviceOperators& operators_;
  TimedEvent first_;
  std::vector<std::unique_ptr<TimedEvent>> events_;
  std::size_t used_ = 0;
  Clock::time_point begin_ = Clock::now();
};

std::string bus_id_of(int device) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device), "asking the device");
  return text.data();
}

std::int64_t used_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return static_cast<std::int64_t>(total - free);
}

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

class GpuDevice final : public BenchDevice {
 public:
  GpuDevice(kernels::Transport& host, const NodeShare& share, bool loopback, std::chrono::milliseconds timeout)
      : host_(host),
        loopback_(loopback),
        timeout_(timeout),
        device_(share.place),
        used_at_start_(used_at_start(device_)),
        own_(kernels::make_cuda_operators(device_, Number::kFp32)),
        nvml_(bus_id_of(device_)) {
    if (kernels::why_not(kernels::AttentionPath::kCudnn).empty()) {
      cudnn_ = kernels::make_cuda_operators(device_, Number::kFp32, kernels::AttentionPath::kCudnn);
    }
    int bytes = 0;
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device_), "asking the device");
    // Twice the cache, and at least 64 MiB: long enough for the host to hand over what comes after it.
    sweep_ = own_->allocate(Number::kInt32, std::max<std::int64_t>(2 * std::int64_t{bytes}, std::int64_t{64} << 20) / 4, 1);
  }

  [[nodiscard]] Number number() const override { return Number::kBf16; }
  [[nodiscard]] std::vector<std::string> attention_kernels() const override { return {"own", "cudnn"}; }
  [[nodiscard]] std::string why_no_kernel(const std::string& kernel) const override {
    if (kernel == "own") return "";
    return kernel == "cudnn" ? kernels::why_not(kernels::AttentionPath::kCudnn)
                             : "a GPU has no attention kernel '" + kernel + "'";
  }
  [[nodiscard]] kernels::Operators& operators(const std::string& kernel) override {
    if (kernel != "cudnn") return *own_;
    kernels::require(cudnn_ != nullptr, "cuDNN's kernels were asked for where there are none");
    return *cudnn_;
  }
  /// A block that cuDNN does not take goes to our own kernels.
  [[nodiscard]] bool was_taken_by(const std::string& kernel) override {
    if (kernel != "cudnn" || cudnn_ == nullptr) return true;
    const std::int64_t now = cudnn_->attention_paths().plain + cudnn_->attention_paths().tensor_cores;
    return std::exchange(by_ourselves_, now) == now;
  }

  [[nodiscard]] kernels::Transport& transport(std::int32_t ring) override {
    std::unique_ptr<kernels::Transport>& transport = transports_[ring];
    if (transport == nullptr && loopback_) transport = kernels::make_cuda_loopback(*own_, ring);
    if (transport == nullptr) {
      kernels::require(ring == host_.size(), "a ring of {} over {} ranks", ring, host_.size());
      const NcclLog log;
      transport = make_gpu_messages(*own_, host_, true, timeout_, true);
      message_channels_ = log.channels_per_peer();
    }
    return *transport;
  }
  [[nodiscard]] bool plays_all_ends() const override { return loopback_; }
  void call_between_tiles(std::function<void()>) override {}  // messages move by themselves

  [[nodiscard]] std::unique_ptr<PassClock> pass_clock() override { return std::make_unique<GpuPassClock>(*own_); }

  [[nodiscard]] double seconds_of(const kernels::Operators& on, const std::function<void()>& call) override {
    return seconds_on(&on == cudnn_.get() ? *cudnn_ : *own_, call);
  }

  void zero(const kernels::View& view) override {
    if (view.bytes() == 0) return;
    check(cudaMemsetAsync(view.data, 0, static_cast<std::size_t>(view.bytes()), own_->stream()), "clearing memory");
  }
  [[nodiscard]] std::int64_t reserved_bytes(const ArrayPool&) override {
    check(cudaSetDevice(device_), "choosing the device");
    return std::max<std::int64_t>(used_bytes() - used_at_start_, 0);
  }

  [[nodiscard]] std::unique_ptr<MatrixProduct> product(std::int64_t m, std::int64_t n, std::int64_t k) override {
    return make_gpu_product(*own_, m, n, k);
  }

  [[nodiscard]] std::vector<std::string> launch_modes() const override { return {"eager", "graph"}; }
  [[nodiscard]] double launch_seconds(const std::string& mode) override {
    return mode == "graph" ? graph_seconds() : eager_seconds();
  }

  /// One block of NCCL's kernel on each channel, each on a multiprocessor. Copies of loopback are the driver's: not known.
  [[nodiscard]] std::optional<double> message_sm_share() const override {
    int multiprocessors = 0;
    if (!message_channels_ || cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device_) != cudaSuccess ||
        multiprocessors < 1)
      return std::nullopt;
    return std::min(1.0, static_cast<double>(*message_channels_) / multiprocessors);
  }
  [[nodiscard]] std::optional<double> clock_mhz() override { return nvml_.clock_mhz(); }
  [[nodiscard]] std::optional<double> highest_clock_mhz() const override { return nvml_.highest_clock_mhz(); }
  [[nodiscard]] std::string throttle_reason() override { return nvml_.throttle_reason(); }

  void describe(MeasuredMachine& machine) const override {
    make_host_device(host_)->describe(machine);  // the processor that launches
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device_), "asking the device");
    machine.gpu = properties.name;
    machine.gpus_per_host = kernels::device_count();
    machine.gpu_memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    int driver = 0;
    int runtime = 0;
    check(cudaDriverGetVersion(&driver), "asking the driver");
    check(cudaRuntimeGetVersion(&runtime), "asking the runtime");
    machine.driver = nvml_.driver_version();
    if (machine.driver.empty()) machine.driver = "CUDA " + cuda_version_text(driver);
    machine.cuda = cuda_version_text(runtime);
    machine.nccl = gpu_messages_version();
    machine.cudnn = cudnn_ == nullptr ? "" : kernels::cuda::cudnn_version();
    machine.power_limit_watts = nvml_.power_limit_watts();
  }

 private:
  static constexpr int kCalls = 64;

  static std::int64_t used_at_start(int device) {
    check(cudaSetDevice(device), "choosing the device");
    return used_bytes();
  }

  double seconds_on(kernels::DeviceOperators& operators, const std::function<void()>& call) {
    own_->finish();
    if (cudnn_ != nullptr) cudnn_->finish();
    check(cudaMemsetAsync(sweep_.view().data, 1, static_cast<std::size_t>(sweep_.view().bytes()), operators.stream()), "a sweep");
    check(cudaEventRecord(begin_.get(), operators.stream()), "timing");
    call();
    check(cudaEventRecord(end_.get(), operators.stream()), "timing");
    operators.finish();
    return end_.seconds_from(begin_);
  }

  /// What the host needs to hand over one small operator, the device keeping up.
  double eager_seconds() {
    const kernels::Array one = own_->allocate(Number::kFp32, 1, 1);
    const kernels::Array two = own_->allocate(Number::kFp32, 1, 1);
    own_->finish();
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) own_->add(one, two);
    own_->finish();
    return seconds_since(begin) / kCalls;
  }

  double graph_seconds() {
    const kernels::Array one = own_->allocate(Number::kFp32, 1, 1);
    const kernels::Array two = own_->allocate(Number::kFp32, 1, 1);
    own_->add(one, two);  // loads the kernel, which may not be done while a graph is recorded
    own_->finish();
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(own_->stream(), cudaStreamCaptureModeThreadLocal), "recording a graph");
    for (int i = 0; i < kCalls; ++i) own_->add(one, two);
    check(cudaStreamEndCapture(own_->stream(), &graph), "recording a graph");
    cudaGraphExec_t executable = nullptr;
    const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
    (void)cudaGraphDestroy(graph);
    check(made, "making a graph");
    cudaError_t launched = cudaGraphLaunch(executable, own_->stream());  // the first uploads it
    own_->finish();
    const Clock::time_point begin = Clock::now();
    if (launched == cudaSuccess) launched = cudaGraphLaunch(executable, own_->stream());
    own_->finish();
    const double seconds = seconds_since(begin) / kCalls;
    (void)cudaGraphExecDestroy(executable);
    check(launched, "launching a graph");
    return seconds;
  }

  kernels::Transport& host_;
  bool loopback_;
  std::chrono::milliseconds timeout_;
  int device_;
  std::int64_t used_at_start_;
  std::unique_ptr<kernels::DeviceOperators> own_;
  std::unique_ptr<kernels::DeviceOperators> cudnn_;
  Nvml nvml_;
  kernels::Array sweep_;
  std::int64_t by_ourselves_ = 0;
  std::optional<std::int32_t> message_channels_;  // that NCCL has for an exchange with one neighbour
  TimedEvent begin_, end_;
  std::map<std::int32_t, std::unique_ptr<kernels::Transport>> transports_;  // borrow the operators: go first
};

}  // namespace

std::unique_ptr<BenchDevice> make_gpu_device(kernels::Transport& host, bool loopback, std::chrono::milliseconds timeout) {
  if (loopback && host.size() > 1) {
    throw Error("the backend 'loopback' is one GPU that plays all ends: start cpfit-bench without mpirun or srun");
  }
  const NodeShare share = share_of_node(host);
  if (!share.gpu_per_rank) {
    throw Error(
        "several ranks share a GPU: figures would be of nothing that a training does. Start as many ranks per node as it has "
        "GPUs (mpirun --map-by ppr:N:node, srun --ntasks-per-node), or look whether CUDA_VISIBLE_DEVICES hides some");
  }
  if (host.size() > 1 && gpu_messages_version().empty()) {
    throw Error("this cpfit-bench was built without NCCL (libnccl-dev): GPUs cannot send to each other");
  }
  return std::make_unique<GpuDevice>(host, share, loopback, timeout);
}

}  // namespace cpfit::probe
