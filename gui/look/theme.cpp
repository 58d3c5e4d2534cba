#include "gui/look/theme.h"

#include <QApplication>
#include <QFont>
#include <QStyle>
#include <QStyleFactory>
#include <array>
#include <cmath>

namespace cpfit::gui {

namespace {

constexpr std::array kNames = {"system", "light", "dark", "high-contrast"};
constexpr std::array kScales = {0.75, 0.85, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0};

}  // namespace

QString name_of(ThemeChoice choice) { return QString::fromLatin1(kNames[static_cast<std::size_t>(choice)]); }

std::optional<ThemeChoice> theme_named(const QString& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name == QLatin1String(kNames[i])) return static_cast<ThemeChoice>(i);
  }
  return std::nullopt;
}

QPalette palette_of(Theme theme) {
  const ColorTokens& t = tokens_of(theme);
  QPalette palette;
  palette.setColor(QPalette::Window, t.window);
  palette.setColor(QPalette::WindowText, t.text);
  palette.setColor(QPalette::Base, t.surface);
  palette.setColor(QPalette::AlternateBase, mixed(t.surface, t.text, 0.03));
  palette.setColor(QPalette::Text, t.text);
  palette.setColor(QPalette::PlaceholderText, t.muted);
  palette.setColor(QPalette::Button, t.raised);
  palette.setColor(QPalette::ButtonText, t.text);
  palette.setColor(QPalette::BrightText, t.bad);
  palette.setColor(QPalette::ToolTipBase, t.raised);
  palette.setColor(QPalette::ToolTipText, t.text);
  palette.setColor(QPalette::Highlight, t.accent);
  palette.setColor(QPalette::HighlightedText, t.on_accent);
  palette.setColor(QPalette::Link, t.accent);
  palette.setColor(QPalette::LinkVisited, t.accent);
  palette.setColor(QPalette::Light, mixed(t.raised, t.surface, 0.6));
  palette.setColor(QPalette::Midlight, mixed(t.raised, t.surface, 0.3));
  palette.setColor(QPalette::Mid, t.line);
  palette.setColor(QPalette::Dark, mixed(t.line, t.text, 0.2));
  palette.setColor(QPalette::Shadow, mixed(t.window, Qt::black, 0.5));
  const QColor faint = mixed(t.surface, t.text, 0.45);
  for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, faint);
  palette.setColor(QPalette::Disabled, QPalette::Highlight, t.line);
  return palette;
}

Theme resolved(ThemeChoice choice, const QPalette& desktop) {
  switch (choice) {
    case ThemeChoice::kLight:
      return Theme::kLight;
    case ThemeChoice::kDark:
      return Theme::kDark;
    case ThemeChoice::kHighContrast:
      return Theme::kHighContrast;
    case ThemeChoice::kSystem:
      break;
  }
  return theme_of(desktop);
}

void apply_look(QApplication& application, Theme theme, double scale, double base_points) {
  if (QApplication::style()->name() != QLatin1String("fusion")) QApplication::setStyle(QStyleFactory::create("fusion"));
  QApplication::setPalette(palette_of(theme));
  QFont font = QApplication::font();
  font.setPointSizeF(base_points * scale);
  QApplication::setFont(font);
  application.setProperty("cpfitScale", scale);
}

double stepped_scale(double scale, int by) {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < kScales.size(); ++i) {
    if (std::abs(kScales[i] - scale) < std::abs(kScales[nearest] - scale)) nearest = i;
  }
  const auto moved = static_cast<std::ptrdiff_t>(nearest) + by;
  return kScales[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(moved, 0, static_cast<std::ptrdiff_t>(kScales.size()) - 1))];
}

}  // namespace cpfit::gui
