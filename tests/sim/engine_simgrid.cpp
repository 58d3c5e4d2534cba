#include "tests/sim/engine_simgrid.h"

#ifdef CPFIT_SIMGRID

#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

namespace cpfit::engine {

namespace {

struct Stream {
  std::vector<Picoseconds> compute;
  std::vector<sg4::Mailbox*> send, receive;
  std::vector<double>* completions = nullptr;
};

void exchange(const Stream& stream, double bytes) {
  static char payload = 0;
  void* received = nullptr;
  for (std::size_t e = 0; e < stream.compute.size(); ++e) {
    if (stream.compute[e] > 0) sg4::this_actor::sleep_for(to_seconds(stream.compute[e]).value());
    const sg4::CommPtr sending = stream.send[e]->put_async(&payload, static_cast<std::uint64_t>(bytes));
    const sg4::CommPtr receiving = stream.receive[e]->get_async(&received);
    sending->wait();
    receiving->wait();
    stream.completions->push_back(sg4::Engine::get_clock());
  }
}

Peer simulate(const Workload& workload) {
  Peer peer;
  std::vector<std::string> words{"workload",
                                 "--log=root.thres:error",
                                 "--cfg=network/model:CM02",
                                 "--cfg=network/bandwidth-factor:1",
                                 "--cfg=network/latency-factor:1",
                                 "--cfg=network/TCP-gamma:0",
                                 "--cfg=network/weight-S:0",
                                 "--cfg=network/crosstraffic:0",
                                 "--cfg=surf/precision:1e-13",
                                 "--cfg=maxmin/precision:1e-12"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  sg4::Engine engine(&count, arguments.data());
  sg4::NetZone* zone = sg4::create_full_zone("cluster");
  std::vector<sg4::Host*> hosts;
  for (std::int32_t h = 0; h < workload.hosts; ++h) hosts.push_back(zone->create_host("host" + std::to_string(h), 1e9));
  std::vector<const sg4::Link*> links;
  for (std::size_t l = 0; l < workload.bandwidth.size(); ++l) {
    links.push_back(
        zone->create_link("link" + std::to_string(l), workload.bandwidth[l] * kPicosecondsPerSecond)->set_latency(0.0)->seal());
  }
  for (std::int32_t from = 0; from < workload.hosts; ++from) {
    for (std::int32_t to = 0; to < workload.hosts; ++to) {
      if (from == to) continue;
      std::vector<sg4::LinkInRoute> route;
      for (const std::int32_t link : workload.route(from, to)) route.emplace_back(links[static_cast<std::size_t>(link)]);
      zone->add_route(hosts[static_cast<std::size_t>(from)]->get_netpoint(), hosts[static_cast<std::size_t>(to)]->get_netpoint(),
                      nullptr, nullptr, route, false);
    }
  }
  zone->seal();
  const auto mailbox = [](const char* kind, std::int32_t from, std::int32_t to) {
    return sg4::Mailbox::by_name(kind + std::to_string(from) + ">" + std::to_string(to));
  };
  std::vector<Stream> streams;
  peer.completions.resize(workload.ring.size() + workload.spread.size());
  std::size_t made = 0;
  for (const auto& [kind, all] : {std::pair{"ring", &workload.ring}, std::pair{"spread", &workload.spread}}) {
    for (std::size_t h = 0; h < all->size(); ++h) {
      Stream& stream = streams.emplace_back();
      const std::int32_t host = static_cast<std::int32_t>(h);
      for (const Exchange& exchange : (*all)[h]) {
        stream.compute.push_back(exchange.compute);
        stream.send.push_back(mailbox(kind, host, exchange.to));
        stream.receive.push_back(mailbox(kind, exchange.from, host));
      }
      stream.completions = &peer.completions[made++];
      stream.completions->reserve(stream.compute.size());
    }
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    sg4::Host* host = hosts[s % static_cast<std::size_t>(workload.hosts)];
    (void)sg4::Actor::create("stream", host, [&stream = streams[s], bytes = workload.bytes] { exchange(stream, bytes); });
  }
  const std::clock_t before = std::clock();
  engine.run();
  peer.seconds = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  return peer;
}

bool write_all(int to, const void* from, std::size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = write(to, at, bytes);
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int from, void* to, std::size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = read(from, at, bytes);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

Peer run_in_simgrid(const Workload& workload) {
  int ends[2];
  if (pipe(ends) != 0) return {{}, 0, "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {{}, 0, "no child process"};
  if (child == 0) {
    close(ends[0]);
    const Peer peer = simulate(workload);
    bool sent = write_all(ends[1], &peer.seconds, sizeof peer.seconds);
    for (const std::vector<double>& times : peer.completions) {
      const std::size_t size = times.size();
      sent = sent && write_all(ends[1], &size, sizeof size) && write_all(ends[1], times.data(), size * sizeof(double));
    }
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  Peer peer;
  bool whole = read_all(ends[0], &peer.seconds, sizeof peer.seconds);
  for (std::size_t s = 0; whole && s < workload.ring.size() + workload.spread.size(); ++s) {
    std::size_t size = 0;
    whole = read_all(ends[0], &size, sizeof size);
    if (!whole) break;
    peer.completions.emplace_back(size);
    whole = read_all(ends[0], peer.completions.back().data(), size * sizeof(double));
  }
  close(ends[0]);
  int status = 0;
  (void)waitpid(child, &status, 0);
  if (!whole || status != 0) return {{}, 0, "SimGrid's process failed"};
  return peer;
}

}  // namespace cpfit::engine

#else

namespace cpfit::engine {

Peer run_in_simgrid(const Workload&) { return {{}, 0, "SimGrid was not found when this was built (libsimgrid-dev)"}; }

}  // namespace cpfit::engine

#endif
