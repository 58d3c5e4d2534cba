#include "gui/window/start_page.h"

#include <QCommandLinkButton>
#include <QFileInfo>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "gui/window/examples.h"

namespace cpfit::gui {

namespace {

QLabel* line(const QString& text, double scale, bool bold, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  QFont font = label->font();
  font.setPointSizeF(font.pointSizeF() * scale);
  font.setBold(bold);
  label->setFont(font);
  label->setWordWrap(true);
  return label;
}

/// The first sentences, up to about `limit` letters, never cut inside one.
QString shortened(const QString& text, qsizetype limit) {
  if (text.size() <= limit) return text;
  qsizetype end = -1;
  for (const QString& stop :
       {QStringLiteral(". "), QStringLiteral("? "), QStringLiteral(": "), QStringLiteral("; "), QStringLiteral(", ")}) {
    const qsizetype at = text.lastIndexOf(stop, limit);
    if (at > limit / 2) {
      end = at;
      break;
    }
  }
  if (end < 0) end = text.lastIndexOf(QLatin1Char(' '), limit);
  return text.left(end) + QStringLiteral(" …");
}

}  // namespace

StartPage::StartPage(QWidget* parent) : QWidget(parent), recent_(new QVBoxLayout) {
  setAccessibleName(tr("Start page"));
  auto* inner = new QWidget;
  inner->setMaximumWidth(1180);
  auto* columns = new QGridLayout(inner);
  columns->setContentsMargins(40, 32, 40, 32);
  columns->setHorizontalSpacing(48);
  columns->setVerticalSpacing(10);
  columns->addWidget(line(tr("cpfit"), 2.4, true, inner), 0, 0, 1, 2);
  columns->addWidget(line(tr("Which CP × TP × PP × DP is the smallest that fits this sequence with margin and still hides its "
                             "exchange, on this cluster?"),
                          1.15, false, inner),
                     1, 0, 1, 2);
  columns->setRowMinimumHeight(2, 12);

  auto* examples = new QVBoxLayout;
  examples->setSpacing(2);
  examples->addWidget(line(tr("Open an example"), 1.15, true, inner));
  std::size_t shown = 0;
  constexpr std::size_t kLarge = 6;
  for (const Example& example : bundled_examples()) {
    QWidget* button = nullptr;
    if (shown++ < kLarge) {
      auto* large = new QCommandLinkButton(example.name, shortened(example.question, 150), inner);
      large->setAccessibleDescription(example.question);
      connect(large, &QCommandLinkButton::clicked, this, [this, path = example.path] { emit example_chosen(path); });
      button = large;
    } else {
      auto* small = new QPushButton(example.name, inner);
      small->setFlat(true);
      small->setStyleSheet(QStringLiteral("text-align: left; padding: 4px 10px"));
      connect(small, &QPushButton::clicked, this, [this, path = example.path] { emit example_chosen(path); });
      button = small;
    }
    button->setToolTip(QStringLiteral("<p>%1</p>").arg(example.question.toHtmlEscaped()));
    button->setAccessibleName(tr("Open the example %1").arg(example.name));
    examples->addWidget(button);
  }
  examples->addStretch(1);
  columns->addLayout(examples, 3, 0);

  auto* side = new QVBoxLayout;
  side->setSpacing(6);
  side->addWidget(line(tr("Your own"), 1.15, true, inner));
  auto* open = new QPushButton(tr("Open a scenario …"), inner);
  open->setMinimumHeight(34);
  connect(open, &QPushButton::clicked, this, &StartPage::open_asked);
  side->addWidget(open);
  auto* drop = line(tr("or drop a file anywhere: a scenario (.toml), a model's config.json, a topology, a result database, a "
                       "trace, a measurement"),
                    0.95, false, inner);
  drop->setContentsMargins(0, 0, 0, 12);
  side->addWidget(drop);
  side->addLayout(recent_);
  side->addWidget(line(tr("What it answers"), 1.15, true, inner));
  for (const QString& text :
       {tr("Does it fit, and what fills the memory?"), tr("Is the exchange hidden behind attention, and where is it not?"),
        tr("Which link is the bottleneck, and who is on it?"), tr("What changes when I turn this knob?"),
        tr("How far can I trust the numbers?"), tr("How do I show or repeat this?")})
    side->addWidget(line(QStringLiteral("•  ") + text, 1.0, false, inner));
  side->addStretch(1);
  columns->addLayout(side, 3, 1);
  columns->setColumnStretch(0, 3);
  columns->setColumnStretch(1, 2);
  columns->setRowStretch(3, 1);

  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* centred = new QWidget;
  auto* row = new QHBoxLayout(centred);
  row->addStretch(1);
  row->addWidget(inner, 20);
  row->addStretch(1);
  scroll->setWidget(centred);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
}

void StartPage::show_recent(const QStringList& paths) {
  while (QLayoutItem* item = recent_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  constexpr qsizetype kShown = 5;
  if (paths.isEmpty()) return;
  recent_->addWidget(line(tr("Recent"), 1.15, true, this));
  for (const QString& path : paths.mid(0, kShown)) {
    auto* button = new QPushButton(QFileInfo(path).fileName(), this);
    button->setFlat(true);
    button->setStyleSheet(QStringLiteral("text-align: left; padding: 3px 6px"));
    button->setToolTip(path);
    button->setAccessibleName(tr("Open %1").arg(path));
    connect(button, &QPushButton::clicked, this, [this, path] { emit file_chosen(path); });
    recent_->addWidget(button);
  }
  recent_->addSpacing(12);
}

}  // namespace cpfit::gui
