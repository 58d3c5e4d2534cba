// Points of cpfit-bench as measurements of kernels and links.
#include <algorithm>
#include <cmath>

#include "calibrate/read/imported.h"
#include "calibrate/read/kernel_table_formats.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

namespace {

std::optional<MathKind> math_printed(const std::string& dtype) {
  if (dtype == "bf16" || dtype == "fp16") return MathKind::kBf16;
  if (dtype == "fp32") return MathKind::kFp32;
  if (dtype == "fp8") return MathKind::kFp8Tensor;
  return math_named(dtype);
}

std::optional<AttentionLibrary> library_printed(const std::string& kernel) {
  if (kernel == "own" || kernel == "blas") return AttentionLibrary::kOwn;
  return library_named(kernel);
}

/// What a point's median is worth: the half width of its interval and the scatter of its samples, relative.
double relative_spread(const MeasuredResult& result) {
  if (result.median <= 0) return 0;
  const double scatter = result.spread / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, result.samples)));
  return std::max((result.high - result.low) / (2 * 1.96), scatter) / result.median;
}

class Reader {
 public:
  explicit Reader(ImportedFile& file) : file_(file), device_(measured_device(*file.measurement)) {}

  void point(const MeasuredPoint& point, std::int64_t ordinal) {
    ordinal_ = ordinal;
    if (point.outcome != MeasuredOutcome::kMeasured) {
      return leave(point.probe + " " + std::string(name_of(point.outcome)) + (point.reason.empty() ? "" : ": " + point.reason));
    }
    if (point.probe == "attention") return attention(point);
    if (point.probe == "gemm") return gemm(point);
    if (point.probe == "memory") return memory(point);
    if (point.probe == "launch") return launch(point);
    if (point.probe == "p2p") return message(point);
    if (point.probe == "collective") return collective(point);
    if (point.probe == "overlap") return overlap(point);
    if (point.probe == "ring_step") return leave("ring_step: kept for validation, never fitted");
    leave(point.probe + ": no rate surface");
  }

 private:
  void leave(std::string reason) { file_.table.unused.push_back({ordinal_, std::move(reason)}); }

  template <class What>
  void add(const MeasuredPoint& point, What what) {
    const MeasuredResult* seconds = point.result("seconds");
    if (seconds == nullptr || !(seconds->median > 0)) return leave(point.probe + ": no time above 0");
    file_.table.rows.push_back({ordinal_, device_, std::move(what), Seconds(seconds->median), relative_spread(*seconds)});
  }

  void attention(const MeasuredPoint& point) {
    const auto q = point.integer("q"), kv = point.integer("kv"), heads = point.integer("heads"), d = point.integer("head_dim");
    const auto math = math_printed(point.text("dtype"));
    const auto library = library_printed(point.text("kernel"));
    if (!q || !kv || !heads || !d) return leave("attention: an axis is missing");
    if (!math) return leave("attention: dtype " + point.text("dtype") + " has no rate surface");
    if (!library) return leave("attention: kernel " + point.text("kernel") + " has no rate surface");
    AttentionShape shape;
    shape.q_len = *q;
    shape.kv_len = *kv;
    shape.heads = *heads;
    shape.kv_heads = point.integer("kv_heads").value_or(*heads);
    shape.head_dim = *d;
    shape.head_dim_v = point.integer("head_dim_v").value_or(*d);
    shape.math = *math;
    shape.causal = point.text("mask") == "causal";
    const double rows = static_cast<double>(*q), columns = static_cast<double>(*kv);
    // A causal rectangle is aligned at its end: query i sees kv - q + i + 1 keys.
    shape.pairs = !shape.causal ? rows * columns
                  : *kv >= *q   ? rows * (columns - rows) + rows * (rows + 1) / 2
                                : columns * (columns + 1) / 2;
    add(point, AttentionMeasurement{shape, *library,
                                    point.text("pass") == "backward" ? MeasuredPass::kBackward : MeasuredPass::kForward});
  }

  void gemm(const MeasuredPoint& point) {
    const auto m = point.integer("m"), n = point.integer("n"), k = point.integer("k");
    const auto math = math_printed(point.text("dtype"));
    if (!m || !n || !k) return leave("gemm: an axis is missing");
    if (!math) return leave("gemm: dtype " + point.text("dtype") + " has no rate surface");
    add(point, GemmMeasurement{{*m, *n, *k}, *math});
  }

  void memory(const MeasuredPoint& point) {
    const auto bytes = point.integer("bytes");
    if (!bytes || *bytes <= 0) return leave("memory: bytes is missing");
    // `bytes` are those of the result: a copy or gather reads as much, a sum or merge reads itself and the part.
    const std::string operation = point.text("operation");
    const double passes = operation == "sum" || operation == "merge" ? 3.0 : 2.0;
    add(point, StreamMeasurement{operation, AttentionPass::kForward, Bytes(passes * static_cast<double>(*bytes)), 0});
  }

  void launch(const MeasuredPoint& point) {
    const MeasuredResult* seconds = point.result("seconds");
    const std::string mode = point.text("mode");
    if (seconds == nullptr || !(seconds->median > 0)) return leave("launch: no time above 0");
    if (mode != "eager" && mode != "graph") return leave("launch " + mode + ": no rate surface");
    file_.launches.push_back({mode == "graph", Seconds(seconds->median)});
  }

  /// The link of the point, or of the file.
  [[nodiscard]] std::string link_of(const MeasuredPoint& point) const {
    const std::string link = point.text("link");
    return link.empty() ? file_.machine.link : link;
  }

  void message(const MeasuredPoint& point) {
    const auto bytes = point.integer("bytes");
    if (!bytes || *bytes <= 0) return leave("p2p: bytes is missing");
    CollectiveMeasurement what{CollectiveKind::kSendRecv, 2, 1, Bytes(static_cast<double>(*bytes)),
                               file_.machine.nccl.empty() ? file_.machine.mpi : file_.machine.nccl};
    what.link = link_of(point);
    what.both_ways = point.text("direction") != "one";
    add(point, std::move(what));
  }

  void collective(const MeasuredPoint& point) {
    const auto bytes = point.integer("bytes"), ranks = point.integer("ranks");
    const auto kind = kernel_table::collective_printed(point.text("kind"));
    if (!bytes || *bytes <= 0 || !ranks || *ranks < 2) return leave("collective: an axis is missing");
    if (!kind) return leave("collective " + point.text("kind") + ": no rate surface");
    const std::int64_t per_host = std::max<std::int64_t>(1, file_.measurement->ranks_per_host);
    CollectiveMeasurement what{*kind, *ranks, (*ranks + per_host - 1) / per_host, Bytes(static_cast<double>(*bytes)),
                               file_.machine.nccl};
    what.link = link_of(point);
    what.strided = point.text("stride") == "strided";
    if (what.strided) {
      // Groups {r, r + total/ranks, ...}: one member on every host, or several where there are more ranks than hosts.
      const std::int64_t hosts = std::max<std::int64_t>(1, file_.measurement->ranks / per_host);
      what.nodes = std::max(what.nodes, std::min(*ranks, hosts));
      const std::int64_t members = std::max<std::int64_t>(1, *ranks / hosts);
      what.node_share = std::min(1.0, static_cast<double>(members) / static_cast<double>(per_host));
    }
    add(point, std::move(what));
  }

  void overlap(const MeasuredPoint& point) {
    const MeasuredResult* alone = point.result("compute_alone_seconds");
    const MeasuredResult* beside = point.result("compute_beside_seconds");
    const MeasuredResult* message = point.result("message_alone_seconds");
    const MeasuredResult* pressed = point.result("message_beside_seconds");
    if (alone == nullptr || beside == nullptr || message == nullptr || pressed == nullptr || !(alone->median > 0) ||
        !(message->median > 0))
      return leave("overlap: one of its four times is missing");
    file_.overlaps.push_back({link_of(point), beside->median / alone->median, pressed->median / message->median,
                              Seconds(alone->median), Seconds(message->median)});
  }

  ImportedFile& file_;
  std::string device_;
  std::int64_t ordinal_ = 0;
};

}  // namespace

std::string measured_device(const MeasurementFile& file) {
  if (file.backend == "host") return "host " + (file.machine.cpu.empty() ? std::string("processor") : file.machine.cpu);
  const std::string preset = gpu_preset_of(file.machine.gpu);
  return preset.empty() ? file.machine.gpu : preset;
}

ImportedFile read_measured_points(MeasurementFile measurement, const std::string& path) {
  ImportedFile file;
  file.path = file.table.path = path;
  file.table.own_run = true;
  file.format = "cpfit-bench measurement, backend " + measurement.backend;
  file.machine = measurement.machine;
  file.measurement = std::move(measurement);
  const MeasuredMachine& machine = file.machine;
  // Files of one machine under one software belong together: the same source, so that their points make one curve.
  file.table.source = "cpfit-bench, " + measured_device(*file.measurement);
  for (const auto& [name, version] :
       {std::pair("driver", &machine.driver), std::pair("cuDNN", &machine.cudnn), std::pair("BLAS", &machine.blas)}) {
    if (!version->empty()) file.table.source += std::string(", ") + name + " " + *version;
  }
  if (!machine.throttled.empty()) file.remarks.push_back("throttled while it was measured: " + machine.throttled);
  if (file.measurement->smoke) file.remarks.push_back("a smoke run: tiny sizes and few samples say little");
  Reader reader(file);
  std::int64_t ordinal = 0;
  for (const MeasuredPoint& point : file.measurement->points) reader.point(point, ++ordinal);
  return file;
}

}  // namespace cpfit
