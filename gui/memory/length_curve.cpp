#include "gui/memory/length_curve.h"

#include <qcustomplot.h>

#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/memory/memory_tree.h"
#include "gui/memory/sweep_figures.h"
#include "gui/view/plot_look.h"

namespace cpfit::gui {

namespace {

double gib_of(Bytes bytes) { return bytes.value() / kGiB; }

/// Families of components that a stack shows apart: 13 bands would be unreadable.
struct Family {
  const char* name;
  Component color;
  std::vector<Component> components;
};
std::vector<Family> families() {
  return {
      {"Weights, gradients, optimizer", Component::kWeights, {Component::kWeights, Component::kGradients, Component::kOptimizer}},
      {"Activations, recompute", Component::kActivations, {Component::kActivations, Component::kRecompute}},
      {"CP buffers", Component::kCpBuffers, {Component::kCpBuffers}},
      {"Loss and logits", Component::kLoss, {Component::kLoss}},
      {"Transient, pipeline", Component::kTransient, {Component::kTransient, Component::kPipeline}},
      {"Workspace, allocator, context",
       Component::kWorkspace,
       {Component::kWorkspace, Component::kReservedExtra, Component::kCommunicators, Component::kContext}}};
}

constexpr std::array kDashes = {Qt::SolidLine, Qt::DashLine, Qt::DotLine, Qt::DashDotLine, Qt::DashDotDotLine};

/// Words over coloured areas and lines stand on the surface's own colour.
QCPItemText* label_on(QCustomPlot& plot, const QString& text, const QColor& color) {
  auto* label = new QCPItemText(&plot);
  label->setText(text);
  label->setColor(color);
  label->setBrush(QBrush(tokens_for(plot.palette()).surface));
  label->setPadding(QMargins(4, 1, 4, 1));
  label->setFont(plot.font());
  return label;
}

}  // namespace

LengthCurve::LengthCurve(StudyDocument& document, LiveEstimate& live, QWidget* parent)
    : StudyView(QStringLiteral("lengths"), tr("Sequence length"), parent),
      document_(document),
      live_(live),
      headline_(new QLabel(this)),
      held_(new QLabel(this)),
      plot_(new QCustomPlot(this)) {
  headline_->setWordWrap(true);
  held_->setWordWrap(true);
  held_->setForegroundRole(QPalette::PlaceholderText);
  plot_->setAccessibleName(tr("Memory by sequence length"));
  plot_->setFocusPolicy(Qt::StrongFocus);
  plot_->installEventFilter(this);
  plot_->setInteraction(QCP::iRangeDrag, true);
  plot_->axisRect()->setRangeDrag(Qt::Horizontal);
  plot_->xAxis->setLabel(tr("tokens per sequence"));
  plot_->yAxis->setLabel(tr("memory of the worst rank, GiB"));
  plot_->legend->setVisible(true);
  plot_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignLeft | Qt::AlignTop);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(10, 8, 10, 8);
  layout->addWidget(headline_);
  layout->addWidget(plot_, 1);
  layout->addWidget(held_);
  connect(&live_, &LiveEstimate::sweep_changed, this, [this] {
    if (!has_sweep()) fitted_ = false;
    redraw();
  });
  connect(&live_, &LiveEstimate::estimate_changed, this, &LengthCurve::redraw);
  connect(plot_, &QCustomPlot::mouseDoubleClick, this, [this](const QMouseEvent* event) {
    if (!has_sweep()) return;
    // The length whose tick is nearest, on the axis' own scale.
    const double at = plot_->xAxis->pixelToCoord(event->position().x());
    const auto nearest = std::ranges::min_element(
        live_.sweep()->lengths, {}, [at](std::int64_t length) { return std::abs(std::log(static_cast<double>(length) / at)); });
    (void)document_.set_value("sequence_length", to_std(tokens_text(*nearest)));
  });
}

void LengthCurve::redraw() {
  plot_->clearPlottables();
  plot_->clearItems();
  dress(*plot_);
  if (!has_sweep()) {
    headline_->setText(document_.is_open() ? tr("The sweep over lengths is being computed …") : QString());
    held_->clear();
    plot_->replot();
    tell();
    return;
  }
  draw_stack();
  draw_degrees();
  if (!fitted_) fit();
  draw_lines();
  headline_->setText(summary());
  held_->setText(tr("Controlled sweep: %1. Double-click takes a length.").arg(held_text(*live_.sweep())));
  plot_->replot();
  tell();
}

void LengthCurve::draw_stack() {
  const Sweep& sweep = *live_.sweep();
  const ColorTokens& t = tokens_for(palette());
  const std::vector<const SweepPointOrReason*> points = points_of(sweep, document_.design().recipe.cp);
  QVector<double> x;
  for (const SweepPointOrReason* point : points) x.append(static_cast<double>(point->sequence));
  QVector<double> below(x.size(), 0.0);
  QCPGraph* previous = nullptr;
  for (const Family& family : families()) {
    QVector<double> top = below;
    for (qsizetype i = 0; i < x.size(); ++i) {
      for (const Component component : family.components)
        top[i] += gib_of(points[static_cast<std::size_t>(i)]->candidate->memory.components[static_cast<std::size_t>(component)]);
    }
    QCPGraph* graph = plot_->addGraph();
    const QColor color = color_of(t, family.color);
    graph->setPen(QPen(color, 1.0));
    graph->setBrush(mixed(t.surface, color, 0.72));
    graph->setData(x, top, true);
    graph->setName(tr(family.name));
    if (previous != nullptr) graph->setChannelFillGraph(previous);
    previous = graph;
    below = top;
  }
  for (const bool forward : {true, false}) {
    QVector<double> peak;
    for (const SweepPointOrReason* point : points) {
      const StageMemory& memory = point->candidate->memory;
      peak.append(gib_of(forward ? memory.forward_peak : memory.backward_peak));
    }
    QCPGraph* graph = plot_->addGraph();
    graph->setPen(QPen(t.text, 1.6, forward ? Qt::DotLine : Qt::DashLine));
    graph->setData(x, peak, true);
    graph->setName(forward ? tr("forward peak, allocated") : tr("backward peak, allocated"));
  }
}

void LengthCurve::draw_degrees() {
  const Sweep& sweep = *live_.sweep();
  const ColorTokens& t = tokens_for(palette());
  std::size_t style = 0;
  for (const std::int32_t cp : sweep.cps) {
    const std::vector<const SweepPointOrReason*> points = points_of(sweep, cp);
    if (points.empty()) continue;
    QVector<double> x, y;
    for (const SweepPointOrReason* point : points) {
      x.append(static_cast<double>(point->sequence));
      y.append(gib_of(point->candidate->memory.device));
    }
    const bool current = cp == document_.design().recipe.cp;
    QCPGraph* graph = plot_->addGraph();
    graph->setPen(QPen(current ? t.accent : mixed(t.surface, t.text, 0.85), current ? 2.6 : 1.4,
                       current ? Qt::SolidLine : kDashes[style++ % kDashes.size()]));
    graph->setData(x, y, true);
    graph->setName(current ? tr("CP %1, reserved (this recipe)").arg(cp) : tr("CP %1").arg(cp));
    graph->removeFromLegend();
    // The label stands where the curve leaves the picture, or at its end.
    const double limit = gib_of(document_.design().scenario->cluster.gpu.memory_usable) * 1.32;
    qsizetype at = x.size() - 1;
    while (at > 0 && y[at] > limit) --at;
    QCPItemText* label = label_on(*plot_, QStringLiteral("CP %1").arg(cp), current ? t.accent : t.text);
    label->position->setCoords(x[at], y[at]);
    label->setPositionAlignment(Qt::AlignRight | Qt::AlignBottom);
    QFont font = plot_->font();
    font.setBold(current);
    label->setFont(font);
  }
}

void LengthCurve::draw_lines() {
  const ColorTokens& t = tokens_for(palette());
  const Scenario& scenario = *document_.design().scenario;
  const double capacity = gib_of(scenario.cluster.gpu.memory_usable);
  const auto horizontal = [&](double y, const QColor& color, Qt::PenStyle style, const QString& text) {
    auto* line = new QCPItemStraightLine(plot_);
    line->point1->setCoords(1.0, y);
    line->point2->setCoords(2.0, y);
    line->setPen(QPen(color, 1.8, style));
    QCPItemText* label = label_on(*plot_, text, color);
    label->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
    label->position->setCoords(0.995, y);
    label->setPositionAlignment(Qt::AlignRight | (style == Qt::SolidLine ? Qt::AlignBottom : Qt::AlignTop));
  };
  horizontal(capacity, t.bad, Qt::SolidLine, tr("capacity %1").arg(bytes_text(scenario.cluster.gpu.memory_usable)));
  horizontal(capacity * (1.0 - scenario.requirements.memory_margin_share), t.warn, Qt::DashLine,
             tr("margin %1").arg(share_text(scenario.requirements.memory_margin_share)));
  const auto vertical = [&](std::int64_t tokens, const QColor& color, const QString& text, double height, bool left) {
    if (tokens <= 0) return;
    auto* line = new QCPItemStraightLine(plot_);
    line->point1->setCoords(static_cast<double>(tokens), 0.0);
    line->point2->setCoords(static_cast<double>(tokens), 1.0);
    line->setPen(QPen(color, 1.4, Qt::DashLine));
    QCPItemText* label = label_on(*plot_, text, color);
    label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    label->position->setCoords(static_cast<double>(tokens), height);
    label->setPositionAlignment((left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
  };
  vertical(needed_at(*live_.sweep()), t.ring, tr("CP needed from here"), 0.02, false);
  vertical(document_.design().training().sequence.count(), t.accent,
           tr("now %1").arg(tokens_text(document_.design().training().sequence.count())), 0.08, true);
}

void LengthCurve::fit() {
  if (!has_sweep()) return;
  const Sweep& sweep = *live_.sweep();
  show_tokens(*plot_->xAxis, sweep.lengths.front(), sweep.lengths.back());
  plot_->yAxis->setRange(0.0, gib_of(document_.design().scenario->cluster.gpu.memory_usable) * 1.4);
  fitted_ = true;
  plot_->replot();
}

void LengthCurve::zoom(double factor, double around) {
  plot_->xAxis->scaleRange(factor, around);
  plot_->replot();
}

bool LengthCurve::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_) return StudyView::eventFilter(watched, event);
  constexpr double kStep = 0.8;
  if (event->type() == QEvent::Wheel) {
    const auto* wheel = static_cast<QWheelEvent*>(event);
    if ((wheel->modifiers() & Qt::ControlModifier) == 0) return false;
    zoom(std::pow(kStep, wheel->angleDelta().y() / 120.0), plot_->xAxis->pixelToCoord(wheel->position().x()));
    return true;
  }
  if (event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const double middle = std::sqrt(plot_->xAxis->range().lower * plot_->xAxis->range().upper);
    switch (key->key()) {
      case Qt::Key_W:
      case Qt::Key_Plus:
        zoom(kStep, middle);
        return true;
      case Qt::Key_S:
      case Qt::Key_Minus:
        zoom(1.0 / kStep, middle);
        return true;
      case Qt::Key_A:
      case Qt::Key_Left:
      case Qt::Key_D:
      case Qt::Key_Right: {
        const double ratio = std::pow(plot_->xAxis->range().upper / plot_->xAxis->range().lower, 0.1);
        const double by = key->key() == Qt::Key_A || key->key() == Qt::Key_Left ? 1.0 / ratio : ratio;
        plot_->xAxis->setRange(plot_->xAxis->range().lower * by, plot_->xAxis->range().upper * by);
        plot_->replot();
        return true;
      }
      case Qt::Key_Home:
        fit();
        return true;
      default:
        break;
    }
  }
  return false;
}

void LengthCurve::changeEvent(QEvent* event) {
  StudyView::changeEvent(event);
  // The plot has its new palette only after this event.
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
    QMetaObject::invokeMethod(this, &LengthCurve::redraw, Qt::QueuedConnection);
}

QString LengthCurve::summary() const {
  if (!has_sweep()) return tr("No sweep to show");
  const std::int64_t needed = needed_at(*live_.sweep()), faster = faster_at(*live_.sweep());
  const auto from = [](std::int64_t tokens) {
    return tokens > 0 ? tr("from %1 tokens").arg(tokens_text(tokens)) : tr("at no length shown");
  };
  return tr("With all else held, CP above 1 is needed to fit %1 and gives more tokens/s per GPU than CP 1 %2.")
      .arg(from(needed), from(faster));
}

QString LengthCurve::csv() const {
  if (!has_sweep()) return {};
  QString text =
      QStringLiteral("cp,sequence_tokens,gpus,device_bytes,forward_peak_bytes,backward_peak_bytes,step_seconds,fits,reason\n");
  for (const SweepPointOrReason& point : live_.sweep()->points) {
    text += QStringLiteral("%1,%2,%3,").arg(point.cp).arg(point.sequence).arg(point.gpus);
    if (point.candidate) {
      const StageMemory& m = point.candidate->memory;
      text += QStringLiteral("%1,%2,%3,%4,%5,\n")
                  .arg(m.device.value(), 0, 'f', 0)
                  .arg(m.forward_peak.value(), 0, 'f', 0)
                  .arg(m.backward_peak.value(), 0, 'f', 0)
                  .arg(point.candidate->time.step().value(), 0, 'g', 9)
                  .arg(text_of(cpfit::name_of(point.candidate->verdict.fit)));
    } else {
      text += QStringLiteral(",,,,,") + csv_field(text_of(point.reason)) + QLatin1Char('\n');
    }
  }
  return text;
}

QString LengthCurve::command() const {
  if (!document_.is_open()) return {};
  return QStringLiteral("cpfit curve \"%1\" --recipe \"%2\"")
      .arg(document_.path(), text_of(to_text(document_.design().recipe, document_.design().scenario->base)));
}

void LengthCurve::paint_on(QPainter& painter) {
  painter.fillRect(rect(), palette().color(QPalette::Window));
  headline_->render(&painter, headline_->pos(), {}, DrawChildren);
  held_->render(&painter, held_->pos(), {}, DrawChildren);
  paint_plot(*plot_, painter);
}

}  // namespace cpfit::gui
