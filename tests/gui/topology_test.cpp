// The topology view: layout, traffic, edits, exports; the widgets driven by keys and mouse.
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QApplication>
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <QUndoStack>
#include <QWheelEvent>
#include <numeric>

#include "gui/look/theme.h"
#include "gui/topology/link_table_model.h"
#include "gui/topology/matrix_view.h"
#include "gui/topology/topology_graph.h"
#include "gui/topology/topology_layout.h"
#include "gui/topology/topology_paint.h"
#include "gui/topology/topology_view.h"
#include "gui/topology/traffic_matrix.h"
#include "model/cluster/device_order.h"
#include "model/recipe/scenario.h"

namespace cpfit::gui {
namespace {

Cluster cluster_of(const std::string& preset, std::int64_t nodes) {
  Outcome<Cluster> cluster = build_cluster(preset, nodes);
  for (const Problem& problem : cluster.problems()) ADD_FAILURE() << to_text(problem);
  return std::move(cluster).value();
}

/// Boxes of one tier that overlap would hide each other.
void expect_apart(const TopologyLayout& layout) {
  for (std::size_t a = 0; a < layout.boxes.size(); ++a) {
    for (std::size_t b = a + 1; b < layout.boxes.size(); ++b)
      ASSERT_FALSE(layout.boxes[a].rect.intersects(layout.boxes[b].rect))
          << layout.boxes[a].title << " and " << layout.boxes[b].title;
  }
}

TEST(TopologyLayouts, OneNodeShowsEveryDeviceInItsTier) {
  const Cluster cluster = cluster_of("dgx-h100", 1);
  const TopologyLayout layout = topology_layout(*cluster.topology, {});
  EXPECT_EQ(layout.boxes.size(), cluster.topology->vertices().size());
  expect_apart(layout);
  std::map<VertexKind, double> tier;
  for (const TopologyBox& box : layout.boxes) {
    const Vertex& vertex = cluster.topology->vertices()[static_cast<std::size_t>(box.vertex)];
    const auto [known, fresh] = tier.try_emplace(vertex.kind, box.rect.top());
    EXPECT_EQ(known->second, box.rect.top()) << "one tier, one height";
  }
  EXPECT_LT(tier.at(VertexKind::kGpu), tier.at(VertexKind::kNvSwitch));
  // Every link is drawn: both directions, as edges of their own.
  std::size_t links = 0;
  for (const TopologyEdge& edge : layout.edges) links += edge.links.size();
  EXPECT_EQ(links, cluster.topology->links().size());
}

TEST(TopologyLayouts, LargeClustersFoldAndOpen) {
  const Cluster cluster = cluster_of("dgx-h100", 16);
  ASSERT_TRUE(folds(*cluster.topology));
  const TopologyLayout folded = topology_layout(*cluster.topology, {});
  expect_apart(folded);
  std::int64_t gpus = 0, groups = 0;
  for (const TopologyBox& box : folded.boxes) {
    gpus += box.gpus;
    groups += box.vertex < 0 && box.group.level == GroupLevel::kNode ? 1 : 0;
  }
  EXPECT_EQ(gpus, 128);
  EXPECT_EQ(groups, 16);
  EXPECT_EQ(folded.boxes.size(), 18U) << "beside them the leaves as one box, and the spine";
  const TopologyLayout open = topology_layout(*cluster.topology, {GroupKey{GroupLevel::kNode, 3}});
  expect_apart(open);
  ASSERT_EQ(open.frames.size(), 1U);
  EXPECT_EQ(open.frames[0].title, "node 3");
  EXPECT_GT(open.boxes.size(), folded.boxes.size());
}

TEST(TopologyLayouts, ThousandsOfGpusStayFewBoxes) {
  const Cluster cluster = cluster_of("dgx-h100", 1024);
  const TopologyLayout layout = topology_layout(*cluster.topology, {});
  EXPECT_LT(layout.boxes.size(), 200U);
  std::int64_t gpus = 0;
  for (const TopologyBox& box : layout.boxes) gpus += box.gpus;
  EXPECT_EQ(gpus, 8192);
  for (const std::int32_t box : layout.box_of) EXPECT_GE(box, 0) << "every vertex is somewhere";
  for (std::size_t l = 0; l < cluster.topology->links().size(); ++l) {
    const Link& link = cluster.topology->links()[l];
    const bool inside = layout.box_of[static_cast<std::size_t>(link.from)] == layout.box_of[static_cast<std::size_t>(link.to)];
    EXPECT_EQ(layout.inner_of[l] >= 0, inside);
  }
  expect_apart(layout);
}

TEST(TopologyLayouts, BothDirectionsAreDrawnApart) {
  const Cluster cluster = cluster_of("dgx-h100", 1);
  const TopologyLayout layout = topology_layout(*cluster.topology, {});
  const TopologyEdge& edge = layout.edges.front();
  for (const TopologyEdge& other : layout.edges) {
    if (other.from != edge.to || other.to != edge.from) continue;
    const EdgeLine a = edge_line(layout, edge, 4), b = edge_line(layout, other, 4);
    const QPointF gap = a.from - b.to;
    EXPECT_GE(std::hypot(gap.x(), gap.y()), 4.0);
    return;
  }
  FAIL() << "a cable has two directions";
}

TEST(TopologyLayouts, LinksOverTheHeadsOfNeighboursHangBelow) {
  // Cube mesh: GPU 0 is joined to 1 beside it and to 2, 3 and 4 beyond; a straight line to these would lie behind boxes.
  const Cluster cluster = cluster_of("dgx1-v100", 1);
  const TopologyLayout layout = topology_layout(*cluster.topology, {});
  int bows = 0;
  for (const TopologyEdge& edge : layout.edges) {
    const TopologyBox &a = layout.boxes[static_cast<std::size_t>(edge.from)],
                      &b = layout.boxes[static_cast<std::size_t>(edge.to)];
    const Vertex &from = cluster.topology->vertices()[static_cast<std::size_t>(a.vertex)],
                 &to = cluster.topology->vertices()[static_cast<std::size_t>(b.vertex)];
    const EdgeLine line = edge_line(layout, edge, 4);
    const bool beyond = from.kind == VertexKind::kGpu && to.kind == VertexKind::kGpu && std::abs(from.index - to.index) > 1;
    EXPECT_EQ(line.straight(), !beyond) << from.name << " " << to.name;
    if (!beyond) continue;
    ++bows;
    EXPECT_GT(line.at(0.5).y(), a.rect.bottom());
    EXPECT_LT(line.at(0.5).y(), layout.frames.front().rect.bottom());
    for (const TopologyEdge& back : layout.edges) {
      if (back.from != edge.to || back.to != edge.from) continue;
      EXPECT_GE(std::abs(edge_line(layout, back, 4).at(0.5).y() - line.at(0.5).y()), 4.0) << "both directions are seen";
    }
  }
  // Two quads of 6 cables each and 4 between them; 6 join neighbours (3 in each quad), 10 hang below, both ways.
  EXPECT_EQ(bows, 20);
}

class NetworkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scenario =
        std::make_unique<Scenario>(load_scenario(std::string(CPFIT_SOURCE_DIR) + "/examples/llama3-8b-128k-2nodes.toml").value());
    rates = std::make_unique<RateSet>(RateSet::defaults());
    bench = std::make_unique<Workbench>(Workbench::build(*scenario, *rates).value());
    const Recipe recipe = parse_recipe("tp=2,cp=8,pp=1,dp=1", scenario->base).value();
    bench->prepare(recipe);
    picture = network_picture(bench->context(scenario->training), recipe, Seconds(25.0));
  }
  static void TearDownTestSuite() {
    picture.reset();
    bench.reset();
    rates.reset();
    scenario.reset();
  }
  static std::unique_ptr<Scenario> scenario;
  static std::unique_ptr<RateSet> rates;
  static std::unique_ptr<Workbench> bench;
  static std::shared_ptr<const NetworkPicture> picture;
};
std::unique_ptr<Scenario> NetworkTest::scenario;
std::unique_ptr<RateSet> NetworkTest::rates;
std::unique_ptr<Workbench> NetworkTest::bench;
std::shared_ptr<const NetworkPicture> NetworkTest::picture;

TEST_F(NetworkTest, LinksCarryWhatTheFlowsRoutedOverThemSay) {
  std::vector<double> bytes(picture->links.size(), 0.0);
  for (const PairFlow& flow : picture->flows) {
    for (const std::int32_t link : picture->topology().route(flow.from, flow.to))
      bytes[static_cast<std::size_t>(link)] += flow.bytes;
  }
  for (std::size_t l = 0; l < bytes.size(); ++l) EXPECT_DOUBLE_EQ(bytes[l], picture->links[l].bytes);
  ASSERT_FALSE(picture->worst.empty());
  for (std::size_t i = 1; i < picture->worst.size(); ++i)
    EXPECT_GE(picture->links[static_cast<std::size_t>(picture->worst[i - 1])].share,
              picture->links[static_cast<std::size_t>(picture->worst[i])].share);
  const std::size_t worst = static_cast<std::size_t>(picture->worst.front());
  // share = bytes / capacity / step
  EXPECT_DOUBLE_EQ(picture->links[worst].share,
                   picture->links[worst].bytes / picture->topology().links()[worst].capacity.value() / 25.0);
}

TEST_F(NetworkTest, ARingOverTwoNodesLeavesEachOnce) {
  ASSERT_EQ(picture->rings.size(), 2U) << "tp=2: two rings of eight";
  for (const RingPicture& ring : picture->rings) {
    EXPECT_EQ(ring.hops.size(), 8U);
    EXPECT_EQ(ring.leaving(), 2) << "there and back";
  }
  EXPECT_NE(picture->why_this_order.find("2 of its 8 hops leave a node"), std::string::npos) << picture->why_this_order;
}

TEST_F(NetworkTest, TheMatrixHoldsEveryByteAndSoDoItsBlocks) {
  const double all = std::accumulate(picture->flows.begin(), picture->flows.end(), 0.0,
                                     [](double sum, const PairFlow& f) { return sum + f.bytes; });
  const TrafficMatrix ranks = traffic_matrix(*picture, false), nodes = traffic_matrix(*picture, true);
  EXPECT_EQ(ranks.size, 16);
  EXPECT_EQ(nodes.size, 2);
  EXPECT_NEAR(block_sums(ranks, {0, 15, 0, 15}).bytes / all, 1.0, 1e-12);
  EXPECT_NEAR(block_sums(nodes, {0, 1, 0, 1}).bytes / all, 1.0, 1e-12);
  EXPECT_NEAR(block_sums(ranks, {0, 7, 8, 15}).bytes / nodes.at(0, 1), 1.0, 1e-12);
  EXPECT_EQ(matrix_shade(ranks, 3, 3), 0.0);
  double most = 0;
  for (std::int64_t from = 0; from < 16; ++from) {
    for (std::int64_t to = 0; to < 16; ++to) most = std::max(most, matrix_shade(ranks, from, to));
  }
  EXPECT_EQ(most, 1.0);
  // Pairs between nodes go over NICs.
  for (const std::int32_t link : links_of(*picture, nodes, {0, 0, 1, 1})) {
    EXPECT_NE(picture->topology().links()[static_cast<std::size_t>(link)].link_class, LinkClass::kNvlink);
  }
}

TEST_F(NetworkTest, EditsChangeOneLinkAndRefuseNonsense) {
  const LinkEdits edits{{4, LinkEdit{gb_per_s(12.5), microseconds(9)}}};
  const Outcome<Cluster> changed = edited_cluster(picture->cluster, edits);
  ASSERT_TRUE(changed.ok());
  for (std::size_t l = 0; l < changed->topology->links().size(); ++l) {
    const Link &before = picture->topology().links()[l], &after = changed->topology->links()[l];
    EXPECT_EQ(after.capacity == before.capacity && after.latency == before.latency, l != 4);
  }
  EXPECT_FALSE(edited_cluster(picture->cluster, {{4, LinkEdit{gb_per_s(0), microseconds(1)}}}).ok());
  EXPECT_FALSE(edited_cluster(picture->cluster, {{4, LinkEdit{gb_per_s(1), microseconds(-1)}}}).ok());
}

TEST_F(NetworkTest, ExportsNameEveryLink) {
  const LinkEdits edits{{0, LinkEdit{gb_per_s(1), microseconds(1)}}};
  const std::string dot = topology_dot(*picture, edits), csv = links_csv(*picture, edits);
  const auto count = [](const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(dot, " -> "), picture->links.size());
  EXPECT_EQ(count(dot, "dashed"), 1U);
  EXPECT_EQ(count(csv, "\n"), picture->links.size() + 1);
  EXPECT_EQ(count(matrix_csv(traffic_matrix(*picture, true)), "\n"), 3U);
}

TEST(LinkLooks, WidthFollowsCapacityAndColourFollowsShare) {
  EXPECT_LT(link_width(gb_per_s(50)), link_width(gb_per_s(450)));
  const ColorTokens& tokens = tokens_of(Theme::kLight);
  EXPECT_EQ(share_color(tokens, 1.0), mixed(tokens.ring, tokens.exposed, 1.0));
  EXPECT_NE(share_color(tokens, 0.0), share_color(tokens, 0.1));
}

class TopologyViewTest : public NetworkTest {
 protected:
  void SetUp() override {
    view.setPalette(palette_of(Theme::kLight));
    view.resize(900, 640);
    view.show();
    view.setPicture(picture);
    QApplication::processEvents();
  }
  QUndoStack undo;
  TopologyView view{&undo};
};

TEST_F(TopologyViewTest, ALinkIsChosenInTheGraphAndInTheTable) {
  QSignalSpy chosen(&view, &TopologyView::linkSelected);
  TopologyGraph* graph = view.graph();
  const TopologyEdge& edge = graph->layout_of_graph().edges.front();
  const EdgeLine line = edge_line(graph->layout_of_graph(), edge, 4);
  const QPointF middle = graph->toScreen(line.from * 0.5 + line.to * 0.5);
  const std::int32_t link = graph->linkAt(middle);
  ASSERT_GE(link, 0);
  QTest::mouseClick(graph, Qt::LeftButton, {}, middle.toPoint());
  ASSERT_GE(graph->selectedLink(), 0);
  ASSERT_EQ(chosen.size(), 1);
  EXPECT_FALSE(chosen[0].at(0).toString().isEmpty());
  EXPECT_FALSE(graph->accessibleDescription().isEmpty());
  view.selectLink("n0.gpu0", "n0.nvsw0");
  EXPECT_EQ(picture->link_name(graph->selectedLink()), "n0.gpu0 -> n0.nvsw0");
  QTest::keyClick(graph, Qt::Key_Escape);
  EXPECT_EQ(graph->selectedLink(), -1);
  QTest::keyClick(graph, Qt::Key_Period);
  EXPECT_EQ(graph->selectedLink(), picture->worst.front()) << "the most used first";
}

TEST_F(TopologyViewTest, AScreenReaderReachesBoxesAndLinksInSight) {
  TopologyGraph* graph = view.graph();
  QAccessibleInterface* chart = QAccessible::queryAccessibleInterface(graph);
  ASSERT_NE(chart, nullptr);
  EXPECT_EQ(chart->role(), QAccessible::Chart);
  EXPECT_TRUE(chart->text(QAccessible::Value).contains("most used")) << chart->text(QAccessible::Value).toStdString();
  std::vector<QAccessibleInterface*> boxes, links;
  for (int i = 0; i < chart->childCount(); ++i) {
    QAccessibleInterface* child = chart->child(i);
    ASSERT_NE(child, nullptr);
    EXPECT_FALSE(child->text(QAccessible::Name).isEmpty());
    EXPECT_TRUE(chart->rect().contains(child->rect()));
    if (child->role() == QAccessible::Graphic) boxes.push_back(child);
    if (child->role() == QAccessible::ListItem) links.push_back(child);
  }
  // The graph is fitted: everything is in sight.
  EXPECT_EQ(boxes.size(), graph->layout_of_graph().boxes.size());
  EXPECT_EQ(links.size(), graph->layout_of_graph().edges.size());
  EXPECT_TRUE(links[0]->text(QAccessible::Name).contains(graph->linkText(picture->worst.front())))
      << links[0]->text(QAccessible::Name).toStdString();
  EXPECT_EQ(chart->childAt(boxes[0]->rect().center().x(), boxes[0]->rect().center().y()), boxes[0]);
  links[0]->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
  EXPECT_EQ(graph->selectedLink(), picture->worst.front());
  EXPECT_TRUE(links[0]->state().selected);
  EXPECT_FALSE(links[1]->state().selected);
}

TEST_F(TopologyViewTest, WheelZoomsAtThePointerAndHomeFits) {
  TopologyGraph* graph = view.graph();
  const double before = graph->zoom();
  const QPointF where(200, 150);
  const QPointF under = (where - graph->toScreen({0, 0})) / graph->zoom();
  QWheelEvent event(where, graph->mapToGlobal(where), {}, QPoint(0, 240), Qt::NoButton, {}, Qt::NoScrollPhase, false);
  QApplication::sendEvent(graph, &event);
  EXPECT_GT(graph->zoom(), before);
  EXPECT_NEAR(graph->toScreen(under).x(), where.x(), 1e-6);
  QTest::keyClick(graph, Qt::Key_Home);
  EXPECT_DOUBLE_EQ(graph->zoom(), before);
}

TEST_F(TopologyViewTest, EditsAreUndoneAndMarked) {
  QSignalSpy changed(&view, &TopologyView::editsChanged);
  LinkTableModel* links = view.links();
  const QAbstractItemModelTester tester(links, QAbstractItemModelTester::FailureReportingMode::Fatal);
  const std::int32_t link = links->linkOf(0);
  ASSERT_TRUE(links->setData(links->index(0, LinkTableModel::kCapacity), "25 GB/s", Qt::EditRole));
  ASSERT_EQ(view.edits().size(), 1U);
  EXPECT_DOUBLE_EQ(view.edits().at(link).capacity.value(), 25e9);
  EXPECT_EQ(changed.size(), 1);
  EXPECT_EQ(undo.count(), 1);
  EXPECT_TRUE(view.graph()->linkText(link).endsWith("edited"));
  EXPECT_TRUE(links->index(links->rowOf(link), LinkTableModel::kCapacity).data().toString().startsWith(QStringLiteral("✎")));
  undo.undo();
  EXPECT_TRUE(view.edits().empty());
  undo.redo();
  EXPECT_EQ(view.edits().size(), 1U);
  EXPECT_FALSE(links->setData(links->index(0, LinkTableModel::kLatency), "soon", Qt::EditRole));
  EXPECT_EQ(undo.count(), 1);
}

TEST_F(TopologyViewTest, LinksSort) {
  LinkTableModel* links = view.links();
  EXPECT_EQ(links->linkOf(0), picture->worst.front()) << "by used share from the start";
  links->sort(LinkTableModel::kCapacity, Qt::AscendingOrder);
  const std::vector<Link>& all = picture->topology().links();
  for (int row = 1; row < links->rowCount(); ++row)
    EXPECT_LE(all[static_cast<std::size_t>(links->linkOf(row - 1))].capacity,
              all[static_cast<std::size_t>(links->linkOf(row))].capacity);
}

TEST_F(TopologyViewTest, BrushingPairsLightsTheirLinks) {
  view.tabs()->setCurrentIndex(1);
  QApplication::processEvents();
  MatrixView* matrix = view.matrix();
  const QRectF plot = matrix->plot();
  const double cell = plot.width() / 16;
  const auto place = [&](int from, int to) {
    return QPointF(plot.left() + (to + 0.5) * cell, plot.top() + (from + 0.5) * cell).toPoint();
  };
  QTest::mousePress(matrix, Qt::LeftButton, {}, place(0, 8));
  QMouseEvent move(QEvent::MouseMove, place(7, 15), matrix->mapToGlobal(place(7, 15)), Qt::NoButton, Qt::LeftButton, {});
  QApplication::sendEvent(matrix, &move);
  QTest::mouseRelease(matrix, Qt::LeftButton, {}, place(7, 15));
  ASSERT_EQ(matrix->brush(), (PairBlock{0, 7, 8, 15}));
  EXPECT_TRUE(matrix->text().startsWith("ranks 0–7 to ranks 8–15: ")) << matrix->text().toStdString();
  QTest::keyClick(matrix, Qt::Key_Escape);
  EXPECT_FALSE(matrix->brush());
}

TEST_F(TopologyViewTest, TheRingSaysWhyAndItsSlowHopsAreHeavy) {
  EXPECT_TRUE(view.orderText().isEmpty());
  const QImage before = view.graph()->grab().toImage();
  view.rings()->setCurrentIndex(1);
  EXPECT_TRUE(view.orderText().contains("leave a node")) << view.orderText().toStdString();
  const QImage after = view.graph()->grab().toImage().convertToFormat(QImage::Format_RGB32);
  int heavy = 0;
  const QRgb exposed = tokens_of(Theme::kLight).exposed.rgb();
  for (int y = 0; y < after.height(); ++y) {
    for (int x = 0; x < after.width(); ++x) heavy += after.pixel(x, y) == exposed ? 1 : 0;
  }
  EXPECT_GT(heavy, 100);
}

TEST_F(TopologyViewTest, ABetterPlacementIsOffered) {
  // DGX-1: the ring in the order of the numbers has hops of one link, or none; 0 3 2 1 5 6 7 4 has two on every hop.
  Scenario cube = *scenario;
  cube.cluster = build_cluster("dgx1-v100", 1).value();
  const Recipe recipe = parse_recipe("tp=1,cp=8,pp=1,dp=1", cube.base).value();
  const auto picture_on = [&](const Cluster& cluster) {
    cube.cluster = cluster;
    Workbench there = bench->with(cube);
    there.prepare(recipe);
    return network_picture(there.context(cube.training), recipe, Seconds(25.0));
  };
  view.setPicture(picture_on(cube.cluster));
  ASSERT_TRUE(view.place()->isEnabled());
  std::optional<BetterPlacement> wanted;
  QObject::connect(&view, &TopologyView::placementWanted, [&](const BetterPlacement& placement) { wanted = placement; });
  view.place()->click();
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->device_orders.size(), 1u);
  view.setPicture(picture_on(with_device_orders(cube.cluster, wanted->device_orders).value()));
  EXPECT_FALSE(view.place()->isEnabled());
  EXPECT_FALSE(view.place()->toolTip().isEmpty());
}

TEST_F(TopologyViewTest, SaysWhatItShowsAndWhyNot) {
  EXPECT_TRUE(view.summary().contains("16 GPUs on 2 nodes"));
  EXPECT_FALSE(view.csv().isEmpty());
  EXPECT_FALSE(view.dot().isEmpty());
  view.setEmpty("Open a scenario.");
  EXPECT_EQ(view.summary(), "Open a scenario.");
  (void)view.grab();
}

TEST_F(TopologyViewTest, DoubleClickOpensAndClosesANode) {
  view.setPicture(network_picture(cluster_of("dgx-h100", 16)));
  QApplication::processEvents();
  TopologyGraph* graph = view.graph();
  ASSERT_TRUE(graph->openGroups().empty());
  const TopologyBox* folded = nullptr;
  for (const TopologyBox& box : graph->layout_of_graph().boxes) folded = box.vertex < 0 && folded == nullptr ? &box : folded;
  ASSERT_NE(folded, nullptr);
  QTest::mouseDClick(graph, Qt::LeftButton, {}, graph->toScreen(folded->rect.center()).toPoint());
  ASSERT_EQ(graph->openGroups().size(), 1U);
  const QRectF frame = graph->layout_of_graph().frames.front().rect;
  QTest::mouseDClick(graph, Qt::LeftButton, {}, graph->toScreen(frame.topLeft() + QPointF(6, 6)).toPoint());
  EXPECT_TRUE(graph->openGroups().empty());
}

}  // namespace
}  // namespace cpfit::gui
