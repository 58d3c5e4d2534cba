#include "gui/topology/topology_feed.h"

#include <limits>
#include <map>

#include "gui/look/figures.h"

namespace cpfit::gui {

namespace {

constexpr QLatin1String kNetworkChannel("network");
constexpr QLatin1String kWhatIfChannel("what-if");

struct Network {
  std::shared_ptr<const StepTracks> tracks;
  std::shared_ptr<const NetworkPicture> picture;
};

/// Highest share and its instant of the links that the simulated ranks use.
void add_instants(NetworkPicture& picture, const StepTracks& tracks) {
  std::map<std::string, const LinkTrack*> known;
  for (const LinkTrack& track : tracks.links) known.emplace(track.name, &track);
  for (std::size_t l = 0; l < picture.links.size(); ++l) {
    const auto found = known.find(picture.link_name(static_cast<std::int32_t>(l)));
    if (found == known.end()) continue;
    LinkTraffic& traffic = picture.links[l];
    for (const timeline::CounterPoint& point : found->second->points) {
      const double share = point.value * 1e9 / found->second->capacity.value();
      if (share <= traffic.highest) continue;
      traffic.highest = share;
      traffic.busiest_at = point.time;
    }
  }
}

Network network_of(const SimulatedStep& simulated) {
  const Scenario& scenario = *simulated.design.scenario;
  Outcome<Workbench> bench = Workbench::build(scenario, *simulated.rates);
  if (!bench.ok()) throw Error(bench.problems().front().message);
  bench.value().prepare(simulated.design.recipe);
  Network network;
  network.tracks = tracks_of(bench.value(), scenario.training, simulated.now, {}, std::numeric_limits<std::size_t>::max());
  auto picture = std::make_shared<NetworkPicture>(
      *network_picture(bench.value().context(scenario.training), simulated.design.recipe, simulated.now.candidate.time.step()));
  add_instants(*picture, *network.tracks);
  network.picture = picture;
  return network;
}

}  // namespace

TopologyFeed::TopologyFeed(LiveEstimate& live, Jobs& jobs, Selection& selection, TopologyView& topology, TimelineView& step,
                           QObject* parent)
    : QObject(parent), live_(live), jobs_(jobs), selection_(selection), topology_(topology), step_(step) {
  connect(&live_, &LiveEstimate::simulation_changed, this, &TopologyFeed::react);
  connect(&step_, &TimelineView::rangeChanged, this, [this](qint64 from, qint64 to, bool committed) {
    topology_.setFocusRange(committed ? tracks_.get() : nullptr, from, to);
  });
  connect(&topology_, &TopologyView::linkSelected, this, [this](const QString& from, const QString& to) {
    selection_.change(this, [&](Selected& now) {
      now.link.reset();
      if (!from.isEmpty()) now.link = SelectedLink{from, to};
    });
    // Its use over time lies under the lanes, on their axis.
    if (!from.isEmpty()) step_.addTrack({TrackKind::kLink, to_std(from) + " -> " + to_std(to)});
  });
  connect(&topology_, &TopologyView::editsChanged, this, &TopologyFeed::tryEdits);
  connect(&selection_, &Selection::changed, this, &TopologyFeed::follow);
  connect(&jobs_, &Jobs::ended, this, [this](const QString& channel, JobState state, const QString& sentence) {
    if (state == JobState::kFailed && channel == kWhatIfChannel) step_.setFailed(sentence, sentence);
  });
  react();
}

void TopologyFeed::follow(const Selected& before, const QObject* origin) {
  const std::optional<SelectedLink>& link = selection_.now().link;
  if (origin == this || link == before.link) return;
  topology_.selectLink(link ? link->from : QString(), link ? link->to : QString());
}

void TopologyFeed::react() {
  const std::shared_ptr<const SimulatedStep>& simulated = live_.simulation();
  if (!simulated) {
    topology_.setEmpty(tr("Open a scenario or a topology file to see its network."));
    drawn_.reset();
    return;
  }
  if (simulated == drawn_) return;
  // Edits of links are kept while a recipe is turned; another cluster has other links.
  const std::shared_ptr<const NetworkPicture> shown = topology_.picture();
  const Topology* topology = simulated->design.scenario->cluster.topology.get();
  const bool same = shown && shown->topology().links().size() == topology->links().size();
  if (same && !topology_.edits().empty()) return tryEdits(topology_.edits());
  draw(simulated);
}

void TopologyFeed::draw(const std::shared_ptr<const SimulatedStep>& simulated) {
  drawn_ = simulated;
  jobs_.start(
      kNetworkChannel, tr("Route the step's traffic"),
      [simulated](const std::atomic<bool>&) -> std::any { return network_of(*simulated); },
      [this](const std::any& result) {
        const auto& network = std::any_cast<const Network&>(result);
        tracks_ = network.tracks;
        topology_.setPicture(network.picture);
        return tr("%1 links carry something").arg(network.picture->worst.size());
      });
}

/// The same design on the cluster with edited links; without edits the study's own step again.
void TopologyFeed::tryEdits(const LinkEdits& edits) {
  const std::shared_ptr<const SimulatedStep> study = live_.simulation();
  if (!study) return;
  if (edits.empty()) {
    jobs_.stop_channel(kWhatIfChannel);
    live_.set_what_if(nullptr, {});
    return show(study);
  }
  const Outcome<Cluster> cluster = edited_cluster(study->design.scenario->cluster, edits);
  if (!cluster.ok()) return emit said(sentence_of(cluster.problems().front()), true);
  Design design = study->design;
  auto scenario = std::make_shared<Scenario>(*design.scenario);
  scenario->cluster = *cluster;
  design.scenario = scenario;
  step_.setBusy(tr("Simulating with the edited links …"), -1);
  jobs_.start(
      kWhatIfChannel, edits.size() == 1 ? tr("What if: 1 edited link") : tr("What if: %1 edited links").arg(edits.size()),
      [design, rates = study->rates](const std::atomic<bool>& stop) -> std::any { return simulate(design, rates, stop); },
      [this, study, count = edits.size()](const std::any& result) {
        const auto& simulated = std::any_cast<const std::shared_ptr<const SimulatedStep>&>(result);
        show(simulated);
        if (study == live_.simulation() && live_.simulation_is_current())
          live_.set_what_if(simulated, count == 1 ? tr("1 edited link") : tr("%1 edited links").arg(count));
        const Seconds step = simulated->now.candidate.time.step();
        const QString sentence = tr("With the edited links the step takes %1, %2 against the study.")
                                     .arg(time_text(step), signed_time(step - study->now.candidate.time.step()));
        emit said(sentence, false);
        return sentence;
      });
}

void TopologyFeed::show(const std::shared_ptr<const SimulatedStep>& simulated) {
  const std::shared_ptr<const StepTimeline> step(simulated, &simulated->now);
  step_.setPicture(picture_of(step, simulated->design.scenario->cluster.gpus_per_node));
  draw(simulated);
}

}  // namespace cpfit::gui
