#include "kernels/cuda/staged_transport.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <map>
#include <vector>

#include "kernels/core/require.h"
#include "kernels/cuda/cuda_call.h"

namespace cpfit::kernels {

namespace {

class StagedTransport final : public Transport {
 public:
  StagedTransport(DeviceOperators& operators, Transport& host) : operators_(operators), host_(host) {}

  [[nodiscard]] std::int32_t rank() const override { return host_.rank(); }
  [[nodiscard]] std::int32_t size() const override { return host_.size(); }

  Ticket start(std::span<const Message> batch) override {
    operators_.finish();  // what is sent must be there
    Batch staged;
    staged.memory.reserve(batch.size());  // views point into it
    std::vector<Message> messages;
    for (const Message& message : batch) {
      std::vector<std::byte>& place = staged.memory.emplace_back(static_cast<std::size_t>(message.view.bytes()));
      Message on_host = message;
      on_host.view.data = place.data();
      messages.push_back(on_host);
      if (message.direction == Message::Direction::kSend) {
        copy(place.data(), message.view.data, message.view.bytes());
      } else {
        staged.received.push_back({message.view, staged.memory.size() - 1});
      }
    }
    if (messages.empty()) return {};
    staged.ticket = host_.start(messages);
    const std::uint64_t number = ++last_;
    batches_.emplace(number, std::move(staged));
    return {number};
  }

  void wait(Ticket ticket) override {
    const auto found = batches_.find(ticket.id);
    if (found == batches_.end()) return;  // none, or waited for before
    host_.wait(found->second.ticket);
    for (const Received& received : found->second.received) {
      copy(received.view.data, found->second.memory[received.place].data(), received.view.bytes());
    }
    batches_.erase(found);
  }

  void barrier() override {
    operators_.finish();
    host_.barrier();
  }

 private:
  struct Received {
    View view;
    std::size_t place;
  };
  struct Batch {
    std::vector<std::vector<std::byte>> memory;
    std::vector<Received> received;
    Ticket ticket;
  };

  /// In the operators' order, and done when it returns.
  void copy(void* to, const void* from, std::int64_t bytes) {
    if (bytes == 0) return;
    cuda::check(cudaSetDevice(operators_.device()), "copying a message");
    cuda::check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, operators_.stream()),
                "copying a message");
    cuda::check(cudaStreamSynchronize(operators_.stream()), "copying a message");
  }

  DeviceOperators& operators_;
  Transport& host_;
  std::map<std::uint64_t, Batch> batches_;
  std::uint64_t last_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_staged_transport(DeviceOperators& operators, Transport& host) {
  return std::make_unique<StagedTransport>(operators, host);
}

}  // namespace cpfit::kernels
