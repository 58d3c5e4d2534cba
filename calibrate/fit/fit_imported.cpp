#include "calibrate/fit/fit_imported.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calibrate/fit/write_rates.h"

namespace cpfit {

namespace {

constexpr const char* kHost = "host";

bool is_host(const std::string& device) { return device.starts_with("host "); }

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Median and scatter of few direct figures, in the place of a curve's hold-out errors.
FitQuality quality_of(const std::vector<double>& values, std::string source) {
  FitQuality quality;
  quality.rows = static_cast<std::int64_t>(values.size());
  const double median = median_of(values);
  std::vector<double> errors;
  for (const double value : values) errors.push_back(std::abs(value / median - 1));
  quality.median_error = median_of(errors);
  quality.p90_error = errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
  quality.evidence = Evidence::kMeasured;
  quality.source = std::move(source);
  return quality;
}

double flops_of(const KernelMeasurement& row) {
  if (const auto* gemm = std::get_if<GemmMeasurement>(&row.what)) {
    return 2.0 * static_cast<double>(gemm->shape.m) * static_cast<double>(gemm->shape.n) * static_cast<double>(gemm->shape.k);
  }
  if (const auto* a = std::get_if<AttentionMeasurement>(&row.what)) {
    const AttentionShape& s = a->shape;
    const double d = static_cast<double>(s.head_dim), v = s.head_dim_v > 0 ? static_cast<double>(s.head_dim_v) : d;
    const double per_pair = a->pass == MeasuredPass::kBackward ? flops_per_pair(AttentionPass::kBackward, d, v)
                                                               : flops_per_pair(AttentionPass::kForward, d, v);
    return per_pair * s.pairs * static_cast<double>(s.batch * s.heads);
  }
  return 0;
}

std::optional<MathKind> math_of(const KernelMeasurement& row) {
  if (const auto* gemm = std::get_if<GemmMeasurement>(&row.what)) return gemm->math;
  if (const auto* a = std::get_if<AttentionMeasurement>(&row.what)) return a->shape.math;
  return std::nullopt;
}

/// Everything measured on one device, over all files.
struct DeviceRows {
  std::vector<const KernelMeasurement*> rows;
  std::string link;
};

std::map<std::string, DeviceRows> by_device(const std::vector<ImportedFile>& files) {
  std::map<std::string, DeviceRows> devices;
  for (const ImportedFile& file : files) {
    for (const KernelMeasurement& row : file.table.rows) devices[row.gpu].rows.push_back(&row);
    if (!file.table.rows.empty() && devices[file.table.rows.front().gpu].link.empty())
      devices[file.table.rows.front().gpu].link = file.machine.link;
  }
  return devices;
}

/// On a host the shares of a link are of the best rate measured over that link, as those of its kernels are of the best kernel.
double best_link_rate(const std::vector<ImportedFile>& files, const std::string& link) {
  double best = 0;
  for (const ImportedFile& file : files) {
    for (const KernelMeasurement& row : file.table.rows) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      if (c == nullptr || c->link != link) continue;
      best = std::max(best, c->bytes.value() * bus_factor(c->kind, static_cast<double>(c->ranks)) / row.time.value());
    }
  }
  return best;
}

/// Collectives of a host: one curve per link, kind and number of ranks, raw rates of their own. Messages that pass both ways at
/// once, as a ring's do, where they were measured; else one way.
void fit_host_links(const std::vector<ImportedFile>& files, ImportedFit& fit) {
  using Key = std::tuple<std::string, CollectiveKind, CollectiveForm, std::int64_t>;
  std::map<Key, std::array<std::vector<CollectivePoint>, 2>> groups;  // [both ways]
  std::map<std::string, double> raw;
  std::map<std::string, std::string> sources;
  for (const ImportedFile& file : files) {
    for (const KernelMeasurement& row : file.table.rows) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      if (c == nullptr || !is_host(row.gpu)) continue;
      if (!raw.contains(c->link)) raw[c->link] = best_link_rate(files, c->link);
      groups[{c->link, c->kind, c->form(), c->ranks}][c->both_ways ? 1 : 0].push_back(
          {c->bytes.value(), row.time.value(), raw[c->link], row.spread});
      sources[c->link] = file.table.source;
    }
  }
  constexpr std::size_t kFewestSizes = 2;
  for (const auto& [key, directions] : groups) {
    const auto& [link, kind, form, ranks] = key;
    const bool both = directions[1].size() >= kFewestSizes;
    const std::vector<CollectivePoint>& points = both ? directions[1] : directions[0];
    std::set<double> sizes;
    for (const CollectivePoint& point : points) sizes.insert(point.bytes);
    if (sizes.size() < kFewestSizes) {
      fit.left_out.push_back(fmt::format("{} over {} on {} ranks: {} sizes", name_of(kind), link, ranks, sizes.size()));
      continue;
    }
    CollectiveRow row{link, kind, fit_collective(points, kind, ranks), raw[link], form};
    row.curve.quality.source = sources[link] + (kind != CollectiveKind::kSendRecv ? ""
                                                : both                            ? ", both ways at once"
                                                                                  : ", one way");
    fit.tables.collective.push_back(std::move(row));
  }
}

/// One size per link (nvbandwidth): a large-message share, alpha from the defaults' kind of link.
void fit_link_shares(const std::vector<ImportedFile>& files, std::span<const Gpu> gpus, ImportedFit& fit) {
  std::map<std::string, std::vector<double>> shares;
  std::map<std::string, std::string> sources;
  for (const ImportedFile& file : files) {
    for (const KernelMeasurement& row : file.table.rows) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& known) { return known.name == row.gpu; });
      if (c == nullptr || c->kind != CollectiveKind::kSendRecv || gpu == gpus.end() || is_host(row.gpu)) continue;
      if (c->link != "pcie" || gpu->pcie.value() <= 0) continue;
      const double gb = gpu->pcie.value() / 1e9;
      const std::string name = gb < 20 ? "pcie3" : gb < 40 ? "pcie4" : gb < 80 ? "pcie5" : "pcie6";
      shares[name].push_back(c->bytes.value() / row.time.value() / gpu->pcie.value());
      sources[name] = file.table.source;
    }
  }
  for (const auto& [name, values] : shares) {
    LinkRow row;
    row.link = name;
    row.curve.alpha = 14e-6;  // software and protocol of a PCIe step, as the default pcie rows; one size cannot tell it
    row.curve.share = median_of(values);
    row.curve.quality = quality_of(values, sources[name] + ", large messages; alpha as the defaults");
    fit.tables.link.push_back(row);
  }
}

void fit_launches(const std::vector<ImportedFile>& files, std::span<const Gpu> gpus, ImportedFit& fit) {
  std::map<std::string, std::array<std::vector<double>, 2>> launches;  // generation -> [graph]
  std::map<std::string, std::string> sources;
  for (const ImportedFile& file : files) {
    if (file.launches.empty() || !file.measurement) continue;
    const std::string device = measured_device(*file.measurement);
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& known) { return known.name == device; });
    const std::string generation = gpu == gpus.end() ? std::string(kHost) : gpu->generation;
    for (const LaunchMeasurement& launch : file.launches)
      launches[generation][launch.graph ? 1 : 0].push_back(launch.time.value());
    sources[generation] = file.table.source;
  }
  for (const auto& [generation, times] : launches) {
    if (times[0].empty()) {
      fit.left_out.push_back("kernel launch: only graphs were measured");
      continue;
    }
    LaunchRow row;
    row.generation = generation;
    row.eager = median_of(times[0]);
    row.graph = times[1].empty() ? row.eager : median_of(times[1]);
    row.quality = quality_of(times[0], sources[generation] + (times[1].empty() ? ", no graph measured: as eager" : ""));
    fit.tables.launch.push_back(std::move(row));
  }
}

/// Both figures of one point, from times alone and beside. While the message passes, the kernel runs at 1/s of its speed: of the
/// time together it loses (1 - 1/s), so s = together / (together - lost). A message that outlasts the kernel moved only the part
/// f of itself beside it, at 1/m of its speed: kernel = f m alone.
struct Slowdowns {
  double kernel = 1, message = 1;
};
Slowdowns slowdowns_of(const OverlapMeasurement& overlap) {
  const double alone = overlap.compute_alone.value(), beside = alone * overlap.compute_slowdown;
  const double message = overlap.message_alone.value(), passed = message * overlap.message_slowdown;
  const double together = std::min(beside, passed);
  const double lost = std::clamp(beside - alone, 0.0, 0.9 * together);
  const double part = passed <= beside ? 1.0 : std::clamp(1 - (passed - beside) / message, 0.02, 1.0);
  return {together / (together - lost), std::max(0.5, together / (part * message))};
}

void fit_overlaps(const std::vector<ImportedFile>& files, std::span<const Gpu> gpus, ImportedFit& fit) {
  // A message far shorter or longer than the kernel beside it tells little of one of the two.
  constexpr double kShortest = 0.1, kLongest = 10;
  struct Figures {
    std::vector<double> kernel, message;
    std::string source;
  };
  std::map<std::pair<std::string, std::string>, Figures> found;  // link, generation
  for (const ImportedFile& file : files) {
    if (!file.measurement) continue;
    const std::string device = measured_device(*file.measurement);
    const auto gpu = std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& known) { return known.name == device; });
    for (const OverlapMeasurement& overlap : file.overlaps) {
      const double ratio = overlap.message_alone.value() / overlap.compute_alone.value();
      if (ratio < kShortest || ratio > kLongest) continue;
      std::string family = overlap.link;
      if (!is_host(device)) family = family.starts_with("nvlink") ? "nvlink" : family.starts_with("pcie") ? "pcie" : family;
      const Slowdowns slowdowns = slowdowns_of(overlap);
      Figures& figures = found[{family, gpu == gpus.end() ? std::string(kHost) : gpu->generation}];
      figures.kernel.push_back(slowdowns.kernel);
      figures.message.push_back(slowdowns.message);
      figures.source = file.table.source;
    }
  }
  for (const auto& [key, figures] : found) {
    OverlapRow row{key.first, key.second, median_of(figures.kernel), quality_of(figures.kernel, figures.source)};
    row.message_slowdown = median_of(figures.message);
    fit.tables.overlap.push_back(std::move(row));
  }
}

/// What a prediction of ring attention may ask of a device, against what was measured.
void note_gaps(const std::map<std::string, DeviceRows>& devices, ImportedFit& fit) {
  const auto gap = [&](std::string surface, std::string reason) { fit.gaps.push_back({std::move(surface), std::move(reason)}); };
  for (const auto& [device, measured] : devices) {
    bool gemm = false, memory = false, forward = false, backward = false, causal = false, full = false, rectangle = false,
         grouped = false;
    std::set<std::int64_t> dims, ranks;
    std::set<CollectiveKind> kinds;
    for (const KernelMeasurement* row : measured.rows) {
      gemm = gemm || std::holds_alternative<GemmMeasurement>(row->what);
      memory = memory || std::holds_alternative<StreamMeasurement>(row->what);
      if (const auto* c = std::get_if<CollectiveMeasurement>(&row->what)) {
        kinds.insert(c->kind);
        if (c->kind != CollectiveKind::kSendRecv) ranks.insert(c->ranks);
      }
      const auto* a = std::get_if<AttentionMeasurement>(&row->what);
      if (a == nullptr) continue;
      forward = forward || a->pass != MeasuredPass::kBackward;
      backward = backward || a->pass != MeasuredPass::kForward;
      (a->shape.causal ? causal : full) = true;
      rectangle = rectangle || a->shape.q_len != a->shape.kv_len;
      grouped = grouped || a->shape.kv_heads != a->shape.heads;
      dims.insert(a->shape.head_dim);
    }
    const std::string on = device + ": ";
    if (!gemm) gap(on + "gemm", "no point");
    if (!memory) gap(on + "memory", "no point");
    if (!forward) gap(on + "attention forward", "no point");
    if (!backward) gap(on + "attention backward", "no point");
    if (forward || backward) {
      if (!causal) gap(on + "attention causal", "full masks only: the diagonal's cost is the form's prior");
      if (!full) gap(on + "attention full", "causal masks only: ring steps off the diagonal are full rectangles");
      if (!rectangle) gap(on + "attention rectangles", "squares only: zigzag rings attend halves of q or kv");
      if (!grouped) gap(on + "attention grouped heads", "kv heads = heads only");
      if (dims.size() == 1) gap(on + "attention head dimensions", fmt::format("{} only", *dims.begin()));
    }
    if (!kinds.contains(CollectiveKind::kSendRecv)) gap(on + "messages", "no point");
    for (const CollectiveKind kind :
         {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce, CollectiveKind::kAllToAll}) {
      if (!kinds.contains(kind)) gap(on + std::string(name_of(kind)), "no point");
    }
    if (!ranks.empty()) {
      std::string sizes;
      for (const std::int64_t n : ranks) sizes += (sizes.empty() ? "" : ", ") + std::to_string(n);
      gap(on + "collectives on other group sizes", "measured on " + sizes + " ranks");
    }
  }
  if (fit.tables.launch.empty()) gap("kernel launch", "no point");
  if (fit.tables.overlap.empty()) gap("slowdown beside messages", "no point");
}

}  // namespace

Gpu device_measured(const std::string& name, const std::string& generation, const std::vector<const KernelMeasurement*>& rows,
                    const std::string& link) {
  Gpu gpu;
  gpu.name = name;
  gpu.vendor = generation == kHost ? "host" : "";
  gpu.generation = generation;
  gpu.sm_count = 1;  // work is not cut over units that a wave would fill: ranks compute on one core
  gpu.scale_up_link = link;
  gpu.source = "best rates measured";
  for (const KernelMeasurement* row : rows) {
    const double rate = flops_of(*row) / row->time.value();
    if (const auto math = math_of(*row)) {
      FlopsPerSecond& peak = *math == MathKind::kFp32 ? gpu.fp32 : *math == MathKind::kBf16 ? gpu.bf16 : gpu.fp8;
      peak = std::max(peak, FlopsPerSecond(rate));
    }
    if (const auto* stream = std::get_if<StreamMeasurement>(&row->what))
      gpu.hbm = std::max(gpu.hbm, BytesPerSecond(stream->traffic.value() / row->time.value()));
    if (const auto* c = std::get_if<CollectiveMeasurement>(&row->what); c != nullptr && c->link == link) {
      const double bus = c->bytes.value() * bus_factor(c->kind, static_cast<double>(c->ranks)) / row->time.value();
      gpu.scale_up = std::max(gpu.scale_up, BytesPerSecond(bus));
    }
  }
  if (gpu.bf16.value() <= 0) gpu.bf16 = gpu.fp32;  // without 16-bit arithmetic 16-bit work runs in fp32
  return gpu;
}

ImportedFit fit_imported(const std::vector<ImportedFile>& files, std::span<const Gpu> gpus) {
  ImportedFit fit;
  const std::map<std::string, DeviceRows> devices = by_device(files);
  std::vector<Gpu> known(gpus.begin(), gpus.end());
  std::set<std::string> described;
  for (const auto& [name, measured] : devices) {
    const auto is = [&](const Gpu& gpu) { return gpu.name == name; };
    if (std::any_of(gpus.begin(), gpus.end(), is)) continue;
    known.push_back(device_measured(name, is_host(name) ? kHost : "unknown", measured.rows, measured.link));
    described.insert(name);
  }
  std::vector<KernelTable> tables;
  for (const ImportedFile& file : files) {
    KernelTable table = file.table;
    std::erase_if(table.rows, [](const KernelMeasurement& row) {
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      return c != nullptr && (is_host(row.gpu) || c->link == "pcie");
    });
    tables.push_back(std::move(table));
  }
  FitReport report = fit_rates(tables, known);
  fit.tables = std::move(report.tables);
  fit.left_out = std::move(report.left_out);
  fit_host_links(files, fit);
  fit_link_shares(files, known, fit);
  fit_launches(files, known, fit);
  fit_overlaps(files, known, fit);
  note_gaps(devices, fit);
  return fit;
}

Calibration calibration_of(const ImportedFit& fit, const std::vector<ImportedFile>& files, std::string name,
                           const std::string& tool_version, std::int64_t unix_seconds) {
  Calibration calibration;
  calibration.tool_version = tool_version;
  calibration.created_unix_seconds = unix_seconds;
  std::set<std::string> groups, devices;
  for (const ImportedFile& file : files) {
    calibration.sources.push_back(
        {file.path, file.sha256, file.format, file.points(), static_cast<std::int64_t>(file.table.unused.size())});
    // The first file that knows something says it; the command warns where a later one disagrees.
    const MeasuredMachine& machine = file.machine;
    MeasuredMachine& all = calibration.machine;
    for (const auto field : {&MeasuredMachine::cpu, &MeasuredMachine::gpu, &MeasuredMachine::driver, &MeasuredMachine::cuda,
                             &MeasuredMachine::nccl, &MeasuredMachine::cudnn, &MeasuredMachine::mpi, &MeasuredMachine::blas}) {
      if ((all.*field).empty()) all.*field = machine.*field;
    }
    for (const auto field : {&MeasuredMachine::throttled, &MeasuredMachine::link}) {
      if (!(machine.*field).empty() && (all.*field).find(machine.*field) == std::string::npos)
        all.*field += ((all.*field).empty() ? "" : ", ") + machine.*field;
    }
    for (const std::string& host : machine.hosts) {
      if (std::find(all.hosts.begin(), all.hosts.end(), host) == all.hosts.end()) all.hosts.push_back(host);
    }
    all.cores = std::max(all.cores, machine.cores);
    all.memory_bytes = std::max(all.memory_bytes, machine.memory_bytes);
    all.gpus_per_host = std::max(all.gpus_per_host, machine.gpus_per_host);
    all.gpu_memory_bytes = std::max(all.gpu_memory_bytes, machine.gpu_memory_bytes);
    if (!all.clocks_mhz) all.clocks_mhz = machine.clocks_mhz;
    if (!all.power_limit_watts) all.power_limit_watts = machine.power_limit_watts;
    for (const KernelMeasurement& row : file.table.rows) {
      devices.insert(row.gpu);
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      if (c == nullptr) continue;
      groups.insert(fmt::format("{} ranks on {} {}{}{}", c->ranks, c->nodes, c->nodes == 1 ? "node" : "nodes",
                                c->link.empty() ? "" : " over " + c->link, c->strided ? ", strided" : ""));
    }
  }
  calibration.groups.assign(groups.begin(), groups.end());
  calibration.gaps = fit.gaps;
  calibration.rates_toml = rates_toml(fit.tables, "");
  if (name.empty()) name = devices.empty() ? "calibration" : *devices.begin();
  calibration.name = std::move(name);
  calibration.id = calibration_id(calibration);
  return calibration;
}

}  // namespace cpfit
