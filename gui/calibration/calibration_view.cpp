#include "gui/calibration/calibration_view.h"

#include <qcustomplot.h>

#include <QDateTime>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QPushButton>
#include <QSplitter>
#include <QTabWidget>
#include <QTableView>
#include <QTableWidget>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/calibration/agreement_view.h"
#include "gui/calibration/measure_panel.h"
#include "gui/calibration/refit_panel.h"
#include "gui/calibration/surface_curve.h"
#include "gui/calibration/surface_table.h"
#include "gui/look/figures.h"
#include "gui/study/simulator.h"
#include "gui/view/plot_look.h"
#include "gui/view/quiet_table.h"

namespace cpfit::gui {

namespace {

constexpr int kAgreement = 1, kMeasure = 2;  // tabs

}  // namespace

CalibrationView::CalibrationView(StudyDocument& document, Jobs& jobs, OpenedDatabase& database, QWidget* parent)
    : StudyView(QStringLiteral("calibration"), tr("Calibration"), parent),
      document_(document),
      jobs_(jobs),
      database_(database),
      tabs_(new QTabWidget(this)),
      list_(new QTableWidget(0, 6, this)),
      use_(new QPushButton(tr("&Use for this study"), this)),
      provenance_(new QTextBrowser(this)),
      filter_(new QLineEdit(this)),
      table_(new QTableView(this)),
      surfaces_(new SurfaceTable(this)),
      curve_(new SurfaceCurve(this)),
      refit_(new RefitPanel(jobs, *curve_, this)),
      agreement_(new AgreementView(this)),
      measure_(new MeasurePanel(jobs, this)) {
  tabs_->addTab(build_curves(), tr("&Curves"));
  tabs_->addTab(agreement_, tr("&Predicted against measured"));
  tabs_->addTab(measure_, tr("&Measure this machine"));
  tabs_->setDocumentMode(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 4, 6, 6);
  layout->addWidget(tabs_);
  connect(tabs_, &QTabWidget::currentChanged, this, [this] { tell(); });
  connect(agreement_, &AgreementView::changed, this, [this] { tell(); });
  connect(measure_, &MeasurePanel::changed, this, [this] { tell(); });
  connect(refit_, &RefitPanel::made, this, &CalibrationView::keep_version);
  connect(measure_, &MeasurePanel::fitted, this, &CalibrationView::take_fitted);
  connect(&database_, &OpenedDatabase::content_changed, this, [this] {
    refresh_list();
    agreement_->show_content(database_.content());
  });
  connect(&document_, &StudyDocument::opened_changed, this, &CalibrationView::prefer_surface);
  connect(&document_, &StudyDocument::design_changed, this, [this] {
    if (document_.is_open() && document_.design().calibration != of_study_) refresh_list();
    refresh_use();
  });
  refresh_list();
}

QCustomPlot* CalibrationView::curve_plot() const { return curve_->plot(); }
QCustomPlot* CalibrationView::agreement_plot() const { return agreement_->plot(); }
QComboBox* CalibrationView::metrics() const { return agreement_->metrics(); }
const AgreementPoint* CalibrationView::agreement_at(const QPointF& at) const { return agreement_->point_at(at); }

void CalibrationView::fit_file(const QString& path) {
  tabs_->setCurrentWidget(measure_);
  measure_->fit_file(path);
}

void CalibrationView::take_fitted(const std::shared_ptr<const ChosenCalibration>& chosen) {
  fitted_.push_back(chosen);
  refresh_list();
  const auto row = std::ranges::find(known_, chosen->calibration.id, [](const auto& known) { return known->calibration.id; });
  list_->setCurrentCell(static_cast<int>(row - known_.begin()), 0);
  tabs_->setCurrentIndex(0);
  use_->setFocus();
  emit said(tr("%1 was fitted: %2 curves. “Use for this study” computes with them.")
                .arg(text_of(chosen->calibration.name), count_text(static_cast<std::int64_t>((*row)->surfaces.size()))),
            false);
  if (database_.path().isEmpty()) return;
  jobs_.start(
      QStringLiteral("store"), tr("Store %1").arg(text_of(chosen->calibration.name)),
      [chosen, path = database_.path()](const std::atomic<bool>&) -> std::any {
        return store_calibration(chosen->calibration, path);
      },
      [this](const std::any& result) {
        const auto& trouble = std::any_cast<const QString&>(result);
        if (trouble.isEmpty())
          database_.open(database_.path());
        else
          emit said(tr("The calibration is in its file but not in the database: %1").arg(trouble), true);
        return trouble.isEmpty() ? tr("stored in %1").arg(database_.path()) : trouble;
      });
}

void CalibrationView::keep_version(const std::shared_ptr<const KnownCalibration>& version) {
  auto chosen = std::make_shared<ChosenCalibration>();
  chosen->calibration = version->calibration;
  // Into the open database; without one into a file beside the measurement, so that a command line can name it.
  if (!database_.path().isEmpty()) {
    chosen->from = to_std(database_.path());
  } else {
    const QString file = text_of(version->calibration.sources.front().path) + QLatin1Char('.') +
                         text_of(version->calibration.short_id()) + QStringLiteral(".toml");
    const QString trouble = write_calibration(version->calibration, file);
    if (trouble.isEmpty())
      chosen->from = to_std(file);
    else
      emit said(trouble, true);
  }
  take_fitted(chosen);
}

bool CalibrationView::is_used(std::size_t row) const {
  if (!document_.is_open()) return false;
  const auto& chosen = document_.design().calibration;
  const Calibration& known = known_[row]->calibration;
  return chosen == nullptr ? known.assumed : chosen->calibration.id == known.id;
}

void CalibrationView::use() {
  const int row = list_->currentRow();
  if (!document_.is_open() || row < 0) return;
  const auto at = static_cast<std::size_t>(row);
  const std::shared_ptr<const KnownCalibration> known = known_[at];  // the list is made anew when the design changes
  const Calibration& calibration = known->calibration;
  Design design = document_.design();
  design.calibration.reset();
  QStringList warnings;
  if (!calibration.assumed) {
    const Outcome<CalibratedRates> rates = calibrated_rates(calibration, *design.scenario);
    if (!rates.ok()) return emit said(sentence_of(rates.problems().front()), true);
    for (const std::string& warning : rates->use.warnings) warnings.append(text_of(warning));
    design.calibration = std::make_shared<const ChosenCalibration>(ChosenCalibration{calibration, from_[at]});
  }
  document_.set_design(design, tr("Rates of %1").arg(text_of(calibration.name)));
  emit said(tr("Everything is computed with the rates of %1 now; Ctrl+Z takes it back. %2")
                .arg(text_of(calibration.name), warnings.join(QStringLiteral("; ")))
                .trimmed(),
            false);
}

void CalibrationView::refresh_use() {
  const int row = list_->currentRow();
  const bool open = document_.is_open();
  const bool used = row >= 0 && row < static_cast<int>(known_.size()) && is_used(static_cast<std::size_t>(row));
  use_->setEnabled(open && row >= 0 && !used);
  use_->setText(used ? tr("Used for this study") : tr("&Use for this study"));
  use_->setToolTip(!open  ? tr("No study is open")
                   : used ? tr("The study is computed with these rates")
                          : tr("Everything is computed with these rates from then on; can be undone"));
  for (int i = 0; i < list_->rowCount() && i < static_cast<int>(known_.size()); ++i) {
    QFont font = list_->font();
    font.setBold(is_used(static_cast<std::size_t>(i)));
    list_->item(i, 0)->setFont(font);
  }
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
  use_->setToolTip(tr("Everything is computed with these rates from then on; can be undone"));
  connect(use_, &QPushButton::clicked, this, &CalibrationView::use);
  auto* left = new QSplitter(Qt::Vertical, this);
  auto* known = new QWidget(this);
  auto* known_layout = new QVBoxLayout(known);
  known_layout->setContentsMargins(0, 0, 0, 0);
  known_layout->setSpacing(4);
  known_layout->addWidget(list_, 1);
  known_layout->addWidget(use_, 0, Qt::AlignLeft);
  left->addWidget(known);
  left->addWidget(provenance_);
  left->setSizes({160, 240});
  left->setChildrenCollapsible(false);
  auto* upper = new QWidget(this);
  auto* upper_layout = new QVBoxLayout(upper);
  upper_layout->setContentsMargins(0, 0, 0, 0);
  upper_layout->setSpacing(4);
  upper_layout->addWidget(filter_);
  upper_layout->addWidget(table_, 1);
  auto* right = new QSplitter(Qt::Vertical, this);
  right->addWidget(upper);
  auto* lower = new QWidget(this);
  auto* lower_layout = new QVBoxLayout(lower);
  lower_layout->setContentsMargins(0, 0, 0, 0);
  lower_layout->setSpacing(4);
  lower_layout->addWidget(curve_, 1);
  lower_layout->addWidget(refit_);
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
    show_curve();
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &CalibrationView::show_curve);
  return page;
}

void CalibrationView::refresh_list() {
  const std::string kept = shown_ ? shown_->calibration.id : std::string();
  const std::size_t before = known_.size();
  known_.clear();
  from_.clear();
  const auto add = [this](const Calibration& calibration, const std::string& from) {
    if (std::ranges::any_of(known_, [&](const auto& known) { return known->calibration.id == calibration.id; })) return;
    known_.push_back(known_calibration(calibration, false));
    from_.push_back(from);
  };
  of_study_ = document_.is_open() ? document_.design().calibration : nullptr;
  add(default_calibration(), {});
  if (database_.content()) {
    for (const Calibration& calibration : database_.content()->calibrations) add(calibration, to_std(database_.content()->path));
  }
  for (const auto& chosen : fitted_) add(chosen->calibration, chosen->from);
  if (of_study_ != nullptr) add(of_study_->calibration, of_study_->from);
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
  // What was looked at stays; of new ones somebody's own machine is what a person opened the database for.
  const auto same = std::ranges::find(known_, kept, [](const auto& known) { return known->calibration.id; });
  const bool more = known_.size() > before && known_.size() > 1;
  const int row = !more && same != known_.end() ? static_cast<int>(same - known_.begin()) : known_.size() > 1 ? 1 : 0;
  list_->setCurrentCell(row, 0);
  choose(row);
}

void CalibrationView::choose(int row) {
  if (row < 0 || row >= static_cast<int>(known_.size())) return;
  shown_ = known_[static_cast<std::size_t>(row)];
  surfaces_->show_surfaces(shown_, filter_->text());
  provenance_->setHtml(provenance_html(*shown_));
  for (int column = 0; column < 7; ++column) table_->resizeColumnToContents(column);
  prefer_surface();
  refresh_use();
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
            show_curve();
          }
          known = with_points;
        }
        return tr("%1 points").arg(count_text(static_cast<std::int64_t>(with_points->points.size())));
      });
}

void CalibrationView::prefer_surface() {
  if (!shown_ || surfaces_->rowCount() == 0) return show_curve();
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
  show_curve();
}

std::size_t CalibrationView::surface() const {
  const QModelIndex now = table_->currentIndex();
  return now.isValid() && now.row() < surfaces_->rowCount() ? surfaces_->surface_at(now.row()) : static_cast<std::size_t>(-1);
}

void CalibrationView::show_curve() {
  curve_->show_surface(shown_, surface());
  refit_->show_surface(shown_, surface());
  tell();
}

QString CalibrationView::summary() const {
  if (tabs_->currentIndex() == kAgreement) return agreement_->sentence();
  if (tabs_->currentIndex() == kMeasure) return measure_->summary();
  return curve_->headline();
}

QString CalibrationView::csv() const {
  if (tabs_->currentIndex() == kAgreement) return agreement_->csv();
  if (tabs_->currentIndex() == kMeasure) return {};
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
  if (tabs_->currentIndex() == kMeasure) return line_of(measure_->command());
  if (tabs_->currentIndex() == kAgreement || !shown_) return {};
  if (shown_->calibration.assumed) return QStringLiteral("cpfit calibrate show defaults");
  const auto row = std::ranges::find(known_, shown_);
  const QString from = row == known_.end() ? QString() : text_of(from_[static_cast<std::size_t>(row - known_.begin())]);
  if (from.isEmpty()) return {};
  if (from.endsWith(QStringLiteral(".toml"))) return QStringLiteral("cpfit calibrate show \"%1\"").arg(from);
  return QStringLiteral("cpfit calibrate show %1 --db \"%2\"").arg(text_of(shown_->calibration.short_id()), from);
}

void CalibrationView::paint_on(QPainter& painter) {
  StudyView::paint_on(painter);
  // The plot once more as vectors, over its picture.
  if (tabs_->currentIndex() == kMeasure) return;
  QCustomPlot* plot = tabs_->currentIndex() == kAgreement ? agreement_plot() : curve_plot();
  painter.save();
  painter.translate(plot->mapTo(this, QPoint()) - plot->pos());
  paint_plot(*plot, painter);
  painter.restore();
}

}  // namespace cpfit::gui
