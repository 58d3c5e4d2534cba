// Menus of the step timeline: of a span, of a row, of a track.
#include <QApplication>
#include <QClipboard>
#include <QMenu>

#include "gui/look/figures.h"
#include "gui/timeline/span_text.h"
#include "gui/timeline/timeline_view.h"

namespace cpfit::gui {

void TimelineView::fillMenu(QMenu& menu, const QPoint& at) {
  for (std::size_t t = 0; t < geometry_.tracks.size(); ++t) {
    if (geometry_.tracks[t].contains(at)) return fillTrackMenu(menu, static_cast<std::ptrdiff_t>(t));
  }
  if (const std::optional<SpanRef> span = spanAt(at)) {
    state_.select(span, false);
    selectionMoved();
    menu.addAction(tr("Fit this span\tF"), this, [this] {
      state_.fit_selection();
      windowMoved();
    });
    menu.addAction(tr("Range of this span\tR"), this, [this] {
      state_.range_from_selection();
      changed();
    });
    menu.addAction(tr("What it waited for\t["), this, [this] {
      state_.step_flow(-1);
      selectionMoved();
    });
    menu.addAction(tr("What waited for it\t]"), this, [this] {
      state_.step_flow(1);
      selectionMoved();
    });
    menu.addAction(tr("Copy as a sentence"), this, [this] { QApplication::clipboard()->setText(currentText()); });
    menu.addSeparator();
  }
  const std::ptrdiff_t row = rowAt(at);
  if (row >= 0) {
    const TimelineRow found = state_.layout().rows[static_cast<std::size_t>(row)];
    state_.set_current_row(row);
    const auto act = [this](auto command) {
      return [this, command] {
        command();
        place();
        update();
        emit rowsChanged();
      };
    };
    if (found.rank >= 0) {
      menu.addAction(found.pinned ? tr("Unpin this rank\tP") : tr("Pin this rank\tP"), this, act([this] { state_.pin_row(); }));
      menu.addAction(found.collapsed ? tr("Expand\tSpace") : tr("Collapse\tSpace"), this, act([this] { state_.toggle_row(); }));
    }
  }
  if (state_.shows_all_ranks()) {
    menu.addAction(tr("One rank per ring and stage"), this, [this] { setShowsAllRanks(false); });
  } else {
    menu.addAction(tr("All ranks"), this, [this] { setShowsAllRanks(true); });
  }
  QAction* critical = menu.addAction(tr("Critical path\tC"));
  critical->setCheckable(true);
  critical->setChecked(critical_);
  connect(critical, &QAction::toggled, this, &TimelineView::setShowsCriticalPath);
  menu.addAction(tr("Show as table\tCtrl+T"), this, [this] { setTableShown(true); });
  menu.addAction(tr("Find…\t/"), this, [this] { showFind(); });
  if (!state_.markers().empty()) {
    QMenu* markers = menu.addMenu(tr("Markers"));
    for (std::size_t m = 0; m < state_.markers().size(); ++m) {
      const Marker& marker = state_.markers()[m];
      markers->addAction(
          tr("Go to %1 (%2)").arg(text_of(marker.name), duration_text(marker.time)), this, [this, time = marker.time] {
            setWindow(fitted(time - state_.window().length() / 2, time + state_.window().length() / 2, 0, state_.step()));
          });
    }
    markers->addSeparator();
    markers->addAction(tr("Remove all"), this, [this] {
      setMarkers({});
      emit markersChanged();
    });
  }
  fillTrackMenu(menu, -1);
}

std::vector<TrackChoice> TimelineView::offeredTracks() const {
  std::vector<TrackChoice> offered;
  const StepPicture* picture = state_.picture();
  if (tracks_) {
    for (const MemoryStack& stack : tracks_->memory)
      offered.push_back({TrackKind::kMemory, std::to_string(picture->cluster_rank(stack.rank))});
    for (const LinkTrack& link : tracks_->links) offered.push_back({TrackKind::kLink, link.name});
  }
  if (const std::int32_t rank = state_.current_rank(); rank >= 0 && picture->ranks[static_cast<std::size_t>(rank)].title.empty())
    offered.push_back({TrackKind::kInFlight, std::to_string(picture->cluster_rank(rank))});
  return offered;
}

void TimelineView::fillTrackMenu(QMenu& menu, std::ptrdiff_t track) {
  const auto act = [this](auto command) {
    return [this, command] {
      tracks_chosen_ = true;
      command();
      place();
      update();
      emit rowsChanged();
    };
  };
  if (track >= 0) {
    const std::size_t index = static_cast<std::size_t>(track);
    QAction* up = menu.addAction(tr("Move up"), this, act([this, index] { state_.move_track(index, -1); }));
    up->setEnabled(index > 0);
    QAction* down = menu.addAction(tr("Move down"), this, act([this, index] { state_.move_track(index, 1); }));
    down->setEnabled(index + 1 < state_.tracks().size());
    menu.addAction(tr("Remove this track"), this, act([this, index] { state_.remove_track(index); }));
  }
  QMenu* add = menu.addMenu(tr("Add a track"));
  for (const TrackChoice& choice : offeredTracks()) {
    const QString key = text_of(choice.key);
    const QString name = choice.kind == TrackKind::kMemory ? tr("memory of rank %1").arg(key)
                         : choice.kind == TrackKind::kLink ? tr("link %1").arg(key)
                                                           : tr("micro-batches in flight on rank %1").arg(key);
    const bool there = std::find(state_.tracks().begin(), state_.tracks().end(), choice) != state_.tracks().end();
    QAction* action = add->addAction(name, this, act([this, choice] { state_.add_track(choice); }));
    action->setEnabled(!there);
  }
  add->setEnabled(!add->isEmpty());
}

}  // namespace cpfit::gui
