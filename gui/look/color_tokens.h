// Every colour of the desktop program, by meaning and theme; nothing else names a colour. Kinds of time and components of memory
// have at least 3:1 against the ground they are painted on, text at least 4.5:1; a test computes both. Colour is never the only
// sign: lanes, labels and hatches (hatch.h) carry the same meaning.
#pragma once

#include <QColor>
#include <QPalette>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/memory/ledger.h"
#include "model/record/lane.h"

namespace cpfit::gui {

enum class Theme : std::uint8_t { kLight, kDark, kHighContrast };
inline constexpr std::size_t kThemes = 3;

struct ColorTokens {
  QColor window;     // behind everything
  QColor surface;    // ground of plots, tables and fields
  QColor raised;     // buttons, headers, chips
  QColor text;       // on all three
  QColor muted;      // second-rank text, at least 4.5:1 on surface and window
  QColor line;       // separators and frames
  QColor grid;       // lines inside plots
  QColor accent;     // selection, focus, the current value
  QColor on_accent;  // text on accent
  QColor good, warn, bad;
  QColor attention, compute, ring, exposed, tp, pp, dp, optimizer, foreign, other;  // what fills time
  std::array<QColor, kComponentCount> components;                                   // what fills memory
};

[[nodiscard]] const ColorTokens& tokens_of(Theme theme);

/// The theme a palette was made for (theme.h), or the nearest to a palette of the desktop's own: by its window's lightness.
[[nodiscard]] Theme theme_of(const QPalette& palette);
/// What a widget paints with: tokens_for(palette()).
[[nodiscard]] const ColorTokens& tokens_for(const QPalette& palette);

[[nodiscard]] QColor color_of(const ColorTokens& tokens, SpanKind kind);
[[nodiscard]] QColor color_of(const ColorTokens& tokens, Component component);
[[nodiscard]] QColor color_of(const ColorTokens& tokens, Fit fit);

/// WCAG 2.1 contrast ratio, 1 to 21; alpha is not looked at.
[[nodiscard]] double contrast(const QColor& a, const QColor& b);
/// `share` of `over` on `ground`.
[[nodiscard]] QColor mixed(const QColor& ground, const QColor& over, double share);

}  // namespace cpfit::gui
