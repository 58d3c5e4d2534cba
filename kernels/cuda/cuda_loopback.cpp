#include "kernels/cuda/cuda_loopback.h"

#include <vector>

#include "kernels/core/require.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/side_stream.h"

namespace cpfit::kernels {

namespace {

class CudaLoopback final : public Transport {
 public:
  CudaLoopback(DeviceOperators& operators, std::int32_t size) : operators_(operators), size_(size), side_(operators) {}

  [[nodiscard]] std::int32_t rank() const override { return 0; }
  [[nodiscard]] std::int32_t size() const override { return size_; }

  Ticket start(std::span<const Message> batch) override {
    std::vector<View> sends;
    std::vector<View> receives;
    for (const Message& message : batch) {
      (message.direction == Message::Direction::kSend ? sends : receives).push_back(message.view);
    }
    require(sends.size() == receives.size(), "CUDA loopback: {} sends and {} receives in a batch", sends.size(), receives.size());
    const std::uint64_t piece = side_.begin();
    for (std::size_t i = 0; i < sends.size(); ++i) {
      require(sends[i].bytes() == receives[i].bytes(), "CUDA loopback: message {} sends {} bytes and receives {}", i,
              sends[i].bytes(), receives[i].bytes());
      if (sends[i].bytes() == 0) continue;
      cuda::check(cudaMemcpyAsync(receives[i].data, sends[i].data, static_cast<std::size_t>(sends[i].bytes()),
                                  cudaMemcpyDeviceToDevice, side_.get()),
                  "loopback");
    }
    side_.end(piece);
    return {piece};
  }
  void wait(Ticket ticket) override {
    (void)side_.waiting();  // forgets what is finished
    side_.join(ticket.id);
  }
  [[nodiscard]] bool test(Ticket ticket) override { return side_.is_done(ticket.id); }
  void barrier() override { operators_.finish(); }

 private:
  DeviceOperators& operators_;
  std::int32_t size_;
  cuda::SideStream side_;
};

}  // namespace

std::unique_ptr<Transport> make_cuda_loopback(DeviceOperators& operators, std::int32_t size) {
  require(size > 0, "CUDA loopback: {} ranks", size);
  return std::make_unique<CudaLoopback>(operators, size);
}

}  // namespace cpfit::kernels
