#include "calibrate/read/trace_points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "calibrate/read/job_steps.h"
#include "calibrate/read/text_lines.h"

namespace cpfit {

namespace {

using Sizes = std::vector<std::vector<std::int64_t>>;

/// "[[4096,8192],[8192,1024]]". Empty when it is anything else; sizes beyond 2^40 are none.
Sizes sizes_in(std::string_view text) {
  Sizes sizes;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '[') {
      if (++depth == 2) sizes.emplace_back();
    } else if (c == ']') {
      --depth;
    } else if (c >= '0' && c <= '9') {
      const std::size_t end = std::min(text.find_first_not_of("0123456789", i), text.size());
      const auto number = number_of<std::int64_t>(text.substr(i, end - i));
      if (!number || *number > (std::int64_t{1} << 40U) || depth != 2) return {};
      sizes.back().push_back(*number);
      i = end - 1;
    } else if (c != ',' && c != ' ') {
      return {};
    }
  }
  return depth == 0 ? sizes : Sizes{};
}

/// The elements of a list of quoted texts.
std::vector<std::string> texts_in(std::string_view list) {
  std::vector<std::string> texts;
  for (std::size_t at = list.find('"'); at != std::string_view::npos;) {
    const std::size_t end = list.find('"', at + 1);
    if (end == std::string_view::npos) break;
    texts.emplace_back(list.substr(at + 1, end - at - 1));
    at = list.find('"', end + 1);
  }
  return texts;
}

std::string dtype_of(const std::vector<std::string>& types, std::size_t index) {
  if (index >= types.size()) return {};
  if (types[index] == "c10::BFloat16") return "bf16";
  return types[index] == "c10::Half" ? "fp16" : "";
}

bool positive(const std::vector<std::int64_t>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size > 0; });
}

/// The point of an operator without its time; nothing when it has no rate surface here.
std::optional<MeasuredPoint> product_point(const TracedOperator& op) {
  const Sizes dims = sizes_in(op.dims);
  const std::size_t first = op.name == "aten::addmm" ? 1 : 0;
  const std::string dtype = dtype_of(texts_in(op.types), first);
  if (dims.size() < first + 2 || dtype.empty()) return std::nullopt;
  const std::vector<std::int64_t>&a = dims[first], &b = dims[first + 1];
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0] || !positive(a) || !positive(b)) return std::nullopt;
  MeasuredPoint point;
  point.probe = "gemm";
  point.axes = {{"m", a[0]}, {"n", b[1]}, {"k", a[1]}, {"dtype", dtype}};
  return point;
}

struct AttentionRow {
  std::string_view name, kernel;
  bool backward;
  std::size_t query, causal;  // indices of the arguments
};
// Signatures: aten/src/ATen/native/native_functions.yaml of PyTorch.
constexpr AttentionRow kAttention[] = {{"aten::_scaled_dot_product_flash_attention", "flash2", false, 0, 4},
                                       {"aten::_scaled_dot_product_flash_attention_backward", "flash2", true, 1, 11},
                                       {"aten::_scaled_dot_product_cudnn_attention", "cudnn", false, 0, 6},
                                       {"aten::_scaled_dot_product_cudnn_attention_backward", "cudnn", true, 1, 14}};

std::optional<MeasuredPoint> attention_point(const TracedOperator& op) {
  const auto* row =
      std::find_if(std::begin(kAttention), std::end(kAttention), [&](const AttentionRow& r) { return r.name == op.name; });
  if (row == std::end(kAttention)) return std::nullopt;
  const Sizes dims = sizes_in(op.dims);
  const std::vector<std::string> concrete = texts_in(op.concrete);
  const std::string dtype = dtype_of(texts_in(op.types), row->query);
  if (dims.size() < row->query + 3 || concrete.size() <= row->causal || dtype.empty()) return std::nullopt;
  const std::vector<std::int64_t>&q = dims[row->query], &k = dims[row->query + 1], &v = dims[row->query + 2];
  const std::string& causal = concrete[row->causal];
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || !positive(q) || !positive(k) || !positive(v) || q[0] != k[0] ||
      k[2] != v[2] || q[3] != k[3] || (causal != "True" && causal != "False"))
    return std::nullopt;
  MeasuredPoint point;
  point.probe = "attention";
  point.axes = {{"q", q[2]},
                {"kv", k[2]},
                {"heads", q[0] * q[1]},
                {"kv_heads", k[0] * k[1]},
                {"head_dim", q[3]},
                {"head_dim_v", v[3]},
                {"mask", std::string(causal == "True" ? "causal" : "full")},
                {"pass", std::string(row->backward ? "backward" : "forward")},
                {"dtype", dtype},
                {"kernel", std::string(row->kernel)}};
  return point;
}

MeasuredResult seconds_of(std::vector<double> all) {
  MeasuredResult result;
  result.name = "seconds";
  std::vector<double> kept;
  for (const std::size_t i : without_outliers(all)) kept.push_back(all[i]);
  const MeasuredFigure figure = figure_of(RunFigure::kStepSeconds, kept, "");
  result.median = figure.median;
  result.low = figure.low;
  result.high = figure.high;
  result.samples = figure.samples;
  result.outliers = static_cast<std::int64_t>(all.size() - kept.size());
  std::vector<double> deviations;
  for (const double value : kept) deviations.push_back(std::abs(value - figure.median));
  result.spread = 1.4826 * figure_of(RunFigure::kStepSeconds, deviations, "").median;
  return result;
}

/// Kernels during which no other kernel of their device ran.
std::vector<bool> alone(const std::vector<TracedKernel>& kernels) {
  std::vector<std::size_t> order(kernels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return std::tuple(kernels[a].start, a) < std::tuple(kernels[b].start, b); });
  std::vector<bool> result(kernels.size(), true);
  std::int64_t busy_until = INT64_MIN;
  std::size_t longest = 0;  // that lasts until then
  for (const std::size_t i : order) {
    if (kernels[i].start < busy_until) result[i] = result[longest] = false;
    if (kernels[i].end > busy_until) {
      busy_until = kernels[i].end;
      longest = i;
    }
  }
  return result;
}

class Gatherer {
 public:
  void kernels(const KernelTrace& trace, const std::vector<TracedKernel>& kernels) {
    struct Call {
      double seconds = 0;
      bool alone = true;
    };
    const std::vector<bool> by_itself = alone(kernels);
    std::map<std::int64_t, Call> calls;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].work != DeviceWork::kCompute || !trace.operators.contains(kernels[i].external)) continue;
      Call& call = calls[kernels[i].external];
      call.seconds += static_cast<double>(kernels[i].end - kernels[i].start) * 1e-12;
      call.alone = call.alone && by_itself[i];
    }
    for (const auto& [external, call] : calls) {
      const TracedOperator& op = trace.operators.at(external);
      std::optional<MeasuredPoint> point = op.name.starts_with("aten::_scaled") ? attention_point(op) : product_point(op);
      if (!point) {
        ++left_[op.name + ": sizes, type or mask that no rate surface has"];
      } else if (!call.alone) {
        ++left_[op.name + ": beside another kernel"];
      } else if (call.seconds > 0) {
        auto& [known, seconds] = points_[point->probe + axes_text(point->axes)];
        known = std::move(*point);
        seconds.push_back(call.seconds);
      }
    }
  }

  void messages(const KernelTrace& trace, std::size_t index, const std::vector<TracedKernel>& kernels) {
    std::vector<const TracedKernel*> in_order;
    for (const TracedKernel& kernel : kernels) {
      if (kernel.work == DeviceWork::kCommunication && kernel.message >= 0 && kernel.end > kernel.start)
        in_order.push_back(&kernel);
    }
    std::sort(in_order.begin(), in_order.end(), [](const TracedKernel* a, const TracedKernel* b) { return a->start < b->start; });
    for (const TracedKernel* kernel : in_order) {
      const TracedMessage& message = trace.messages[static_cast<std::size_t>(kernel->message)];
      std::optional<MeasuredPoint> point = collective_point(message);
      if (!point) {
        ++left_[message.collective + ": no rate surface, or its sizes are not recorded"];
        continue;
      }
      if (trace.host_gpus < 1) {
        ++left_["collectives: the trace does not say how many GPUs a node has"];
        continue;
      }
      // Ranks of one group are in the same calls in the same order.
      collectives_[{axes_text(point->axes), message.group + message.members}].point = *point;
      collectives_[{axes_text(point->axes), message.group + message.members}].by_rank[index].push_back(
          static_cast<double>(kernel->end - kernel->start) * 1e-12);
    }
  }

  TracePoints finish() {
    TracePoints result;
    for (auto& [key, known] : points_) {
      known.first.results = {seconds_of(known.second)};
      result.file.points.push_back(std::move(known.first));
    }
    std::map<std::string, std::pair<MeasuredPoint, std::vector<double>>> merged;
    for (auto& [key, calls] : collectives_) add_collective(key.first, calls, merged);
    for (auto& [key, known] : merged) {
      known.first.results = {seconds_of(known.second)};
      result.file.points.push_back(std::move(known.first));
    }
    for (const auto& [what, count] : left_) result.left_out.push_back(fmt::format("{} x {}", count, what));
    return result;
  }

 private:
  struct Collective {
    MeasuredPoint point;
    std::map<std::size_t, std::vector<double>> by_rank;
  };

  static std::optional<MeasuredPoint> collective_point(const TracedMessage& message) {
    struct Row {
      std::string_view name, kind;
      bool output;
    };
    constexpr Row kRows[] = {{"allreduce", "all_reduce", false},          {"all_reduce", "all_reduce", false},
                             {"_allgather_base", "all_gather", true},     {"allgather", "all_gather", true},
                             {"all_gather", "all_gather", true},          {"_reduce_scatter_base", "reduce_scatter", false},
                             {"reduce_scatter", "reduce_scatter", false}, {"all_to_all", "all_to_all", false}};
    constexpr std::pair<std::string_view, std::int64_t> kWidths[] = {
        {"BFloat16", 2}, {"Half", 2}, {"Float", 4}, {"Byte", 1}, {"Char", 1}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
    const auto* row =
        std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.name == message.collective; });
    const auto* width =
        std::find_if(std::begin(kWidths), std::end(kWidths), [&](const auto& w) { return w.first == message.dtype; });
    if (row == std::end(kRows) || width == std::end(kWidths) || message.ranks < 2 || message.ranks > (1 << 24))
      return std::nullopt;
    const std::int64_t elements = row->output ? message.out_elements : message.in_elements;
    if (elements < 1 || elements > (std::int64_t{1} << 40U)) return std::nullopt;
    const Sizes members = sizes_in("[" + message.members + "]");
    bool strided = false;
    if (members.size() == 1) {
      for (std::size_t i = 1; i < members[0].size(); ++i) strided = strided || members[0][i] != members[0][i - 1] + 1;
    }
    MeasuredPoint point;
    point.probe = "collective";
    point.axes = {{"kind", std::string(row->kind)},
                  {"bytes", elements * width->second},
                  {"ranks", message.ranks},
                  {"stride", std::string(strided ? "strided" : "consecutive")}};
    return point;
  }

  void add_collective(const std::string& axes, Collective& calls,
                      std::map<std::string, std::pair<MeasuredPoint, std::vector<double>>>& merged) {
    const std::vector<double>& first = calls.by_rank.begin()->second;
    const bool together =
        calls.by_rank.size() > 1 && std::all_of(calls.by_rank.begin(), calls.by_rank.end(),
                                                [&](const auto& rank) { return rank.second.size() == first.size(); });
    std::vector<double> seconds;
    if (together) {
      for (std::size_t i = 0; i < first.size(); ++i) {
        double shortest = first[i];
        for (const auto& [rank, all] : calls.by_rank) shortest = std::min(shortest, all[i]);
        seconds.push_back(shortest);
      }
      calls.point.reason = fmt::format("shortest of {} ranks a call: the others waited for their peers", calls.by_rank.size());
    } else if (first.size() >= kFewestRepeats) {
      seconds = {*std::min_element(first.begin(), first.end())};
      calls.point.reason = fmt::format("fastest of {} calls on one rank: the others may hold waiting for peers", first.size());
    } else {
      left_["collectives: too few calls of one size on one rank to tell waiting from moving"] +=
          static_cast<std::int64_t>(first.size());
      return;
    }
    auto& [point, all] = merged[axes];
    point = calls.point;
    all.insert(all.end(), seconds.begin(), seconds.end());
  }

  std::map<std::string, std::pair<MeasuredPoint, std::vector<double>>> points_;
  std::map<std::pair<std::string, std::string>, Collective> collectives_;
  std::map<std::string, std::int64_t> left_;
};

}  // namespace

Outcome<TracePoints> points_of(const std::vector<KernelTrace>& traces, const std::string& tool_version) {
  Gatherer gatherer;
  std::size_t index = 0;
  std::string gpu;
  std::int64_t host_gpus = 0;
  for (const KernelTrace& trace : traces) {
    if (trace.format == "cpfit") continue;  // simulated: it would measure our own rates
    if (gpu.empty()) gpu = trace.gpu;
    host_gpus = std::max(host_gpus, trace.host_gpus);
    for (const auto& [device, kernels] : trace.devices) {
      gatherer.kernels(trace, kernels);
      gatherer.messages(trace, index++, kernels);
    }
  }
  TracePoints points = gatherer.finish();
  if (points.file.points.empty() || gpu.empty()) {
    return Problem{"ingest.no_points", traces.empty() ? std::string() : traces.front().path,
                   points.file.points.empty() ? fmt::format("no kernel with sizes that a rate surface has{}{}",
                                                            points.left_out.empty() ? "" : ": ", fmt::join(points.left_out, "; "))
                                              : std::string("the trace does not say which GPU it was recorded on"),
                   "record with torch.profiler.profile(record_shapes=True) on a GPU"};
  }
  points.file.tool_version = tool_version;
  points.file.backend = "cuda";
  points.file.ranks = static_cast<std::int32_t>(std::min<std::size_t>(std::max<std::size_t>(index, 1), 1u << 24U));
  points.file.ranks_per_host = static_cast<std::int32_t>(std::clamp<std::int64_t>(host_gpus, 1, 1024));
  points.file.machine.gpu = gpu;
  points.file.machine.gpus_per_host = points.file.ranks_per_host;
  return points;
}

}  // namespace cpfit
