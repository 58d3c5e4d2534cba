#include "gui/look/color_tokens.h"

#include <algorithm>
#include <cmath>

namespace cpfit::gui {

namespace {

QColor rgb(unsigned value) { return QColor::fromRgb(static_cast<QRgb>(0xff000000u | value)); }

ColorTokens light() {
  ColorTokens t;
  t.window = rgb(0xF3F4F6);
  t.surface = rgb(0xFFFFFF);
  t.raised = rgb(0xE7E9ED);
  t.text = rgb(0x1B1D21);
  t.muted = rgb(0x595F69);
  t.line = rgb(0xC9CDD4);
  t.grid = rgb(0xE6E8EC);
  t.accent = rgb(0x1F5FBF);
  t.on_accent = rgb(0xFFFFFF);
  t.good = rgb(0x1B7F3B);
  t.warn = rgb(0x8A6A00);
  t.bad = rgb(0xB3261E);
  t.attention = rgb(0x0072B2);
  t.compute = rgb(0x5B7FA6);
  t.ring = rgb(0x00795A);
  t.exposed = rgb(0xC44E00);
  t.tp = rgb(0xA8477F);
  t.pp = rgb(0x8A6A00);
  t.dp = rgb(0x6B5B95);
  t.optimizer = rgb(0x5F6B6D);
  t.foreign = rgb(0x7A4A2B);
  t.other = rgb(0x7C8289);
  t.components = {rgb(0x1F4E8C), rgb(0x4477BB), rgb(0x6B8CBF), rgb(0xAD7700), rgb(0x7A5C00), rgb(0x00795A), rgb(0x8C2D62),
                  rgb(0x6B5B95), rgb(0xA8477F), rgb(0x5F6B6D), rgb(0x7C8789), rgb(0x46555A), rgb(0x2E3B40)};
  return t;
}

ColorTokens dark() {
  ColorTokens t;
  t.window = rgb(0x17181B);
  t.surface = rgb(0x1E1F22);
  t.raised = rgb(0x2B2D31);
  t.text = rgb(0xE6E8EB);
  t.muted = rgb(0xA3A9B3);
  t.line = rgb(0x3C3F45);
  t.grid = rgb(0x2C2E33);
  t.accent = rgb(0x6FA8FF);
  t.on_accent = rgb(0x10131A);
  t.good = rgb(0x5FD38A);
  t.warn = rgb(0xF0C24B);
  t.bad = rgb(0xFF8A80);
  t.attention = rgb(0x4FA3DC);
  t.compute = rgb(0x8FB4D9);
  t.ring = rgb(0x2FBF95);
  t.exposed = rgb(0xFF8A3D);
  t.tp = rgb(0xE58FBF);
  t.pp = rgb(0xE0B63A);
  t.dp = rgb(0xB3A2E0);
  t.optimizer = rgb(0xA9B4B6);
  t.foreign = rgb(0xD2A07C);
  t.other = rgb(0x8F969E);
  t.components = {rgb(0x5E97DB), rgb(0x8FB8EC), rgb(0xBCD5F5), rgb(0xE0B63A), rgb(0xB98F2A), rgb(0x2FBF95), rgb(0xE58FBF),
                  rgb(0xB3A2E0), rgb(0xCC74A6), rgb(0xA9B4B6), rgb(0x87949A), rgb(0x6F8088), rgb(0xC9D2D4)};
  return t;
}

ColorTokens high_contrast() {
  ColorTokens t;
  t.window = rgb(0x000000);
  t.surface = rgb(0x000000);
  t.raised = rgb(0x1A1A1A);
  t.text = rgb(0xFFFFFF);
  t.muted = rgb(0xDDDDDD);
  t.line = rgb(0xFFFFFF);
  t.grid = rgb(0x555555);
  t.accent = rgb(0xFFE100);
  t.on_accent = rgb(0x000000);
  t.good = rgb(0x5CFF8F);
  t.warn = rgb(0xFFE100);
  t.bad = rgb(0xFF9D94);
  t.attention = rgb(0x4FC3FF);
  t.compute = rgb(0xC6DBF5);
  t.ring = rgb(0x3DF0B4);
  t.exposed = rgb(0xFF9C4D);
  t.tp = rgb(0xFFA6DA);
  t.pp = rgb(0xFFD34D);
  t.dp = rgb(0xCDBBFF);
  t.optimizer = rgb(0xD5DEE0);
  t.foreign = rgb(0xFFC9A3);
  t.other = rgb(0xBBBBBB);
  t.components = {rgb(0x6FB4FF), rgb(0xA5D0FF), rgb(0xD4E8FF), rgb(0xFFD34D), rgb(0xD6A820), rgb(0x3DF0B4), rgb(0xFFA6DA),
                  rgb(0xCDBBFF), rgb(0xFF80C4), rgb(0xD5DEE0), rgb(0xA9B4B8), rgb(0x8CA0A8), rgb(0xFFFFFF)};
  return t;
}

double linear(double channel) { return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4); }

double luminance(const QColor& color) {
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

}  // namespace

const ColorTokens& tokens_of(Theme theme) {
  static const std::array<ColorTokens, kThemes> kTokens = {light(), dark(), high_contrast()};
  return kTokens[static_cast<std::size_t>(theme)];
}

Theme theme_of(const QPalette& palette) {
  const QColor window = palette.color(QPalette::Active, QPalette::Window);
  if (window == tokens_of(Theme::kHighContrast).window) return Theme::kHighContrast;
  return luminance(window) < luminance(palette.color(QPalette::Active, QPalette::WindowText)) ? Theme::kDark : Theme::kLight;
}

const ColorTokens& tokens_for(const QPalette& palette) { return tokens_of(theme_of(palette)); }

QColor color_of(const ColorTokens& tokens, SpanKind kind) {
  switch (kind) {
    case SpanKind::kAttention:
      return tokens.attention;
    case SpanKind::kCompute:
      return tokens.compute;
    case SpanKind::kOptimizer:
      return tokens.optimizer;
    case SpanKind::kCp:
      return tokens.ring;
    case SpanKind::kTp:
      return tokens.tp;
    case SpanKind::kPp:
      return tokens.pp;
    case SpanKind::kDp:
      return tokens.dp;
    case SpanKind::kForeign:
      return tokens.foreign;
    case SpanKind::kOther:
      break;
  }
  return tokens.other;
}

QColor color_of(const ColorTokens& tokens, Component component) { return tokens.components[static_cast<std::size_t>(component)]; }

QColor color_of(const ColorTokens& tokens, Fit fit) {
  switch (fit) {
    case Fit::kFits:
      return tokens.good;
    case Fit::kAtRisk:
      return tokens.warn;
    case Fit::kOom:
      break;
  }
  return tokens.bad;
}

double contrast(const QColor& a, const QColor& b) {
  const double la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

QColor mixed(const QColor& ground, const QColor& over, double share) {
  const auto blend = [share](float from, float to) { return static_cast<float>(from + (to - from) * share); };
  return QColor::fromRgbF(blend(ground.redF(), over.redF()), blend(ground.greenF(), over.greenF()),
                          blend(ground.blueF(), over.blueF()));
}

}  // namespace cpfit::gui
