// Colours are told apart from their ground, hatches ink what they say, figures carry their units.
#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/look/hatch.h"
#include "gui/look/theme.h"
#include "gui/look/ticks.h"

namespace cpfit::gui {
namespace {

class EveryTheme : public testing::TestWithParam<Theme> {};

TEST_P(EveryTheme, KindsAndComponentsStandOutFromTheirGround) {
  const ColorTokens& t = tokens_of(GetParam());
  for (const QColor& color : {t.attention, t.compute, t.ring, t.exposed, t.tp, t.pp, t.dp, t.optimizer, t.foreign, t.other})
    EXPECT_GE(contrast(color, t.surface), 3.0) << color.name().toStdString();
  for (const QColor& color : t.components) EXPECT_GE(contrast(color, t.surface), 3.0) << color.name().toStdString();
}

TEST_P(EveryTheme, TextIsReadableEverywhere) {
  const ColorTokens& t = tokens_of(GetParam());
  for (const QColor& ground : {t.window, t.surface, t.raised}) EXPECT_GE(contrast(t.text, ground), 7.0);
  for (const QColor& ground : {t.window, t.surface}) {
    for (const QColor& color : {t.muted, t.good, t.warn, t.bad, t.accent})
      EXPECT_GE(contrast(color, ground), 4.5) << color.name().toStdString();
  }
  EXPECT_GE(contrast(t.on_accent, t.accent), 4.5);
}

TEST_P(EveryTheme, APaletteRemembersItsTheme) { EXPECT_EQ(theme_of(palette_of(GetParam())), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Themes, EveryTheme, testing::Values(Theme::kLight, Theme::kDark, Theme::kHighContrast));

// The specification's figures: attention #0072B2 has 5.2:1 on white, exposed #FF8A3D 7.0:1 on #1E1F22.
TEST(Colors, ContrastIsTheOneOfWcag) {
  EXPECT_NEAR(contrast(Qt::black, Qt::white), 21.0, 1e-9);
  EXPECT_NEAR(contrast(tokens_of(Theme::kLight).attention, Qt::white), 5.2, 0.05);
  EXPECT_NEAR(contrast(tokens_of(Theme::kDark).exposed, tokens_of(Theme::kDark).surface), 7.0, 0.1);
}

TEST(Colors, TheSystemsThemeIsReadFromItsPalette) {
  QPalette desktop;
  desktop.setColor(QPalette::Window, QColor(0x30, 0x30, 0x30));
  desktop.setColor(QPalette::WindowText, Qt::white);
  EXPECT_EQ(resolved(ThemeChoice::kSystem, desktop), Theme::kDark);
  EXPECT_EQ(resolved(ThemeChoice::kLight, desktop), Theme::kLight);
}

TEST(Themes, NamesReadBack) {
  for (const ThemeChoice choice : {ThemeChoice::kSystem, ThemeChoice::kLight, ThemeChoice::kDark, ThemeChoice::kHighContrast})
    EXPECT_EQ(theme_named(name_of(choice)), choice);
  EXPECT_FALSE(theme_named("blue"));
}

TEST(Themes, ScalesStepAndStop) {
  EXPECT_DOUBLE_EQ(stepped_scale(1.0, 1), 1.15);
  EXPECT_DOUBLE_EQ(stepped_scale(1.0, -1), 0.85);
  EXPECT_DOUBLE_EQ(stepped_scale(2.0, 1), 2.0);
  EXPECT_DOUBLE_EQ(stepped_scale(0.75, -1), 0.75);
}

TEST(Hatches, LeanTheirWay) {
  // "/" repeats along x + y: one to the right and one up is the same ink.
  for (int x = 0; x < 12; ++x) {
    for (int y = 0; y < 12; ++y) {
      EXPECT_EQ(inks(Hatch::kExposed, x, y), inks(Hatch::kExposed, x + 1, y - 1));
      EXPECT_EQ(inks(Hatch::kRecompute, x, y), inks(Hatch::kRecompute, x + 1, y + 1));
    }
  }
  EXPECT_FALSE(inks(Hatch::kNone, 0, 0));
}

TEST(Hatches, APaintedAreaIsInkedInsideOnly) {
  for (const Hatch hatch : {Hatch::kExposed, Hatch::kRecompute, Hatch::kIdle, Hatch::kRisk}) {
    QImage image(60, 60, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    paint_hatch(painter, QRectF(20, 20, 20, 20), hatch, Qt::black);
    painter.end();
    int inside = 0, outside = 0;
    for (int y = 0; y < 60; ++y) {
      for (int x = 0; x < 60; ++x) {
        if (image.pixel(x, y) == QColor(Qt::white).rgb()) continue;
        ++(x >= 20 && x < 40 && y >= 20 && y < 40 ? inside : outside);
      }
    }
    EXPECT_GT(inside, 10) << static_cast<int>(hatch);
    EXPECT_LT(inside, 400) << static_cast<int>(hatch);
    EXPECT_EQ(outside, 0) << static_cast<int>(hatch);
  }
}

TEST(Figures, HaveThreeDigitsAndAUnit) {
  EXPECT_EQ(bytes_text(gib(71.234)), "71.2 GiB");
  EXPECT_EQ(bytes_text(mib(512)), "512 MiB");
  EXPECT_EQ(time_text(Seconds(4.8149)), "4.81 s");
  EXPECT_EQ(time_text(Seconds(3.1e-4)), "310 µs");
  EXPECT_EQ(share_text(0.934), "93.4 %");
  EXPECT_EQ(share_text(0.00000061), "< 0.1 %");
  EXPECT_EQ(share_text(-0.25), QStringLiteral("−25 %"));
  EXPECT_EQ(tokens_text(131072), "128k");
  EXPECT_EQ(three_digits(1893.7), "1,894");
}

TEST(Figures, DifferencesCarryTheirSign) {
  EXPECT_EQ(signed_time(Seconds(-1.32)), QStringLiteral("−1.32 s"));
  EXPECT_EQ(signed_bytes(gib(4.1)), "+4.1 GiB");
  EXPECT_EQ(signed_share(0.0), QStringLiteral("±0"));
  EXPECT_EQ(signed_share(-0.25), QStringLiteral("−25 %"));
  EXPECT_EQ(signed_share(-0.00002), "< 0.1 %");
}

TEST(Figures, AFieldOfCsvIsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
}

TEST(Ticks, AreNiceAndInside) {
  EXPECT_EQ(nice_ticks(0.0, 1.0, 5), (std::vector<double>{0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0}));
  EXPECT_TRUE(nice_ticks(1.0, 1.0, 5).empty());
  for (const double tick : nice_ticks(-3.3, 17.9, 6)) {
    EXPECT_GE(tick, -3.3);
    EXPECT_LE(tick, 17.9);
  }
  EXPECT_EQ(tick_text(0.6000000000000001, 0.2), "0.6");
  EXPECT_EQ(power_ticks(3, 40), (std::vector<std::int64_t>{4, 8, 16, 32}));
}

}  // namespace
}  // namespace cpfit::gui
