// Times attention of one block on this GPU, our own kernels and cuDNN's, beside the figures that cuDNN's authors published for
// the same shapes: 64 query heads, 8 KV heads, head size 128, bf16, batch 1, causal and dense, forward and backward.
//   cpfit_gpu_attention --out FILE.json [--published FILE.csv] [--smi TEXT] [--largest TOKENS]
//   cpfit_gpu_attention --check      can a device be used? 0 yes, 4 no, with the reason
// TFLOP/s = 4 d h_q pairs forward, 2.5 times that backward, over the median time of a call (cp_model.md A.4); causal pairs are
// s^2 / 2, as in the published table. Agreement comes first: at the smallest length both implementations must give the same
// output within 16-bit rounding, or nothing is timed. One call: between two events on the operators' stream.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "calibrate/read/csv.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/cuda/cuda_operators.h"
#include "kernels/cuda/cudnn_attention.h"

namespace {

using namespace cpfit::kernels;
using cpfit::attention::BlockKind;
using cpfit::kernels::cuda::check;

constexpr Heads kHeads = {64, 8, 128, 128, 0.08838834764831845};  // 1 / sqrt(128)
constexpr int kWarmUps = 3;
constexpr int kSamples = 9;
constexpr double kSecondsPerPoint = 3;  // after which a point ends with the samples it has, three at least

struct Options {
  std::string out;
  std::string published;
  std::string smi;
  std::int64_t largest = 32768;
};

/// Empty when the arguments were understood.
std::string read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) return fmt::format("{} needs a value", name);
    const std::string value = argv[i + 1];
    if (name == "--out") {
      options.out = value;
    } else if (name == "--published") {
      options.published = value;
    } else if (name == "--smi") {
      options.smi = value;
    } else if (name == "--largest") {
      options.largest = std::atoll(value.c_str());
    } else {
      return fmt::format("there is no option {}", name);
    }
  }
  if (options.out.empty()) return "--out FILE.json is needed";
  if (options.largest < 2048) return "--largest: 2048 tokens or more";
  return {};
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "making an event"); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { (void)cudaEventDestroy(event_); }
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Tensors of one length on the device. Values: uniform in [-1, 1), from a generator that needs no table.
struct DeviceTensors {
  Array q, k, v, dout, out, lse, delta, dq, dk, dv, range, position;
};
Array random_array(DeviceOperators& on, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(rows * columns));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (double& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<double>(state >> 40) / 8388608.0 - 1.0;
  }
  return on.upload(Number::kBf16, rows, columns, values);
}
DeviceTensors tensors_of_length(DeviceOperators& on, std::int64_t tokens) {
  const std::int64_t q_columns = std::int64_t{kHeads.q} * kHeads.qk_dim;
  const std::int64_t k_columns = std::int64_t{kHeads.kv} * kHeads.qk_dim;
  DeviceTensors p;
  p.q = random_array(on, tokens, q_columns, 1);
  p.k = random_array(on, tokens, k_columns, 2);
  p.v = random_array(on, tokens, k_columns, 3);
  p.dout = random_array(on, tokens, q_columns, 4);
  p.out = on.allocate(Number::kBf16, tokens, q_columns);
  p.lse = on.allocate(Number::kFp32, tokens, kHeads.q);
  p.delta = on.allocate(Number::kFp32, tokens, kHeads.q);
  p.dq = on.allocate(Number::kBf16, tokens, q_columns);
  p.dk = on.allocate(Number::kBf16, tokens, k_columns);
  p.dv = on.allocate(Number::kBf16, tokens, k_columns);
  return p;
}

BlockMask mask_of(bool causal) { return {causal ? BlockKind::kCausal : BlockKind::kFull, {}, {}}; }
void run_forward(DeviceOperators& on, const DeviceTensors& p, bool causal) {
  on.forward(kHeads, mask_of(causal), p.q, p.k, p.v, p.out, p.lse);
}
void run_backward(DeviceOperators& on, const DeviceTensors& p, bool causal) {
  on.backward(kHeads, mask_of(causal), p.q, p.k, p.v, p.dout, p.lse, p.delta, p.dq, p.dk, p.dv);
}

/// Seconds of single calls, ascending.
template <class Call>
std::vector<double> time_calls(DeviceOperators& on, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kWarmUps; ++i) call();
  on.finish();
  const Event first;
  const Event last;
  std::vector<double> seconds;
  while (seconds.size() < kSamples) {
    check(cudaEventRecord(first.get(), on.stream()), "timing");
    call();
    check(cudaEventRecord(last.get(), on.stream()), "timing");
    on.finish();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first.get(), last.get()), "timing");
    seconds.push_back(milliseconds / 1000.0);
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds.size() >= 3 && spent > kSecondsPerPoint) break;
  }
  std::ranges::sort(seconds);
  return seconds;
}

/// |a - b| / |b| of all outputs and gradients of one causal block.
double disagreement(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    double difference = 0;
    double size = 0;
    for (std::size_t j = 0; j < a[i].size(); ++j) {
      difference += (a[i][j] - b[i][j]) * (a[i][j] - b[i][j]);
      size += b[i][j] * b[i][j];
    }
    const double error = std::sqrt(difference / size);
    worst = std::isfinite(error) ? std::max(worst, error) : INFINITY;
  }
  return worst;
}
std::vector<std::vector<double>> results_of(DeviceOperators& on, const DeviceTensors& p, bool causal) {
  run_forward(on, p, causal);
  on.row_delta(kHeads, p.out, p.dout, p.delta);
  run_backward(on, p, causal);
  return {on.download(p.out), on.download(p.dq), on.download(p.dk), on.download(p.dv)};
}

/// Published TFLOP/s by (tokens, mask, pass) for GPUs of this name.
using Published = std::map<std::string, double>;
std::string key_of(std::int64_t tokens, bool causal, bool backward) {
  return fmt::format("{} {} {}", tokens, causal ? "causal" : "dense", backward ? "backward" : "forward");
}
Published read_published(const std::string& path, const std::string& device) {
  Published published;
  if (path.empty()) return published;
  const auto table = cpfit::CsvTable::load(path);
  if (!table) {
    fmt::print(stderr, "published figures are not shown: {}\n", cpfit::to_text(table.problems().front()));
    return published;
  }
  for (std::size_t i = 0; i < table->size(); ++i) {
    const cpfit::CsvRow row = table->row(i);
    const std::string_view gpu = row.text("gpu_name");
    const std::string_view mask = row.text("attn_mask");
    const std::string_view pass = row.text("pass_");
    const bool same_gpu = !gpu.empty() && device.find(gpu) != std::string::npos;
    const bool same_shape = row.integer("num_q_heads") == kHeads.q && row.integer("num_kv_heads") == kHeads.kv &&
                            row.integer("head_dim_qk") == kHeads.qk_dim && row.integer("head_dim_vo") == kHeads.v_dim &&
                            row.integer("batch_size") == 1 && row.blank("sliding_window_size");
    const bool same_way = row.text("backend") == "cudnn" && row.text("data_type") == "bfloat16" &&
                          row.text("success") == "True" && row.text("deterministic_bwd") != "True";
    const auto rate = row.number("tflops");
    const auto tokens = row.integer("q_seqlen");
    if (!same_gpu || !same_shape || !same_way || !rate || !tokens || row.integer("kv_seqlen") != tokens) continue;
    if (mask != "top_left" && mask != "no_mask") continue;
    double& known = published[key_of(*tokens, mask == "top_left", pass == "bwd")];
    known = std::max(known, *rate);
  }
  return published;
}

nlohmann::json provenance(const Options& options, const cudaDeviceProp& device) {
  int driver = 0;
  int runtime = 0;
  int clock_khz = 0;
  int memory_khz = 0;
  check(cudaDriverGetVersion(&driver), "asking the driver");
  check(cudaRuntimeGetVersion(&runtime), "asking the runtime");
  check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0), "asking the device");
  check(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0), "asking the device");
  return {{"device", device.name},
          {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
          {"multiprocessors", device.multiProcessorCount},
          {"memory_bytes", device.totalGlobalMem},
          {"highest_clock_hz", clock_khz * 1000.0},
          {"memory_clock_hz", memory_khz * 1000.0},
          {"driver_cuda_version", driver},
          {"toolkit_runtime_version", runtime},
          {"cudnn_version", cuda::cudnn_version()},
          {"nvidia_smi", options.smi},
          {"warm_ups", kWarmUps},
          {"samples", kSamples}};
}

/// The pass that a row is about, timed; agreement was checked before.
nlohmann::json measure(DeviceOperators& on, const DeviceTensors& p, const std::string& implementation, std::int64_t tokens,
                       bool causal, bool backward) {
  const std::vector<double> seconds =
      time_calls(on, [&] { backward ? run_backward(on, p, causal) : run_forward(on, p, causal); });
  const double pairs = static_cast<double>(tokens) * static_cast<double>(tokens) * (causal ? 0.5 : 1.0);
  const double flops = 4.0 * kHeads.qk_dim * kHeads.q * pairs * (backward ? 2.5 : 1.0);
  const double median = seconds[seconds.size() / 2];
  return {{"probe", "attention_block"},
          {"implementation", implementation},
          {"tokens", tokens},
          {"mask", causal ? "causal" : "dense"},
          {"pass", backward ? "backward" : "forward"},
          {"heads_q", kHeads.q},
          {"heads_kv", kHeads.kv},
          {"head_dim", kHeads.qk_dim},
          {"number", "bf16"},
          {"outcome", "measured"},
          {"median_seconds", median},
          {"least_seconds", seconds.front()},
          {"greatest_seconds", seconds.back()},
          {"sample_count", seconds.size()},
          {"tflops", flops / median / 1e12}};
}

int run(const Options& options) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) {
    fmt::print(stderr, "waived: {}\n", reason);
    return 4;
  }
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, 0), "asking the device");
  const Published published = read_published(options.published, device.name);

  const auto own = make_cuda_operators(0, Number::kFp32);
  const std::string no_cudnn = why_not(AttentionPath::kCudnn);
  const auto cudnn = no_cudnn.empty() ? make_cuda_operators(0, Number::kFp32, AttentionPath::kCudnn) : nullptr;
  nlohmann::json rows = nlohmann::json::array();
  double agreement = 0;
  if (cudnn != nullptr) {
    for (const bool causal : {true, false}) {
      const auto a = results_of(*own, tensors_of_length(*own, 2048), causal);
      const auto b = results_of(*cudnn, tensors_of_length(*cudnn, 2048), causal);
      agreement = std::max(agreement, disagreement(a, b));
    }
    // Two bf16 results of one truth differ by about two roundings of 2^-9 each, and their own weights' roundings.
    if (!(agreement < 0.02)) {
      fmt::print(stderr, "our kernels and cuDNN's differ by {:.3g} at 2048 tokens: nothing is timed\n", agreement);
      return 1;
    }
  } else {
    fmt::print(stderr, "waived: cuDNN: {}\n", no_cudnn);
  }

  fmt::print("{}: attention, bf16, 64 query heads, 8 KV heads, head size 128, TFLOP/s\n", device.name);
  fmt::print("{:>7} {:<7} {:<9} {:>8} {:>8} {:>10}\n", "tokens", "mask", "pass", "own", "cuDNN", "published");
  for (std::int64_t tokens = 2048; tokens <= options.largest; tokens *= 2) {
    std::map<std::string, double> rates;
    for (DeviceOperators* const on : {own.get(), cudnn.get()}) {
      if (on == nullptr) continue;
      const std::string implementation = on == own.get() ? "own" : "cudnn";
      const DeviceTensors p = tensors_of_length(*on, tokens);
      for (const bool causal : {true, false}) {
        run_forward(*on, p, causal);
        on->row_delta(kHeads, p.out, p.dout, p.delta);
        for (const bool backward : {false, true}) {
          const std::int64_t before = on->attention_paths().cudnn;
          nlohmann::json row = measure(*on, p, implementation, tokens, causal, backward);
          if (implementation == "cudnn" && on->attention_paths().cudnn == before) {
            row["outcome"] = "waived";
            row["reason"] = "cuDNN did not take this block; our own kernels did";
          } else {
            rates[implementation + key_of(tokens, causal, backward)] = row["tflops"];
          }
          rows.push_back(std::move(row));
        }
      }
    }
    const auto text = [](const auto& table, const std::string& key) {
      const auto found = table.find(key);
      return found == table.end() ? std::string("-") : fmt::format("{:.0f}", found->second);
    };
    for (const bool causal : {true, false}) {
      for (const bool backward : {false, true}) {
        const std::string key = key_of(tokens, causal, backward);
        fmt::print("{:>7} {:<7} {:<9} {:>8} {:>8} {:>10}\n", tokens, causal ? "causal" : "dense",
                   backward ? "backward" : "forward", text(rates, "own" + key), text(rates, "cudnn" + key), text(published, key));
      }
    }
    std::fflush(stdout);
  }
  nlohmann::json provenance_of_all = provenance(options, device);
  provenance_of_all["own_and_cudnn_differ_normwise"] = agreement;
  const nlohmann::json file = {{"schema_version", 1}, {"provenance", provenance_of_all}, {"measurements", rows}};
  std::ofstream out(options.out);
  out << file.dump(1) << '\n';
  out.close();
  if (!out) {
    fmt::print(stderr, "{} cannot be written\n", options.out);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--check") {
    const std::string reason = why_no_cuda();
    fmt::print("{}\n", reason.empty() ? "a device can be used" : "waived: " + reason);
    return reason.empty() ? 0 : 4;
  }
  Options options;
  if (const std::string wrong = read_options(argc, argv, options); !wrong.empty()) {
    fmt::print(stderr, "cpfit_gpu_attention: {}\n", wrong);
    return 2;
  }
  try {
    return run(options);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "cpfit_gpu_attention: {}\n", failure.what());
    return 1;
  }
}
