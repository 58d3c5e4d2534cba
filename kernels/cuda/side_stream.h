// A second stream beside an operators' own, for messages: what goes on it starts after the operators called before and, once
// joined, delays the operators called after. The host waits for nothing here. Piece of work: what lies between begin() and end().
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/cuda_operators.h"

namespace cpfit::kernels::cuda {

class SideStream {
 public:
  explicit SideStream(DeviceOperators& operators);
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;
  ~SideStream();

  [[nodiscard]] cudaStream_t get() const { return stream_; }
  [[nodiscard]] int device() const { return device_; }

  /// The stream waits for the operators called so far. Returns the piece's number, from 1.
  [[nodiscard]] std::uint64_t begin();
  void end(std::uint64_t piece);
  /// Operators called from now on wait for the piece; joining twice, or number 0, does nothing more.
  void join(std::uint64_t piece);

  /// Has the device finished the piece? Number 0: yes.
  [[nodiscard]] bool is_done(std::uint64_t piece);

  /// Forgets what the device has finished; the first piece that it could have begun and has not finished, and since when that
  /// has been seen. Number 0: none.
  struct Waiting {
    std::uint64_t piece = 0;
    std::chrono::steady_clock::duration since{};
  };
  [[nodiscard]] Waiting waiting();

 private:
  struct Piece {
    std::uint64_t number = 0;
    cudaEvent_t ready = nullptr;  // the operators before it are done
    cudaEvent_t done = nullptr;
    bool ended = false;
    bool could_begin = false;
    std::chrono::steady_clock::time_point since;
  };
  [[nodiscard]] Piece* find(std::uint64_t number);
  [[nodiscard]] cudaEvent_t take_event();

  int device_;
  cudaStream_t compute_;
  cudaStream_t stream_ = nullptr;
  std::uint64_t last_ = 0;
  std::deque<Piece> pieces_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace cpfit::kernels::cuda
