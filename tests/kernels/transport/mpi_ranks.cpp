// What mpi_transport_test.cpp starts under mpirun: one rank that behaves, or misbehaves, as its first argument says.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "kernels/reference/cpu_operators.h"
#include "kernels/transport/mpi_transport.h"
#include "model/quantity/problem.h"

namespace {

using namespace cpfit::kernels;

View view_of(std::vector<double>& values) { return {values.data(), Number::kFp64, static_cast<std::int64_t>(values.size()), 1}; }

/// Numbers that say whose they are.
std::vector<double> numbers(std::int32_t rank, std::size_t count) {
  std::vector<double> values(count);
  std::iota(values.begin(), values.end(), 1e6 * rank);
  return values;
}

/// Everybody sends `count` numbers to the next rank, three times, before anything is waited for.
void ring(Transport& transport, std::size_t count) {
  const std::int32_t size = transport.size();
  const std::int32_t next = (transport.rank() + 1) % size;
  const std::int32_t previous = (transport.rank() + size - 1) % size;
  std::vector<double> sent = numbers(transport.rank(), count);
  std::vector<double> got[3];
  Ticket ticket[3];
  for (int i = 0; i < 3; ++i) {
    got[i].resize(count);
    const Message batch[] = {send_to(next, view_of(sent)), receive_from(previous, view_of(got[i]))};
    ticket[i] = transport.start(batch);
  }
  for (int i = 2; i >= 0; --i) transport.wait(ticket[i]);
  for (const std::vector<double>& values : got) {
    if (values != numbers(previous, count)) throw cpfit::Error("the numbers are not those that were sent");
  }
}

void collectives(Transport& transport) {
  const std::unique_ptr<Operators> operators = make_cpu_operators(Number::kFp64);
  std::vector<std::int32_t> group(static_cast<std::size_t>(transport.size()));
  std::iota(group.begin(), group.end(), 0);
  const Array value = operators->upload(Number::kFp64, 1, 1, std::vector<double>{1.0 + transport.rank()});
  transport.all_reduce(*operators, group, value);
  const double wanted = transport.size() * (transport.size() + 1) / 2.0;
  if (operators->download(value) != std::vector<double>{wanted}) throw cpfit::Error("the sum is wrong");
}

void behave(const std::string& how, Transport& transport) {
  const bool odd_one = transport.rank() == 1;
  transport.barrier();
  if (how == "well" || how == "in-pieces") {
    ring(transport, 5000);
    ring(transport, 0);
    collectives(transport);
  } else if (how == "slow") {
    if (odd_one) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ring(transport, 200'000);  // too large to be sent without the receiver
  } else if (how == "dies") {
    if (odd_one) std::_Exit(3);
    ring(transport, 10);
  } else if (how == "is-killed") {
    if (odd_one) std::raise(SIGKILL);
    ring(transport, 10);
  } else if (how == "throws") {
    if (odd_one) throw cpfit::Error("the disk is full");
    ring(transport, 10);
  } else if (how == "sends-more" || how == "sends-less") {
    std::vector<double> values(odd_one == (how == "sends-more") ? 20 : 10);
    std::vector<double> got(10);
    if (how == "sends-less") got.resize(20);
    const Message send[] = {send_to(0, view_of(values))};
    const Message receive[] = {receive_from(1, view_of(got))};
    if (odd_one) transport.wait(transport.start(send));
    if (transport.rank() == 0) transport.wait(transport.start(receive));
    transport.barrier();
  } else if (how == "computes-for-ever") {
    if (odd_one) std::this_thread::sleep_for(std::chrono::hours(1));
    ring(transport, 10);
  } else {
    throw cpfit::Error("no such behaviour: " + how);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string how = argv[1];
  const std::chrono::milliseconds timeout(std::atoi(argv[2]));
  const MpiSession session;
  const std::chrono::milliseconds grace(how == "computes-for-ever" ? 500 : 4000);
  MpiTransport transport(timeout, grace, how == "in-pieces" ? 777 : MpiTransport::kPieceBytes);
  try {
    behave(how, transport);
    transport.barrier();
    fmt::print("rank {} is well\n", transport.rank());
    return 0;
  } catch (const std::exception& failure) {
    transport.abandon(failure.what());
  }
}
