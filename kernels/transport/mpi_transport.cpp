#include "kernels/transport/mpi_transport.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>
#include <vector>

#include "kernels/core/require.h"
#include "model/quantity/problem.h"

#if defined(__SANITIZE_ADDRESS__)
/// MPI leaves memory of plug-ins behind that are no longer loaded at the end, so it cannot be told from ours: processes that use
/// MPI are checked for everything but leaks.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return 1; }
#endif

namespace cpfit::kernels {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDataTag = 1;
constexpr int kNoticeTag = 2;
constexpr std::chrono::milliseconds kLastWords{300};  // for the other ranks to print why they stop
constexpr std::size_t kNoticeBytes = 1024;            // small enough to be sent without the receiver's help

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return {text, static_cast<std::size_t>(length)};
}

void check(int code, const char* operation) {
  if (code != MPI_SUCCESS) throw Error(fmt::format("{}: {}", operation, mpi_text(code)));
}

/// Gives the processor away between polls: at once to others that are ready, after a while for longer.
class Patience {
 public:
  explicit Patience(Clock::duration spin = std::chrono::milliseconds(2)) : spin_(spin) {}

  void pause() {
    if (Clock::now() - begin_ < spin_) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  [[nodiscard]] Clock::duration waited() const { return Clock::now() - begin_; }

 private:
  Clock::duration spin_;
  Clock::time_point begin_ = Clock::now();
};

/// A message or a piece of one on its way.
struct Piece {
  MPI_Request request = MPI_REQUEST_NULL;
  Message::Direction direction = Message::Direction::kSend;
  std::int32_t peer = 0;
  std::int64_t bytes = 0;
  bool ended = false;
};

}  // namespace

MpiSession::MpiSession() {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiSession::~MpiSession() { MPI_Finalize(); }

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "";
  const std::string whole(text, static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));
}

struct MpiTransport::Requests {
  Requests(std::chrono::milliseconds timeout_of_waits, std::chrono::milliseconds grace_of_failures, std::int64_t bytes_of_piece)
      : timeout(timeout_of_waits), grace(grace_of_failures), piece_bytes(bytes_of_piece) {
    require(piece_bytes > 0 && piece_bytes <= kPieceBytes, "transport: pieces of {} bytes", piece_bytes);
    for (MPI_Comm* communicator : {&messages, &notices}) {
      check(MPI_Comm_dup(MPI_COMM_WORLD, communicator), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN);
    }
    MPI_Comm_rank(messages, &rank);
    MPI_Comm_size(messages, &size);
  }

  MPI_Comm messages = MPI_COMM_NULL;
  MPI_Comm notices = MPI_COMM_NULL;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds grace;
  std::chrono::milliseconds spin{2};
  std::int64_t piece_bytes;
  int rank = 0;
  int size = 1;
  std::map<std::uint64_t, std::vector<Piece>> batches;
  std::uint64_t last_ticket = 0;
  std::string failure;       // the first one, ours or another's
  bool others_know = false;  // of the failure
  std::string notice;        // lives as long as its sends
  std::vector<MPI_Request> notice_sends;
  Clock::time_point begin = Clock::now();

  void post(const Message& message, std::vector<Piece>& pieces) {
    const std::int64_t total = message.view.bytes();
    auto* data = static_cast<std::byte*>(message.view.data);
    std::int64_t done = 0;
    do {  // an empty message is a message too
      Piece piece{MPI_REQUEST_NULL, message.direction, message.peer, std::min(piece_bytes, total - done), false};
      const int count = static_cast<int>(piece.bytes);
      if (message.direction == Message::Direction::kSend) {
        check(MPI_Isend(data + done, count, MPI_BYTE, piece.peer, kDataTag, messages, &piece.request), "MPI_Isend");
      } else {
        check(MPI_Irecv(data + done, count, MPI_BYTE, piece.peer, kDataTag, messages, &piece.request), "MPI_Irecv");
      }
      pieces.push_back(piece);
      done += piece_bytes;
    } while (done < total);
  }

  /// Throws what another rank has told, or what was told before.
  void hear() {
    int there = 0;
    MPI_Status status;
    if (failure.empty() && MPI_Iprobe(MPI_ANY_SOURCE, kNoticeTag, notices, &there, &status) == MPI_SUCCESS && there != 0) {
      std::string text(kNoticeBytes, '\0');
      MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_BYTE, status.MPI_SOURCE, kNoticeTag, notices, &status);
      int length = 0;
      MPI_Get_count(&status, MPI_BYTE, &length);
      text.resize(static_cast<std::size_t>(std::max(0, length)));
      failure = text;
      others_know = true;
      stop_together();
    }
    if (!failure.empty()) throw Error(fmt::format("rank {} stops: {}", rank, failure));
  }

  [[noreturn]] void fail(const std::string& why) {
    if (failure.empty()) failure = why;
    stop_together();
    throw Error(why);
  }

  /// Returns when every rank knows, at the latest after the grace. Only then may memory of messages that are still on their way
  /// be given back, and after it MPI must not be asked for anything: it would go on with them.
  void stop_together() {
    tell();
    MPI_Request all_here = MPI_REQUEST_NULL;
    int reached = MPI_Ibarrier(notices, &all_here) == MPI_SUCCESS ? 0 : 1;
    for (Patience patience; reached == 0 && patience.waited() < grace; patience.pause()) {
      if (MPI_Test(&all_here, &reached, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    }
  }

  void tell() {
    if (others_know) return;
    others_know = true;
    notice = failure.substr(0, kNoticeBytes);
    for (int peer = 0; peer < size; ++peer) {
      if (peer == rank) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      const int length = static_cast<int>(notice.size());
      if (MPI_Isend(notice.data(), length, MPI_BYTE, peer, kNoticeTag, notices, &request) == MPI_SUCCESS) {
        notice_sends.push_back(request);
      }
    }
  }

  /// Has it arrived, or been taken?
  bool test(Piece& piece) {
    if (piece.ended) return true;
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&piece.request, &done, &status);
    const bool receive = piece.direction == Message::Direction::kReceive;
    if (code != MPI_SUCCESS) {
      int kind = 0;
      MPI_Error_class(code, &kind);
      if (kind == MPI_ERR_TRUNCATE) {
        fail(fmt::format("rank {} expects {} bytes from rank {}, which sends more", rank, piece.bytes, piece.peer));
      }
      fail(fmt::format("rank {}, {} {} bytes {} rank {}: {}", rank, receive ? "receiving" : "sending", piece.bytes,
                       receive ? "from" : "to", piece.peer, mpi_text(code)));
    }
    if (done == 0) return false;
    int count = 0;
    if (receive && MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count != piece.bytes) {
      fail(fmt::format("rank {} expects {} bytes from rank {}, which sent {}", rank, piece.bytes, piece.peer, count));
    }
    piece.ended = true;
    return true;
  }

  template <class Done, class What>
  void poll(const Done& done, const What& what) {
    Patience patience(spin);
    const double since = seconds(Clock::now() - begin);
    while (!done()) {
      hear();
      if (patience.waited() >= timeout) {
        fail(
            fmt::format("rank {} waited {:.3g} s for {}, since {:.3f} s after the start", rank, seconds(timeout), what(), since));
      }
      patience.pause();
    }
  }
};

MpiTransport::MpiTransport(std::chrono::milliseconds timeout, std::chrono::milliseconds grace, std::int64_t piece_bytes)
    : requests_(std::make_unique<Requests>(timeout, grace, piece_bytes)) {}

MpiTransport::~MpiTransport() {
  if (!requests_->failure.empty()) return;  // what is still on its way belongs to nobody
  for (MPI_Comm* communicator : {&requests_->messages, &requests_->notices}) MPI_Comm_free(communicator);
}

std::int32_t MpiTransport::rank() const { return requests_->rank; }
std::int32_t MpiTransport::size() const { return requests_->size; }

Ticket MpiTransport::start(std::span<const Message> batch) {
  requests_->hear();
  std::vector<Piece>& pieces = requests_->batches[++requests_->last_ticket];
  // Receives first: what is expected needs no buffer in between.
  for (const Message::Direction direction : {Message::Direction::kReceive, Message::Direction::kSend}) {
    for (const Message& message : batch) {
      require(message.peer >= 0 && message.peer < size(), "transport: a message to rank {} of {}", message.peer, size());
      if (message.direction == direction) requests_->post(message, pieces);
    }
  }
  return {requests_->last_ticket};
}

void MpiTransport::wait(Ticket ticket) {
  if (ticket.id == 0) return;
  Requests& requests = *requests_;
  const auto found = requests.batches.find(ticket.id);
  require(found != requests.batches.end(), "transport: rank {} waits for batch {}, which it did not start or has waited for",
          rank(), ticket.id);
  std::vector<Piece>& pieces = found->second;
  std::size_t next = 0;  // all before it are done
  const auto done = [&] {
    while (next < pieces.size() && requests.test(pieces[next])) ++next;
    return next == pieces.size();
  };
  requests.poll(done, [&] {
    const Piece& piece = pieces[next];
    return piece.direction == Message::Direction::kReceive ? fmt::format("{} bytes from rank {}", piece.bytes, piece.peer)
                                                           : fmt::format("rank {} to take {} bytes", piece.peer, piece.bytes);
  });
  requests.batches.erase(found);
}

bool MpiTransport::test(Ticket ticket) {
  if (ticket.id == 0) return true;
  Requests& requests = *requests_;
  requests.hear();
  const auto found = requests.batches.find(ticket.id);
  require(found != requests.batches.end(), "transport: rank {} asks for batch {}, which it did not start or has waited for",
          rank(), ticket.id);
  bool all = true;  // each is asked: asking moves it
  for (Piece& piece : found->second) all = requests.test(piece) && all;
  return all;
}

void MpiTransport::poll_without_pause(std::chrono::milliseconds spin) { requests_->spin = spin; }

void MpiTransport::barrier() {
  Requests& requests = *requests_;
  requests.hear();
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(requests.messages, &request), "MPI_Ibarrier");
  const auto done = [&] {
    int reached = 0;
    check(MPI_Test(&request, &reached, MPI_STATUS_IGNORE), "MPI_Ibarrier");
    return reached != 0;
  };
  requests.poll(done, [] { return std::string("the other ranks at a barrier"); });
}

void MpiTransport::abandon(const std::string& why) {
  std::fputs(fmt::format("{}\n", why).c_str(), stderr);
  std::fflush(nullptr);
  Requests& requests = *requests_;
  if (requests.failure.empty()) {  // not one that the transport has thrown: nobody knows yet
    requests.failure = fmt::format("rank {} failed: {}", requests.rank, why);
    if (requests.batches.empty()) {
      requests.stop_together();
    } else {
      requests.tell();
    }
  }
  std::this_thread::sleep_for(kLastWords);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);  // MPI_Abort does not return; the compiler does not know
}

}  // namespace cpfit::kernels
