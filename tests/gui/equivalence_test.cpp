// Equivalence: which cases speak of a recipe, their order and the sentence, the model by its tester, the view over a database.
#include <gmock/gmock.h>

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QLineEdit>
#include <QTableView>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "db/store/verification_store.h"
#include "example_study.h"
#include "gui/equivalence/equivalence_view.h"

namespace cpfit::gui {
namespace {

using testing::ElementsAre;

VerifiedCase verified(const char* method, const char* mask, std::int32_t cp, double error, bool passed) {
  VerifiedCase made;
  made.method = method;
  made.mask = mask;
  made.shape = "256";
  made.layout = "zigzag";
  made.dtype = "bf16";
  made.cp = cp;
  made.length = 256;
  made.passed = passed;
  for (TensorError& each : made.errors) each = {error, error, 0.001, 0.001, 0.01, 0.02, true};
  return made;
}

Verification sample() {
  Verification made;
  made.suite = "quick";
  made.backend = "reference";
  made.implementation = "cpfit";
  made.implementation_version = made.tool_version = "0.1";
  made.fixture_hash = "abc";
  made.cases = {verified("te_p2p", "causal", 2, 0.002, true), verified("te_p2p", "causal", 4, 0.008, true),
                verified("te_p2p", "full", 2, 0.003, true), verified("a2a", "causal", 2, 0.5, false)};
  VerifiedControl control;
  control.name = "kv_of_step_zero";
  control.meaning = "keys of the first step are used in every step";
  control.planted_in = "te_p2p causal";
  control.caught = true;
  control.tensor = "dk";
  control.error = 0.7;
  control.limit = 0.01;
  made.controls = {control};
  return made;
}

TEST(VerifiedRows, StandByNearnessToTheirLimitsFailedFirst) {
  const Verification all = sample();
  // 0.008 of 0.01 is nearer than 0.003 and 0.002; the failed one stands in front.
  EXPECT_THAT(case_rows(all, {}), ElementsAre(3, 1, 2, 0));
  CaseFilter filter;
  filter.methods = methods_of(CpComm::kP2p);
  EXPECT_THAT(case_rows(all, filter), ElementsAre(1, 2, 0));
  filter.masks = {"causal"};
  EXPECT_THAT(case_rows(all, filter), ElementsAre(1, 0));
  filter = {};
  filter.text = "A2A";
  EXPECT_THAT(case_rows(all, filter), ElementsAre(3));
  filter = {};
  filter.failed_only = true;
  EXPECT_THAT(case_rows(all, filter), ElementsAre(3));
}

TEST(VerifiedRows, NearnessIsTheWorstErrorOverItsLimit) {
  // normwise 0.008 of 0.01 is 0.8, largest 0.008 of 0.02 is 0.4.
  EXPECT_DOUBLE_EQ(nearness(sample().cases[1]), 0.8);
  TensorError none = {std::nan(""), 0, 0, 0, 0.01, 0.02, true};
  EXPECT_TRUE(std::isinf(nearness(none)));
  none.judged = false;
  EXPECT_DOUBLE_EQ(nearness(none), 0.0);
}

TEST(VerifiedRows, TheSentenceCountsAndDoubtsWhatCaughtNothing) {
  Verification all = sample();
  EXPECT_EQ(verified_sentence(all, {0, 1, 3}, " of p2p"),
            "2 of 3 cases of p2p passed, at CP 2, 4; all 1 planted faults were caught.");
  all.controls[0].caught = false;
  EXPECT_TRUE(verified_sentence(all, {0}, "").contains("proves little"));
  EXPECT_TRUE(verified_sentence(all, {}, "").startsWith("No case"));
}

TEST(CaseModel, ObeysTheRulesOfModels) {
  const Verification all = sample();
  CaseTable table;
  const QAbstractItemModelTester tester(&table, QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.show_cases(&all, case_rows(all, {}));
  EXPECT_EQ(table.rowCount(), 4);
  EXPECT_EQ(table.index(0, 0).data().toString(), "✕ differs");
  EXPECT_TRUE(table.index(0, 7).data().toString().contains("✕"));
  table.show_cases(nullptr, {});
  EXPECT_EQ(table.rowCount(), 0);
}

TEST(EquivalenceDock, ShowsTheRecipesCasesAndThePlantedFaults) {
  QTemporaryDir folder;
  const QString path = folder.filePath("v.sqlite");
  {
    Store store = open_store(path.toStdString());
    (void)save_verification(store, sample());
  }
  Jobs jobs;
  StudyDocument document;
  OpenedDatabase database{jobs};
  EquivalenceView view{document, database};
  view.resize(900, 600);
  view.show();
  EXPECT_TRUE(view.summary().contains("cpfit verify")) << "says what would fill it";
  EXPECT_TRUE(view.csv().isEmpty());
  ASSERT_TRUE(document.open_text(example_toml(), "test.toml").empty());
  document.set_recipe(example_design("tp=2,cp=4,pp=1,dp=1,recompute=full").recipe, "start");
  database.open(path);
  ASSERT_TRUE(QTest::qWaitFor([&] { return database.content() != nullptr; }, 20'000));
  EXPECT_EQ(view.cases()->model()->rowCount(), 2) << "p2p under a causal mask";
  EXPECT_TRUE(view.summary().startsWith("2 of 2 cases of p2p under a causal mask passed")) << view.summary().toStdString();
  EXPECT_EQ(view.controls()->rowCount(), 1);
  QTest::mouseClick(view.only_recipe(), Qt::LeftButton, Qt::NoModifier, QPoint(8, view.only_recipe()->height() / 2));
  EXPECT_EQ(view.cases()->model()->rowCount(), 4);
  QTest::keyClicks(view.filter(), "full");
  EXPECT_EQ(view.cases()->model()->rowCount(), 1);
  EXPECT_EQ(view.csv().count('\n'), 1 + kVerifiedTensors);
}

}  // namespace
}  // namespace cpfit::gui
