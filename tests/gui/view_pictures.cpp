// Not a test: renders the step timeline and the topology of the examples into a folder, for a person to look at.
// `gui_view_pictures DIR`.
#include <QApplication>
#include <QComboBox>
#include <QDir>
#include <QPixmap>
#include <QTabWidget>
#include <QUndoStack>

#include "gui/look/theme.h"
#include "gui/timeline/timeline_view.h"
#include "gui/topology/link_table_model.h"
#include "gui/topology/matrix_view.h"
#include "gui/topology/topology_graph.h"
#include "gui/topology/topology_view.h"
#include "small_step.h"

using namespace cpfit;       // NOLINT
using namespace cpfit::gui;  // NOLINT

namespace {

void save(QWidget& view, const QString& folder, const QString& name) {
  QApplication::processEvents();
  view.grab().save(folder + QLatin1Char('/') + name + QStringLiteral(".png"));
}

void pictures(const QString& folder, const QString& prefix, const gui::test::RealStep& real, QApplication& application) {
  std::vector<std::int32_t> ranks{real.picture->last_rank};
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(real.picture->ranks.size()); ++r) {
    if (r != real.picture->last_rank && ranks.size() < 4) ranks.push_back(r);
  }
  const auto tracks = tracks_of(*real.bench, real.scenario->training, *real.step, ranks, 8);
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    apply_look(application, theme, 1.0, 9.5);
    const QString name = prefix + (theme == Theme::kLight ? QStringLiteral("-light") : QStringLiteral("-dark"));
    TimelineView view;
    view.resize(1280, 640);
    view.show();
    view.setPicture(real.picture);
    view.setTracks(tracks);
    save(view, folder, name + QStringLiteral("-1-whole"));
    view.setShowsAllRanks(true);
    save(view, folder, name + QStringLiteral("-2-all-ranks"));
    view.setShowsAllRanks(false);
    view.findNext(QStringLiteral("exposed ring layer 5"), 1);
    if (!view.state().selected()) view.findNext(QStringLiteral("ring layer 5"), 1);
    if (!view.state().selected()) view.findNext(QStringLiteral("exposed"), 1);
    if (!view.state().selected()) continue;
    const LaneSpan span = span_of(*real.picture, *view.state().selected());
    view.setWindow(fitted(span.start, span.end, 6, real.picture->timeline.step));
    save(view, folder, name + QStringLiteral("-3-exposed"));
    view.setWindow(fitted(span.start, span.end, 40, real.picture->timeline.step));
    view.setRange(DraggedRange{
        {span.start - 4 * (span.end - span.start), span.end}, real.picture->lane(view.state().selected()->lane).rank, true});
    view.setShowsCriticalPath(true);
    save(view, folder, name + QStringLiteral("-4-range-critical"));
    view.setRange({});
    view.setShowsCriticalPath(false);
    view.findNext(QStringLiteral("ring send layer 6 step 4"), 1);
    view.setShowsAllRanks(true);
    if (view.state().selected()) {
      const LaneSpan sent = span_of(*real.picture, *view.state().selected());
      view.setWindow(fitted(sent.start, sent.end, 4, real.picture->timeline.step));
    }
    save(view, folder, name + QStringLiteral("-5-flow"));
  }
}

void topology_pictures(const QString& folder, const gui::test::RealStep& real, QApplication& application) {
  const auto network = network_picture(real.bench->context(real.scenario->training), real.step->candidate.recipe,
                                       real.step->candidate.time.step());
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    apply_look(application, theme, 1.0, 9.5);
    const QString name = theme == Theme::kLight ? QStringLiteral("topology-light") : QStringLiteral("topology-dark");
    QUndoStack undo;
    TopologyView view(&undo);
    view.resize(1280, 700);
    view.show();
    view.setPicture(network);
    save(view, folder, name + QStringLiteral("-1-graph"));
    view.rings()->setCurrentIndex(1);
    view.editLink(network->worst[4], LinkEdit{gb_per_s(12.5), microseconds(5)});
    view.graph()->selectLink(network->worst.front());
    save(view, folder, name + QStringLiteral("-2-ring"));
    view.tabs()->setCurrentIndex(1);
    QApplication::processEvents();
    view.matrix()->setBrush(PairBlock{0, 7, 8, 15});
    save(view, folder, name + QStringLiteral("-3-matrix"));
    view.tabs()->setCurrentIndex(2);
    save(view, folder, name + QStringLiteral("-4-links"));
    view.tabs()->setCurrentIndex(0);
    view.setPicture(network_picture(build_cluster("dgx-h100", 32).value()));
    save(view, folder, name + QStringLiteral("-5-256-gpus"));
    view.graph()->toggleGroup({GroupLevel::kNode, 5});
    save(view, folder, name + QStringLiteral("-6-open"));
    view.setPicture(network_picture(build_cluster("gb200-nvl72", 36).value()));
    save(view, folder, name + QStringLiteral("-7-nvl72"));
    view.setPicture(network_picture(build_cluster("dgx-h100", 1024).value()));
    save(view, folder, name + QStringLiteral("-8-8192-gpus"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  const QString folder = argc > 1 ? QString::fromLocal8Bit(argv[1]) : QStringLiteral(".");
  QDir().mkpath(folder);
  const gui::test::RealStep ring = gui::test::real_step("llama3-8b-128k-2nodes.toml", "tp=2,cp=8,pp=1,dp=1");
  topology_pictures(folder, ring, application);
  pictures(folder, QStringLiteral("ring"), ring, application);
  pictures(folder, QStringLiteral("pipeline"),
           gui::test::real_step("llama3-8b-128k-1node.toml", "tp=2,cp=2,pp=2,dp=1,recompute=full"), application);
  return 0;
}
