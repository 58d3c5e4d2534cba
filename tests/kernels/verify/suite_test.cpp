// The suite: what is in it, that it passes, and that every planted fault is caught.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/verify/controls.h"
#include "kernels/verify/fixture.h"

namespace cpfit::kernels {
namespace {

template <class Field>
auto values_of(const std::vector<Case>& cases, Field&& field) {
  std::set<std::decay_t<decltype(field(cases.front()))>> values;
  for (const Case& one : cases) values.insert(field(one));
  return values;
}

TEST(VerifySuite, HoldsEveryMethodMaskDegreeTypeAndLayout) {
  for (const SuiteSize size : {SuiteSize::kQuick, SuiteSize::kFull}) {
    const std::vector<Case> cases = suite_cases(size, {}).cases;
    EXPECT_EQ(values_of(cases, [](const Case& one) { return one.method; }).size(), methods().size());
    EXPECT_EQ(values_of(cases, [](const Case& one) { return one.mask; }).size(), 4u);
    EXPECT_EQ(values_of(cases, [](const Case& one) { return one.cp; }), (std::set<std::int32_t>{2, 3, 4, 8}));
    EXPECT_EQ(values_of(cases, [](const Case& one) { return one.number; }).size(), 4u);
    EXPECT_EQ(values_of(cases, [](const Case& one) { return one.layout; }).size(), 3u);
    const auto names = values_of(cases, [](const Case& one) { return one.name; });
    EXPECT_EQ(names.size(), cases.size()) << "names are unique";
  }
}

TEST(VerifySuite, HoldsTheAwkwardLengths) {
  const std::vector<Case> cases = suite_cases(SuiteSize::kQuick, {}).cases;
  const auto any = [&](auto&& holds) { return std::ranges::any_of(cases, holds); };
  const auto any_document = [&](auto&& holds) {
    return any([&](const Case& one) {
      return std::ranges::any_of(one.documents, [&](const DocumentLength& d) { return holds(one, d); });
    });
  };
  EXPECT_TRUE(any_document([](const Case&, const DocumentLength& d) { return d.real == 698 && d.padded == 704; }));
  EXPECT_TRUE(any_document([](const Case&, const DocumentLength& d) { return d.real == 1; }));
  EXPECT_TRUE(any_document([](const Case&, const DocumentLength& d) { return d.real == 0; }));
  EXPECT_TRUE(any_document([](const Case& one, const DocumentLength& d) { return d.real > 1 && d.real < 2 * one.cp; }));
  EXPECT_TRUE(
      any_document([](const Case& one, const DocumentLength& d) { return d.real > 2 * one.cp && d.real % (2 * one.cp) == 1; }));
  EXPECT_TRUE(any_document([](const Case& one, const DocumentLength& d) { return d.real % (2 * one.cp) == 2 * one.cp - 1; }));
  EXPECT_TRUE(any([](const Case& one) {  // last tail only
    if (one.documents.size() < 2) return false;
    const auto padded = [](const DocumentLength& d) { return d.real < d.padded; };
    return padded(one.documents.back()) && std::none_of(one.documents.begin(), one.documents.end() - 1, padded);
  }));
  EXPECT_TRUE(any([](const Case& one) {  // a rank that holds padding alone
    const Layer layer = layer_of(one);
    for (std::int32_t rank = 0; rank < one.cp; ++rank) {
      const std::vector<std::uint8_t> real = real_tokens(layer.queries, layer.mask, rank);
      if (std::ranges::count(real, 1) == 0) return true;
    }
    return false;
  }));
  EXPECT_TRUE(any([](const Case& one) { return one.query_tokens < one.key_tokens; }));
  EXPECT_TRUE(any([](const Case& one) { return one.query_tokens > one.key_tokens; }));
  EXPECT_TRUE(any([](const Case& one) { return one.heads.q > one.heads.kv && one.heads.qk_dim != one.heads.v_dim; }));
}

TEST(VerifySuite, FiltersAndCountsWhatAMethodCannotServe) {
  SuiteFilter filter;
  filter.methods = {"double_ring"};
  filter.cp = {5};
  const SuiteCases none = suite_cases(SuiteSize::kQuick, filter);
  EXPECT_TRUE(none.cases.empty()) << "5 ranks make no windows of 2";
  ASSERT_FALSE(none.left_out.empty());
  EXPECT_THAT(none.left_out[0].first, testing::HasSubstr("windows of 2"));
  filter.methods = {"te_p2p"};
  filter.masks = {attention::MaskShape::kCausal};
  filter.numbers = {Number::kFp64};
  const SuiteCases some = suite_cases(SuiteSize::kQuick, filter);
  ASSERT_FALSE(some.cases.empty());
  for (const Case& one : some.cases) {
    EXPECT_EQ(one.cp, 5);
    EXPECT_EQ(one.number, Number::kFp64);
    EXPECT_EQ(one.query_tokens % 10, 0);
  }
}

/// Sanitizers make a case several times slower; they look for other mistakes than the suite, so a part of it will do.
SuiteFilter what_is_affordable() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {.methods = {}, .masks = {}, .cp = {2, 3}, .numbers = {Number::kFp64, Number::kBf16}};
#else
  return {};
#endif
}

TEST(VerifySuite, EveryCaseOfTheQuickSuitePasses) {
  const SuiteCases suite = suite_cases(SuiteSize::kQuick, what_is_affordable());
  TruthShelf shelf;
  std::int64_t padded = 0;
  for (const CaseReport& report : run_cases(suite.cases, shelf, 2, {})) {
    const TensorName worst = report.judgement.worst();
    const JudgedTensor& tensor = report.judgement.tensors[static_cast<std::size_t>(worst)];
    EXPECT_TRUE(report.passed()) << report.verified.name << ": " << name_of(worst) << " " << tensor.error.normwise << " (may be "
                                 << tensor.limit.normwise << ") " << report.judgement.trouble;
    padded += report.pad_checked ? 1 : 0;
  }
  EXPECT_GT(padded, 50);
}

TEST(VerifyControls, EveryPlantedFaultIsCaught) {
  TruthShelf shelf;
  const std::vector<ControlReport> reports = run_controls(shelf, 2);
  ASSERT_EQ(reports.size(), planted_faults().size());
  std::vector<Fault> alike;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].fault, planted_faults()[i]);
    EXPECT_TRUE(reports[i].caught) << name_of(reports[i].fault) << " in " << reports[i].planted_in.name << ": "
                                   << reports[i].trouble;
    if (reports[i].loss_looks_alike()) alike.push_back(reports[i].fault);
  }
  EXPECT_THAT(alike, testing::IsSupersetOf(
                         {Fault::kSeamOffByOne, Fault::kKvOfStepZero, Fault::kDkvOneHopShort, Fault::kGradientDividedByCp}));
}

}  // namespace
}  // namespace cpfit::kernels
