// Printed output of Dao-AILab/flash-attention's benchmarks:
//   benchmarks/benchmark_flash_attention.py   "### causal=False, headdim=64, batch_size=32, seqlen=512 ###"
//                                             "Flash2 fwd: 91.00 TFLOPs/s, bwd: 80.12 TFLOPs/s, fwd + bwd: 83.00 TFLOPs/s"
//   hopper/benchmark_attn.py                  "### headdim = 128, causal = False, seqlen = 16384, ... ###"
//                                             "Fav3 fwd: 5.837ms, 753.5 TFLOPS"
// The second does not print batch x heads: it follows from time and rate, which count 4 s^2 d FLOPs per head (half when causal).
#include <cmath>

#include "calibrate/read/imported.h"
#include "calibrate/read/kernel_table_formats.h"
#include "calibrate/read/text_lines.h"
#include "model/rates/curves.h"

namespace cpfit {

namespace {

std::optional<AttentionLibrary> library_printed(std::string_view word) {
  if (word == "Fav3" || word == "FAv3" || word == "Flash3") return AttentionLibrary::kFlash3;
  if (word == "Fav2" || word == "FAv2" || word == "Flash2") return AttentionLibrary::kFlash2;
  if (word == "CuDNN" || word == "cuDNN") return AttentionLibrary::kCudnn;
  return std::nullopt;
}

struct Heading {
  std::int64_t head_dim = 0, batch = 0, length = 0;
  bool causal = false, deterministic = false;
};

/// The number between `key` ("fwd:") and `unit` ("TFLOPs/s", "ms").
std::optional<double> figure(std::string_view line, std::string_view key, std::string_view unit) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = trimmed(line.substr(at + key.size()));
  const std::size_t end = rest.find_first_not_of("0123456789.eE+-");
  if (end == std::string_view::npos || !trimmed(rest.substr(end)).starts_with(unit)) return std::nullopt;
  return number_of<double>(rest.substr(0, end));
}

}  // namespace

bool looks_like_flash_output(std::string_view text) {
  return text.find("###") != std::string_view::npos && text.find("headdim") != std::string_view::npos &&
         (text.find("TFLOPs/s") != std::string_view::npos || text.find("TFLOPS") != std::string_view::npos);
}

Outcome<ImportedFile> read_flash_output(std::string_view text, const std::string& path, const ImportHints& options) {
  if (options.gpu.empty()) {
    return Problem{"import.gpu", path, "the output of FlashAttention's benchmarks does not say on which GPU it ran",
                   "add --gpu with a name of `cpfit presets gpus`"};
  }
  ImportedFile file;
  file.path = file.table.path = path;
  file.table.own_run = true;
  file.format = "FlashAttention benchmark output";
  file.table.source = "FlashAttention benchmark on " + options.gpu;
  file.machine.gpu = options.gpu;
  Heading heading;
  each_line(text, [&](std::string_view line, long number) {
    if (line.find("###") != std::string_view::npos && line.find("headdim") != std::string_view::npos) {
      heading = {};
      heading.head_dim = number_of<std::int64_t>(value_after(line, "headdim")).value_or(0);
      heading.length = number_of<std::int64_t>(value_after(line, "seqlen")).value_or(0);
      heading.batch = number_of<std::int64_t>(value_after(line, "batch_size")).value_or(0);
      heading.causal = value_after(line, "causal") == "True";
      heading.deterministic = value_after(line, "deterministic") == "True";
      return;
    }
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() < 3 || !(words[1] == "fwd:" || words[1] == "bwd:")) return;
    const auto leave = [&](std::string reason) { file.table.unused.push_back({number, std::move(reason)}); };
    const std::optional<AttentionLibrary> library = library_printed(words[0]);
    if (!library) return leave(kernel_table::joined({"kernel ", words[0], " has no rate surface"}));
    if (heading.head_dim <= 0 || heading.length <= 0) return leave("no heading with headdim and seqlen before it");
    const double s = static_cast<double>(heading.length), d = static_cast<double>(heading.head_dim);
    const double pairs = heading.causal ? s * s / 2 : s * s;  // as the benchmark counts them
    const auto add = [&](MeasuredPass pass, double seconds, double lanes) {
      const auto whole = std::llround(lanes);
      if (whole <= 0 || std::abs(lanes / static_cast<double>(whole) - 1) > 0.05)
        return leave("time and rate do not fit each other");
      AttentionShape shape = kernel_table::square(1, heading.length, whole, whole, heading.head_dim, heading.causal);
      shape.deterministic = heading.deterministic;
      file.table.rows.push_back({number, options.gpu, AttentionMeasurement{shape, *library, pass}, Seconds(seconds)});
    };
    const bool backward_line = words[1] == "bwd:";
    const double forward_flops = flops_per_pair(AttentionPass::kForward, d, d) * pairs;
    const double backward_flops = flops_per_pair(AttentionPass::kBackward, d, d) * pairs;
    const MeasuredPass pass = backward_line ? MeasuredPass::kBackward : MeasuredPass::kForward;
    if (const auto ms = figure(line, words[1], "ms")) {
      const std::size_t comma = line.find(',');
      const auto rate = comma == std::string_view::npos ? std::nullopt : figure(line, ",", "TFLOPS");
      if (!rate || *ms <= 0 || *rate <= 0) return leave("no rate beside the time");
      return add(pass, *ms * 1e-3, *rate * 1e12 * *ms * 1e-3 / (backward_line ? backward_flops : forward_flops));
    }
    // The older benchmark fixes the model dimension at 2048 and prints the batch.
    const double lanes = static_cast<double>(heading.batch) * 2048 / d;
    if (heading.batch <= 0) return leave("no batch_size in the heading");
    if (const auto rate = figure(line, "fwd:", "TFLOPs/s"); rate && *rate > 0)
      add(MeasuredPass::kForward, forward_flops * lanes / (*rate * 1e12), lanes);
    if (const auto rate = figure(line, " bwd:", "TFLOPs/s"); rate && *rate > 0)
      add(MeasuredPass::kBackward, backward_flops * lanes / (*rate * 1e12), lanes);
  });
  if (file.table.rows.empty() && file.table.unused.empty())
    return Problem{"import.empty", path, "no line of results", "give the whole output of the benchmark"};
  return file;
}

}  // namespace cpfit
