#include "gui/calibration/agreement_view.h"

#include <qcustomplot.h>

#include <QComboBox>
#include <QHBoxLayout>
#include <QHelpEvent>
#include <QLabel>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <map>

#include "gui/calibration/plot_note.h"
#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/view/plot_look.h"

namespace cpfit::gui {

AgreementView::AgreementView(QWidget* parent)
    : QWidget(parent), metrics_(new QComboBox(this)), sentence_(new QLabel(this)), scatter_(new QCustomPlot(this)) {
  metrics_->setAccessibleName(tr("Figure that was predicted and measured"));
  sentence_->setWordWrap(true);
  scatter_->setAccessibleName(tr("Predicted against measured"));
  scatter_->setFocusPolicy(Qt::StrongFocus);
  scatter_->setInteraction(QCP::iRangeDrag, true);
  scatter_->setInteraction(QCP::iRangeZoom, true);
  scatter_->installEventFilter(this);
  auto* head = new QHBoxLayout;
  head->addWidget(metrics_);
  head->addWidget(sentence_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 6, 0, 0);
  layout->addLayout(head);
  layout->addWidget(scatter_, 1);
  connect(metrics_, &QComboBox::currentIndexChanged, this, &AgreementView::draw);
  show_content(nullptr);
}

void AgreementView::show_content(const std::shared_ptr<const DatabaseContent>& content) {
  agreements_ = content ? agreements(content->validations) : std::vector<Agreement>();
  why_none_ = content
                  ? tr("%1 holds no validation. `cpfit validate TABLE.csv --db FILE` stores predicted beside measured rows of a "
                       "table.")
                        .arg(content->path)
                  : tr("Open a result database with validations: `cpfit validate TABLE.csv --db FILE` stores predicted beside "
                       "measured rows of a table, and they appear here.");
  const QSignalBlocker quiet(metrics_);
  metrics_->clear();
  for (const Agreement& agreement : agreements_)
    metrics_->addItem(QStringLiteral("%1 (%2)").arg(metric_label(agreement.metric)).arg(agreement.points.size()));
  metrics_->setEnabled(!agreements_.empty());
  draw();
}

QString AgreementView::sentence() const {
  return agreements_.empty() ? tr("No validation is open: nothing measured to compare predictions with.") : sentence_->text();
}

QString AgreementView::csv() const {
  const int index = metrics_->currentIndex();
  if (index < 0 || index >= static_cast<int>(agreements_.size())) return {};
  QString text = QStringLiteral("file,line,label,group,measured,predicted,low,high\n");
  for (const AgreementPoint& point : agreements_[static_cast<std::size_t>(index)].points) {
    text += QStringLiteral("%1,%2,%3,%4,")
                .arg(csv_field(point.file))
                .arg(point.line)
                .arg(csv_field(point.label), csv_field(point.group));
    text += QStringLiteral("%1,%2,%3,%4\n")
                .arg(point.measured, 0, 'g', 9)
                .arg(point.predicted, 0, 'g', 9)
                .arg(point.low, 0, 'g', 9)
                .arg(point.high, 0, 'g', 9);
  }
  return text;
}

void AgreementView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  // The plot has its new palette only after this event.
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
    QMetaObject::invokeMethod(this, &AgreementView::draw, Qt::QueuedConnection);
}

void AgreementView::draw() {
  scatter_->clearPlottables();
  scatter_->clearItems();
  dress(*scatter_);
  scatter_->legend->setVisible(false);
  const int index = metrics_->currentIndex();
  const bool any = index >= 0 && index < static_cast<int>(agreements_.size());
  for (QCPAxis* axis : {scatter_->xAxis, scatter_->yAxis}) axis->setVisible(any);
  metrics_->setVisible(any);
  if (!any) {
    sentence_->clear();
    note_in(*scatter_, why_none_);
    scatter_->replot(QCustomPlot::rpQueuedReplot);
    return emit changed();
  }
  const ColorTokens& t = tokens_for(palette());
  const Agreement& agreement = agreements_[static_cast<std::size_t>(index)];
  sentence_->setText(agreement_sentence(agreement));
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  std::map<QString, std::vector<const AgreementPoint*>> groups;
  for (const AgreementPoint& point : agreement.points) {
    low = std::min({low, point.measured, point.predicted});
    high = std::max({high, point.measured, point.predicted});
    groups[point.file].push_back(&point);
  }
  low /= 1.3;
  high *= 1.3;
  for (QCPAxis* axis : {scatter_->xAxis, scatter_->yAxis}) {
    axis->setScaleType(QCPAxis::stLogarithmic);
    axis->setTicker(QSharedPointer<QCPAxisTickerLog>(new QCPAxisTickerLog));
    axis->setNumberFormat(QStringLiteral("gb"));
    axis->setNumberPrecision(2);
    axis->setRange(low, high);
  }
  scatter_->xAxis->setLabel(tr("measured: %1").arg(metric_label(agreement.metric)));
  scatter_->yAxis->setLabel(tr("predicted"));
  const auto line = [&](double factor, const QColor& color, Qt::PenStyle style, const QString& name) {
    QCPGraph* graph = scatter_->addGraph();
    graph->setData({low, high}, {low * factor, high * factor}, true);
    graph->setPen(QPen(color, style == Qt::SolidLine ? 1.6 : 1.0, style));
    if (name.isEmpty())
      graph->removeFromLegend();
    else
      graph->setName(name);
  };
  line(1.0, t.text, Qt::SolidLine, tr("equal"));
  line(1.1, t.muted, Qt::DashLine, tr("10 % apart"));
  line(1.0 / 1.1, t.muted, Qt::DashLine, {});
  constexpr std::array kShapes = {QCPScatterStyle::ssCircle,  QCPScatterStyle::ssSquare,           QCPScatterStyle::ssTriangle,
                                  QCPScatterStyle::ssDiamond, QCPScatterStyle::ssTriangleInverted, QCPScatterStyle::ssCross};
  const std::array<QColor, 6> colors = {t.attention, t.exposed, t.ring, t.tp, t.dp, t.pp};
  constexpr std::size_t kNamed = 10;  // tables in the legend; more would hide the picture
  std::size_t number = 0;
  for (const auto& [file, points] : groups) {
    QVector<double> x, y, minus, plus;
    for (const AgreementPoint* point : points) {
      x.append(point->measured);
      y.append(point->predicted);
      minus.append(std::max(0.0, point->predicted - point->low));
      plus.append(std::max(0.0, point->high - point->predicted));
    }
    const QColor color = colors[number % colors.size()];
    QCPGraph* graph = scatter_->addGraph();
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(
        QCPScatterStyle(kShapes[(number + number / colors.size()) % kShapes.size()], QPen(color, 1.4), Qt::NoBrush, 6.5));
    graph->setData(x, y);
    graph->setName(QStringLiteral("%1 (%2)").arg(file).arg(points.size()));
    if (number >= kNamed) graph->removeFromLegend();
    auto* bars = new QCPErrorBars(scatter_->xAxis, scatter_->yAxis);
    bars->setDataPlottable(graph);
    bars->setErrorType(QCPErrorBars::etValueError);
    bars->setData(minus, plus);
    QColor pale = color;
    pale.setAlphaF(0.35F);
    bars->setPen(QPen(pale, 1.0));
    bars->setWhiskerWidth(3);
    bars->removeFromLegend();
    ++number;
  }
  scatter_->legend->setVisible(true);
  scatter_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignLeft | Qt::AlignTop);
  scatter_->setAccessibleDescription(sentence_->text());
  scatter_->replot(QCustomPlot::rpQueuedReplot);
  emit changed();
}

const AgreementPoint* AgreementView::point_at(const QPointF& at) const {
  const int index = metrics_->currentIndex();
  if (index < 0 || index >= static_cast<int>(agreements_.size())) return nullptr;
  constexpr double kReach = 12.0;
  const AgreementPoint* nearest = nullptr;
  double least = kReach * kReach;
  for (const AgreementPoint& point : agreements_[static_cast<std::size_t>(index)].points) {
    const double dx = scatter_->xAxis->coordToPixel(point.measured) - at.x();
    const double dy = scatter_->yAxis->coordToPixel(point.predicted) - at.y();
    if (dx * dx + dy * dy >= least) continue;
    least = dx * dx + dy * dy;
    nearest = &point;
  }
  return nearest;
}

bool AgreementView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == scatter_ && event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const AgreementPoint* point = point_at(help->pos())) {
      QString text =
          tr("%1, line %2: %3\nmeasured %4, predicted %5 (%6), interval %7 to %8")
              .arg(point->file)
              .arg(point->line)
              .arg(point->label, three_digits(point->measured), three_digits(point->predicted),
                   signed_share(point->predicted / point->measured - 1.0), three_digits(point->low), three_digits(point->high));
      if (point->searched) text += tr("\nSome inputs are not said by the source and were found by search.");
      QToolTip::showText(help->globalPos(), text, scatter_);
    } else {
      QToolTip::hideText();
    }
    return true;
  }
  if (watched == scatter_ && event->type() == QEvent::KeyPress && static_cast<QKeyEvent*>(event)->key() == Qt::Key_Home) {
    draw();
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace cpfit::gui
