#include "kernels/transport/loopback.h"

#include <vector>

#include "kernels/core/require.h"

namespace cpfit::kernels {

namespace {

class Loopback final : public Transport {
 public:
  Loopback(Operators& operators, std::int32_t size) : operators_(operators), size_(size) {}

  [[nodiscard]] std::int32_t rank() const override { return 0; }
  [[nodiscard]] std::int32_t size() const override { return size_; }
  Ticket start(std::span<const Message> batch) override {
    std::vector<View> sends;
    std::vector<View> receives;
    for (const Message& message : batch) {
      (message.direction == Message::Direction::kSend ? sends : receives).push_back(message.view);
    }
    require(sends.size() == receives.size(), "loopback: {} sends and {} receives in a batch", sends.size(), receives.size());
    for (std::size_t i = 0; i < sends.size(); ++i) {
      require(sends[i].bytes() == receives[i].bytes(), "loopback: message {} sends {} bytes and receives {}", i, sends[i].bytes(),
              receives[i].bytes());
      operators_.copy(sends[i], receives[i]);
    }
    return {};  // the copies are in the operators' order: there is nothing to wait for
  }
  void wait(Ticket) override {}
  void barrier() override {}

 private:
  Operators& operators_;
  std::int32_t size_;
};

}  // namespace

std::unique_ptr<Transport> make_loopback(Operators& operators, std::int32_t size) {
  require(size > 0, "loopback: {} ranks", size);
  return std::make_unique<Loopback>(operators, size);
}

}  // namespace cpfit::kernels
