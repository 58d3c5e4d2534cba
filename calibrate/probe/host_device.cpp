// A processor: BLAS for products, the CPU's operators for the rest, the ranks' own transport for messages.
#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "calibrate/probe/bench_device.h"
#include "kernels/core/require.h"
#include "kernels/reference/cpu_operators.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

namespace {

using kernels::Number;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// The clock as seen by additions that wait for each other, one per cycle: what the machine does, whatever it says. The best of
/// five tries of some 50 us, so that an interruption does not count.
double additions_per_microsecond() {
  constexpr std::int64_t kAdditions = 100'000;
  double best = 1e9;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Clock::time_point begin = Clock::now();
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < kAdditions; i += 4) {
      for (int unrolled = 0; unrolled < 4; ++unrolled) {
        sum += 3;
        asm volatile("" : "+r"(sum));
      }
    }
    best = std::min(best, seconds_since(begin));
  }
  return static_cast<double>(kAdditions) / best / 1e6;
}

std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(static_cast<double>(state >> 40) / 8388608.0 - 1.0);
  }
  return values;
}

class HostProduct final : public MatrixProduct {
 public:
  HostProduct(std::int64_t m, std::int64_t n, std::int64_t k)
      : m_(m), n_(n), k_(k), a_(numbers(m * k, 1)), b_(numbers(k * n, 2)), c_(static_cast<std::size_t>(m * n)) {}
  void run() override {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<blasint>(m_), static_cast<blasint>(n_),
                static_cast<blasint>(k_), 1.0F, a_.data(), static_cast<blasint>(k_), b_.data(), static_cast<blasint>(n_), 0.0F,
                c_.data(), static_cast<blasint>(n_));
  }
  [[nodiscard]] std::vector<double> left() override { return {a_.begin(), a_.end()}; }
  [[nodiscard]] std::vector<double> right() override { return {b_.begin(), b_.end()}; }
  [[nodiscard]] std::vector<double> result() override { return {c_.begin(), c_.end()}; }

 private:
  std::int64_t m_, n_, k_;
  std::vector<float> a_, b_, c_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? line : line.substr(colon + 2);
  }
  return "";
}

class HostDevice final : public BenchDevice {
 public:
  explicit HostDevice(kernels::Transport& host)
      : host_(host), operators_(kernels::make_cpu_operators(Number::kFp32, [this] {
          if (between_tiles_) between_tiles_();
        })) {}

  [[nodiscard]] Number number() const override { return Number::kFp32; }
  [[nodiscard]] std::vector<std::string> attention_kernels() const override { return {"blas"}; }
  [[nodiscard]] std::string why_no_kernel(const std::string& kernel) const override {
    return kernel == "blas" ? "" : "a processor has no attention kernel '" + kernel + "'";
  }
  [[nodiscard]] kernels::Operators& operators(const std::string&) override { return *operators_; }

  [[nodiscard]] kernels::Transport& transport(std::int32_t ring) override {
    kernels::require(ring == host_.size(), "a ring of {} over {} ranks", ring, host_.size());
    return host_;
  }
  void call_between_tiles(std::function<void()> call) override { between_tiles_ = std::move(call); }
  [[nodiscard]] bool moves_messages_between_tiles() const override { return true; }

  [[nodiscard]] std::unique_ptr<PassClock> pass_clock() override { return std::make_unique<HostPassClock>(); }
  [[nodiscard]] double seconds_of(const kernels::Operators&, const std::function<void()>& call) override {
    const Clock::time_point begin = Clock::now();
    call();
    return seconds_since(begin);
  }
  void zero(const kernels::View& view) override {
    if (view.bytes() > 0) std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
  }
  [[nodiscard]] std::int64_t reserved_bytes(const ArrayPool& pool) override { return pool.reserved_bytes(); }

  [[nodiscard]] std::unique_ptr<MatrixProduct> product(std::int64_t m, std::int64_t n, std::int64_t k) override {
    return std::make_unique<HostProduct>(m, n, k);
  }

  [[nodiscard]] std::vector<std::string> launch_modes() const override {
    if (host_.size() == 1) return {"eager"};
    return {"eager", "post", "poll"};
  }
  [[nodiscard]] double launch_seconds(const std::string& mode) override {
    return mode == "eager" ? call_seconds() : message_seconds(mode);
  }

  [[nodiscard]] std::optional<double> clock_mhz() override { return additions_per_microsecond(); }

  void describe(MeasuredMachine& machine) const override {
    machine.cpu = processor_name();
    machine.cores = static_cast<std::int32_t>(::sysconf(_SC_NPROCESSORS_ONLN));
    machine.memory_bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
    // Each call lengthens the library's own text by a word.
    static const std::string blas = openblas_get_config();
    machine.blas = blas;
  }

 private:
  static constexpr int kCalls = 64;

  /// An operator that has nothing to do.
  double call_seconds() {
    const kernels::Array one = operators_->allocate(Number::kFp32, 1, 1);
    const kernels::Array two = operators_->allocate(Number::kFp32, 1, 1);
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) operators_->add(one, two);
    return seconds_since(begin) / kCalls;
  }

  /// "post": starting a batch of one message each way; "poll": asking once whether it has ended, while it is on its way.
  double message_seconds(const std::string& mode) {
    const std::int32_t next = (host_.rank() + 1) % host_.size();
    const std::int32_t previous = (host_.rank() + host_.size() - 1) % host_.size();
    constexpr std::int64_t kBytes = std::int64_t{1} << 20;  // too long to be sent without the receiver's help
    const kernels::Array out = operators_->allocate(Number::kFp32, kBytes / 4, 1);
    const kernels::Array in = operators_->allocate(Number::kFp32, kBytes / 4, 1);
    const std::vector<kernels::Message> batch = {kernels::send_to(next, out), kernels::receive_from(previous, in)};
    double posting = 0;
    double polling = 0;
    std::int64_t polls = 0;
    for (int i = 0; i < 8; ++i) {
      host_.barrier();
      Clock::time_point begin = Clock::now();
      const kernels::Ticket ticket = host_.start(batch);
      posting += seconds_since(begin);
      host_.wait(ticket);
    }
    // Polls that move nothing: of a receive that nobody has sent to yet.
    for (int i = 0; i < 8; ++i) {
      const kernels::Ticket ticket = host_.start(std::vector<kernels::Message>{batch[1]});
      const Clock::time_point begin = Clock::now();
      for (int poll = 0; poll < 16; ++poll) (void)host_.test(ticket);
      polling += seconds_since(begin);
      polls += 16;
      const kernels::Ticket sent = host_.start(std::vector<kernels::Message>{batch[0]});
      host_.wait(ticket);
      host_.wait(sent);
    }
    return mode == "post" ? posting / 8 : polling / static_cast<double>(polls);
  }

  kernels::Transport& host_;
  std::function<void()> between_tiles_;
  std::unique_ptr<kernels::Operators> operators_;
};

}  // namespace

std::unique_ptr<BenchDevice> make_host_device(kernels::Transport& host) { return std::make_unique<HostDevice>(host); }

}  // namespace cpfit::probe
