// A theme as a palette of Qt's Fusion style. Widgets find their tokens again through their palette (color_tokens.h): no global.
#pragma once

#include <QPalette>
#include <QString>
#include <optional>

#include "gui/look/color_tokens.h"

class QApplication;

namespace cpfit::gui {

/// What a person chooses: "system" follows the desktop's palette.
enum class ThemeChoice : std::uint8_t { kSystem, kLight, kDark, kHighContrast };

[[nodiscard]] QString name_of(ThemeChoice choice);  // "system", "light", "dark", "high-contrast"
[[nodiscard]] std::optional<ThemeChoice> theme_named(const QString& name);

[[nodiscard]] QPalette palette_of(Theme theme);
/// The theme of a choice where `desktop` is the palette the desktop asked for.
[[nodiscard]] Theme resolved(ThemeChoice choice, const QPalette& desktop);

/// Fusion, the theme's palette, and the system's font at `scale` (0.75 to 2) times `base_points`.
void apply_look(QApplication& application, Theme theme, double scale, double base_points);

/// Steps of Ctrl+= and Ctrl+-; the nearest to `scale` moved by `by`.
[[nodiscard]] double stepped_scale(double scale, int by);

}  // namespace cpfit::gui
