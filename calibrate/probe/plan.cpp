#include "calibrate/probe/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace cpfit::probe {

namespace {

using Points = std::vector<MeasuredPoint>;

MeasuredAxis axis(const char* name, std::int64_t value) { return {name, value}; }
MeasuredAxis axis(const char* name, const std::string& value) { return {name, value}; }

MeasuredPoint point(const char* probe, std::vector<MeasuredAxis> axes) {
  MeasuredPoint made;
  made.probe = probe;
  made.axes = std::move(axes);
  return made;
}

MeasuredPoint skipped(const char* probe, const std::string& reason) {
  MeasuredPoint made = point(probe, {});
  made.outcome = MeasuredOutcome::kSkipped;
  made.reason = reason;
  return made;
}

struct HeadCounts {
  std::int64_t q, kv, dim, v_dim;
};

/// What is swept, by kind of device. A processor does some 50 GFLOP/s a core, a GPU ten thousand times that.
struct Sizes {
  std::vector<std::int64_t> tokens;    // of a block's queries
  std::vector<HeadCounts> heads;       // of attention
  double most_flops = 0;               // of one attention call
  std::vector<std::int64_t> products;  // m, n, k
  double most_product_flops = 0;
  std::vector<std::int64_t> memory_bytes;
  std::vector<std::int64_t> message_bytes;
  std::vector<std::int64_t> collective_bytes;
  std::vector<std::int64_t> overlap_tokens;
  std::vector<std::int64_t> overlap_bytes;
  std::vector<std::int64_t> ring_tokens;  // per rank
  std::vector<HeadCounts> ring_heads;
};

/// From `first` to `last`, `per_octave` sizes in each factor of two (1 or 2: the second is 1.5 times the first).
std::vector<std::int64_t> octaves(std::int64_t first, std::int64_t last, int per_octave = 1) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = first; size <= last; size *= 2) {
    sizes.push_back(size);
    if (per_octave == 2 && size + size / 2 <= last) sizes.push_back(size + size / 2);
  }
  return sizes;
}

constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kMi = 1024 * 1024;

Sizes sizes_of(const PlanRequest& request) {
  Sizes sizes;
  if (request.smoke) {
    sizes.tokens = {32, 64};
    sizes.heads = {{2, 1, 16, 16}};
    sizes.most_flops = 1e12;
    sizes.products = {32, 64};
    sizes.most_product_flops = 1e12;
    sizes.memory_bytes = {4 * kKi, 64 * kKi};
    sizes.message_bytes = {kKi, 64 * kKi};
    sizes.collective_bytes = {16 * kKi};
    sizes.overlap_tokens = {64};
    sizes.overlap_bytes = {64 * kKi};
    sizes.ring_tokens = {32};
    sizes.ring_heads = {{2, 2, 16, 16}};
  } else if (request.backend == "host") {
    sizes.tokens = {64, 128, 256, 512, 1024, 2048};
    sizes.heads = {{1, 1, 64, 64},   {4, 4, 64, 64},   {8, 2, 64, 64},  {8, 8, 64, 64},
                   {4, 4, 128, 128}, {8, 2, 128, 128}, {4, 4, 192, 128}};
    sizes.most_flops = 1.2e10;
    sizes.products = {64, 128, 256, 512, 1024};
    sizes.most_product_flops = 1.1e9;
    sizes.memory_bytes = octaves(4 * kKi, 32 * kMi, 2);
    sizes.message_bytes = octaves(kKi, 32 * kMi, 2);
    sizes.collective_bytes = octaves(4 * kKi, 16 * kMi);
    sizes.overlap_tokens = {256, 512, 1024};
    sizes.overlap_bytes = octaves(128 * kKi, 8 * kMi);
    sizes.ring_tokens = {128, 256, 512, 1024};
    sizes.ring_heads = {{4, 4, 64, 64}, {8, 2, 64, 64}, {8, 8, 64, 64}, {4, 4, 128, 128}};
  } else {
    sizes.tokens = octaves(128, 32 * kKi);
    sizes.heads = {{1, 1, 128, 128},  {8, 8, 128, 128}, {8, 1, 128, 128}, {32, 32, 128, 128}, {32, 8, 128, 128},
                   {64, 8, 128, 128}, {16, 16, 64, 64}, {32, 8, 64, 64},  {16, 16, 192, 128}};
    sizes.most_flops = 2e13;
    sizes.products = {256, 512, 1024, 2048, 4096, 8192, 16384};
    sizes.most_product_flops = 2.3e12;
    sizes.memory_bytes = octaves(64 * kKi, 1024 * kMi);
    sizes.message_bytes = octaves(kKi, 512 * kMi, 2);
    sizes.collective_bytes = octaves(16 * kKi, 1024 * kMi);
    sizes.overlap_tokens = {1024, 2048, 4096, 8192};
    sizes.overlap_bytes = octaves(kMi, 256 * kMi);
    sizes.ring_tokens = {1024, 2048, 4096, 8192, 16384};
    sizes.ring_heads = {{32, 8, 128, 128}, {64, 8, 128, 128}, {8, 1, 128, 128}, {16, 16, 64, 64}};
  }
  return sizes;
}

/// Blocks that rings and all-gathers launch: causal squares; full rectangles, square, half as high, half as wide, and wide.
void add_attention(const PlanRequest& request, const Sizes& sizes, Points& points) {
  for (const std::string& kernel : request.kernels) {
    for (const HeadCounts& heads : sizes.heads) {
      for (const std::int64_t tokens : sizes.tokens) {
        struct Shape {
          std::int64_t q, kv;
          const char* mask;
        };
        for (const Shape& shape :
             {Shape{tokens, tokens, "causal"}, Shape{tokens, tokens, "full"}, Shape{tokens, tokens / 2, "full"},
              Shape{tokens, 2 * tokens, "full"}, Shape{tokens, 4 * tokens, "full"}}) {
          for (const char* pass : {"forward", "backward"}) {
            MeasuredPoint made =
                point("attention", {axis("q", shape.q), axis("kv", shape.kv), axis("heads", heads.q), axis("kv_heads", heads.kv),
                                    axis("head_dim", heads.dim), axis("head_dim_v", heads.v_dim), axis("mask", shape.mask),
                                    axis("pass", pass), axis("dtype", request.dtype), axis("kernel", kernel)});
            if (attention_flops(made) <= sizes.most_flops) points.push_back(std::move(made));
          }
        }
      }
    }
  }
}

void add_gemm(const PlanRequest& request, const Sizes& sizes, Points& points) {
  for (const std::int64_t m : sizes.products) {
    for (const std::int64_t n : sizes.products) {
      for (const std::int64_t k : sizes.products) {
        // A full cube would be mostly repetition: squares, and one side that differs.
        const bool plain = m == n || n == k || m == k;
        const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        if (!plain || flops > sizes.most_product_flops) continue;
        points.push_back(point("gemm", {axis("m", m), axis("n", n), axis("k", k), axis("dtype", request.dtype)}));
      }
    }
  }
}

void add_memory(const Sizes& sizes, Points& points) {
  for (const char* operation : {"copy", "merge", "gather", "sum"}) {
    for (const std::int64_t bytes : sizes.memory_bytes) {
      points.push_back(point("memory", {axis("operation", operation), axis("bytes", bytes)}));
    }
  }
}

void add_launch(const PlanRequest& request, Points& points) {
  for (const std::string& mode : request.launch_modes) points.push_back(point("launch", {axis("mode", mode)}));
}

std::int32_t ranks_of(const PlanRequest& request) { return static_cast<std::int32_t>(request.host_of_rank.size()); }
const std::string& link_between(const PlanRequest& request, std::int32_t a, std::int32_t b) {
  const bool together = request.host_of_rank[static_cast<std::size_t>(a)] == request.host_of_rank[static_cast<std::size_t>(b)];
  return together ? request.link_inside : request.link_between;
}
/// Of the ring over all ranks: a hop between hosts is what it waits for.
const std::string& link_of_ring(const PlanRequest& request) {
  for (std::int32_t rank = 0; rank < ranks_of(request); ++rank) {
    const std::string& link = link_between(request, rank, (rank + 1) % ranks_of(request));
    if (link != request.link_inside) return link;
  }
  return request.link_inside;
}

void add_p2p(const PlanRequest& request, const Sizes& sizes, Points& points) {
  const auto add = [&](const std::string& pair, const char* direction, const std::string& link, std::int64_t bytes) {
    points.push_back(point("p2p", {axis("bytes", bytes), axis("pair", pair), axis("direction", direction), axis("link", link)}));
  };
  if (request.backend == "loopback") {
    for (const std::int64_t bytes : sizes.message_bytes) add("0-0", "both", request.link_inside, bytes);
    return;
  }
  const std::int32_t ranks = ranks_of(request);
  if (ranks == 1) {
    points.push_back(skipped("p2p", "one rank has nobody to send to: start several with mpirun or srun"));
    return;
  }
  // Pairs of every class of link: the first neighbours, and the first rank of another host.
  std::vector<std::int32_t> partners = {1};
  for (std::int32_t rank = 2; rank < ranks; ++rank) {
    if (link_between(request, 0, rank) == link_between(request, 0, 1)) continue;
    partners.push_back(rank);
    break;
  }
  for (const std::int64_t bytes : sizes.message_bytes) {
    for (const std::int32_t partner : partners) {
      for (const char* direction : {"one", "both"}) {
        add(fmt::format("0-{}", partner), direction, link_between(request, 0, partner), bytes);
      }
    }
    if (ranks > 2) add("ring", "both", link_of_ring(request), bytes);
  }
}

void add_collective(const PlanRequest& request, const Sizes& sizes, Points& points) {
  const std::int32_t ranks = ranks_of(request);
  if (ranks == 1) {
    points.push_back(skipped("collective", "one rank has no group: start several with mpirun or srun"));
    return;
  }
  std::set<std::int32_t> group_sizes = {ranks};
  for (std::int32_t group = 2; group < ranks; group *= 2) {
    if (ranks % group == 0) group_sizes.insert(group);
  }
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"}) {
    for (const std::int64_t bytes : sizes.collective_bytes) {
      for (const std::int32_t group : group_sizes) {
        for (const char* stride : {"consecutive", "strided"}) {
          if (group == ranks && std::string(stride) == "strided") continue;
          points.push_back(point("collective", {axis("kind", kind), axis("bytes", bytes), axis("ranks", std::int64_t{group}),
                                                axis("stride", stride)}));
        }
      }
    }
  }
}

void add_overlap(const PlanRequest& request, const Sizes& sizes, Points& points) {
  if (ranks_of(request) == 1 && request.backend != "loopback") {
    points.push_back(skipped("overlap", "one rank has nobody to send to: start several with mpirun or srun"));
    return;
  }
  const HeadCounts heads = sizes.ring_heads.front();
  for (const std::int64_t tokens : sizes.overlap_tokens) {
    for (const std::int64_t bytes : sizes.overlap_bytes) {
      points.push_back(point("overlap", {axis("q", tokens), axis("kv", tokens), axis("heads", heads.q),
                                         axis("kv_heads", heads.kv), axis("head_dim", heads.dim), axis("mask", "full"),
                                         axis("pass", "forward"), axis("dtype", request.dtype), axis("bytes", bytes)}));
    }
  }
}

/// cp is the number of ranks; one GPU that plays all ends plays 2, 4 and 8.
void add_ring_step(const PlanRequest& request, const Sizes& sizes, Points& points) {
  const bool loopback = request.backend == "loopback";
  const std::int32_t ranks = ranks_of(request);
  if (ranks == 1 && !loopback) {
    points.push_back(skipped("ring_step", "one rank makes no ring: start several with mpirun or srun"));
    return;
  }
  struct Way {
    const char* method;
    const char* mask;
    const char* layout;
  };
  const std::vector<Way> ways = {{"te_p2p", "causal", "zigzag"},     {"fp32_ring", "causal", "zigzag"},
                                 {"te_p2p", "full", "zigzag"},       {"fp32_ring", "causal", "contiguous"},
                                 {"all_gather", "causal", "zigzag"}, {"a2a", "causal", "zigzag"}};
  const std::vector<std::int64_t> degrees = loopback ? std::vector<std::int64_t>{2, 4, 8} : std::vector<std::int64_t>{ranks};
  for (const std::int64_t cp : degrees) {
    for (const Way& way : ways) {
      for (const HeadCounts& heads : sizes.ring_heads) {
        for (const std::int64_t tokens : sizes.ring_tokens) {
          for (const char* pass : {"forward", "backward"}) {
            MeasuredPoint made = point(
                "ring_step", {axis("method", way.method), axis("mask", way.mask), axis("layout", way.layout), axis("cp", cp),
                              axis("length", tokens * cp), axis("heads", heads.q), axis("kv_heads", heads.kv),
                              axis("head_dim", heads.dim), axis("dtype", request.dtype), axis("pass", pass)});
            // The other ways are there to be compared at one count of heads.
            const bool main_way = &way == ways.data() || &way == &ways[1];
            if (!main_way && &heads != sizes.ring_heads.data()) continue;
            if (std::string(way.method) == "a2a" && heads.kv % cp != 0) continue;
            points.push_back(std::move(made));
          }
        }
      }
    }
  }
}

void add_shared_nic(const PlanRequest& request, const Sizes& sizes, Points& points) {
  const std::int32_t ranks = ranks_of(request);
  if (ranks < 4) {
    points.push_back(skipped("shared_nic", "rings that share a link need four ranks or more"));
    return;
  }
  for (std::int64_t rings = 1; rings <= ranks / 2; rings *= 2) {
    for (const std::int64_t bytes : sizes.overlap_bytes) {
      points.push_back(point("shared_nic", {axis("rings", rings), axis("bytes", bytes)}));
    }
  }
}

}  // namespace

const std::vector<ProbeName>& measuring_probes() {
  static const std::vector<ProbeName> kProbes = {
      {"attention", "attention of one block, forward and backward, by shape and kernel"},
      {"p2p", "messages between two ranks, and of all ranks to their neighbours, by size"},
      {"overlap", "attention beside a message: what each slows the other down"},
      {"memory", "operators bound by memory: merge of partial results, copies, gathers, sums"},
      {"launch", "what it costs to hand work over"},
      {"gemm", "matrix products by m, n, k"},
      {"collective", "all-gather, reduce-scatter, all-reduce, all-to-all by size and group"},
      {"shared_nic", "pairs of ranks that exchange at the same time"},
      {"ring_step", "the whole ring attention step, with its timeline, exposed time and memory"}};
  return kProbes;
}

std::vector<MeasuredPoint> plan_points(const PlanRequest& request) {
  const Sizes sizes = sizes_of(request);
  Points plan;
  std::mt19937_64 shuffler(request.seed);
  for (const ProbeName& probe : measuring_probes()) {
    const bool wanted = request.probes.empty() || std::ranges::find(request.probes, probe.name) != request.probes.end();
    if (!wanted) continue;
    Points points;
    if (probe.name == "attention") add_attention(request, sizes, points);
    if (probe.name == "p2p") add_p2p(request, sizes, points);
    if (probe.name == "overlap") add_overlap(request, sizes, points);
    if (probe.name == "memory") add_memory(sizes, points);
    if (probe.name == "launch") add_launch(request, points);
    if (probe.name == "gemm") add_gemm(request, sizes, points);
    if (probe.name == "collective") add_collective(request, sizes, points);
    if (probe.name == "shared_nic") add_shared_nic(request, sizes, points);
    if (probe.name == "ring_step") add_ring_step(request, sizes, points);
    // std::shuffle differs between libraries: Fisher-Yates, written out, is the same everywhere.
    for (std::size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[shuffler() % i]);
    plan.insert(plan.end(), std::make_move_iterator(points.begin()), std::make_move_iterator(points.end()));
  }
  return plan;
}

std::vector<MeasuredPoint> interleaved(std::vector<MeasuredPoint> plan) {
  std::map<std::string, std::size_t> counts;
  for (const MeasuredPoint& one : plan) ++counts[one.probe];
  struct Place {
    double share = 0;  // of its probe's points that come before it
    std::size_t index = 0;
  };
  std::vector<Place> places;
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const std::string& probe = plan[i].probe;
    places.push_back({static_cast<double>(seen[probe]++) / static_cast<double>(counts[probe]), i});
  }
  std::ranges::stable_sort(places, {}, &Place::share);
  std::vector<MeasuredPoint> spread;
  for (const Place& place : places) spread.push_back(std::move(plan[place.index]));
  return spread;
}

double attention_flops(const MeasuredPoint& point) {
  const auto number = [&](const char* name) { return static_cast<double>(point.integer(name).value_or(0)); };
  const double half = point.text("mask") == "causal" ? 0.5 : 1;
  const double forward = 2 * half * number("q") * number("kv") * number("heads") * (number("head_dim") + number("head_dim_v"));
  return point.text("pass") == "backward" ? 2.5 * forward : forward;
}

std::vector<std::vector<std::int32_t>> groups_of(std::int32_t size, std::int32_t ranks, bool strided) {
  std::vector<std::vector<std::int32_t>> groups(static_cast<std::size_t>(size / ranks));
  for (std::int32_t rank = 0; rank < size; ++rank) {
    const std::int32_t group = strided ? rank % (size / ranks) : rank / ranks;
    groups[static_cast<std::size_t>(group)].push_back(rank);
  }
  return groups;
}

std::int32_t partner_of(std::int32_t rank, std::int32_t size, std::int32_t rings) {
  const std::int32_t half = size / 2;
  if (rank < half) return rank < rings ? rank + half : -1;
  return rank - half < rings && rank < 2 * half ? rank - half : -1;
}

}  // namespace cpfit::probe
