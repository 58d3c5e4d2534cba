// Paints one frame of the step timeline. Everything that depends on data comes from the pure cores; here are lines and words.
#pragma once

#include <QColor>
#include <QFont>
#include <QRect>

#include "gui/timeline/timeline_view.h"

class QPainter;

namespace cpfit::gui {

[[nodiscard]] RasterPalette raster_palette(const ColorTokens& tokens);

class TimelinePainter {
 public:
  TimelinePainter(const TimelineView& view, QPainter& painter);
  void paint();

 private:
  void overview();
  void ruler();
  void ring_steps(const TimeScale& scale);
  void label_column();
  void lanes();
  void step_end(const TimeScale& scale);
  void span_labels();
  void selection();
  void flow();
  void range();
  void markers();
  void tracks();
  void track_frame(const QRect& area, const QString& title, const QStringList& lines);
  void memory_track(const QRect& area, std::size_t index, const MemoryStack& stack);
  void link_track(const QRect& area, std::size_t index, const LinkTrack& link);
  void in_flight_track(const QRect& area, std::int32_t rank);
  void info();
  void legend(const QRect& area);
  void state();

  /// The rectangle of a span on the screen; nothing where its lane has no row or is scrolled away.
  [[nodiscard]] std::optional<QRectF> rect_of(SpanRef span) const;
  /// Where an arrow to or from a span that may be out of sight begins.
  [[nodiscard]] std::optional<QPointF> anchor(SpanRef span, bool end) const;
  void arrow(const QPointF& from, const QPointF& to, const QColor& color, double width, const QString& word);
  void words(const QRectF& area, const QString& text, const QColor& color, Qt::Alignment alignment);
  [[nodiscard]] QImage& track_image(std::size_t index, const QRect& plot) const;

  const TimelineView& view_;
  QPainter& painter_;
  const ColorTokens& tokens_;
  const TimelineGeometry& at_;
  const StepPicture* picture_;
  QFont small_;
};

}  // namespace cpfit::gui
