#include "model/rates/gpu_rates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "model/rates/overlay.h"

namespace cpfit {

namespace {

constexpr float kSameGenerationSigma = 0.10f;   // H100 against H200 in the kernel tables differ by less
constexpr float kOtherGenerationSigma = 0.25f;  // share of peak moved from 0.85 (Ampere) to 0.64 (Blackwell)
constexpr float kOtherLibrarySigma = 0.15f;

std::string generation_of(const RateTables& tables, const std::string& gpu) {
  for (const FittedDevice& device : tables.devices) {
    if (device.gpu == gpu) return device.generation;
  }
  return {};
}

int distance(const std::string& a, const std::string& b) { return std::abs(generation_rank(a) - generation_rank(b)); }

/// The sigma that a transfer adds to the donor's own.
float transfer_sigma(bool same_gpu, int generations) {
  if (same_gpu) return 0.0f;
  return generations == 0 ? kSameGenerationSigma : kOtherGenerationSigma;
}

/// Cheapest row by `cost` (negative: not eligible); first in file order on ties.
template <class Row, class Cost>
const Row* cheapest(const std::vector<Row>& rows, Cost cost) {
  const Row* best = nullptr;
  double best_cost = std::numeric_limits<double>::max();
  for (const Row& row : rows) {
    const double c = cost(row);
    if (c >= 0 && c < best_cost) {
      best = &row;
      best_cost = c;
    }
  }
  return best;
}

/// Four-bit over eight-bit arithmetic: what tells the chips of a generation apart (2 on B200 and GB200, 3 on B300 and GB300).
double four_bit_share(const DevicePeaks& peaks) {
  const double eight = peaks.math[static_cast<std::size_t>(MathKind::kFp8Tensor)];
  return eight > 0 ? peaks.math[static_cast<std::size_t>(MathKind::kNvfp4)] / eight : 0;
}

/// Where a curve comes from: its own GPU for nothing, one of the same generation for 1, of another chip for half more, a step of
/// generation for 2 more.
double donor_cost(const RateTables& tables, const GpuRates& rates, const std::string& donor) {
  if (donor == rates.gpu) return 0;
  constexpr double kOtherChip = 0.5, kSameShare = 0.25;
  double cost = 1 + 2.0 * distance(generation_of(tables, donor), rates.generation);
  for (const FittedDevice& device : tables.devices) {
    if (device.gpu == donor && std::abs(four_bit_share(device.peaks) - four_bit_share(rates.peaks)) > kSameShare)
      cost += kOtherChip;
  }
  return cost;
}

template <class Curve>
void settle(Chosen<Curve>& chosen, const RateTables& tables, const GpuRates& rates, const std::string& donor, float extra) {
  const bool own = donor == rates.gpu;
  const float moved = transfer_sigma(own, distance(generation_of(tables, donor), rates.generation));
  const float fitted = relative_sigma(chosen.curve.quality);
  chosen.sigma = std::sqrt(fitted * fitted + moved * moved + extra * extra);
  chosen.evidence = own && extra == 0 ? chosen.curve.quality.evidence : Evidence::kAssumed;
}

void choose_gemm(GpuRates& rates, const RateTables& tables, MathKind math) {
  Chosen<GemmCurve>& chosen = rates.gemm[static_cast<std::size_t>(math)];
  const double own_peak = rates.peaks.math[static_cast<std::size_t>(math)];
  // A GPU without this kind of arithmetic runs it in 16 bits: a figure to print, marked assumed.
  const MathKind used = own_peak > 0 ? math : MathKind::kBf16;
  const GemmRow* row = cheapest(tables.gemm, [&](const GemmRow& r) {
    if (r.math != used && r.math != MathKind::kBf16) return -1.0;
    return donor_cost(tables, rates, r.gpu) + (r.math == used ? 0 : 10);
  });
  if (row == nullptr) return;
  chosen.curve = row->curve;
  chosen.peak = rates.peaks.math[static_cast<std::size_t>(used)];
  settle(chosen, tables, rates, row->gpu, row->math == math ? 0.0f : kOtherLibrarySigma);
}

/// FLOP of the tensor cores per exponential of the special-function units, at one clock: 16 exponentials a clock and
/// multiprocessor on every generation since Pascal (CUDA programming guide, throughput of arithmetic instructions), boost clocks
/// of the data sheets. 0 where they are not known, or where kernels compute exponentials in other units too (Blackwell).
double flops_per_exponential(const std::string& generation, const DevicePeaks& peaks) {
  constexpr double kExponentialsPerClock = 16;
  const double clock = generation == "ampere" ? 1.41e9 : generation == "ada" ? 2.52e9 : generation == "hopper" ? 1.83e9 : 0;
  return clock > 0 ? peaks.math[static_cast<std::size_t>(MathKind::kBf16)] / (peaks.sm_count * clock * kExponentialsPerClock) : 0;
}

/// Carries the shares of a curve to a GPU whose tensor cores are faster or slower against its exponentials. A (query, key) pair
/// takes d + c units of time, c its softmax: the speed at head dimension d is proportional to d / (d + c), so `share_64` tells
/// c, and c shrinks as the tensor cores do.
void rebalance(AttentionCurve& curve, double from, double to) {
  const double s = curve.share_64;
  if (from <= 0 || to <= 0 || s <= 0.5 || s >= 1) return;
  const double softmax = 128 * (1 - s) / (2 * s - 1), moved = softmax * to / from;
  curve.peak_share = std::min(0.95, curve.peak_share * (128 + softmax) / (128 + moved));
  curve.share_64 = 64 * (128 + moved) / (128 * (64 + moved));
}

void choose_attention(GpuRates& rates, const RateTables& tables, MathKind math, AttentionLibrary library, AttentionPass pass) {
  Chosen<AttentionCurve>& chosen = rates.attention[attention_index(math, library, pass)];
  const bool supported = rates.peaks.math[static_cast<std::size_t>(math)] > 0;
  const AttentionRow* row = cheapest(tables.attention, [&](const AttentionRow& r) {
    if (r.pass != pass) return -1.0;
    if (r.math != math && r.math != MathKind::kBf16) return -1.0;
    if (r.math != MathKind::kBf16 && !supported) return -1.0;
    // Our own kernels are far from any library's speed: they stand in only where nothing else does.
    const double foreign = r.library == AttentionLibrary::kOwn ? 50.0 : r.library == AttentionLibrary::kTrtllm ? 1.9 : 1.5;
    const double other = r.library == library ? 0.0 : foreign;
    return donor_cost(tables, rates, r.gpu) + other + (r.math == math ? 0.0 : 10.0);
  });
  if (row == nullptr) return;
  chosen.curve = row->curve;
  if (row->library != library) chosen.curve.preparation = 0;  // the cache write belongs to the serving operator alone
  chosen.peak = rates.peaks.math[static_cast<std::size_t>(row->math)];
  if (row->math == MathKind::kBf16 && generation_of(tables, row->gpu) != rates.generation) {
    for (const FittedDevice& device : tables.devices) {
      if (device.gpu != row->gpu) continue;
      rebalance(chosen.curve, flops_per_exponential(device.generation, device.peaks),
                flops_per_exponential(rates.generation, rates.peaks));
    }
  }
  settle(chosen, tables, rates, row->gpu, row->library == library && row->math == math ? 0.0f : kOtherLibrarySigma);
}

void choose_memory(GpuRates& rates, const RateTables& tables) {
  const MemoryRow* row = cheapest(tables.memory, [&](const MemoryRow& r) {
    // Kernels that only stream, then a fused norm (records of before had no others); where only plain copies and merges were
    // measured, these.
    if (r.pass != AttentionPass::kForward) return -1.0;
    const double kind = r.kernels == "stream"       ? 0.0
                        : r.kernels == "cudnn_norm" ? 0.1
                        : r.kernels == "merge"      ? 0.2
                        : r.kernels == "copy"       ? 0.3
                                                    : -1.0;
    return kind < 0 ? -1.0 : donor_cost(tables, rates, r.gpu) + kind;
  });
  if (row == nullptr) return;
  rates.memory.curve = row->curve;
  settle(rates.memory, tables, rates, row->gpu, 0.0f);
}

/// Whose norms they are matters more than the GPU: another library's never stand in.
void choose_norm(GpuRates& rates, const RateTables& tables, NormKernels kernels, AttentionPass pass) {
  const MemoryRow* row = cheapest(tables.memory, [&](const MemoryRow& r) {
    return r.pass == pass && r.kernels == name_of(kernels) ? donor_cost(tables, rates, r.gpu) : -1.0;
  });
  if (row == nullptr) return;
  Chosen<MemoryCurve>& chosen = rates.norm[norm_index(kernels, pass)];
  chosen.curve = row->curve;
  settle(chosen, tables, rates, row->gpu, 0.0f);
}

std::string pcie_name(BytesPerSecond rate) {
  const double gb = rate.value() / 1e9;
  return gb < 20 ? "pcie3" : gb < 40 ? "pcie4" : gb < 80 ? "pcie5" : "pcie6";
}

std::string link_name(const Gpu& gpu, LinkClass link) {
  switch (link) {
    case LinkClass::kNvlink:
      // The links of a calibrated host ("shared memory", "tcp") stand here under their own names.
      return gpu.scale_up_link.empty() || gpu.scale_up_link.starts_with("xgmi") ? "nvlink4" : gpu.scale_up_link;
    case LinkClass::kXgmi:
      return "xgmi3";
    case LinkClass::kPcie:
      return pcie_name(gpu.pcie);
    case LinkClass::kSocket:
      return "socket";
    case LinkClass::kNic:
    case LinkClass::kSpine:
      return "nic";
    case LinkClass::kLocal:
      return "local";
  }
  return "nic";
}

/// "nvlink2" asks, "nvlink3" answers: same family, nearest number; empty when the family is not there at all.
template <class Row>
std::string nearest_link(const std::vector<Row>& rows, const std::string& wanted) {
  const auto family = [](const std::string& name) { return name.substr(0, name.find_last_not_of("0123456789") + 1); };
  const auto number = [&](const std::string& name) { return std::atoi(name.c_str() + family(name).size()); };
  const Row* best = cheapest(rows, [&](const Row& row) {
    return family(row.link) == family(wanted) ? std::abs(number(row.link) - number(wanted)) + (row.link == wanted ? 0.0 : 0.5)
                                              : -1.0;
  });
  return best == nullptr ? std::string() : best->link;
}

/// The curves of one kind and form over `wanted`, or over the nearest link of its family, by number of ranks.
RankLadder ladder_of(const RateTables& tables, const std::string& wanted, CollectiveKind kind, CollectiveForm form) {
  std::vector<CollectiveRow> rows;
  std::copy_if(tables.collective.begin(), tables.collective.end(), std::back_inserter(rows),
               [&](const CollectiveRow& row) { return row.kind == kind && row.form == form; });
  // Forms belong to one switch or one machine: none stands in for another's.
  const std::string measured = form == CollectiveForm::kUsual ? nearest_link(rows, wanted) : wanted;
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.curve.ranks < b.curve.ranks; });
  RankLadder ladder;
  for (const CollectiveRow& row : rows) {
    if (row.link != measured || static_cast<std::size_t>(ladder.count) == ladder.curves.size()) continue;
    ladder.curves[static_cast<std::size_t>(ladder.count++)] = row.curve;
    ladder.evidence = measured == wanted ? row.curve.quality.evidence : Evidence::kAssumed;
  }
  return ladder;
}

/// NCCL's chunk of a message between nodes is 128 KiB, on a Grace host with Blackwell GPUs twice that, for its four GPUs
/// (computeBuffSizes in src/init.cc); as many are on their way, so that a channel carries twice the bytes. A host link beyond any
/// PCIe is NVLink-C2C, to a Grace.
double chunk_of_messages(const Gpu& gpu) {
  constexpr double kPciExpress6 = 121e9;  // x16
  return gpu.pcie.value() > kPciExpress6 && generation_rank(gpu.generation) >= generation_rank("blackwell") ? 2.0 : 1.0;
}

void choose_links(GpuRates& rates, const RateTables& tables, const Gpu& gpu) {
  for (std::size_t index = 0; index < kLinkClasses; ++index) {
    const std::string wanted = link_name(gpu, static_cast<LinkClass>(index));
    const std::string known = nearest_link(tables.link, wanted);
    for (const LinkRow& row : tables.link) {
      if (row.link != known) continue;
      const float fitted = relative_sigma(row.curve.quality);
      rates.link[index] = {row.curve, 0, known == wanted ? fitted : std::hypot(fitted, kOtherGenerationSigma),
                           known == wanted ? row.curve.quality.evidence : Evidence::kAssumed};
      rates.link[index].curve.peer_rate *= chunk_of_messages(gpu);
    }
    for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      const auto named = static_cast<CollectiveKind>(kind);
      rates.collective[index][kind] = ladder_of(tables, wanted, named, CollectiveForm::kUsual);
      rates.strided[index][kind] = ladder_of(tables, wanted, named, CollectiveForm::kStrided);
      rates.int8_sums[index][kind] = ladder_of(tables, wanted, named, CollectiveForm::kInt8Sums);
    }
    // Between nodes only all-reduce was measured. A ring all-reduce is a reduce-scatter and an all-gather: half its fixed cost
    // each.
    for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
      RankLadder& ladder = rates.collective[index][static_cast<std::size_t>(kind)];
      if (ladder.count > 0) continue;
      ladder = rates.collective[index][static_cast<std::size_t>(CollectiveKind::kAllReduce)];
      ladder.evidence = Evidence::kAssumed;
      for (CollectiveCurve& curve : ladder.curves) {
        for (CollectivePiece& piece : curve.pieces) piece.alpha *= 0.5;
      }
    }
  }
}

void choose_training(GpuRates& rates, const RateTables& tables) {
  for (std::size_t math = 0; math < kMathKinds; ++math) {
    for (std::size_t library = 0; library < kLibraries; ++library) {
      int best = -1;
      for (const TrainingRow& row : tables.training) {
        if (!row.generation.empty() && generation_rank(row.generation) != generation_rank(rates.generation)) continue;
        if (row.math && static_cast<std::size_t>(*row.math) != math) continue;
        if (row.library && static_cast<std::size_t>(*row.library) != library) continue;
        const int keys = (row.generation.empty() ? 0 : 1) + (row.math ? 1 : 0) + (row.library ? 1 : 0);
        if (keys <= best) continue;
        best = keys;
        rates.training[training_index(static_cast<MathKind>(math), static_cast<AttentionLibrary>(library))] = {
            row.gemm_factor, row.attention_factor, row.gemm_warm, row.attention_warm};
      }
    }
  }
}

/// A message to one peer takes NCCL's channels to that peer, each of which keeps an SM to itself (nccl#689): channels per link
/// times the links, rounded up to a power of two, at most 32 (NCCL src/graph/paths.cc ncclTopoComputeP2pChannels). As its logs
/// print them: 16 on V100 with 6 links and on H800 with 8 (nccl#892), 32 on A100 with 12 and on H100 with 18.
std::optional<double> slowdown_by_channels(const OverlapRow& row, const Gpu& gpu) {
  constexpr std::uint32_t kMaxChannels = 32;
  if (row.peer_channels_per_link <= 0 || gpu.scale_up_links <= 0) return std::nullopt;
  const auto wanted = static_cast<std::uint32_t>(std::min(row.peer_channels_per_link * gpu.scale_up_links, 1.0 * kMaxChannels));
  const double share = static_cast<double>(std::bit_ceil(wanted)) / gpu.sm_count;
  if (!(share < 0.5)) return std::nullopt;  // a part so small that NCCL would take fewer
  return 1.0 / (1.0 - share);
}

void choose_overheads(GpuRates& rates, const RateTables& tables, const Gpu& gpu) {
  int best = -1;
  for (const LaunchRow& row : tables.launch) {
    if (!row.generation.empty() && generation_rank(row.generation) != generation_rank(rates.generation)) continue;
    const int keys = row.generation.empty() ? 0 : 1;
    if (keys <= best) continue;
    best = keys;
    rates.launch_eager = row.eager;
    rates.launch_graph = row.graph;
  }
  static constexpr std::string_view kFamilies[kLinkClasses] = {"nvlink", "xgmi", "pcie", "socket", "nic", "nic", "local"};
  for (std::size_t index = 0; index < kLinkClasses; ++index) {
    const bool own_name = index == static_cast<std::size_t>(LinkClass::kNvlink) && gpu.generation == "host";
    const std::string_view family = own_name ? std::string_view(gpu.scale_up_link) : kFamilies[index];
    rates.overlap[index] = rates.message_overlap[index] = 1.0;
    best = -1;
    for (const OverlapRow& row : tables.overlap) {
      if (row.link != family) continue;
      if (!row.generation.empty() && generation_rank(row.generation) != generation_rank(rates.generation)) continue;
      const int keys = row.generation.empty() ? 0 : 1;
      if (keys <= best) continue;
      best = keys;
      rates.overlap[index] = row.slowdown;
      rates.message_overlap[index] = slowdown_by_channels(row, gpu).value_or(row.slowdown);
    }
  }
}

}  // namespace

int generation_rank(std::string_view generation) {
  std::string plain;
  for (const char c : generation) {
    if (c != '_' && c != '-' && c != ' ') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  // Blackwell Ultra shares Blackwell's kernels and collectives: the same rank, so that one stands in for the other.
  static constexpr std::pair<std::string_view, int> kRanks[] = {
      {"volta", 0},          {"ampere", 2}, {"ada", 3},   {"hopper", 4}, {"blackwell", 6},
      {"blackwellultra", 6}, {"cdna2", 2},  {"cdna3", 4}, {"host", -100}};  // a processor and a GPU never stand in for each other
  for (const auto& [name, rank] : kRanks) {
    if (plain == name) return rank;
  }
  return 4;  // unknown: as Hopper, the middle of what was measured
}

std::vector<std::string> links_of(const Gpu& gpu) {
  std::vector<std::string> names;
  const bool xgmi = gpu.scale_up_link.starts_with("xgmi");
  for (std::size_t index = 0; index < kLinkClasses; ++index) {
    const auto link = static_cast<LinkClass>(index);
    if (link == LinkClass::kNvlink && (xgmi || gpu.scale_up_link.empty())) continue;
    if (link == LinkClass::kXgmi && !xgmi) continue;
    std::string name = link_name(gpu, link);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

GpuRates assemble_gpu_rates(const RateTables& tables, const Gpu& gpu) {
  GpuRates rates;
  rates.gpu = gpu.name;
  rates.generation = gpu.generation;
  rates.peaks.sm_count = gpu.sm_count > 0 ? gpu.sm_count : 132;
  rates.peaks.hbm = gpu.hbm.value();
  rates.peaks.math = {gpu.bf16.value() > 0 ? gpu.bf16.value() : gpu.fp16.value(),
                      gpu.fp8.value(),
                      gpu.fp8.value(),
                      gpu.fp8.value(),
                      gpu.fp4.value(),
                      gpu.fp32.value()};
  for (std::size_t math = 0; math < kMathKinds; ++math) {
    choose_gemm(rates, tables, static_cast<MathKind>(math));
    for (std::size_t library = 0; library < kLibraries; ++library) {
      for (std::size_t pass = 0; pass < kPasses; ++pass) {
        choose_attention(rates, tables, static_cast<MathKind>(math), static_cast<AttentionLibrary>(library),
                         static_cast<AttentionPass>(pass));
      }
    }
  }
  choose_memory(rates, tables);
  for (std::size_t kernels = 0; kernels < kNormKernels; ++kernels) {
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward})
      choose_norm(rates, tables, static_cast<NormKernels>(kernels), pass);
  }
  choose_links(rates, tables, gpu);
  choose_training(rates, tables);
  choose_overheads(rates, tables, gpu);
  return rates;
}

}  // namespace cpfit
