#include "gui/topology/topology_view.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTabWidget>
#include <QTableView>
#include <QUndoCommand>
#include <QUndoStack>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/figures.h"
#include "gui/timeline/step_tracks.h"
#include "gui/topology/link_table_model.h"
#include "gui/topology/matrix_view.h"
#include "gui/topology/topology_graph.h"

namespace cpfit::gui {

/// From one set of edits to another.
class LinkEditCommand : public QUndoCommand {
 public:
  LinkEditCommand(TopologyView& view, LinkEdits before, LinkEdits after, const QString& text)
      : QUndoCommand(text), view_(view), before_(std::move(before)), after_(std::move(after)) {}
  void undo() override { view_.takeEdits(before_); }
  void redo() override { view_.takeEdits(after_); }

 private:
  TopologyView& view_;
  LinkEdits before_, after_;
};

TopologyView::TopologyView(QUndoStack* undo, QWidget* parent)
    : StudyView(QStringLiteral("topology"), tr("Topology"), parent), undo_(undo) {
  const auto label = [this] {
    auto* made = new QLabel(this);
    made->setWordWrap(true);
    made->setTextInteractionFlags(Qt::TextSelectableByMouse);
    return made;
  };
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  tabs_ = new QTabWidget(this);
  tabs_->setDocumentMode(true);
  all->addWidget(tabs_);
  note_ = label();
  all->addWidget(note_);

  auto* graph_page = new QWidget(this);
  auto* graph_box = new QVBoxLayout(graph_page);
  graph_box->setContentsMargins(6, 6, 6, 6);
  auto* bar = new QHBoxLayout;
  ring_choice_ = new QComboBox(this);
  ring_choice_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // the window stays narrow
  ring_choice_->setMinimumContentsLength(10);
  ring_choice_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  ring_choice_->setMaximumWidth(260);
  ring_choice_->setAccessibleName(tr("Ring shown over the graph"));
  auto* ring_label = new QLabel(tr("&Ring"), this);
  ring_label->setBuddy(ring_choice_);
  bar->addWidget(ring_label);
  bar->addWidget(ring_choice_);
  auto* fit = new QPushButton(tr("Fit"), this);
  fit->setToolTip(tr("Show the whole graph (Home)"));
  bar->addWidget(fit);
  reset_ = new QPushButton(tr("Undo all link edits"), this);
  bar->addWidget(reset_);
  bar->addStretch(1);
  graph_box->addLayout(bar);
  graph_ = new TopologyGraph(this);
  graph_box->addWidget(graph_, 1);
  link_text_ = label();
  graph_box->addWidget(link_text_);
  order_ = label();
  place_ = new QPushButton(tr("Place ranks better"), this);
  auto* order_row = new QHBoxLayout;
  order_row->addWidget(order_, 1);
  order_row->addStretch();
  order_row->addWidget(place_, 0, Qt::AlignTop);
  graph_box->addLayout(order_row);
  tabs_->addTab(graph_page, tr("Graph"));

  auto* matrix_page = new QWidget(this);
  auto* matrix_box = new QVBoxLayout(matrix_page);
  matrix_box->setContentsMargins(6, 6, 6, 6);
  auto* matrix_bar = new QHBoxLayout;
  matrix_choice_ = new QComboBox(this);
  matrix_choice_->setAccessibleName(tr("Traffic shown in the matrix"));
  for (const QString& name : {tr("all traffic"), tr("CP"), tr("TP"), tr("PP"), tr("DP")}) matrix_choice_->addItem(name);
  matrix_bar->addWidget(matrix_choice_);
  matrix_bar->addStretch(1);
  matrix_box->addLayout(matrix_bar);
  matrix_ = new MatrixView(this);
  matrix_box->addWidget(matrix_, 1);
  matrix_text_ = label();
  matrix_box->addWidget(matrix_text_);
  tabs_->addTab(matrix_page, tr("Matrix"));

  links_ = new LinkTableModel(this);
  table_ = new QTableView(this);
  table_->setModel(links_);
  table_->setSortingEnabled(true);
  table_->sortByColumn(LinkTableModel::kShare, Qt::DescendingOrder);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->verticalHeader()->hide();
  table_->setAccessibleName(tr("Links"));
  tabs_->addTab(table_, tr("Links"));

  connect(ring_choice_, &QComboBox::currentIndexChanged, this, [this](int index) {
    graph_->showRing(index - 1);
    order_->setText(orderText());
    order_->setVisible(!order_->text().isEmpty());
  });
  connect(fit, &QPushButton::clicked, graph_, &TopologyGraph::fit);
  connect(reset_, &QPushButton::clicked, this, &TopologyView::resetEdits);
  connect(place_, &QPushButton::clicked, this, [this] {
    if (picture_ && picture_->better) emit placementWanted(*picture_->better);
  });
  connect(graph_, &TopologyGraph::linkSelected, this, [this](int link) { chosen(link); });
  connect(matrix_choice_, &QComboBox::currentIndexChanged, this, [this] { showMatrix(); });
  connect(matrix_, &MatrixView::brushed, this, [this] {
    matrix_text_->setText(matrix_->text());
    graph_->highlightLinks(matrix_->brush() && picture_ ? links_of(*picture_, matrix_->matrix(), *matrix_->brush())
                                                        : std::vector<std::int32_t>{});
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
    if (now.isValid() && !passing_on_) graph_->selectLink(links_->linkOf(now.row()));
  });
  connect(links_, &LinkTableModel::editRequested, this, [this](int link, const LinkEdit& edit) { editLink(link, edit); });
  connect(links_, &LinkTableModel::editRefused, this, [this](const QString& sentence) {
    note_->setText(sentence);
    note_->show();
  });
  setEmpty(tr("Open a scenario or a topology file to see its network."));
}

void TopologyView::setPicture(std::shared_ptr<const NetworkPicture> picture) {
  if (picture_ && picture && picture_->topology().links().size() != picture->topology().links().size()) edits_.clear();
  picture_ = std::move(picture);
  empty_.clear();
  showPicture();
}

void TopologyView::setEmpty(const QString& sentence) {
  picture_.reset();
  empty_ = sentence;
  showPicture();
}

void TopologyView::showPicture() {
  const int ring = ring_choice_->currentIndex();
  const QSignalBlocker quiet(ring_choice_);
  ring_choice_->clear();
  ring_choice_->addItem(tr("none"));
  if (picture_) {
    for (std::size_t r = 0; r < picture_->rings.size(); ++r) {
      const RingPicture& shown = picture_->rings[r];
      ring_choice_->addItem(tr("CP ring %1: ranks %2, %3 … %4")
                                .arg(r)
                                .arg(static_cast<qlonglong>(shown.ranks[0]))
                                .arg(static_cast<qlonglong>(shown.ranks[1]))
                                .arg(static_cast<qlonglong>(shown.ranks.back())));
    }
  }
  ring_choice_->setCurrentIndex(ring >= 0 && ring < ring_choice_->count() ? ring : 0);
  ring_choice_->setEnabled(ring_choice_->count() > 1);
  ring_choice_->setToolTip(ring_choice_->isEnabled() ? QString() : tr("The recipe has no CP ring"));
  graph_->setPicture(picture_, edits_);
  graph_->showRing(ring_choice_->currentIndex() - 1);
  passing_on_ = true;
  links_->show(picture_, edits_);
  passing_on_ = false;
  table_->resizeColumnsToContents();
  reset_->setEnabled(!edits_.empty());
  reset_->setToolTip(edits_.empty() ? tr("No link is edited; capacity and latency are edited in the table of links") : QString());
  place_->setEnabled(picture_ && picture_->better);
  place_->setToolTip(place_->isEnabled() ? text_of(picture_->why_this_order)
                                         : tr("No rank order and no order of the GPUs lets these groups communicate sooner"));
  note_->setText(picture_ ? text_of(picture_->note) : empty_);
  note_->setVisible(!note_->text().isEmpty());
  order_->setText(orderText());
  order_->setVisible(!order_->text().isEmpty());
  link_text_->setVisible(false);
  showMatrix();
  tell();
}

void TopologyView::showMatrix() {
  if (!picture_) {
    matrix_->setMatrix({}, {});
    return matrix_text_->clear();
  }
  static constexpr Axis kAxes[] = {Axis::kCp, Axis::kTp, Axis::kPp, Axis::kDp};
  const int choice = matrix_choice_->currentIndex();
  constexpr std::int64_t kMostRanks = 512;
  std::int64_t ranks = 0;
  for (const PairFlow& flow : picture_->flows) ranks = std::max({ranks, flow.from + 1, flow.to + 1});
  const bool by_node = ranks > kMostRanks;
  const QString what =
      tr("%1 sent in a step, %2").arg(matrix_choice_->currentText(), by_node ? tr("node to node") : tr("rank to rank"));
  matrix_->setMatrix(traffic_matrix(*picture_, by_node, choice > 0 ? &kAxes[choice - 1] : nullptr), what);
  matrix_text_->setText(matrix_->text());
}

void TopologyView::setFocusRange(const StepTracks* tracks, std::int64_t from, std::int64_t to) {
  if (!picture_ || tracks == nullptr || to <= from) return graph_->setShares({}, {});
  std::vector<double> shares(picture_->links.size(), 0.0);
  for (std::size_t l = 0; l < shares.size(); ++l) {
    const std::string name = picture_->link_name(static_cast<std::int32_t>(l));
    for (const LinkTrack& track : tracks->links) {
      if (track.name == name) shares[l] = rate_columns(track, {from, to}, 1).front().mean * 1e9 / track.capacity.value();
    }
  }
  graph_->setShares(std::move(shares), tr("mean used share in the focus range, simulated ranks"));
}

std::int32_t TopologyView::find(const QString& from, const QString& to) const {
  if (!picture_ || from.isEmpty()) return -1;
  const std::string name = to_std(from) + " -> " + to_std(to);
  for (std::size_t l = 0; l < picture_->links.size(); ++l) {
    if (picture_->link_name(static_cast<std::int32_t>(l)) == name) return static_cast<std::int32_t>(l);
  }
  return -1;
}

void TopologyView::selectLink(const QString& from, const QString& to) { graph_->selectLink(find(from, to)); }
void TopologyView::highlightLinks(const std::vector<std::int32_t>& links) { graph_->highlightLinks(links); }

void TopologyView::chosen(std::int32_t link) {
  link_text_->setVisible(link >= 0);
  if (link < 0) {
    emit linkSelected({}, {});
    return;
  }
  link_text_->setText(graph_->linkText(link));
  passing_on_ = true;
  if (const int row = links_->rowOf(link); row >= 0)
    table_->setCurrentIndex(links_->index(row, std::max(0, table_->currentIndex().column())));
  passing_on_ = false;
  const Link& l = picture_->topology().links()[static_cast<std::size_t>(link)];
  const auto name = [&](std::int32_t v) { return text_of(picture_->topology().vertices()[static_cast<std::size_t>(v)].name); };
  emit linkSelected(name(l.from), name(l.to));
}

void TopologyView::editLink(std::int32_t link, const LinkEdit& edit) {
  LinkEdits after = edits_;
  after[link] = edit;
  undo_->push(new LinkEditCommand(*this, edits_, after, tr("edit link %1").arg(text_of(picture_->link_name(link)))));
}

void TopologyView::resetEdits() {
  if (edits_.empty()) return;
  undo_->push(new LinkEditCommand(*this, edits_, {}, tr("undo all link edits")));
}

void TopologyView::takeEdits(const LinkEdits& edits) {
  edits_ = edits;
  showPicture();
  emit editsChanged(edits_);
}

QString TopologyView::orderText() const {
  return picture_ && ring_choice_->currentIndex() > 0 ? text_of(picture_->why_this_order) : QString();
}

QString TopologyView::summary() const {
  if (!picture_) return empty_;
  QString text =
      tr("%1: %2 GPUs on %3 nodes")
          .arg(text_of(picture_->cluster.name), count_text(picture_->cluster.gpus()), count_text(picture_->cluster.nodes));
  if (!picture_->worst.empty()) {
    const std::int32_t worst = picture_->worst.front();
    text += tr("; the most used link is %1, %2 of the step")
                .arg(text_of(picture_->link_name(worst)), share_text(picture_->links[static_cast<std::size_t>(worst)].share));
  }
  if (!edits_.empty()) text += edits_.size() == 1 ? tr("; 1 link is edited") : tr("; %1 links are edited").arg(edits_.size());
  return text;
}

QString TopologyView::csv() const {
  if (!picture_) return {};
  if (tabs_->currentIndex() == 1) return text_of(matrix_csv(matrix_->matrix()));
  return text_of(links_csv(*picture_, edits_));
}

QString TopologyView::dot() const { return picture_ ? text_of(topology_dot(*picture_, edits_)) : QString(); }

}  // namespace cpfit::gui
