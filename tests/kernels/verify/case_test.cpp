// Cases as JSON, their methods, and their names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/verify/suite.h"

namespace cpfit::kernels {
namespace {

using testing::HasSubstr;

Case documents_case() {
  Case made;
  made.name = "a | \"quoted\" name";
  made.method = "te_p2p";
  made.shape = "698 real of 704";
  made.mask = attention::MaskShape::kDocuments;
  made.documents = {{698, 704}, {0, 0}, {1, 8}};
  made.query_tokens = made.key_tokens = 712;
  made.per_document = true;
  made.cp = 4;
  made.inner = 2;
  made.number = Number::kBf16;
  made.heads = {8, 2, 192, 128, 0.07216878364870322};
  made.seed = 0xffffffffffffffffU;
  made.fault = Fault::kKvOfStepZero;
  return made;
}

TEST(VerifyCase, ComesBackFromJsonWhole) {
  const Case made = documents_case();
  const Outcome<Case> read = parse_case(case_json(made));
  ASSERT_TRUE(read.ok()) << to_text(read.problems()[0]);
  EXPECT_EQ(case_json(*read), case_json(made));
  EXPECT_EQ(read->name, made.name);
  EXPECT_EQ(read->documents, made.documents);
  EXPECT_EQ(read->seed, made.seed);
  EXPECT_EQ(read->heads.scale, made.heads.scale);
  EXPECT_EQ(read->fault, Fault::kKvOfStepZero);
}

TEST(VerifyCase, EveryCaseOfTheFullSuiteComesBack) {
  for (const Case& made : suite_cases(SuiteSize::kFull, {}).cases) {
    const Outcome<Case> read = parse_case(case_json(made));
    ASSERT_TRUE(read.ok()) << made.name << ": " << to_text(read.problems()[0]);
    EXPECT_EQ(case_json(*read), case_json(made));
  }
}

TEST(VerifyCase, WhatIsWrongWithOneIsNamed) {
  const auto message = [](std::string_view from, std::string_view to) {
    std::string json = case_json(documents_case());
    const std::size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    json.replace(at, from.size(), to);
    const Outcome<Case> read = parse_case(json);
    return read.ok() ? std::string("accepted") : read.problems()[0].where + ": " + read.problems()[0].message;
  };
  EXPECT_THAT(message("\"documents\",\"window\"", "\"diagonal\",\"window\""), HasSubstr("mask: mask does not know 'diagonal'"));
  EXPECT_THAT(message("\"cp\":4", "\"cp\":0"), HasSubstr("cp must lie between 1 and"));
  EXPECT_THAT(message("\"kv_heads\":2", "\"kv_heads\":3"), HasSubstr("kv_heads must divide heads"));
  EXPECT_THAT(message("[698,704]", "[705,704]"), HasSubstr("documents must lie between 0 and 704"));
  EXPECT_THAT(message("[698,704]", "[698,700]"), HasSubstr("documents must add up to query_tokens"));
  EXPECT_THAT(message("\"seed\":18446744073709551615", "\"seed\":-1"), HasSubstr("seed must be a whole number from 0"));
  EXPECT_THAT(message("\"scale\"", "\"skale\""), HasSubstr("scale must be a number"));
  EXPECT_FALSE(parse_case("[1]").ok());
  EXPECT_FALSE(parse_case("{").ok());
}

TEST(VerifyCase, LinesAreReadInOrderAndTheBadOneIsNumbered) {
  const std::string line = case_json(documents_case());
  const auto two = parse_cases(line + "\n\n" + line + "\n");
  ASSERT_TRUE(two.ok());
  EXPECT_EQ(two->size(), 2u);
  const auto bad = parse_cases(line + "\nnonsense\n");
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.problems()[0].where, HasSubstr("line 2"));
}

TEST(VerifyCase, MethodTakesInnerDegreeAndFault) {
  Case made = documents_case();
  made.method = "a2a_p2p";
  made.inner = 4;
  ASSERT_TRUE(method_of(made).ok());
  EXPECT_EQ(method_of(made)->a2a_degree, 4);
  EXPECT_EQ(method_of(made)->fault, Fault::kKvOfStepZero);
  made.method = "double_ring";
  EXPECT_EQ(method_of(made)->window, 4);
  made.method = "te_pp2p";
  const Outcome<Method> unknown = method_of(made);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.problems()[0].repair, HasSubstr("Did you mean 'te_p2p'"));
}

TEST(VerifyCase, MaskPlacesDocumentsOneBehindTheOther) {
  const Mask mask = mask_of(documents_case());
  ASSERT_EQ(mask.documents.size(), 3u);
  EXPECT_EQ(mask.documents[1].start, 704);
  EXPECT_EQ(mask.documents[2].start, 704);
  EXPECT_EQ(mask.documents[2].padded, 8);
}

TEST(VerifyCase, EveryFaultHasANameOfItsOwnAndAMeaning) {
  EXPECT_EQ(planted_faults().size(), 11u);
  std::vector<std::string_view> names;
  for (const Fault fault : planted_faults()) {
    EXPECT_FALSE(meaning_of(fault).empty());
    EXPECT_THAT(names, testing::Not(testing::Contains(name_of(fault))));
    names.push_back(name_of(fault));
  }
}

}  // namespace
}  // namespace cpfit::kernels
