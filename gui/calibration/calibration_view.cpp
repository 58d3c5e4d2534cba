#include "gui/calibration/calibration_view.h"

#include <qcustomplot.h>

#include <QComboBox>
#include <QDateTime>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QTableWidget>
#include <QTextBrowser>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/calibration/surface_table.h"
#include "gui/look/color_tokens.h"
#include "gui/look/figures.h"
#include "gui/view/plot_look.h"
#include "gui/view/quiet_table.h"
#include "sim/screen/composition.h"

namespace cpfit::gui {

namespace {

void note_in(QCustomPlot& plot, const QString& text) {
  auto* item = new QCPItemText(&plot);
  item->position->setType(QCPItemPosition::ptAxisRectRatio);
  item->position->setCoords(0.5, 0.5);
  item->setText(text);
  item->setColor(tokens_for(plot.palette()).muted);
  item->setFont(plot.font());
}

/// A sentence in lines of about so many characters: a plot's text does not wrap by itself.
QString in_lines(const QString& text, int length) {
  QString lines;
  int used = 0;
  for (const QString& word : text.split(QLatin1Char(' '))) {
    if (used > 0 && used + word.size() > length) {
      lines += QLatin1Char('\n');
      used = 0;
    } else if (used > 0) {
      lines += QLatin1Char(' ');
    }
    lines += word;
    used += static_cast<int>(word.size()) + 1;
  }
  return lines;
}

/// Powers of two with K, M, G on an axis of bytes or sizes.
void sizes_on(QCPAxis& axis, double low, double high) {
  axis.setScaleType(QCPAxis::stLogarithmic);
  const QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  const double first = std::ceil(std::log2(std::max(1.0, low))), last = std::floor(std::log2(std::max(2.0, high)));
  const double step = std::max(1.0, std::ceil((last - first) / 9.0));
  for (double exponent = first; exponent <= last; exponent += step) {
    const double value = std::exp2(exponent);
    const double gibi = 1024.0 * 1024.0 * 1024.0;
    const QString text = value >= gibi              ? QStringLiteral("%1 G").arg(value / gibi)
                         : value >= 1024.0 * 1024.0 ? QStringLiteral("%1 M").arg(value / 1024.0 / 1024.0)
                         : value >= 1024.0          ? QStringLiteral("%1 k").arg(value / 1024.0)
                                                    : QString::number(value);
    ticker->addTick(value, text);
  }
  axis.setTicker(ticker);
  axis.setRange(low, high);
}

}  // namespace

CalibrationView::CalibrationView(StudyDocument& document, Jobs& jobs, OpenedDatabase& database, QWidget* parent)
    : StudyView(QStringLiteral("calibration"), tr("Calibration"), parent),
      document_(document),
      jobs_(jobs),
      database_(database),
      tabs_(new QTabWidget(this)),
      list_(new QTableWidget(0, 6, this)),
      provenance_(new QTextBrowser(this)),
      filter_(new QLineEdit(this)),
      table_(new QTableView(this)),
      surfaces_(new SurfaceTable(this)),
      headline_(new QLabel(this)),
      curve_(new QCustomPlot(this)),
      metrics_(new QComboBox(this)),
      agreement_(new QLabel(this)),
      scatter_(new QCustomPlot(this)) {
  tabs_->addTab(build_curves(), tr("&Curves"));
  tabs_->addTab(build_agreement(), tr("&Predicted against measured"));
  tabs_->setDocumentMode(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 4, 6, 6);
  layout->addWidget(tabs_);
  connect(tabs_, &QTabWidget::currentChanged, this, [this] { tell(); });
  connect(&database_, &OpenedDatabase::content_changed, this, [this] {
    refresh_list();
    refresh_agreement();
  });
  connect(&document_, &StudyDocument::opened_changed, this, &CalibrationView::prefer_surface);
  refresh_list();
  refresh_agreement();
}

QWidget* CalibrationView::build_curves() {
  list_->setAccessibleName(tr("Calibrations"));
  list_->setHorizontalHeaderLabels({tr("Calibration"), tr("Of"), tr("Curves"), tr("Hold-out"), tr("Age"), tr("Files")});
  make_quiet(list_);
  list_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  provenance_->setAccessibleName(tr("Where the calibration comes from"));
  provenance_->setFrameShape(QFrame::NoFrame);
  filter_->setAccessibleName(tr("Filter of surfaces"));
  filter_->setPlaceholderText(tr("Filter: H100 attention"));
  filter_->setClearButtonEnabled(true);
  table_->setModel(surfaces_);
  table_->setAccessibleName(tr("Surfaces"));
  make_quiet(table_);
  headline_->setWordWrap(true);
  curve_->setAccessibleName(tr("Curve of the surface"));
  curve_->setFocusPolicy(Qt::StrongFocus);
  curve_->setMinimumHeight(150);
  auto* left = new QSplitter(Qt::Vertical, this);
  left->addWidget(list_);
  left->addWidget(provenance_);
  left->setSizes({130, 260});
  left->setChildrenCollapsible(false);
  auto* upper = new QWidget(this);
  auto* upper_layout = new QVBoxLayout(upper);
  upper_layout->setContentsMargins(0, 0, 0, 0);
  upper_layout->setSpacing(4);
  upper_layout->addWidget(filter_);
  upper_layout->addWidget(table_, 1);
  auto* lower = new QWidget(this);
  auto* lower_layout = new QVBoxLayout(lower);
  lower_layout->setContentsMargins(0, 0, 0, 0);
  lower_layout->setSpacing(4);
  lower_layout->addWidget(headline_);
  lower_layout->addWidget(curve_, 1);
  auto* right = new QSplitter(Qt::Vertical, this);
  right->addWidget(upper);
  right->addWidget(lower);
  right->setSizes({190, 330});
  right->setChildrenCollapsible(false);
  auto* page = new QSplitter(Qt::Horizontal, this);
  page->addWidget(left);
  page->addWidget(right);
  page->setSizes({330, 680});
  page->setChildrenCollapsible(false);
  connect(list_, &QTableWidget::currentCellChanged, this, [this](int row, int, int before, int) {
    if (row != before) choose(row);
  });
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    const std::size_t kept = surface();
    surfaces_->show_surfaces(shown_, text);
    const int row = surfaces_->row_of(kept);
    table_->setCurrentIndex(surfaces_->index(row >= 0 ? row : 0, 0));
    draw_curve();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &CalibrationView::draw_curve);
  return page;
}

QWidget* CalibrationView::build_agreement() {
  metrics_->setAccessibleName(tr("Figure that was predicted and measured"));
  agreement_->setWordWrap(true);
  scatter_->setAccessibleName(tr("Predicted against measured"));
  scatter_->setFocusPolicy(Qt::StrongFocus);
  scatter_->setInteraction(QCP::iRangeDrag, true);
  scatter_->setInteraction(QCP::iRangeZoom, true);
  scatter_->installEventFilter(this);
  auto* page = new QWidget(this);
  auto* head = new QHBoxLayout;
  head->addWidget(metrics_);
  head->addWidget(agreement_, 1);
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 6, 0, 0);
  layout->addLayout(head);
  layout->addWidget(scatter_, 1);
  connect(metrics_, &QComboBox::currentIndexChanged, this, &CalibrationView::draw_agreement);
  return page;
}

void CalibrationView::refresh_list() {
  known_.clear();
  known_.push_back(known_calibration(default_calibration(), false));
  if (database_.content()) {
    for (const Calibration& calibration : database_.content()->calibrations)
      known_.push_back(known_calibration(calibration, false));
  }
  const QSignalBlocker quiet(list_);
  list_->setRowCount(static_cast<int>(known_.size()));
  const std::int64_t now = QDateTime::currentSecsSinceEpoch();
  for (int row = 0; row < static_cast<int>(known_.size()); ++row) {
    const KnownCalibration& known = *known_[static_cast<std::size_t>(row)];
    const std::optional<double> error = hold_out_median(known.surfaces);
    const QString texts[] = {
        (known.calibration.assumed ? QStringLiteral("○ ") : QStringLiteral("● ")) + text_of(known.calibration.name),
        device_text(known.calibration),
        count_text(static_cast<std::int64_t>(known.surfaces.size())),
        error ? share_text(*error) : QStringLiteral("–"),
        age_text(known.calibration.created_unix_seconds, now),
        known.calibration.sources.empty() ? QStringLiteral("–")
                                          : count_text(static_cast<std::int64_t>(known.calibration.sources.size()))};
    for (int column = 0; column < 6; ++column) {
      auto* item = new QTableWidgetItem(texts[column]);
      item->setToolTip(known.calibration.assumed
                           ? tr("Ships with cpfit: stands in where nothing was measured on the machine itself")
                           : text_of(known.calibration.id));
      if (column >= 2) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      list_->setItem(row, column, item);
    }
  }
  // Somebody's own machine is what a person opened the database for.
  const int first = known_.size() > 1 ? 1 : 0;
  list_->setCurrentCell(first, 0);
  choose(first);
}

void CalibrationView::choose(int row) {
  if (row < 0 || row >= static_cast<int>(known_.size())) return;
  shown_ = known_[static_cast<std::size_t>(row)];
  surfaces_->show_surfaces(shown_, filter_->text());
  provenance_->setHtml(provenance_html(*shown_));
  for (int column = 0; column < 7; ++column) table_->resizeColumnToContents(column);
  prefer_surface();
  if (shown_->calibration.assumed || shown_->calibration.sources.empty() || !shown_->points.empty()) return;
  // The files may be large: they are read beside the window.
  jobs_.start(
      QStringLiteral("points"), tr("Read the measurements of %1").arg(text_of(shown_->calibration.name)),
      [calibration = shown_->calibration](const std::atomic<bool>&) -> std::any { return known_calibration(calibration, true); },
      [this](const std::any& result) {
        const auto with_points = std::any_cast<std::shared_ptr<const KnownCalibration>>(result);
        for (auto& known : known_) {
          if (known->calibration.id != with_points->calibration.id) continue;
          if (shown_ == known) {
            const std::size_t kept = surface();
            shown_ = with_points;
            surfaces_->show_surfaces(shown_, filter_->text());
            table_->setCurrentIndex(surfaces_->index(std::max(0, surfaces_->row_of(kept)), 0));
            provenance_->setHtml(provenance_html(*shown_));
            draw_curve();
          }
          known = with_points;
        }
        return tr("%1 points").arg(count_text(static_cast<std::int64_t>(with_points->points.size())));
      });
}

void CalibrationView::prefer_surface() {
  if (!shown_ || surfaces_->rowCount() == 0) return draw_curve();
  // Of the study's own GPU the attention: what a ring must hide behind.
  int best = 0;
  if (document_.is_open()) {
    const QString gpu = text_of(document_.design().scenario->cluster.gpu.name);
    for (int row = surfaces_->rowCount(); row-- > 0;) {
      const Surface& surface = shown_->surfaces[surfaces_->surface_at(row)];
      if (text_of(surface.device) == gpu && surface.name.starts_with("attention")) best = row;
    }
  }
  table_->setCurrentIndex(surfaces_->index(best, 0));
  table_->scrollTo(surfaces_->index(best, 0), QAbstractItemView::PositionAtTop);
  draw_curve();
}

std::size_t CalibrationView::surface() const {
  const QModelIndex now = table_->currentIndex();
  return now.isValid() && now.row() < surfaces_->rowCount() ? surfaces_->surface_at(now.row()) : static_cast<std::size_t>(-1);
}

void CalibrationView::draw_curve() {
  curve_->clearPlottables();
  curve_->clearItems();
  while (curve_->plotLayout()->rowCount() > 1) {
    curve_->plotLayout()->remove(curve_->plotLayout()->element(curve_->plotLayout()->rowCount() - 1, 0));
    curve_->plotLayout()->simplify();
  }
  dress(*curve_);
  curve_->legend->setVisible(false);
  const std::size_t at = surface();
  const ColorTokens& t = tokens_for(palette());
  if (!shown_ || at >= shown_->surfaces.size()) {
    headline_->setText(tr("No surface is chosen."));
    for (QCPAxis* axis : curve_->axisRect()->axes()) axis->setVisible(false);
    curve_->replot(QCustomPlot::rpQueuedReplot);
    return tell();
  }
  const Surface& surface = shown_->surfaces[at];
  const RateCurve picture = rate_curve(*shown_, at);
  const FitQuality& q = surface.quality;
  QString text = QStringLiteral("%1, %2: %3").arg(text_of(surface.device), text_of(surface.name), evidence_text(q.evidence));
  if (q.rows > 0) text += tr(" on %1 points").arg(count_text(q.rows));
  text += q.held_out > 0
              ? tr("; on shapes kept out median %1, 90 % within %2.").arg(share_text(q.median_error), share_text(q.p90_error))
              : tr("; taken to be within %1, 90 % within %2.").arg(share_text(q.median_error), share_text(q.p90_error));
  if (!picture.held.isEmpty()) text += tr(" Curve at %1.").arg(picture.held);
  headline_->setText(text);
  const bool drawn = !picture.x.empty();
  curve_->xAxis->setVisible(drawn);
  curve_->yAxis->setVisible(drawn);
  if (!drawn) {
    note_in(*curve_, in_lines(picture.why_none, 70));
    curve_->replot(QCustomPlot::rpQueuedReplot);
    return tell();
  }
  const QVector<double> x(picture.x.begin(), picture.x.end());
  QVector<double> y(picture.y.begin(), picture.y.end()), low, high;
  for (const double value : y) {
    // The interval is of the time: the rate is its inverse.
    low.append(value / (1.0 + kNinetyPercent * picture.sigma));
    high.append(value * (1.0 + kNinetyPercent * picture.sigma));
  }
  QCPGraph* lower = curve_->addGraph();
  lower->setData(x, low, true);
  lower->setPen(Qt::NoPen);
  lower->removeFromLegend();
  QCPGraph* band = curve_->addGraph();
  band->setData(x, high, true);
  band->setPen(Qt::NoPen);
  QColor fill = t.attention;
  fill.setAlphaF(0.18F);
  band->setBrush(fill);
  band->setChannelFillGraph(lower);
  band->setName(tr("90 % interval"));
  QCPGraph* line = curve_->addGraph();
  line->setData(x, y, true);
  line->setPen(QPen(t.attention, 2.2));
  line->setName(tr("fitted curve"));
  double top = *std::ranges::max_element(high);
  double left = x.front(), right = x.back();
  QVector<double> px, py;
  for (const RatePoint& point : shown_->points) {
    if (point.surface != at) continue;
    px.append(point.x);
    py.append(point.rate);
    top = std::max(top, point.rate);
    left = std::min(left, point.x);
    right = std::max(right, point.x);
  }
  if (!px.isEmpty()) {
    QCPGraph* points = curve_->addGraph();
    points->setData(px, py);
    points->setLineStyle(QCPGraph::lsNone);
    points->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(t.exposed, 1.3), Qt::NoBrush, 6));
    points->setName(tr("measured, at their own shapes"));
  }
  curve_->xAxis->setLabel(px.isEmpty() ? picture.x_label : QString());
  curve_->yAxis->setLabel(picture.y_label);
  curve_->yAxis->setRange(0.0, top * 1.08);
  sizes_on(*curve_->xAxis, left, right);
  // Where nothing was measured is shaded: a prediction there is an extrapolation.
  if (picture.valid_high > picture.valid_low) {
    for (const auto& [from, to] : {std::pair(left, picture.valid_low), std::pair(picture.valid_high, right)}) {
      if (to <= from) continue;
      auto* shade = new QCPItemRect(curve_);
      for (QCPItemPosition* corner : {shade->topLeft, shade->bottomRight}) corner->setTypeY(QCPItemPosition::ptAxisRectRatio);
      shade->topLeft->setCoords(from, 0.0);
      shade->bottomRight->setCoords(to, 1.0);
      shade->setPen(Qt::NoPen);
      shade->setBrush(QBrush(mixed(t.surface, t.muted, 0.35), Qt::BDiagPattern));
      shade->setLayer(QStringLiteral("background"));
    }
    auto* label = new QCPItemText(curve_);
    label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    label->position->setCoords(std::sqrt(picture.valid_low * picture.valid_high), 0.99);
    label->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
    label->setText(tr("fitted range"));
    label->setColor(t.muted);
    label->setFont(curve_->font());
  }
  curve_->legend->setVisible(true);
  curve_->axisRect()->insetLayout()->setInsetAlignment(0, Qt::AlignLeft | Qt::AlignTop);
  if (!px.isEmpty()) {
    auto* rect = new QCPAxisRect(curve_);
    curve_->plotLayout()->addElement(1, 0, rect);
    curve_->plotLayout()->setRowStretchFactor(0, 2.2);
    dress(*curve_);
    draw_residuals(at, *rect);
    rect->axis(QCPAxis::atBottom)->setLabel(picture.x_label);
    sizes_on(*rect->axis(QCPAxis::atBottom), left, right);
    auto* margins = new QCPMarginGroup(curve_);
    curve_->axisRect(0)->setMarginGroup(QCP::msLeft, margins);
    rect->setMarginGroup(QCP::msLeft, margins);
  }
  curve_->setAccessibleDescription(text);
  curve_->replot(QCustomPlot::rpQueuedReplot);
  tell();
}

void CalibrationView::draw_residuals(std::size_t at, QCPAxisRect& rect) {
  const ColorTokens& t = tokens_for(palette());
  QCPAxis* across = rect.axis(QCPAxis::atBottom);
  QCPAxis* up = rect.axis(QCPAxis::atLeft);
  QVector<double> x, y;
  double most = 0.05;
  for (const RatePoint& point : shown_->points) {
    if (point.surface != at) continue;
    x.append(point.x);
    y.append(point.residual * 100.0);
    most = std::max(most, std::abs(point.residual));
  }
  QCPGraph* zero = curve_->addGraph(across, up);
  zero->setData({1.0, 1e18}, {0.0, 0.0});
  zero->setPen(QPen(t.muted, 1.0));
  zero->removeFromLegend();
  QCPGraph* residuals = curve_->addGraph(across, up);
  residuals->setData(x, y);
  residuals->setLineStyle(QCPGraph::lsNone);
  residuals->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(t.exposed, 1.3), Qt::NoBrush, 6));
  residuals->removeFromLegend();
  up->setLabel(tr("residual, %"));
  up->setRange(-most * 110.0, most * 110.0);
}

void CalibrationView::refresh_agreement() {
  agreements_ = database_.content() ? agreements(database_.content()->validations) : std::vector<Agreement>();
  const QSignalBlocker quiet(metrics_);
  metrics_->clear();
  for (const Agreement& agreement : agreements_)
    metrics_->addItem(QStringLiteral("%1 (%2)").arg(metric_label(agreement.metric)).arg(agreement.points.size()));
  metrics_->setEnabled(!agreements_.empty());
  draw_agreement();
}

void CalibrationView::draw_agreement() {
  scatter_->clearPlottables();
  scatter_->clearItems();
  dress(*scatter_);
  scatter_->legend->setVisible(false);
  const int index = metrics_->currentIndex();
  const bool any = index >= 0 && index < static_cast<int>(agreements_.size());
  for (QCPAxis* axis : {scatter_->xAxis, scatter_->yAxis}) axis->setVisible(any);
  metrics_->setVisible(any);
  if (!any) {
    agreement_->clear();
    note_in(*scatter_, database_.content()
                           ? in_lines(tr("%1 holds no validation. `cpfit validate TABLE.csv --db FILE` stores predicted beside "
                                         "measured rows of a table.")
                                          .arg(database_.content()->path),
                                      70)
                           : in_lines(tr("Open a result database with validations: `cpfit validate TABLE.csv --db FILE` stores "
                                         "predicted beside measured rows of a table, and they appear here."),
                                      70));
    scatter_->replot(QCustomPlot::rpQueuedReplot);
    return tell();
  }
  const ColorTokens& t = tokens_for(palette());
  const Agreement& agreement = agreements_[static_cast<std::size_t>(index)];
  agreement_->setText(agreement_sentence(agreement));
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
  scatter_->setAccessibleDescription(agreement_->text());
  scatter_->replot(QCustomPlot::rpQueuedReplot);
  tell();
}

const AgreementPoint* CalibrationView::agreement_at(const QPointF& at) const {
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

bool CalibrationView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == scatter_ && event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    if (const AgreementPoint* point = agreement_at(help->pos())) {
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
    draw_agreement();
    return true;
  }
  return StudyView::eventFilter(watched, event);
}

void CalibrationView::changeEvent(QEvent* event) {
  StudyView::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    // The plots have their new palette only after this event.
    QMetaObject::invokeMethod(this, &CalibrationView::draw_curve, Qt::QueuedConnection);
    QMetaObject::invokeMethod(this, &CalibrationView::draw_agreement, Qt::QueuedConnection);
  }
}

QString CalibrationView::summary() const {
  if (tabs_->currentIndex() == 1)
    return agreements_.empty() ? tr("No validation is open: nothing measured to compare predictions with.") : agreement_->text();
  return headline_->text();
}

QString CalibrationView::csv() const {
  if (tabs_->currentIndex() == 1) {
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
  if (!shown_) return {};
  QString text = QStringLiteral("device,surface,evidence,points,held_out,median_error,p90_error,noise,range,source\n");
  for (const Surface& surface : shown_->surfaces) {
    const FitQuality& q = surface.quality;
    text += QStringLiteral("%1,%2,%3,%4,%5,")
                .arg(csv_field(text_of(surface.device)), csv_field(text_of(surface.name)), text_of(name_of(q.evidence)))
                .arg(q.rows)
                .arg(q.held_out);
    text += QStringLiteral("%1,%2,%3,%4,%5\n")
                .arg(q.median_error, 0, 'g', 6)
                .arg(q.p90_error, 0, 'g', 6)
                .arg(q.noise, 0, 'g', 6)
                .arg(csv_field(text_of(surface.range)), csv_field(text_of(q.source)));
  }
  return text;
}

QString CalibrationView::command() const {
  if (tabs_->currentIndex() == 1 || !shown_) return {};
  if (shown_->calibration.assumed) return QStringLiteral("cpfit calibrate show defaults");
  return QStringLiteral("cpfit calibrate show %1 --db \"%2\"").arg(text_of(shown_->calibration.short_id()), database_.path());
}

void CalibrationView::paint_on(QPainter& painter) {
  StudyView::paint_on(painter);
  // The plot once more as vectors, over its picture.
  QCustomPlot* plot = tabs_->currentIndex() == 1 ? scatter_ : curve_;
  painter.save();
  painter.translate(plot->mapTo(this, QPoint()) - plot->pos());
  paint_plot(*plot, painter);
  painter.restore();
}

}  // namespace cpfit::gui
