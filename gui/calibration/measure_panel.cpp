#include "gui/calibration/measure_panel.h"

#include <QApplication>
#include <QComboBox>
#include <QDateTime>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QStandardPaths>
#include <QVBoxLayout>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

constexpr int kBarSteps = 1000;
constexpr int kMostRanks = 64;
constexpr double kUsualMinutes = 10;

QWidget* with_button(QLineEdit* field, QPushButton* button) {
  auto* box = new QWidget;
  auto* line = new QHBoxLayout(box);
  line->setContentsMargins(0, 0, 0, 0);
  line->addWidget(field, 1);
  line->addWidget(button);
  return box;
}

}  // namespace

MeasurePanel::MeasurePanel(Jobs& jobs, QWidget* parent)
    : QWidget(parent),
      jobs_(jobs),
      run_(new BenchRun(jobs, this)),
      program_(new QLineEdit(find_companion(QStringLiteral("cpfit-bench")), this)),
      backend_(new QComboBox(this)),
      ranks_(new QSpinBox(this)),
      amount_(new QComboBox(this)),
      minutes_(new QDoubleSpinBox(this)),
      out_(new QLineEdit(this)),
      command_(new QLabel(this)),
      start_(new QPushButton(tr("&Measure"), this)),
      stop_(new QPushButton(tr("&Stop"), this)),
      fit_(new QPushButton(tr("&Fit a file …"), this)),
      bar_(new QProgressBar(this)),
      sentence_(new QLabel(this)) {
  auto* help =
      new QLabel(tr("Times attention, matrix products, launches, messages and the whole ring step here, and fits rates to them. "
                    "Nothing is installed and no clock is changed; messages and rings need two ranks or more. A cluster is "
                    "measured by mpirun or Slurm: its file is fitted here as well."),
                 this);
  help->setWordWrap(true);
  help->setForegroundRole(QPalette::PlaceholderText);
  program_->setAccessibleName(tr("Measuring program"));
  program_->setPlaceholderText(tr("cpfit-bench"));
  auto* choose_program = new QPushButton(tr("Choose …"), this);
  choose_program->setAccessibleName(tr("Choose the measuring program"));
  backend_->setAccessibleName(tr("What computes"));
  backend_->addItem(tr("Processor (host)"), QStringLiteral("host"));
  backend_->addItem(tr("GPUs, one per rank (cuda)"), QStringLiteral("cuda"));
  backend_->addItem(tr("One GPU, its own neighbour (loopback)"), QStringLiteral("loopback"));
  ranks_->setAccessibleName(tr("Ranks"));
  ranks_->setRange(1, kMostRanks);
  ranks_->setMaximumWidth(90);
  const bool can_launch = !find_companion(QStringLiteral("mpirun")).isEmpty();
  ranks_->setEnabled(can_launch);
  ranks_->setToolTip(can_launch ? tr("Processes that exchange messages, started by mpirun")
                                : tr("Several ranks need mpirun, which is not in PATH: install Open MPI"));
  amount_->setAccessibleName(tr("How much"));
  amount_->addItem(tr("Try: does everything run? A second"));
  amount_->addItem(tr("In full, at most"));
  minutes_->setAccessibleName(tr("Minutes at most"));
  minutes_->setRange(0.5, 600);
  minutes_->setValue(kUsualMinutes);
  minutes_->setDecimals(1);
  minutes_->setSuffix(tr(" min"));
  out_->setAccessibleName(tr("File of the measurement"));
  out_->setToolTip(tr("Written whole after every point; measuring with the same file goes on where it ended"));
  auto* choose_out = new QPushButton(tr("Choose …"), this);
  choose_out->setAccessibleName(tr("Choose the file of the measurement"));
  command_->setForegroundRole(QPalette::PlaceholderText);
  command_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  command_->setWordWrap(true);
  command_->setAccessibleName(tr("The same as a command line"));
  bar_->setRange(0, kBarSteps);
  bar_->setFormat(QStringLiteral("%p %"));
  bar_->setAccessibleName(tr("Progress of the measurement"));
  sentence_->setWordWrap(true);
  sentence_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  fit_->setToolTip(tr("A measurement of cpfit-bench, nccl-tests, nvbandwidth, a table of kernels"));

  auto* amount = new QWidget(this);
  auto* amount_line = new QHBoxLayout(amount);
  amount_line->setContentsMargins(0, 0, 0, 0);
  amount_line->addWidget(amount_, 1);
  amount_line->addWidget(minutes_);
  auto* form = new QFormLayout;
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  form->addRow(tr("&Program"), with_button(program_, choose_program));
  form->addRow(tr("&Compute with"), backend_);
  form->addRow(tr("&Ranks"), ranks_);
  form->addRow(tr("&How much"), amount);
  form->addRow(tr("Fil&e"), with_button(out_, choose_out));
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {start_, stop_, fit_}) buttons->addWidget(button);
  buttons->addStretch(1);
  auto* column = new QWidget(this);
  column->setMaximumWidth(720);
  auto* inner = new QVBoxLayout(column);
  inner->setContentsMargins(8, 8, 8, 8);
  inner->setSpacing(10);
  inner->addWidget(help);
  inner->addLayout(form);
  inner->addWidget(command_);
  inner->addLayout(buttons);
  inner->addWidget(bar_);
  inner->addWidget(sentence_);
  inner->addStretch(1);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(column, 1);
  layout->addStretch(0);

  connect(choose_program, &QPushButton::clicked, this, [this] {
    const QString path = QFileDialog::getOpenFileName(this, tr("The measuring program"), program_->text());
    if (!path.isEmpty()) program_->setText(path);
  });
  connect(choose_out, &QPushButton::clicked, this, [this] {
    const QString path = QFileDialog::getSaveFileName(this, tr("File of the measurement"), out_->text(),
                                                      tr("Measurements (*.json)"), nullptr, QFileDialog::DontConfirmOverwrite);
    if (!path.isEmpty()) out_->setText(path);
  });
  for (QComboBox* box : {backend_, amount_}) connect(box, &QComboBox::currentIndexChanged, this, &MeasurePanel::propose_file);
  connect(ranks_, &QSpinBox::valueChanged, this, &MeasurePanel::propose_file);
  connect(minutes_, &QDoubleSpinBox::valueChanged, this, &MeasurePanel::refresh);
  for (QLineEdit* field : {program_, out_}) connect(field, &QLineEdit::textChanged, this, &MeasurePanel::refresh);
  connect(start_, &QPushButton::clicked, this, [this] {
    remarks_.clear();
    fit_trouble_.clear();
    run_->start(command());
  });
  connect(stop_, &QPushButton::clicked, run_, &BenchRun::stop);
  connect(fit_, &QPushButton::clicked, this, [this] {
    const QString path = QFileDialog::getOpenFileName(this, tr("A measurement"), QFileInfo(out_->text()).path(),
                                                      tr("Measurements (*.json *.csv *.txt);;All files (*)"));
    if (!path.isEmpty()) fit_file(path);
  });
  connect(run_, &BenchRun::changed, this, &MeasurePanel::refresh);
  connect(run_, &BenchRun::ended, this, [this] {
    if (!run_->command().smoke && run_->measured() > 0) fit_file(run_->command().out);
  });
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel) {
    if (channel == QLatin1String("fit")) refresh();
  });
  propose_file();
}

BenchCommand MeasurePanel::command() const {
  BenchCommand command;
  command.program = program_->text().trimmed();
  command.backend = backend_->currentData().toString();
  command.ranks = ranks_->value();
  command.smoke = amount_->currentIndex() == 0;
  command.minutes = minutes_->value();
  command.out = out_->text().trimmed();
  return command;
}

void MeasurePanel::propose_file() {
  const BenchCommand now = command();
  // What a person wrote is kept.
  if (out_->text() == proposed_) {
    proposed_ =
        QStringLiteral("%1/measurements/%2-%3%4.json")
            .arg(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation), now.backend)
            .arg(now.ranks)
            .arg(now.smoke ? QStringLiteral("-try") : QStringLiteral("-%1").arg(QDate::currentDate().toString(Qt::ISODate)));
    out_->setText(proposed_);
  }
  refresh();
}

void MeasurePanel::fit_file(const QString& path) {
  fit_trouble_.clear();
  remarks_.clear();
  const std::string version = to_std(QApplication::applicationVersion());
  jobs_.start(
      QStringLiteral("fit"), tr("Fit rates to %1").arg(QFileInfo(path).fileName()),
      [path, version, now = QDateTime::currentSecsSinceEpoch()](const std::atomic<bool>&) -> std::any {
        // Trouble comes as a result: the page says it beside what was measured.
        try {
          return fit_measured(path, version, now);
        } catch (const Error& error) {
          return text_of(error.what());
        }
      },
      [this](const std::any& result) {
        if (const auto* trouble = std::any_cast<QString>(&result)) {
          fit_trouble_ = tr("Nothing could be fitted: %1").arg(*trouble);
          return fit_trouble_;
        }
        const auto& fit = std::any_cast<const MeasuredFit&>(result);
        remarks_ = fit.remarks.join(QStringLiteral("\n"));
        emit fitted(fit.chosen);
        return tr("calibration %1").arg(text_of(fit.chosen->calibration.name));
      });
  refresh();
}

void MeasurePanel::refresh() {
  const BenchCommand now = command();
  const bool running = run_->is_running(), fitting = jobs_.is_running(QStringLiteral("fit"));
  for (QWidget* field : std::initializer_list<QWidget*>{program_, backend_, amount_, out_, fit_}) field->setEnabled(!running);
  minutes_->setEnabled(!running && !now.smoke);
  const QString why_not = now.program.isEmpty() ? tr("There is no cpfit-bench beside this program or in PATH: build the target "
                                                     "cpfit-bench, or choose the program.")
                          : now.out.isEmpty()   ? tr("Choose a file for the measurement.")
                                                : QString();
  start_->setEnabled(!running && !fitting && why_not.isEmpty());
  start_->setToolTip(why_not);
  stop_->setEnabled(running);
  command_->setText(why_not.isEmpty() ? line_of(now) : QString());
  bar_->setVisible(running);
  const auto& progress = run_->progress();
  const bool known = progress && progress->total > 0;
  bar_->setRange(0, known ? kBarSteps : 0);
  if (known) bar_->setValue(static_cast<int>(progress->done * kBarSteps / progress->total));
  QStringList lines;
  if (!why_not.isEmpty()) lines << QStringLiteral("⚠ ") + why_not;
  if (!run_->sentence().isEmpty()) lines << (run_->went_wrong() ? QStringLiteral("⚠ ") : QString()) + run_->sentence();
  if (fitting) lines << tr("Fitting …");
  if (!fit_trouble_.isEmpty()) lines << QStringLiteral("⚠ ") + fit_trouble_;
  if (!remarks_.isEmpty()) lines << remarks_;
  sentence_->setText(lines.join(QLatin1Char('\n')));
  emit changed();
}

QString MeasurePanel::summary() const {
  return sentence_->text().isEmpty() ? tr("Nothing was measured here yet.") : sentence_->text();
}

}  // namespace cpfit::gui
