#include "gui/results/sweep_dialog.h"

#include <QApplication>
#include <QCheckBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/look/figures.h"
#include "gui/study/recipe_values.h"

namespace cpfit::gui {

namespace {

constexpr int kQuietMs = 120;
constexpr int kBarSteps = 1000;

struct Counted {
  SweepCount count;
  Resumable resumable;
};

QString shown(const std::string& value) { return text_of(value).replace(QLatin1Char('_'), QLatin1Char(' ')); }

}  // namespace

SweepDialog::SweepDialog(StudyDocument& document, LiveEstimate& live, Jobs& jobs, OpenedDatabase& database, RecipeSweep& sweep,
                         QWidget* parent)
    : QDialog(parent),
      document_(document),
      live_(live),
      jobs_(jobs),
      database_(database),
      sweep_(sweep),
      question_(new QLabel(this)),
      locked_(new QLabel(this)),
      table_(new QWidget(this)),
      file_(new QLineEdit(this)),
      closer_(new QCheckBox(tr("Find the &crossover and simulate the best on the timeline, too"), this)),
      estimate_(new QLabel(this)),
      sentence_(new QLabel(this)),
      bar_(new QProgressBar(this)),
      start_(new QPushButton(tr("S&tart"), this)),
      stop_(new QPushButton(tr("Sto&p"), this)) {
  setWindowTitle(tr("Sweep recipes"));
  setObjectName(QStringLiteral("sweep"));
  QFont strong = question_->font();
  strong.setBold(true);
  question_->setFont(strong);
  question_->setWordWrap(true);
  auto* help = new QLabel(tr("Every combination of these values that is legal is computed. “all” tries each legal value."), this);
  help->setForegroundRole(QPalette::PlaceholderText);
  help->setWordWrap(true);

  file_->setAccessibleName(tr("Database to store the recipes in"));
  file_->setPlaceholderText(tr("no database: the recipes stay in this window"));
  file_->setClearButtonEnabled(true);
  auto* choose = new QPushButton(tr("Choose …"), this);
  choose->setAccessibleName(tr("Choose the database"));
  auto* store = new QLabel(tr("St&ore in"), this);
  store->setBuddy(file_);
  auto* line = new QHBoxLayout;
  line->addWidget(store);
  line->addWidget(file_, 1);
  line->addWidget(choose);
  closer_->setChecked(true);
  closer_->setToolTip(tr("As `cpfit plan` does; takes a few seconds more after the search"));

  locked_->setWordWrap(true);
  locked_->setAccessibleName(tr("What is locked"));
  estimate_->setWordWrap(true);
  estimate_->setMinimumHeight(2 * fontMetrics().lineSpacing());
  estimate_->setAlignment(Qt::AlignLeft | Qt::AlignTop);
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  bar_->setRange(0, kBarSteps);
  bar_->setAccessibleName(tr("Progress of the search"));
  bar_->setFormat(QStringLiteral("%p %"));
  start_->setDefault(true);
  auto* close = new QPushButton(tr("Close"), this);
  close->setToolTip(tr("A search that runs goes on; Jobs shows it"));
  auto* buttons = new QHBoxLayout;
  buttons->addStretch(1);
  for (QPushButton* button : {start_, stop_, close}) buttons->addWidget(button);
  for (QPushButton* button : {stop_, close, choose}) button->setAutoDefault(false);

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(16, 14, 16, 14);
  layout->setSpacing(10);
  layout->addWidget(question_);
  layout->addWidget(help);
  layout->addWidget(table_);
  layout->addWidget(locked_);
  layout->addLayout(line);
  layout->addWidget(closer_);
  layout->addWidget(estimate_);
  layout->addWidget(bar_);
  layout->addWidget(sentence_);
  layout->addStretch(1);
  layout->addLayout(buttons);

  quiet_.setSingleShot(true);
  quiet_.setInterval(kQuietMs);
  connect(&quiet_, &QTimer::timeout, this, &SweepDialog::count);
  connect(file_, &QLineEdit::textChanged, this, &SweepDialog::ask);
  connect(choose, &QPushButton::clicked, this, [this] {
    const QString path =
        QFileDialog::getSaveFileName(this, tr("Store the recipes in"), file_->text(), tr("Databases (*.sqlite *.db)"), nullptr,
                                     QFileDialog::DontConfirmOverwrite);
    if (!path.isEmpty()) file_->setText(path);
  });
  connect(start_, &QPushButton::clicked, this, &SweepDialog::start);
  connect(stop_, &QPushButton::clicked, this, [this] { sweep_.stop(); });
  connect(close, &QPushButton::clicked, this, &QDialog::close);
  connect(&sweep_, &RecipeSweep::changed, this, &SweepDialog::refresh);
  connect(&sweep_, &RecipeSweep::ended, this, &SweepDialog::ask);
  connect(&document_, &StudyDocument::design_changed, this, [this] {
    if (isVisible()) begin();
  });
  connect(&document_, &StudyDocument::locks_changed, this, [this] {
    if (!isVisible()) return;
    show_axes();
    ask();
  });
  connect(&document_, &StudyDocument::opened_changed, this, [this] {
    if (!document_.is_open()) hide();
  });
  resize(720, 0);
}

void SweepDialog::begin() {
  if (!document_.is_open()) return;
  const Design& design = document_.design();
  if (of_ == nullptr || of_ != design.scenario) {
    const bool same =
        of_ != nullptr && of_->base.framework == design.scenario->base.framework && of_->text == design.scenario->text;
    // Another length or batch keeps what was chosen; another study begins with its own.
    if (!same) {
      axes_ = sweep_axes(*design.scenario);
      if (!axes_.empty()) build_axes();
    }
    of_ = design.scenario;
  }
  if (!axes_.empty()) show_axes();
  if (file_->text().isEmpty() && !database_.path().isEmpty()) file_->setText(database_.path());
  question_->setText(tr("%1 at %2 tokens, %3 sequences a step, on %4 × %5")
                         .arg(text_of(of_->model.name), tokens_text(of_->training.sequence.count()))
                         .arg(of_->training.global_batch)
                         .arg(of_->cluster.gpus())
                         .arg(text_of(of_->cluster.gpu.name)));
  ask();
}

void SweepDialog::build_axes() {
  buttons_.clear();
  delete table_->layout();
  qDeleteAll(table_->findChildren<QWidget*>(QString(), Qt::FindDirectChildrenOnly));
  auto* grid = new QGridLayout(table_);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(4);
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const SweepAxis& axis = axes_[i];
    auto* label = new QLabel(text_of(axis.label), table_);
    grid->addWidget(label, static_cast<int>(i), 0);
    auto* values = new QHBoxLayout;
    values->setSpacing(4);
    const auto add = [&](const std::string& value, const QString& text) {
      auto* button = new QToolButton(table_);
      button->setText(text);
      button->setCheckable(true);
      button->setFocusPolicy(Qt::StrongFocus);
      button->setMinimumSize(34, 24);
      button->setAccessibleName(QStringLiteral("%1 %2").arg(text_of(axis.label), text));
      connect(button, &QToolButton::clicked, this, [this, i, value] { press(i, value); });
      buttons_[{axis.key, value}] = button;
      values->addWidget(button);
    };
    add("", tr("all"));
    values->addSpacing(6);
    for (const std::string& value : axis.offered) add(value, shown(value));
    values->addStretch(1);
    grid->addLayout(values, static_cast<int>(i), 1);
  }
  grid->setColumnStretch(1, 1);
  show_axes();
  setTabOrder(buttons_[{axes_.back().key, axes_.back().offered.back()}], file_);
  if (QToolButton* first = value_button(axes_.front().key, "")) first->setFocus();
}

QToolButton* SweepDialog::value_button(const std::string& axis, const std::string& value) const {
  const auto found = buttons_.find({axis, value});
  return found == buttons_.end() ? nullptr : found->second;
}

void SweepDialog::show_axes() {
  // What is chosen has the colour of a selection: a pressed button alone is too pale to be read across a table.
  QPalette chosen = palette();
  for (const auto& [role, of] :
       {std::pair(QPalette::Button, QPalette::Highlight), {QPalette::ButtonText, QPalette::HighlightedText}})
    chosen.setColor(QPalette::Active, role, palette().color(QPalette::Active, of));
  chosen.setColor(QPalette::Inactive, QPalette::Button, palette().color(QPalette::Active, QPalette::Highlight));
  chosen.setColor(QPalette::Inactive, QPalette::ButtonText, palette().color(QPalette::Active, QPalette::HighlightedText));
  const Locks& locks = document_.locks();
  const auto show = [&](const SweepAxis& axis, const std::string& value, bool on) {
    const auto found = buttons_.find({axis.key, value});
    if (found == buttons_.end()) return;  // a locked value that no search offers
    QToolButton* button = found->second;
    const bool held = locks.contains(axis.key);
    button->setChecked(on);
    button->setPalette(on ? chosen : QPalette());
    button->setEnabled(!held);
    button->setToolTip(held ? tr("%1 is locked in the recipe panel").arg(text_of(axis.label)) : QString());
  };
  QStringList held;
  if (document_.is_open() && !locks.empty())
    held.append(tr("Locked in the recipe, and not varied: %1.").arg(text_of(locks_text(locks, document_.design().recipe))));
  // The search knows no axis of these: what it finds must be filtered.
  for (const std::string& key : locks) {
    if (std::ranges::find(axes_, key, &SweepAxis::key) != axes_.end() || !document_.is_open()) continue;
    const std::string value = recipe_value(document_.design().recipe, key);
    const std::string every = recipe_value(of_->base, key);
    const QString label = text_of(find_parameter(key)->label);
    if (is_degree(key))
      held.append(tr("%1 follows from the others in a search; the filter %2=%3 in Results keeps it.")
                      .arg(label, text_of(key), text_of(value)));
    else if (value != every)
      held.append(tr("A search does not vary %1: it keeps the scenario's %2.").arg(label, text_of(every)));
  }
  locked_->setText(held.join(QLatin1Char(' ')));
  locked_->setVisible(!held.isEmpty());
  for (const SweepAxis& axis : searched_axes()) {
    for (const std::string& value : axis.offered) show(axis, value, std::ranges::find(axis.chosen, value) != axis.chosen.end());
    show(axis, "", axis.chosen.empty());
  }
}

std::vector<SweepAxis> SweepDialog::searched_axes() const {
  return document_.is_open() ? held_axes(axes_, document_.locks(), document_.design().recipe) : axes_;
}

void SweepDialog::changeEvent(QEvent* event) {
  QDialog::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) show_axes();
}

void SweepDialog::press(std::size_t axis, const std::string& value) {
  if (value.empty())
    axes_[axis].chosen.clear();
  else
    toggle_value(axes_[axis], value);
  show_axes();
  ask();
}

SweepRequest SweepDialog::request() const {
  SweepRequest request;
  request.scenario = asked_;
  request.rates = live_.rates();
  request.calibration = live_.calibration();
  if (request.calibration) request.chosen = document_.design().calibration;
  request.tool_version = to_std(QApplication::applicationVersion());
  request.database = file_->text().trimmed();
  request.store.patience = std::chrono::milliseconds(5000);
  request.closer = closer_->isChecked();
  return request;
}

void SweepDialog::ask() {
  estimated_ = false;
  if (!document_.is_open()) return;
  quiet_.start();
  refresh();
}

void SweepDialog::count() {
  if (!document_.is_open() || sweep_.is_running()) return;
  asked_.reset();
  trouble_.clear();
  count_text_.clear();
  resume_text_.clear();
  resumes_ = any_legal_ = false;
  const Outcome<std::shared_ptr<const Scenario>> scenario = sweep_scenario(document_.design(), searched_axes());
  if (!scenario.ok()) {
    estimated_ = true;
    trouble_ = sentence_of(scenario.problems().front());
    return refresh();
  }
  asked_ = *scenario;
  jobs_.start(
      QStringLiteral("count"), tr("Count the recipes of a sweep"),
      [request = request()](const std::atomic<bool>& stop) -> std::any {
        Outcome<SweepCount> count = count_recipes(*request.scenario, *request.rates, stop);
        if (!count.ok()) throw Error(to_text(count.problems().front()));
        Counted counted{*count, {}};
        SweepRequest quick = request;
        quick.store.patience = std::chrono::milliseconds(200);  // a look only: the search itself waits for its turn
        if (counted.count.whole) counted.resumable = resumable_run(quick);
        return counted;
      },
      [this](const std::any& result) {
        const auto& counted = std::any_cast<const Counted&>(result);
        estimated_ = true;
        any_legal_ = counted.count.legal > 0;
        count_text_ = tr("%1 recipes are considered, %2 of them are legal")
                          .arg(count_text(counted.count.considered), count_text(counted.count.legal));
        trouble_ = counted.resumable.trouble;
        resumes_ = counted.resumable.run.has_value();
        if (resumes_) {
          resume_text_ = tr("Run %1 of %2 was interrupted after %3 recipes: it goes on, and nothing is stored twice.")
                             .arg(static_cast<qint64>(*counted.resumable.run))
                             .arg(QFileInfo(file_->text().trimmed()).fileName(),
                                  count_text(static_cast<std::int64_t>(counted.resumable.recipes)));
        }
        count_text_ += time_sentence(counted.count.legal);
        refresh();
        return tr("%1 legal").arg(count_text(counted.count.legal));
      });
}

QString SweepDialog::time_sentence(std::int64_t legal) const {
  // By the pace of the last search on this machine.
  const SearchAnswer* last =
      sweep_.found() && sweep_.found()->plan.stats.evaluated > 0 ? sweep_.found().get() : live_.search().get();
  if (last == nullptr || last->plan.stats.evaluated < 1) return QStringLiteral(".");
  const double seconds = last->plan.stats.seconds / static_cast<double>(last->plan.stats.evaluated) * static_cast<double>(legal);
  return seconds < 0.1 ? tr("; the search takes less than 0.1 s.")
                       : tr("; the search takes about %1 here.").arg(time_text(Seconds(seconds)));
}

void SweepDialog::start() {
  if (sweep_.is_running() || asked_ == nullptr) return;
  sweep_.start(request());
}

void SweepDialog::refresh() {
  const bool running = sweep_.is_running();
  table_->setEnabled(!running);
  file_->setEnabled(!running);
  closer_->setEnabled(!running);
  start_->setText(resumes_ ? tr("Go &on") : tr("S&tart"));
  start_->setEnabled(!running && estimated_ && asked_ != nullptr && any_legal_);
  stop_->setEnabled(running);
  if (!running) {
    QString text = !estimated_ ? tr("Counting …") : count_text_;
    if (!resume_text_.isEmpty()) text += QLatin1Char(' ') + resume_text_;
    if (!trouble_.isEmpty()) text += (text.isEmpty() ? QString() : QStringLiteral(" ")) + QStringLiteral("⚠ ") + trouble_;
    if (estimated_ && asked_ != nullptr && !any_legal_) text += tr(" Choose other values: none of these is legal here.");
    estimate_->setText(text);
  }
  bar_->setVisible(running);
  bar_->setValue(static_cast<int>(sweep_.share() * kBarSteps));
  sentence_->setText(sweep_.went_wrong() && !running ? QStringLiteral("⚠ ") + sweep_.sentence() : sweep_.sentence());
  sentence_->setVisible(!sweep_.sentence().isEmpty());
  setAccessibleDescription(running ? sweep_.sentence() : estimate_->text());
}

}  // namespace cpfit::gui
