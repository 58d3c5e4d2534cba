// Brings the study's network into the topology view, and what is chosen and tried there back: the link into the selection, edited
// links into a simulation of their own whose step is drawn in place of the study's until the edits are undone.
#pragma once

#include <QObject>
#include <memory>

#include "gui/study/jobs.h"
#include "gui/study/live_estimate.h"
#include "gui/study/selection.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/topology_view.h"

namespace cpfit::gui {

class TopologyFeed : public QObject {
  Q_OBJECT

 public:
  TopologyFeed(LiveEstimate& live, Jobs& jobs, Selection& selection, TopologyView& topology, TimelineView& step,
               QObject* parent = nullptr);

 signals:
  void said(const QString& sentence, bool trouble);

 private:
  void react();
  void draw(const std::shared_ptr<const SimulatedStep>& simulated);
  void tryEdits(const LinkEdits& edits);
  void show(const std::shared_ptr<const SimulatedStep>& simulated);
  void follow(const Selected& before, const QObject* origin);

  LiveEstimate& live_;
  Jobs& jobs_;
  Selection& selection_;
  TopologyView& topology_;
  TimelineView& step_;
  std::shared_ptr<const SimulatedStep> drawn_;
  std::shared_ptr<const StepTracks> tracks_;  // of every link that carries something
};

}  // namespace cpfit::gui
