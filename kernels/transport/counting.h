// What one rank sends, counted beside another transport: messages and bytes that leave the rank. Collectives are counted as the
// messages they are made of.
#pragma once

#include <cstdint>

#include "kernels/core/transport.h"

namespace cpfit::kernels {

class CountingTransport final : public Transport {
 public:
  explicit CountingTransport(Transport& inner) : inner_(inner) {}

  [[nodiscard]] std::int32_t rank() const override { return inner_.rank(); }
  [[nodiscard]] std::int32_t size() const override { return inner_.size(); }
  Ticket start(std::span<const Message> batch) override {
    ++batches_;
    for (const Message& message : batch) {
      if (message.direction != Message::Direction::kSend || message.peer == rank()) continue;
      ++messages_;
      bytes_ += message.view.bytes();
    }
    return inner_.start(batch);
  }
  void wait(Ticket ticket) override { inner_.wait(ticket); }
  [[nodiscard]] bool test(Ticket ticket) override { return inner_.test(ticket); }
  void begin_step(std::int32_t step) override { inner_.begin_step(step); }
  void barrier() override { inner_.barrier(); }

  [[nodiscard]] std::int64_t messages() const { return messages_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t batches() const { return batches_; }

 private:
  Transport& inner_;
  std::int64_t messages_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t batches_ = 0;
};

}  // namespace cpfit::kernels
