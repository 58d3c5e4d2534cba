// Every call of the CUDA runtime goes through here: what fails throws, with the operation that wanted it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace cpfit::kernels::cuda {

/// Throws Error "CUDA: <operation>: <name of the error>: <its sentence>" unless `status` is success.
void check(cudaError_t status, const char* operation);
/// The same for the kernel just launched.
inline void check_launch(const char* operation) { check(cudaGetLastError(), operation); }

/// Our own mistake: stops the program. (fmt does not compile under nvcc, so kernels' sources cannot use require.h.)
[[noreturn]] void not_compiled(const char* operation, const char* from, const char* to);

/// Device memory in the order of a stream, for the length of a scope: what was launched before the end may still use it.
class Scratch {
 public:
  Scratch(std::int64_t bytes, cudaStream_t stream, const char* operation) : stream_(stream) {
    if (bytes > 0) check(cudaMallocAsync(&data_, static_cast<std::size_t>(bytes), stream), operation);
  }
  Scratch(Scratch&& other) noexcept : stream_(other.stream_), data_(other.data_) { other.data_ = nullptr; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_);  // a destructor does not throw; the next checked call will
  }
  [[nodiscard]] void* data() const { return data_; }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

}  // namespace cpfit::kernels::cuda
