#include "sim/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/quantity/text.h"

namespace cpfit::report {

namespace {

constexpr int kWidth = 860;
constexpr int kColours = 13;  // classes c0 to c12 of the page

std::string opening(int height, const std::string& title) {
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n", kWidth, height,
                     escaped(title), escaped(title));
}

std::string svg_text(double x, double y, const std::string& text, const char* anchor = "start", const char* css = "label") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y, anchor, css,
                     escaped(text));
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* css) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2, css);
}

/// A round step that cuts [0, high] into four to eight.
double round_step(double high) {
  const double rough = high / 6;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * decade) return factor * decade;
  }
  return 10 * decade;
}

std::string plain_number(double value) {
  return std::abs(value - std::round(value)) < 1e-9 ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
}

}  // namespace

std::string shared_definitions() {
  return "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"5\" height=\"5\" "
         "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"5\" "
         "class=\"hatch\"/></pattern>"
         "</defs></svg>\n";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string svg_of(const LineChart& chart) {
  constexpr double kLeft = 70, kTop = 16, kRight = 150, kBottom = 44;
  constexpr int kHeight = 340;
  double shortest = 0, longest = 0, highest = 0;
  for (const LineChart::Line& line : chart.lines) {
    for (const auto& [tokens, value] : line.points) {
      shortest = shortest == 0 ? tokens : std::min(shortest, tokens);
      longest = std::max(longest, tokens);
      highest = std::max(highest, value);
    }
  }
  if (longest == 0) return {};
  double level_top = 0;
  for (const LineChart::Level& level : chart.levels) level_top = std::max(level_top, level.value);
  // A curve far above the device would flatten everything that matters: it leaves the picture.
  const double top = level_top > 0 ? std::min(std::max(highest, 1.1 * level_top), 1.6 * level_top) : 1.08 * highest;
  const double octaves = std::max(1.0, std::log2(longest / shortest));
  const double across = kWidth - kLeft - kRight, down = kHeight - kTop - kBottom;
  const auto x = [&](double tokens) { return kLeft + across * std::log2(tokens / shortest) / octaves; };
  const auto y = [&](double value) { return kTop + down * (1 - value / top); };

  std::string out = opening(kHeight, chart.title);
  const double step = round_step(top);
  for (double value = 0; value <= top * 1.0001; value += step) {
    out += svg_line(kLeft, y(value), kLeft + across, y(value), "grid");
    out += svg_text(kLeft - 8, y(value) + 4, plain_number(value), "end");
  }
  for (double tokens = shortest; tokens <= longest * 1.0001; tokens *= 2)
    out += svg_text(x(tokens), kTop + down + 18, print_tokens(Tokens(static_cast<std::int64_t>(tokens))), "middle");
  out += svg_text(kLeft + across / 2, kHeight - 6.0, "tokens in a sequence", "middle");
  out += svg_text(kLeft - 56, kTop - 4, chart.unit);
  if (chart.here >= shortest && chart.here <= longest) {
    out += svg_line(x(chart.here), kTop, x(chart.here), kTop + down, "here");
    out += svg_text(x(chart.here) + 4, kTop + 12, "this study");
  }
  for (const LineChart::Level& level : chart.levels) {
    out += svg_line(kLeft, y(level.value), kLeft + across, y(level.value), "level");
    out += svg_text(kLeft + across + 6, y(level.value) + 4, level.name);
  }
  // A picture in the picture cuts what leaves it, and needs no name for that.
  out += fmt::format("<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n", kLeft, kTop, across,
                     down);
  for (std::size_t n = 0; n < chart.lines.size(); ++n) {
    std::string path;
    for (const auto& [tokens, value] : chart.lines[n].points)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(tokens), y(value));
    if (path.empty()) continue;
    out += fmt::format("<path d=\"{}\" class=\"curve s{}\"/>\n", path, n % kColours);
    for (const auto& [tokens, value] : chart.lines[n].points)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" class=\"c{}\"/>\n", x(tokens), y(value), n % kColours);
  }
  out += "</svg>\n";
  double at = kTop + down - 18.0 * static_cast<double>(chart.lines.size());
  for (std::size_t n = 0; n < chart.lines.size(); ++n, at += 18) {
    if (chart.lines[n].points.empty()) continue;
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" class=\"c{}\"/>\n", kLeft + across + 8, at,
                       n % kColours);
    out += svg_text(kLeft + across + 26, at + 10, chart.lines[n].name);
  }
  return out + "</svg>\n";
}

std::string svg_of(const PartsChart& chart) {
  constexpr double kLeft = 150, kRight = 120, kRow = 34;
  std::map<std::string, std::size_t> colour_of;
  std::vector<std::string> names;
  double longest = chart.limit;
  for (const PartsChart::Row& row : chart.rows) {
    double sum = 0;
    for (const auto& [name, value] : row.parts) {
      sum += value;
      if (value > 0 && colour_of.emplace(name, names.size()).second) names.push_back(name);
    }
    longest = std::max(longest, sum);
  }
  if (longest <= 0) return {};
  constexpr std::size_t kInALine = 5;
  const std::size_t legend_lines = (names.size() + kInALine - 1) / kInALine;
  const double bars = kRow * static_cast<double>(chart.rows.size());
  const int height = static_cast<int>(bars + 40 + 18 * static_cast<double>(legend_lines));
  const double scale = (kWidth - kLeft - kRight) / longest;

  std::string out = opening(height, chart.title);
  for (std::size_t r = 0; r < chart.rows.size(); ++r) {
    const PartsChart::Row& row = chart.rows[r];
    const double y = kRow * static_cast<double>(r) + 6;
    out += svg_text(kLeft - 8, y + 15, row.name, "end");
    double x = kLeft;
    for (const auto& [name, value] : row.parts) {
      if (value <= 0) continue;
      out +=
          fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"22\" class=\"c{}\"><title>{}</title></rect>\n",
                      x, y, value * scale, colour_of[name] % kColours, escaped(name));
      x += value * scale;
    }
    out += svg_text(std::max(x, kLeft) + 6, y + 15, row.total);
  }
  if (chart.limit > 0) {
    out += svg_line(kLeft + chart.limit * scale, 0, kLeft + chart.limit * scale, bars + 4, "level");
    out += svg_text(kLeft + chart.limit * scale, bars + 16, chart.limit_name, "middle");
  }
  for (std::size_t n = 0; n < names.size(); ++n) {
    const double x = 10 + (kWidth - 20.0) / kInALine * static_cast<double>(n % kInALine);
    const std::size_t line = n / kInALine;
    const double y = bars + 42 + 18 * static_cast<double>(line);
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" class=\"c{}\"/>\n", x, y - 10, n % kColours);
    out += svg_text(x + 18, y, names[n]);
  }
  return out + "</svg>\n";
}

std::string svg_of(const std::vector<const SpanLane*>& lanes, std::int64_t from, std::int64_t to, const std::string& title) {
  constexpr double kLeft = 140, kRight = 12, kRow = 26;
  constexpr std::size_t kColumns = 720;
  const double bars = kRow * static_cast<double>(lanes.size());
  const double across = kWidth - kLeft - kRight;
  std::string out = opening(static_cast<int>(bars + 52), title);
  std::array<bool, kSpanKinds> seen{};
  bool exposed = false;
  for (std::size_t n = 0; n < lanes.size(); ++n) {
    const double y = kRow * static_cast<double>(n) + 4;
    out += svg_text(kLeft - 8, y + 14, lanes[n]->name, "end");
    out += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"20\" class=\"idle\"/>\n", kLeft, y, across);
    const std::vector<Occupancy> columns = occupancy_columns(*lanes[n], sums_of(*lanes[n]), from, to, kColumns);
    // One path per kind: columns as high as their share, the kinds of a column upon each other.
    std::array<std::string, kSpanKinds + 1> paths;
    const double wide = across / static_cast<double>(kColumns);
    for (std::size_t i = 0; i < kColumns; ++i) {
      const double begin = static_cast<double>(from) + static_cast<double>(to - from) * static_cast<double>(i) / kColumns;
      const double end = static_cast<double>(from) + static_cast<double>(to - from) * static_cast<double>(i + 1) / kColumns;
      const double length = std::max(1.0, end - begin);
      double base = y + 20;
      const auto add = [&](std::string& path, double time, bool grows) {
        if (time <= 0) return;
        const double high = std::min(1.0, time / length) * 20;
        path +=
            fmt::format("M{:.2f} {:.2f}h{:.2f}v{:.2f}h-{:.2f}z", kLeft + wide * static_cast<double>(i), base, wide, -high, wide);
        if (grows) base -= high;
      };
      add(paths[kSpanKinds], static_cast<double>(columns[i].exposed), false);
      for (std::size_t kind = 0; kind < kSpanKinds; ++kind) add(paths[kind], static_cast<double>(columns[i].by_kind[kind]), true);
    }
    for (std::size_t kind = 0; kind < kSpanKinds; ++kind) {
      if (paths[kind].empty()) continue;
      seen[kind] = true;
      out += fmt::format("<path d=\"{}\" class=\"c{}\"/>\n", paths[kind], kind);
    }
    if (!paths[kSpanKinds].empty()) {
      exposed = true;
      out += fmt::format("<path d=\"{}\" fill=\"url(#hatch)\"/>\n", paths[kSpanKinds]);
    }
  }
  out += svg_text(kLeft, bars + 18, print_time(Seconds(static_cast<double>(from) * 1e-12)));
  out += svg_text(kLeft + across, bars + 18, print_time(Seconds(static_cast<double>(to) * 1e-12)), "end");
  double x = kLeft;
  for (std::size_t kind = 0; kind < kSpanKinds; ++kind) {
    if (!seen[kind]) continue;
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" class=\"c{}\"/>\n", x, bars + 30, kind);
    const std::string name(name_of(static_cast<SpanKind>(kind)));
    out += svg_text(x + 17, bars + 40, name);
    x += 36 + 7.0 * static_cast<double>(name.size());
  }
  if (exposed) {
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"url(#hatch)\"/>\n", x, bars + 30);
    out += svg_text(x + 17, bars + 40, "exposed: this rank waited for it");
  }
  return out + "</svg>\n";
}

}  // namespace cpfit::report
