#include "kernels/transport/nccl_transport.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "kernels/core/require.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/side_stream.h"
#include "kernels/transport/nccl_library.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

ncclDataType_t nccl_type(Number number) {
  switch (number) {
    case Number::kFp64:
      return ncclDouble;
    case Number::kFp32:
      return ncclFloat;
    case Number::kBf16:
      return ncclBfloat16;
    case Number::kFp16:
      return ncclHalf;
    case Number::kInt32:
      return ncclInt32;
  }
  return ncclInt8;
}

class NcclTransport final : public Transport {
 public:
  NcclTransport(DeviceOperators& operators, const NcclId& id, std::int32_t rank, std::int32_t size, const NcclOptions& options)
      : operators_(operators), rank_(rank), size_(size), options_(options), side_(operators) {
    require(rank >= 0 && rank < size, "NCCL: rank {} of {}", rank, size);
    void* word = nullptr;
    cuda::check(cudaMalloc(&word, sizeof(int)), "NCCL: a barrier's memory");
    barrier_word_.reset(word, [](void* freed) { (void)cudaFree(freed); });
    ncclUniqueId unique;
    std::memcpy(&unique, id.bytes.data(), sizeof unique);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    settle(nccl().init_rank(&communicator_, size, unique, rank, &config), "making the communicator", "all ranks");
    operators_.watch(alive_, [this] { look(); });
  }

  ~NcclTransport() override {
    alive_.reset();
    (void)cudaSetDevice(side_.device());
    // An orderly end needs the others; who has failed, or waits for a rank that is gone, cuts the connection instead.
    if (failure_.empty() && communicator_ != nullptr) {
      const Clock::time_point end = Clock::now() + options_.timeout;
      ncclResult_t state = nccl().finalize(communicator_);
      while (state == ncclInProgress && Clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        if (nccl().async_error(communicator_, &state) != ncclSuccess) break;
      }
      if (state == ncclSuccess) {
        (void)nccl().destroy(communicator_);
      } else {
        (void)nccl().abort(communicator_);
      }
    }
  }

  [[nodiscard]] std::int32_t rank() const override { return rank_; }
  [[nodiscard]] std::int32_t size() const override { return size_; }

  Ticket start(std::span<const Message> batch) override {
    std::set<std::int32_t> peers;
    for (const Message& message : batch) {
      require(message.peer >= 0 && message.peer < size_, "NCCL: rank {} of {}", message.peer, size_);
      if (message.view.bytes() > 0) peers.insert(message.peer);
    }
    if (peers.empty()) return {};
    return piece(fmt::format("ranks {}", fmt::join(peers, ", ")), [&] {
      start_group();
      for (const Message& message : batch) {
        const auto bytes = static_cast<std::size_t>(message.view.bytes());
        if (bytes == 0) continue;
        const bool sends = message.direction == Message::Direction::kSend;
        accept(sends ? nccl().send(message.view.data, bytes, ncclInt8, message.peer, communicator_, side_.get())
                     : nccl().receive(message.view.data, bytes, ncclInt8, message.peer, communicator_, side_.get()),
               sends ? "sending" : "receiving");
      }
      return nccl().group_end();
    });
  }

  void wait(Ticket ticket) override {
    refuse_after_failure();
    look();
    side_.join(ticket.id);
  }

  [[nodiscard]] bool test(Ticket ticket) override {
    refuse_after_failure();
    look();
    return side_.is_done(ticket.id);
  }

  void barrier() override {
    refuse_after_failure();
    const Ticket ticket = piece("all ranks, at a barrier", [&] {
      return nccl().all_reduce(barrier_word_.get(), barrier_word_.get(), 1, ncclInt32, ncclMax, communicator_, side_.get());
    });
    wait(ticket);
    operators_.finish();
  }

  Ticket start_all_gather(std::span<const std::int32_t> group, const View& own, const View& all) override {
    if (!is_everybody(group)) return Transport::start_all_gather(group, own, all);
    require(all.bytes() == own.bytes() * size_, "NCCL: all_gather of {} into {} bytes", own.bytes(), all.bytes());
    if (own.bytes() == 0) return {};
    return piece("all ranks, at an all_gather", [&] {
      return nccl().all_gather(own.data, all.data, static_cast<std::size_t>(own.bytes()), ncclInt8, communicator_, side_.get());
    });
  }

  void reduce_scatter(Operators& operators, std::span<const std::int32_t> group, const View& all, const View& own) override {
    if (!options_.native_reductions || !is_everybody(group)) return Transport::reduce_scatter(operators, group, all, own);
    require(all.elements() == own.elements() * size_ && all.number == own.number, "NCCL: reduce_scatter of {} into {} elements",
            all.elements(), own.elements());
    if (own.elements() == 0) return;
    wait(piece("all ranks, at a reduce_scatter", [&] {
      return nccl().reduce_scatter(all.data, own.data, static_cast<std::size_t>(own.elements()), nccl_type(own.number), ncclSum,
                                   communicator_, side_.get());
    }));
  }

  void all_reduce(Operators& operators, std::span<const std::int32_t> group, const View& value) override {
    if (!options_.native_reductions || !is_everybody(group)) return Transport::all_reduce(operators, group, value);
    if (value.elements() == 0) return;
    wait(piece("all ranks, at an all_reduce", [&] {
      return nccl().all_reduce(value.data, value.data, static_cast<std::size_t>(value.elements()), nccl_type(value.number),
                               ncclSum, communicator_, side_.get());
    }));
  }

 private:
  [[nodiscard]] bool is_everybody(std::span<const std::int32_t> group) const {
    return static_cast<std::int32_t>(group.size()) == size_;  // ascending ranks without repetition: then all of them
  }

  void refuse_after_failure() const {
    if (!failure_.empty()) throw Error("NCCL: this transport has failed before: " + failure_);
  }

  /// One piece of work on the side stream; `launch` returns what NCCL said last. `whom`: it will wait for, in messages.
  template <class Launch>
  Ticket piece(const std::string& whom, const Launch& launch) {
    refuse_after_failure();
    look();
    const std::uint64_t number = side_.begin();
    waited_for_[number] = whom;
    settle(launch(), "starting messages", whom);
    side_.end(number);
    return {number};
  }

  void start_group() { accept(nccl().group_start(), "starting a group"); }
  /// Inside a group calls are only collected.
  void accept(ncclResult_t result, const char* operation) {
    if (result != ncclSuccess && result != ncclInProgress) fail(fmt::format("{}: {}", operation, words_of(result)));
  }
  /// Until NCCL has taken the call: the first messages between two ranks connect them, and that needs both.
  void settle(ncclResult_t result, const char* operation, const std::string& whom) {
    const Clock::time_point begin = Clock::now();
    while (result == ncclInProgress) {
      if (Clock::now() - begin > options_.timeout) {
        fail(fmt::format("{}: waited {:.1f} s for {}", operation, seconds_of(Clock::now() - begin), whom));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      accept(nccl().async_error(communicator_, &result), operation);
    }
    if (result != ncclSuccess) fail(fmt::format("{}: {}", operation, words_of(result)));
  }

  /// What the host's waits call again and again.
  void look() {
    refuse_after_failure();
    ncclResult_t state = ncclSuccess;
    accept(nccl().async_error(communicator_, &state), "asking for errors");
    if (state != ncclSuccess && state != ncclInProgress) fail(words_of(state));
    const cuda::SideStream::Waiting waiting = side_.waiting();
    if (waiting.piece > 0 && waiting.since > options_.timeout) {
      fail(fmt::format("waited {:.1f} s for {}", seconds_of(waiting.since), waited_for_[waiting.piece]));
    }
    // Pieces end in order: those before the first unfinished one need no name any more.
    if (waiting.piece > 0) waited_for_.erase(waited_for_.begin(), waited_for_.lower_bound(waiting.piece));
  }

  [[nodiscard]] std::string words_of(ncclResult_t result) const {
    const char* const last = communicator_ == nullptr ? nullptr : nccl().last_error(communicator_);
    const bool has_more = last != nullptr && *last != '\0';
    return has_more ? fmt::format("{} ({})", nccl().error_string(result), last) : std::string(nccl().error_string(result));
  }

  [[noreturn]] void fail(const std::string& what) {
    failure_ = fmt::format("rank {} of {}: {}", rank_, size_, what);
    if (communicator_ != nullptr) (void)nccl().abort(communicator_);  // its kernels end, so that streams and hosts go on
    communicator_ = nullptr;
    throw Error("NCCL: " + failure_);
  }

  DeviceOperators& operators_;
  std::int32_t rank_;
  std::int32_t size_;
  NcclOptions options_;
  cuda::SideStream side_;
  ncclComm_t communicator_ = nullptr;
  std::shared_ptr<void> barrier_word_;
  std::map<std::uint64_t, std::string> waited_for_;
  std::string failure_;
  std::shared_ptr<const int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(DeviceOperators& operators, const NcclId& id, std::int32_t rank, std::int32_t size,
                                               const NcclOptions& options) {
  return std::make_unique<NcclTransport>(operators, id, rank, size, options);
}

}  // namespace cpfit::kernels
