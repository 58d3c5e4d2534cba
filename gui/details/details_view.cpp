#include "gui/details/details_view.h"

#include <QHBoxLayout>
#include <QTextBrowser>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/details/details_text.h"

namespace cpfit::gui {

DetailsView::DetailsView(StudyDocument& document, LiveEstimate& live, Selection& selection, QWidget* parent)
    : StudyView(QStringLiteral("details"), tr("Details"), parent),
      document_(document),
      live_(live),
      selection_(selection),
      text_(new QTextBrowser(this)),
      why_(new QToolButton(this)) {
  text_->setAccessibleName(tr("Details"));
  text_->setFrameShape(QFrame::NoFrame);
  text_->setOpenLinks(false);
  why_->setText(tr("Why?"));
  why_->setCheckable(true);
  why_->setChecked(true);
  why_->setToolTip(tr("Shows the arithmetic with the numbers put in"));
  auto* side = new QVBoxLayout;
  side->addWidget(why_);
  side->addStretch(1);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(4, 2, 6, 2);
  layout->addWidget(text_, 1);
  layout->addLayout(side);
  connect(why_, &QToolButton::toggled, this, &DetailsView::refresh);
  connect(&live_, &LiveEstimate::estimate_changed, this, &DetailsView::refresh);
  connect(&live_, &LiveEstimate::simulation_changed, this, &DetailsView::refresh);
  connect(&selection_, &Selection::changed, this, &DetailsView::refresh);
}

void DetailsView::refresh() {
  const Selected& selected = selection_.now();
  StageLedger ledger;
  const bool has_tensor = selected.tensor && live_.now().legal() && selected.tensor->stage < live_.now().design.recipe.pp;
  if (has_tensor) ledger = live_.estimator().ledger(live_.now().design, selected.tensor->stage);
  const bool current = live_.simulation_is_current();
  const QString span = selected.span && current && span_text_ ? span_text_(*selected.span) : QString();
  const QString result = selected.run_a && result_text_ ? result_text_(*selected.run_a) : QString();
  text_->setHtml(details_html({live_.now(), current ? live_.simulation().get() : nullptr, selected,
                               has_tensor ? &ledger : nullptr, span, why_->isChecked(), result}));
  tell();
}

QString DetailsView::summary() const { return text_->toPlainText().section(QLatin1Char('\n'), 0, 0); }

QString DetailsView::command() const {
  return document_.is_open() ? simulate_command(document_.path(), document_.design()) : QString();
}

}  // namespace cpfit::gui
