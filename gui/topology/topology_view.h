// The topology view: graph, matrix and link table over one picture, the ring over the graph, what-if edits of links through the
// undo stack it is given.
#pragma once

#include <memory>

#include "gui/topology/network_picture.h"
#include "gui/topology/traffic_matrix.h"
#include "gui/view/study_view.h"

class QComboBox;
class QLabel;
class QPushButton;
class QTabWidget;
class QTableView;
class QUndoStack;

namespace cpfit::gui {

class LinkTableModel;
class MatrixView;
class TopologyGraph;
struct StepTracks;

class TopologyView : public StudyView {
  Q_OBJECT

 public:
  explicit TopologyView(QUndoStack* undo, QWidget* parent = nullptr);

  /// Of the cluster as edited; the edits made here stay with the view until another cluster comes.
  void setPicture(std::shared_ptr<const NetworkPicture> picture);
  void setEmpty(const QString& sentence);
  /// Used shares within a range of the simulated step (mean), or none: of the whole step.
  void setFocusRange(const StepTracks* tracks, std::int64_t from, std::int64_t to);
  void selectLink(const QString& from, const QString& to);  // empty: none
  void highlightLinks(const std::vector<std::int32_t>& links);
  void editLink(std::int32_t link, const LinkEdit& edit);  // a command on the undo stack
  void resetEdits();                                       // another one

  [[nodiscard]] const LinkEdits& edits() const { return edits_; }
  [[nodiscard]] std::shared_ptr<const NetworkPicture> picture() const { return picture_; }
  [[nodiscard]] TopologyGraph* graph() const { return graph_; }
  [[nodiscard]] MatrixView* matrix() const { return matrix_; }
  [[nodiscard]] LinkTableModel* links() const { return links_; }
  [[nodiscard]] QTabWidget* tabs() const { return tabs_; }
  [[nodiscard]] QComboBox* rings() const { return ring_choice_; }
  [[nodiscard]] QString orderText() const;                     // why the ring has this order
  [[nodiscard]] QPushButton* place() const { return place_; }  // takes the better placement that orderText() names
  [[nodiscard]] QString summary() const override;
  [[nodiscard]] QString csv() const override;
  [[nodiscard]] QString dot() const;

 signals:
  void linkSelected(const QString& from, const QString& to);  // empty: none
  /// Of the cluster before any edit: whoever owns the study simulates edited_cluster(cluster, edits).
  void editsChanged(const cpfit::gui::LinkEdits& edits);
  void placementWanted(const cpfit::gui::BetterPlacement& placement);

 private:
  friend class LinkEditCommand;
  void takeEdits(const LinkEdits& edits);
  void showPicture();
  void showMatrix();
  void chosen(std::int32_t link);
  [[nodiscard]] std::int32_t find(const QString& from, const QString& to) const;

  QUndoStack* undo_;
  std::shared_ptr<const NetworkPicture> picture_;
  LinkEdits edits_;
  QString empty_;
  QTabWidget* tabs_;
  TopologyGraph* graph_;
  MatrixView* matrix_;
  QTableView* table_;
  LinkTableModel* links_;
  QComboBox *ring_choice_, *matrix_choice_;
  QPushButton *reset_, *place_;
  QLabel *order_, *link_text_, *matrix_text_, *note_;
  bool passing_on_ = false;
};

}  // namespace cpfit::gui
