#include "kernels/cuda/side_stream.h"

#include <algorithm>

#include "kernels/core/require.h"
#include "kernels/cuda/cuda_call.h"

namespace cpfit::kernels::cuda {

SideStream::SideStream(DeviceOperators& operators) : device_(operators.device()), compute_(operators.stream()) {
  check(cudaSetDevice(device_), "choosing the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream for messages");
}

SideStream::~SideStream() {
  (void)cudaSetDevice(device_);
  for (const Piece& piece : pieces_) spare_.insert(spare_.end(), {piece.ready, piece.done});
  for (cudaEvent_t event : spare_) (void)cudaEventDestroy(event);
  (void)cudaStreamDestroy(stream_);
}

std::uint64_t SideStream::begin() {
  check(cudaSetDevice(device_), "starting messages");
  Piece piece;
  piece.number = ++last_;
  piece.ready = take_event();
  piece.done = take_event();
  pieces_.push_back(piece);
  check(cudaEventRecord(piece.ready, compute_), "starting messages");
  check(cudaStreamWaitEvent(stream_, piece.ready, 0), "starting messages");
  return piece.number;
}

void SideStream::end(std::uint64_t number) {
  Piece* const piece = find(number);
  require(piece != nullptr, "SideStream: piece {} of {} is not open", number, last_);
  check(cudaEventRecord(piece->done, stream_), "starting messages");
  piece->ended = true;
}

void SideStream::join(std::uint64_t number) {
  require(number <= last_, "SideStream: piece {} of {}", number, last_);
  check(cudaSetDevice(device_), "waiting for messages");
  const Piece* const piece = find(number);
  if (piece == nullptr) return;  // the device has finished it
  require(piece->ended, "SideStream: piece {} is open", number);
  check(cudaStreamWaitEvent(compute_, piece->done, 0), "waiting for messages");
}

bool SideStream::is_done(std::uint64_t number) {
  require(number <= last_, "SideStream: piece {} of {}", number, last_);
  const Piece* const piece = find(number);
  if (piece == nullptr) return true;
  if (!piece->ended) return false;
  const cudaError_t status = cudaEventQuery(piece->done);
  if (status == cudaErrorNotReady) return false;
  check(status, "a message");
  return true;
}

SideStream::Waiting SideStream::waiting() {
  const auto now = std::chrono::steady_clock::now();
  const auto is_done = [](cudaEvent_t event) {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) return false;
    check(status, "a message");
    return true;
  };
  while (!pieces_.empty() && pieces_.front().ended && is_done(pieces_.front().done)) {
    spare_.insert(spare_.end(), {pieces_.front().ready, pieces_.front().done});
    pieces_.pop_front();
  }
  if (pieces_.empty()) return {};
  Piece& first = pieces_.front();
  if (!first.could_begin && is_done(first.ready)) {
    first.could_begin = true;
    first.since = now;
  }
  return first.could_begin ? Waiting{first.number, now - first.since} : Waiting{};
}

SideStream::Piece* SideStream::find(std::uint64_t number) {
  const auto found = std::ranges::find(pieces_, number, &Piece::number);
  return found == pieces_.end() ? nullptr : &*found;
}

cudaEvent_t SideStream::take_event() {
  if (!spare_.empty()) {
    const cudaEvent_t event = spare_.back();
    spare_.pop_back();
    return event;
  }
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

}  // namespace cpfit::kernels::cuda
