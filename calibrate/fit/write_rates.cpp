#include "calibrate/fit/write_rates.h"

#include <fmt/format.h>

#include "calibrate/fit/fit_rates.h"
#include "model/presets/embedded.h"
#include "model/quantity/hash.h"

namespace cpfit {

namespace {

std::string range(const char* key, const FittedRange& range) {
  return fmt::format("{} = [{:.6g}, {:.6g}]\n", key, range.low, range.high);
}

std::string quoted(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '"' || c == '\\') plain += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) plain += c;
  }
  return "\"" + plain + "\"";
}

std::string quality(const FitQuality& q) {
  std::string text = fmt::format("rows = {}\nheld_out = {}\nmedian_error = {:.4f}\np90_error = {:.4f}\n", q.rows, q.held_out,
                                 q.median_error, q.p90_error);
  if (q.noise > 0) text += fmt::format("noise = {:.4f}\n", q.noise);
  return text + fmt::format("evidence = \"{}\"\nsource = {}\n\n", name_of(q.evidence), quoted(q.source));
}

std::string device(const FittedDevice& d) {
  const auto tflops = [&](MathKind math) { return d.peaks.math[static_cast<std::size_t>(math)] / 1e12; };
  std::string text = fmt::format(
      "[[device]]\ngpu = \"{}\"\ngeneration = \"{}\"\nscale_up_link = \"{}\"\nsm_count = {}\nhbm_gb_per_s = {:.6g}\nbf16_tflops "
      "= {:.6g}\n"
      "fp8_tflops = {:.6g}\nfp4_tflops = {:.6g}\n",
      d.gpu, d.generation, d.scale_up_link, d.peaks.sm_count, d.peaks.hbm / 1e9, tflops(MathKind::kBf16),
      tflops(MathKind::kFp8Tensor), tflops(MathKind::kNvfp4));
  if (tflops(MathKind::kFp32) > 0) text += fmt::format("fp32_tflops = {:.6g}\n", tflops(MathKind::kFp32));
  return text + "\n";
}

std::string gemm(const GemmRow& row) {
  const GemmCurve& c = row.curve;
  return fmt::format(
             "[[gemm]]\ngpu = \"{}\"\nmath = \"{}\"\nlaunch_us = {:.4g}\npeak_share = {:.4g}\nk_half = {:.4g}\nwave_rounding = "
             "{:.4g}\n"
             "small_tile_share = {:.4g}\nsustained_loss = {:.4g}\nsustained_ms = {:.4g}\n",
             row.gpu, name_of(row.math), c.launch * 1e6, c.peak_share, c.k_half, c.wave_rounding, c.small_tile_share,
             c.sustained_loss, c.sustained * 1e3) +
         range("m", c.m) + range("n", c.n) + range("k", c.k) + quality(c.quality);
}

std::string attention(const AttentionRow& row) {
  const AttentionCurve& c = row.curve;
  std::string text = fmt::format(
      "[[attention]]\ngpu = \"{}\"\nlibrary = \"{}\"\nmath = \"{}\"\npass = \"{}\"\nlaunch_us = {:.4g}\npeak_share = "
      "{:.4g}\nhalf_pairs = {:.4g}\n"
      "wave_rounding = {:.4g}\ndiagonal_pairs = {:.4g}\nshare_64 = {:.4g}\nshare_192 = {:.4g}\nshare_256 = "
      "{:.4g}\ndeterministic_share = {:.4g}\n"
      "sustained_loss = {:.4g}\nsustained_ms = {:.4g}\n",
      row.gpu, name_of(row.library), name_of(row.math), name_of(row.pass), c.launch * 1e6, c.peak_share, c.half, c.wave_rounding,
      c.diagonal, c.share_64, c.share_192, c.share_256, c.deterministic_share, c.sustained_loss, c.sustained * 1e3);
  if (c.causal_share != 1) text += fmt::format("causal_share = {:.4g}\n", c.causal_share);
  if (c.preparation > 0) text += fmt::format("preparation_passes = {:.4g}\n", c.preparation);
  return text + range("q_len", c.q_len) + range("kv_len", c.kv_len) + range("batch_heads", c.heads) + quality(c.quality);
}

std::string memory(const MemoryRow& row) {
  const MemoryCurve& c = row.curve;
  std::string text =
      fmt::format("[[memory]]\ngpu = \"{}\"\nkernels = \"{}\"\npass = \"{}\"\nlaunch_us = {:.4g}\nhbm_share = {:.4g}\n", row.gpu,
                  row.kernels, name_of(row.pass), c.launch * 1e6, c.hbm_share);
  const auto add = [&](const char* key, double value) {
    if (value > 0) text += fmt::format("{} = {:.4g}\n", key, value);
  };
  add("row_ns", c.row_time * 1e9);
  add("element_ps", c.element_time * 1e12);
  add("statistics_ns", c.statistics * 1e9);
  add("tile", c.tile);
  add("looped_from", c.looped_from);
  if (c.wave_rounding > 0) {
    add("resident", c.resident);
    add("wave_rounding", c.wave_rounding);
  }
  if (c.reread > 0) {
    add("reread", c.reread);
    add("kept_row", c.kept_row);
  }
  add("column_us", c.column_start * 1e6);
  add("column_row_ns", c.column_row * 1e9);
  return text + range("traffic_bytes", c.traffic) + quality(c.quality);
}

std::string collective(const CollectiveRow& row) {
  const CollectiveCurve& c = row.curve;
  std::string text =
      fmt::format("[[collective]]\nlink = \"{}\"\nkind = \"{}\"\nranks = {}\n", row.link, name_of(row.kind), c.ranks);
  if (row.form != CollectiveForm::kUsual) text += fmt::format("form = \"{}\"\n", name_of(row.form));
  text += "pieces = [\n";
  for (std::int32_t i = 0; i < c.piece_count; ++i) {
    const CollectivePiece& piece = c.pieces[static_cast<std::size_t>(i)];
    text += fmt::format("  [{:.0f}, {:.0f}, {:.4g}, {:.4g}],\n", piece.from, piece.to, piece.alpha * 1e6, piece.bus_share);
  }
  text += "]\n";
  if (row.raw > 0) text += fmt::format("raw_gb_per_s = {:.6g}\n", row.raw / 1e9);
  return text + quality(c.quality);
}

std::string link(const LinkRow& row) {
  return fmt::format("[[link]]\nlink = {}\nalpha_us = {:.4g}\nshare = {:.4g}\nhalf_bytes = {:.6g}\n", quoted(row.link),
                     row.curve.alpha * 1e6, row.curve.share, row.curve.half_bytes) +
         (row.curve.peer_rate > 0 ? fmt::format("peer_gb_per_s = {:.4g}\n", row.curve.peer_rate / 1e9) : std::string()) +
         quality(row.curve.quality);
}

std::string launch(const LaunchRow& row) {
  return fmt::format("[[launch]]\ngeneration = {}\neager_us = {:.4g}\ngraph_us = {:.4g}\n", quoted(row.generation),
                     row.eager * 1e6, row.graph * 1e6) +
         quality(row.quality);
}

std::string overlap(const OverlapRow& row) {
  return fmt::format("[[overlap]]\nlink = {}\ngeneration = {}\nslowdown = {:.4g}\nmessage_slowdown = {:.4g}\n", quoted(row.link),
                     quoted(row.generation), row.slowdown, row.message_slowdown) +
         quality(row.quality);
}

}  // namespace

std::string rates_toml(const RateTables& fitted, std::string_view documented) {
  const std::string head =
      "# Written by `cpfit calibrate fit` from published kernel and collective tables; do not edit. What each coefficient means "
      "is in\n"
      "# model/rates/curves.h. Times in microseconds or milliseconds as the key says, sizes in bytes, shares of the peaks in "
      "[[device]]\n"
      "# (GEMM, attention), of HBM (memory) or of the link's raw rate (collectives: [from bytes, to bytes, alpha us, bus "
      "share]).\n"
      "# median_error and p90_error: relative, over held_out predictions of shapes that the scored fit had not seen.\n";
  std::string text;
  for (const FittedDevice& row : fitted.devices) text += device(row);
  for (const GemmRow& row : fitted.gemm) text += gemm(row);
  for (const AttentionRow& row : fitted.attention) text += attention(row);
  for (const MemoryRow& row : fitted.memory) text += memory(row);
  for (const CollectiveRow& row : fitted.collective) text += collective(row);
  for (const LinkRow& row : fitted.link) text += link(row);
  for (const LaunchRow& row : fitted.launch) text += launch(row);
  for (const OverlapRow& row : fitted.overlap) text += overlap(row);
  text += documented;
  // The version names the content: two files with the same coefficients are the same calibration.
  return head + fmt::format("version = \"fit-{}\"\n\n", sha256_hex(text).substr(0, 12)) + text;
}

std::string fitted_rates_toml(const std::string& folder, std::span<const Gpu> gpus) {
  return rates_toml(fit_rates(read_fitted_tables(folder), gpus).tables, embedded_file("presets/rates_documented.toml"));
}

}  // namespace cpfit
