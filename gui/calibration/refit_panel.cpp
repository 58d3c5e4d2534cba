#include "gui/calibration/refit_panel.h"

#include <QApplication>
#include <QComboBox>
#include <QDateTime>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "calibrate/fit/refit.h"
#include "gui/calibration/surface_curve.h"
#include "gui/look/figures.h"
#include "gui/look/taken.h"

namespace cpfit::gui {

namespace {

constexpr int kShownChanges = 4;

/// What the job brings back.
struct Refitted {
  std::shared_ptr<const KnownCalibration> known;
  QStringList remarks;
  QString trouble;
};

Refitted refitted(const Calibration& before, const std::vector<ExcludedPoint>& excluded, const std::string& version,
                  std::int64_t now) {
  Refitted result;
  // Trouble is a result: the panel says it beside the points.
  try {
    const Refit refit = taken(refit_without(before, excluded, version, now));
    result.known = known_calibration(refit.calibration, true);
    for (const std::string& row : refit.taken_over)
      result.remarks.append(QObject::tr("%1: kept as it was, the files do not say the rate of a node's NICs").arg(text_of(row)));
    for (const std::string& reason : refit.left_out) result.remarks.append(QObject::tr("left out: %1").arg(text_of(reason)));
  } catch (const Error& error) {
    result.trouble = text_of(error.what());
  }
  return result;
}

}  // namespace

RefitPanel::RefitPanel(Jobs& jobs, SurfaceCurve& curve, QWidget* parent)
    : QWidget(parent),
      jobs_(jobs),
      curve_(curve),
      point_(new QLabel(this)),
      reason_(new QComboBox(this)),
      toggle_(new QPushButton(this)),
      fit_(new QPushButton(tr("F&it again"), this)),
      store_(new QPushButton(tr("&Keep as a new version"), this)),
      changes_(new QLabel(this)) {
  for (QLabel* label : {point_, changes_}) {
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  point_->setForegroundRole(QPalette::PlaceholderText);
  reason_->setEditable(true);
  reason_->addItems(usual_reasons());
  reason_->setCurrentIndex(-1);
  reason_->lineEdit()->setPlaceholderText(tr("Why should it not count?"));
  reason_->setAccessibleName(tr("Why the point should not count"));
  reason_->setInsertPolicy(QComboBox::NoInsert);
  reason_->setMinimumContentsLength(18);
  auto* buttons = new QHBoxLayout;
  buttons->addWidget(reason_, 1);
  for (QPushButton* button : {toggle_, fit_, store_}) buttons->addWidget(button);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(point_);
  layout->addLayout(buttons);
  layout->addWidget(changes_);
  connect(reason_->lineEdit(), &QLineEdit::textChanged, this, &RefitPanel::refresh);
  connect(reason_->lineEdit(), &QLineEdit::returnPressed, this, [this] {
    if (chosen_ && !is_left_out(*chosen_)) toggle();
  });
  connect(toggle_, &QPushButton::clicked, this, &RefitPanel::toggle);
  connect(fit_, &QPushButton::clicked, this, &RefitPanel::fit);
  connect(store_, &QPushButton::clicked, this, [this] {
    if (refit_) emit made(refit_);
  });
  connect(&curve_, &SurfaceCurve::point_clicked, this, [this](std::size_t point) { choose(point); });
  connect(&curve_, &SurfaceCurve::step_wanted, this, &RefitPanel::step);
  connect(&curve_, &SurfaceCurve::toggle_wanted, this, &RefitPanel::toggle);
  connect(&curve_, &SurfaceCurve::menu_wanted, this, [this](const QPoint& at) {
    if (chosen_) menu_of(*chosen_)->exec(at);
  });
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel) {
    if (channel == QLatin1String("refit")) refresh();
  });
  refresh();
}

void RefitPanel::show_surface(std::shared_ptr<const KnownCalibration> known, std::size_t surface) {
  const bool other = !known_ || !known || known_->calibration.id != known->calibration.id;
  if (known != known_ || surface != surface_) chosen_.reset();
  known_ = std::move(known);
  surface_ = surface;
  if (other) {
    refit_.reset();
    remarks_.clear();
    trouble_.clear();
    if (jobs_.is_running(QStringLiteral("refit"))) jobs_.stop_channel(QStringLiteral("refit"));
  }
  refresh();
}

const std::vector<ExcludedPoint>& RefitPanel::planned() const {
  static const std::vector<ExcludedPoint> none;
  if (!known_) return none;
  const auto found = planned_.find(known_->calibration.id);
  return found == planned_.end() ? known_->calibration.excluded : found->second;
}

bool RefitPanel::is_left_out(std::size_t point) const {
  return find_exclusion(planned(), as_exclusion(*known_, known_->points[point])) >= 0;
}

bool RefitPanel::is_changed() const { return known_ && planned() != known_->calibration.excluded; }

void RefitPanel::choose(std::optional<std::size_t> point) {
  chosen_ = point;
  refresh();
}

void RefitPanel::step(int by) {
  if (known_) choose(stepped_point(points_in_order(*known_, surface_), chosen_, by));
}

void RefitPanel::toggle() {
  if (!chosen_) return;
  if (is_left_out(*chosen_)) return set_left_out(*chosen_, {});
  const QString why = reason_->currentText().trimmed();
  if (why.isEmpty()) return reason_->setFocus();  // without a reason nothing is left out
  set_left_out(*chosen_, why);
  curve_.focus_plot();
}

void RefitPanel::set_left_out(std::size_t point, const QString& reason) {
  std::vector<ExcludedPoint> points = planned();
  ExcludedPoint one = as_exclusion(*known_, known_->points[point]);
  one.reason = to_std(reason.trimmed());
  const std::ptrdiff_t at = find_exclusion(points, one);
  if (at >= 0) points.erase(points.begin() + at);
  if (!one.reason.empty()) points.push_back(std::move(one));
  planned_[known_->calibration.id] = std::move(points);
  // What was fitted was fitted without other points.
  refit_.reset();
  remarks_.clear();
  trouble_.clear();
  jobs_.stop_channel(QStringLiteral("refit"));
  chosen_ = point;
  refresh();
}

std::unique_ptr<QMenu> RefitPanel::menu_of(std::size_t point) {
  auto menu = std::make_unique<QMenu>(this);
  if (is_left_out(point)) {
    connect(menu->addAction(tr("&Count it again")), &QAction::triggered, this, [this, point] { set_left_out(point, {}); });
    return menu;
  }
  QStringList reasons = usual_reasons();
  const QString written = reason_->currentText().trimmed();
  if (!written.isEmpty() && !reasons.contains(written)) reasons.prepend(written);
  for (const QString& reason : reasons) {
    connect(menu->addAction(tr("Leave it out: %1").arg(reason)), &QAction::triggered, this,
            [this, point, reason] { set_left_out(point, reason); });
  }
  menu->addSeparator();
  connect(menu->addAction(tr("Leave it out for &another reason …")), &QAction::triggered, this, [this, point] {
    choose(point);
    reason_->setCurrentIndex(-1);
    reason_->clearEditText();
    reason_->setFocus();
  });
  return menu;
}

void RefitPanel::fit() {
  if (!is_changed()) return;
  trouble_.clear();
  const std::string id = known_->calibration.id, version = to_std(QApplication::applicationVersion());
  jobs_.start(
      QStringLiteral("refit"), tr("Fit %1 again without %2 points").arg(text_of(known_->calibration.name)).arg(planned().size()),
      [before = known_->calibration, excluded = planned(), version, now = QDateTime::currentSecsSinceEpoch()](
          const std::atomic<bool>&) -> std::any { return refitted(before, excluded, version, now); },
      [this, id](const std::any& result) {
        const auto& done = std::any_cast<const Refitted&>(result);
        if (!known_ || known_->calibration.id != id) return tr("another calibration is looked at");
        refit_ = done.known;
        remarks_ = done.remarks;
        trouble_ = done.trouble;
        refresh();
        return trouble_.isEmpty() ? sentence() : trouble_;
      });
  refresh();
}

QString RefitPanel::sentence() const { return changes_->text(); }

void RefitPanel::refresh() {
  const bool any = known_ && !known_->points.empty();
  setVisible(any);
  if (!any) {
    curve_.set_marks({}, std::nullopt, nullptr);
    return;
  }
  std::vector<char> left_out(known_->points.size());
  for (std::size_t i = 0; i < left_out.size(); ++i) left_out[i] = is_left_out(i) ? 1 : 0;
  curve_.set_marks(std::move(left_out), chosen_, refit_);
  const bool out = chosen_ && is_left_out(*chosen_);
  const bool running = jobs_.is_running(QStringLiteral("refit"));
  QString point =
      tr("Click a point, or step with ← → in the picture: X leaves it out of the fit, a click of the right button asks why.");
  if (chosen_) {
    point = point_sentence(*known_, known_->points[*chosen_]);
    if (out) {
      const auto at = static_cast<std::size_t>(find_exclusion(planned(), as_exclusion(*known_, known_->points[*chosen_])));
      point += tr(". Left out: %1").arg(text_of(planned()[at].reason));
    }
  }
  point_->setText(point);
  toggle_->setText(out ? tr("&Count it again") : tr("&Leave out"));
  toggle_->setEnabled(chosen_.has_value());
  toggle_->setToolTip(!chosen_ ? tr("No point is chosen")
                      : out    ? tr("X: the next fit counts the point")
                               : tr("X: the next fit leaves the point out"));
  fit_->setEnabled(is_changed() && !running);
  fit_->setToolTip(running        ? tr("The fit is running")
                   : is_changed() ? tr("Reads the files again and fits without the %1 points left out").arg(planned().size())
                                  : tr("Nothing was left out or counted again since this fit"));
  store_->setEnabled(refit_ != nullptr);
  store_->setToolTip(refit_ ? tr("A calibration of its own, of the same name: the one before stays") : tr("Fit again first"));
  QStringList lines;
  if (!trouble_.isEmpty()) {
    lines.append(trouble_);
  } else if (running) {
    lines.append(tr("Fitting …"));
  } else if (refit_) {
    const std::vector<SurfaceChange> changes = surface_changes(known_->surfaces, refit_->surfaces);
    for (const SurfaceChange& change : changes) {
      if (lines.size() < kShownChanges) lines.append(change_sentence(change));
    }
    if (static_cast<int>(changes.size()) > kShownChanges)
      lines.append(tr("and %1 more").arg(static_cast<int>(changes.size()) - kShownChanges));
    if (changes.empty()) lines.append(tr("No error changed."));
    lines += remarks_;
  } else if (is_changed()) {
    lines.append(tr("%1 points would be left out: “Fit again” shows what that changes.").arg(planned().size()));
  } else if (!planned().empty()) {
    lines.append(tr("%1 points were left out of this fit; they are drawn hollow.").arg(planned().size()));
  }
  changes_->setText(lines.join(QLatin1Char('\n')));
  changes_->setVisible(!lines.isEmpty());
}

}  // namespace cpfit::gui
