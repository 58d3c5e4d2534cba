#include "gui/calibration/rate_curves.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "calibrate/fit/refit.h"
#include "calibrate/read/imported.h"
#include "gui/calibration/exclusions.h"
#include "gui/look/figures.h"
#include "model/cluster/gpu.h"

namespace cpfit::gui {

namespace {

QString said(const char* text) { return QCoreApplication::translate("Calibration", text); }

constexpr int kCurvePoints = 160;
constexpr double kBeyond = 4.0;  // how far beyond the fitted range a curve is drawn, as a factor

std::vector<double> logarithmic(double low, double high, bool whole) {
  std::vector<double> x;
  low = std::max(low, 1.0);
  for (int i = 0; i <= kCurvePoints; ++i) {
    const double at = low * std::pow(high / low, static_cast<double>(i) / kCurvePoints);
    const double value = whole ? std::round(at) : at;
    if (x.empty() || value > x.back()) x.push_back(value);
  }
  return x;
}

/// The middle of a range on a logarithmic scale, as a power of two: a shape people know.
double middle(const FittedRange& range) {
  const double low = std::max(range.low, 1.0), high = std::max(range.high, low);
  return std::exp2(std::round(std::log2(std::sqrt(low * high))));
}

const FittedDevice* device_named(const RateTables& tables, const std::string& gpu) {
  const auto found = std::ranges::find(tables.devices, gpu, &FittedDevice::gpu);
  return found == tables.devices.end() ? nullptr : &*found;
}

double peak_of(const FittedDevice& device, MathKind math) { return device.peaks.math[static_cast<std::size_t>(math)]; }

double link_rate(const CollectiveRow& row) { return row.raw > 0.0 ? row.raw : nominal_rate(row.link); }

AttentionShape square_attention(const AttentionRow& row, double tokens, double heads) {
  AttentionShape shape;
  shape.q_len = shape.kv_len = static_cast<std::int64_t>(tokens);
  shape.pairs = tokens * tokens / 2.0;
  shape.causal = true;
  shape.heads = shape.kv_heads = static_cast<std::int64_t>(heads);
  shape.math = row.math;
  return shape;
}

double attention_flops(const AttentionShape& shape, AttentionPass pass) {
  const auto dv = static_cast<double>(shape.head_dim_v > 0 ? shape.head_dim_v : shape.head_dim);
  return flops_per_pair(pass, static_cast<double>(shape.head_dim), dv) * shape.pairs *
         static_cast<double>(shape.heads * shape.batch);
}

std::size_t first_of(const RateTables& tables, SurfaceKind kind) {
  const std::size_t counts[] = {tables.gemm.size(), tables.attention.size(), tables.memory.size(), tables.collective.size(),
                                tables.link.size(), tables.training.size(),  tables.launch.size(), tables.overlap.size()};
  std::size_t first = 0;
  for (int i = 0; i < static_cast<int>(kind); ++i) first += counts[i];
  return first;
}

/// A measured kernel on its surface; none where the calibration has no surface for it.
struct PointOf {
  const RateTables& tables;
  const KernelMeasurement& measured;

  [[nodiscard]] std::optional<RatePoint> point(SurfaceKind kind, std::size_t row, double x, double amount,
                                               double predicted) const {
    const double seconds = measured.time.value();
    if (!(seconds > 0.0) || !(predicted > 0.0)) return std::nullopt;
    RatePoint made;
    made.surface = first_of(tables, kind) + row;
    made.x = x;
    made.rate = amount / seconds;
    made.residual = predicted / seconds - 1.0;
    made.spread = measured.spread;
    made.line = measured.line;
    return made;
  }

  std::optional<RatePoint> operator()(const GemmMeasurement& gemm) const {
    for (std::size_t i = 0; i < tables.gemm.size(); ++i) {
      const GemmRow& row = tables.gemm[i];
      const FittedDevice* device = device_named(tables, row.gpu);
      if (row.gpu != measured.gpu || row.math != gemm.math || device == nullptr) continue;
      const GemmShape& s = gemm.shape;
      const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
      return point(SurfaceKind::kGemm, i, static_cast<double>(s.m), flops / 1e12,
                   gemm_seconds(row.curve, device->peaks, peak_of(*device, row.math), bytes_per_input(row.math), s));
    }
    return std::nullopt;
  }
  std::optional<RatePoint> operator()(const AttentionMeasurement& attention) const {
    if (attention.pass == MeasuredPass::kBoth) return std::nullopt;
    const AttentionPass pass = attention.pass == MeasuredPass::kForward ? AttentionPass::kForward : AttentionPass::kBackward;
    for (std::size_t i = 0; i < tables.attention.size(); ++i) {
      const AttentionRow& row = tables.attention[i];
      const FittedDevice* device = device_named(tables, row.gpu);
      if (row.gpu != measured.gpu || row.library != attention.library || row.math != attention.shape.math || row.pass != pass ||
          device == nullptr)
        continue;
      return point(SurfaceKind::kAttention, i, static_cast<double>(attention.shape.kv_len),
                   attention_flops(attention.shape, pass) / 1e12,
                   attention_seconds(row.curve, device->peaks, peak_of(*device, row.math), attention.shape, pass));
    }
    return std::nullopt;
  }
  std::optional<RatePoint> operator()(const StreamMeasurement& stream) const {
    for (std::size_t i = 0; i < tables.memory.size(); ++i) {
      const MemoryRow& row = tables.memory[i];
      const FittedDevice* device = device_named(tables, row.gpu);
      if (row.gpu != measured.gpu || row.kernels != stream.kernels || row.pass != stream.pass || device == nullptr) continue;
      return point(SurfaceKind::kMemory, i, stream.traffic.value(), stream.traffic.value() / 1e9,
                   norm_seconds(row.curve, device->peaks, stream.traffic.value(),
                                {static_cast<double>(stream.row), static_cast<double>(stream.rows), stream.layer_norm}));
    }
    return std::nullopt;
  }
  std::optional<RatePoint> operator()(const CollectiveMeasurement& collective) const {
    std::string link = collective.link;
    if (link.empty()) {
      const FittedDevice* device = device_named(tables, measured.gpu);
      link = collective.nodes > 1 ? "nic" : device != nullptr ? device->scale_up_link : "";
    }
    // Groups with their members apart are fitted apart; sums of 8-bit integers only where the link's switch adds.
    const CollectiveForm form = collective.form();
    if (auto own = of_form(collective, link, form); own || form != CollectiveForm::kInt8Sums) return own;
    return of_form(collective, link, CollectiveForm::kUsual);
  }

 private:
  [[nodiscard]] std::optional<RatePoint> of_form(const CollectiveMeasurement& collective, const std::string& link,
                                                 CollectiveForm form) const {
    for (std::size_t i = 0; i < tables.collective.size(); ++i) {
      const CollectiveRow& row = tables.collective[i];
      const double rate = link_rate(row);
      if (row.link != link || row.kind != collective.kind || row.form != form || row.curve.ranks != collective.ranks ||
          rate <= 0.0)
        continue;
      const double bytes = collective.bytes.value();
      return point(SurfaceKind::kCollective, i, bytes, bytes * bus_factor(row.kind, static_cast<double>(row.curve.ranks)) / 1e9,
                   collective_seconds(row.curve, row.kind, rate, bytes));
    }
    return std::nullopt;
  }
};

void read_points(KnownCalibration& known) {
  const std::vector<CalibrationSource>& sources = known.calibration.sources;
  for (std::size_t file = 0; file < sources.size(); ++file) {
    const CalibrationSource& source = sources[file];
    const QString path = text_of(source.path);
    std::error_code trouble;
    if (!std::filesystem::is_regular_file(source.path, trouble)) {
      known.remarks.append(said("%1 is not there any more: its points cannot be shown.").arg(path));
      continue;
    }
    ImportHints hints;
    hints.gpu = known.calibration.machine.gpu;
    const Outcome<ImportedFile> imported = import_file(source.path, hints);
    if (!imported.ok()) {
      known.remarks.append(said("%1 cannot be read again: %2").arg(path, sentence_of(imported.problems().front())));
      continue;
    }
    if (!source.sha256.empty() && imported->sha256 != source.sha256) {
      known.remarks.append(said("%1 was changed since the fit: its points are not shown.").arg(path));
      continue;
    }
    std::int64_t placed = 0;
    for (const KernelMeasurement& row : imported->table.rows) {
      std::optional<RatePoint> point = std::visit(PointOf{known.tables, row}, row.what);
      if (!point) continue;
      point->file = file;
      point->point = point_text(row);
      point->excluded = find_exclusion(known.calibration.excluded, as_exclusion(known, *point)) >= 0;
      known.points.push_back(*point);
      ++placed;
    }
    QString remark = said("%1: %2 points shown").arg(path, count_text(placed));
    if (!imported->table.unused.empty()) {
      remark += said(", %1 left out, the first because %2")
                    .arg(count_text(static_cast<std::int64_t>(imported->table.unused.size())),
                         text_of(imported->table.unused.front().reason));
    }
    known.remarks.append(remark + QLatin1Char('.'));
  }
}

RateCurve gemm_picture(const RateTables& tables, const GemmRow& row) {
  RateCurve curve;
  curve.x_label = said("m, rows of the product");
  curve.y_label = said("TFLOP/s");
  curve.valid_low = row.curve.m.low;
  curve.valid_high = row.curve.m.high;
  const FittedDevice* device = device_named(tables, row.gpu);
  if (device == nullptr || peak_of(*device, row.math) <= 0.0) {
    curve.why_none = said("The calibration does not hold the peak its shares are of.");
    return curve;
  }
  const double n = middle(row.curve.n), k = middle(row.curve.k);
  curve.held = said("n %1, k %2").arg(count_text(std::llround(n)), count_text(std::llround(k)));
  for (const double m : logarithmic(row.curve.m.low / kBeyond, row.curve.m.high * kBeyond, true)) {
    const GemmShape shape{static_cast<std::int64_t>(m), std::llround(n), std::llround(k)};
    curve.x.push_back(m);
    curve.y.push_back(2.0 * m * n * k / 1e12 /
                      gemm_seconds(row.curve, device->peaks, peak_of(*device, row.math), bytes_per_input(row.math), shape));
  }
  return curve;
}

RateCurve attention_picture(const RateTables& tables, const AttentionRow& row) {
  RateCurve curve;
  curve.x_label = said("tokens of keys and values");
  curve.y_label = said("TFLOP/s");
  curve.valid_low = row.curve.kv_len.low;
  curve.valid_high = row.curve.kv_len.high;
  const FittedDevice* device = device_named(tables, row.gpu);
  if (device == nullptr || peak_of(*device, row.math) <= 0.0) {
    curve.why_none = said("The calibration does not hold the peak its shares are of.");
    return curve;
  }
  const double heads = middle(row.curve.heads);
  curve.held = said("causal, q = kv, %1 heads of 128").arg(count_text(std::llround(heads)));
  for (const double tokens : logarithmic(std::max(16.0, row.curve.kv_len.low / kBeyond), row.curve.kv_len.high * kBeyond, true)) {
    const AttentionShape shape = square_attention(row, tokens, heads);
    curve.x.push_back(tokens);
    curve.y.push_back(attention_flops(shape, row.pass) / 1e12 /
                      attention_seconds(row.curve, device->peaks, peak_of(*device, row.math), shape, row.pass));
  }
  return curve;
}

RateCurve memory_picture(const RateTables& tables, const MemoryRow& row) {
  RateCurve curve;
  curve.x_label = said("bytes read and written");
  curve.y_label = said("GB/s");
  curve.valid_low = row.curve.traffic.low;
  curve.valid_high = row.curve.traffic.high;
  const FittedDevice* device = device_named(tables, row.gpu);
  if (device == nullptr || device->peaks.hbm <= 0.0) {
    curve.why_none = said("The calibration does not hold the memory rate its shares are of.");
    return curve;
  }
  constexpr double kUsualRow = 4096.0;
  const bool norm = norm_named(row.kernels).has_value();
  const double row_bytes = kUsualRow * (row.pass == AttentionPass::kForward ? 4.0 : 6.0);  // 16 bits: x and y, or x, dy and dx
  if (norm) curve.held = said("rows of 4,096 elements");
  for (const double bytes :
       logarithmic(std::max(1024.0, curve.valid_low / kBeyond), std::max(1e6, curve.valid_high * kBeyond), false)) {
    curve.x.push_back(bytes);
    const NormRows rows{norm ? kUsualRow : 0, bytes / row_bytes};
    curve.y.push_back(bytes / 1e9 / norm_seconds(row.curve, device->peaks, bytes, rows));
  }
  return curve;
}

RateCurve collective_picture(const CollectiveRow& row) {
  RateCurve curve;
  curve.x_label = said("bytes of the buffer");
  curve.y_label = said("bus rate, GB/s");
  const double rate = link_rate(row);
  if (row.curve.piece_count == 0 || rate <= 0.0) {
    curve.why_none = said("No data sheet says the raw rate of %1: its shares cannot be drawn.").arg(text_of(row.link));
    return curve;
  }
  curve.valid_low = row.curve.pieces[0].from;
  curve.valid_high = row.curve.pieces[static_cast<std::size_t>(row.curve.piece_count - 1)].to;
  curve.held = said("raw rate %1").arg(rate_text(BytesPerSecond(rate)));
  const double factor = bus_factor(row.kind, static_cast<double>(row.curve.ranks));
  for (const double bytes : logarithmic(std::max(256.0, curve.valid_low / kBeyond), curve.valid_high * kBeyond, false)) {
    curve.x.push_back(bytes);
    curve.y.push_back(bytes * factor / 1e9 / collective_seconds(row.curve, row.kind, rate, bytes));
  }
  return curve;
}

RateCurve link_picture(const LinkRow& row) {
  RateCurve curve;
  curve.x_label = said("bytes of a message");
  curve.y_label = said("GB/s");
  const double rate = nominal_rate(row.link);
  if (rate <= 0.0 || row.curve.share <= 0.0) {
    curve.why_none = said("The raw rate of %1 comes from the topology of a study: a share of %2, %3 per message.")
                         .arg(text_of(row.link), share_text(row.curve.share), time_text(Seconds(row.curve.alpha)));
    return curve;
  }
  curve.held = said("raw rate %1").arg(rate_text(BytesPerSecond(rate)));
  constexpr double kSmallest = 1024.0, kLargest = 1024.0 * 1024.0 * 1024.0;
  for (const double bytes : logarithmic(kSmallest, kLargest, false)) {
    curve.x.push_back(bytes);
    curve.y.push_back(bytes / 1e9 / (row.curve.alpha + (bytes + row.curve.half_bytes) / message_rate(row.curve, rate)));
  }
  return curve;
}

}  // namespace

double nominal_rate(const std::string& link) {
  // One direction of x16; a NIC of 400 Gbit/s: how the tables' source counts one GPU's share of a node.
  static constexpr std::pair<const char*, double> kKnown[] = {
      {"pcie3", 16e9}, {"pcie4", 32e9}, {"pcie5", 64e9}, {"pcie6", 128e9}, {"nic", 50e9}};
  for (const auto& [name, rate] : kKnown) {
    if (link == name) return rate;
  }
  for (const Gpu& gpu : gpu_presets()) {
    if (!link.empty() && gpu.scale_up_link == link) return gpu.scale_up.value();
  }
  return 0.0;
}

SurfacePlace surface_place(const RateTables& tables, std::size_t surface) {
  for (int kind = static_cast<int>(SurfaceKind::kOverlap); kind >= 0; --kind) {
    const std::size_t first = first_of(tables, static_cast<SurfaceKind>(kind));
    if (surface >= first) return {static_cast<SurfaceKind>(kind), surface - first};
  }
  return {};
}

std::shared_ptr<const KnownCalibration> known_calibration(const Calibration& calibration, bool with_points) {
  auto known = std::make_shared<KnownCalibration>();
  known->calibration = calibration;
  Outcome<RateTables> tables = tables_of(calibration);
  if (!tables.ok()) {
    known->remarks.append(said("Its rates cannot be read: %1").arg(sentence_of(tables.problems().front())));
    return known;
  }
  known->tables = std::move(tables).value();
  known->surfaces = surfaces_of(known->tables);
  if (calibration.assumed)
    known->remarks.append(said("Points do not ship with it: curves, errors on shapes kept out and ranges do."));
  else if (with_points)
    read_points(*known);
  return known;
}

RateCurve rate_curve(const KnownCalibration& known, std::size_t surface) {
  RateCurve curve;
  if (surface >= known.surfaces.size()) {
    curve.why_none = said("Choose a surface above.");
    return curve;
  }
  const SurfacePlace place = surface_place(known.tables, surface);
  switch (place.kind) {
    case SurfaceKind::kGemm:
      curve = gemm_picture(known.tables, known.tables.gemm[place.row]);
      break;
    case SurfaceKind::kAttention:
      curve = attention_picture(known.tables, known.tables.attention[place.row]);
      break;
    case SurfaceKind::kMemory:
      curve = memory_picture(known.tables, known.tables.memory[place.row]);
      break;
    case SurfaceKind::kCollective:
      curve = collective_picture(known.tables.collective[place.row]);
      break;
    case SurfaceKind::kLink:
      curve = link_picture(known.tables.link[place.row]);
      break;
    default:
      curve.why_none = surface_figures(known, surface);
  }
  curve.sigma = static_cast<double>(relative_sigma(known.surfaces[surface].quality));
  return curve;
}

QString surface_figures(const KnownCalibration& known, std::size_t surface) {
  if (surface >= known.surfaces.size()) return {};
  const SurfacePlace place = surface_place(known.tables, surface);
  switch (place.kind) {
    case SurfaceKind::kTraining: {
      const TrainingRow& row = known.tables.training[place.row];
      return said(
                 "Inside a step a kernel takes longer than alone: GEMM ×%1, attention ×%2, and %3 and %4 of what power limits "
                 "take.")
          .arg(three_digits(row.gemm_factor), three_digits(row.attention_factor), share_text(row.gemm_warm),
               share_text(row.attention_warm));
    }
    case SurfaceKind::kLaunch: {
      const LaunchRow& row = known.tables.launch[place.row];
      return said("The host spends %1 per kernel, %2 in a graph.")
          .arg(time_text(Seconds(row.eager)), time_text(Seconds(row.graph)));
    }
    case SurfaceKind::kOverlap: {
      const OverlapRow& row = known.tables.overlap[place.row];
      return said("While a message passes, kernels take ×%1; the message takes ×%2.")
          .arg(three_digits(row.slowdown), three_digits(row.message_slowdown));
    }
    default:
      return {};
  }
}

std::optional<double> hold_out_median(const std::vector<Surface>& surfaces) {
  std::vector<double> errors;
  for (const Surface& surface : surfaces) {
    if (surface.quality.held_out > 0) errors.push_back(surface.quality.median_error);
  }
  if (errors.empty()) return std::nullopt;
  std::ranges::sort(errors);
  return errors[errors.size() / 2];
}

QString device_text(const Calibration& calibration) {
  if (calibration.assumed) return said("data sheets and published tables");
  if (!calibration.machine.gpu.empty()) return text_of(calibration.machine.gpu);
  return calibration.machine.cpu.empty() ? QStringLiteral("–") : text_of(calibration.machine.cpu);
}

QString age_text(std::int64_t created, std::int64_t now) {
  if (created <= 0) return QStringLiteral("–");
  const std::int64_t days = (now - created) / 86400;
  if (days < 1) return said("today");
  if (days == 1) return said("1 day");
  return days < 60 ? said("%1 days").arg(days) : said("%1 months").arg(days / 30);
}

QString evidence_text(Evidence evidence) {
  switch (evidence) {
    case Evidence::kMeasured:
      return said("● measured");
    case Evidence::kFitted:
      return said("◐ fitted");
    case Evidence::kAssumed:
      break;
  }
  return said("○ assumed");
}

QString provenance_html(const KnownCalibration& known) {
  const Calibration& c = known.calibration;
  const MeasuredMachine& m = c.machine;
  QString html = QStringLiteral("<p><b>%1</b> %2<br>%3%4</p>")
                     .arg(text_of(c.name).toHtmlEscaped(), text_of(c.short_id()),
                          c.assumed ? said("○ Assumed for every machine that was not measured: ") : QString(),
                          device_text(c).toHtmlEscaped());
  QStringList software;
  for (const auto& [name, version] :
       {std::pair("driver", &m.driver), std::pair("CUDA", &m.cuda), std::pair("NCCL", &m.nccl), std::pair("cuDNN", &m.cudnn),
        std::pair("MPI", &m.mpi), std::pair("BLAS", &m.blas), std::pair("cpfit", &c.tool_version)}) {
    if (!version->empty()) software.append(QStringLiteral("%1 %2").arg(QLatin1String(name), text_of(*version).toHtmlEscaped()));
  }
  if (m.clocks_mhz)
    software.append(
        said("clock %1 MHz (%2 to %3)")
            .arg(three_digits(m.clocks_mhz->median), three_digits(m.clocks_mhz->min), three_digits(m.clocks_mhz->max)));
  if (m.power_limit_watts) software.append(said("power limit %1 W").arg(three_digits(*m.power_limit_watts)));
  if (!m.link.empty()) software.append(said("link %1").arg(text_of(m.link).toHtmlEscaped()));
  if (!software.isEmpty()) html += QStringLiteral("<p>%1</p>").arg(software.join(QStringLiteral(", ")));
  if (!m.throttled.empty()) html += QStringLiteral("<p>⚠ %1</p>").arg(text_of(m.throttled).toHtmlEscaped());
  for (const CalibrationSource& source : c.sources) {
    html += QStringLiteral("<p>%1</p>")
                .arg(said("%1 (%2): %3 points, %4 left out, SHA-256 %5")
                         .arg(text_of(source.path).toHtmlEscaped(), text_of(source.format).toHtmlEscaped(),
                              count_text(source.points), count_text(source.left_out), text_of(source.sha256.substr(0, 12))));
  }
  if (!c.excluded.empty()) {
    html += QStringLiteral("<p>%1</p><ul>").arg(said("Measured, and left out of the fit:"));
    for (const ExcludedPoint& point : c.excluded) {
      html +=
          QStringLiteral("<li>%1</li>")
              .arg(said("%1 (line %2): %3")
                       .arg(text_of(point.point).toHtmlEscaped(), count_text(point.line), text_of(point.reason).toHtmlEscaped()));
    }
    html += QStringLiteral("</ul>");
  }
  for (const QString& remark : known.remarks) html += QStringLiteral("<p>%1</p>").arg(remark.toHtmlEscaped());
  for (const std::string& group : c.groups)
    html += QStringLiteral("<p>%1</p>").arg(said("Communicated: %1").arg(text_of(group).toHtmlEscaped()));
  if (!c.gaps.empty()) {
    html += QStringLiteral("<p>%1</p><ul>").arg(said("Not covered; the defaults stand in, marked assumed:"));
    for (const CalibrationGap& gap : c.gaps)
      html += QStringLiteral("<li>%1: %2</li>").arg(text_of(gap.surface).toHtmlEscaped(), text_of(gap.reason).toHtmlEscaped());
    html += QStringLiteral("</ul>");
  }
  return html;
}

}  // namespace cpfit::gui
