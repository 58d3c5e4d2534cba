// A bundle as a file: what is written is read back, and no changed byte passes.
#include "model/record/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/quantity/hash.h"

namespace cpfit {
namespace {

using testing::HasSubstr;

/// Something in every field; figures that no short decimal holds.
Bundle sample_bundle() {
  Bundle bundle;
  bundle.tool_version = "0.1.0";
  bundle.scenario_name = "a \"scenario\"";
  bundle.scenario = {"dir/a.toml", "model = \"x\"\n\n# ü\n"};
  bundle.files = {{"dir/config.json", "{\n}"}, {"dir/empty", ""}};
  bundle.model = {{"layers", "32"}};
  bundle.sequence = {{"mask", "causal"}};
  bundle.implementation = {{"cp_comm", "p2p"}};
  bundle.software = {{"driver", "unknown"}};
  bundle.cluster = {{"gpu", "H100"}};
  bundle.topology = {"a line", "another"};
  bundle.inputs = {{"scenario", sha256_hex("x")}};
  bundle.entries = {{"gpus.toml: gpu[H100].memory", "'80 GiB'"}};
  bundle.rates_version = "fit-1";
  bundle.calibration_name = "ours";
  bundle.calibration_id = sha256_hex("y");
  bundle.calibration = "version = \"1\"\n";
  bundle.placement = "as numbered";
  for (int rank = 0; rank < 8; ++rank) bundle.mesh.push_back({rank, rank % 2, rank / 2, 0, 0, rank / 4, rank % 4});
  bundle.predicted = {"ship", "tp=2,cp=4",  8,
                      "fits", "a sentence", {{"step_seconds", 1.0 / 3.0}, {"memory.device_bytes", 1e300}}};
  bundle.controls = {{"slow", "tp=1,cp=8", 8, "fits", "slower", {{"step_seconds", 0.1 + 0.2}}}};
  bundle.missing_controls = {{"out_of_memory", "none"}};
  bundle.links = {{"n0.gpu0", "n0.sw0", Bytes(1e12 / 7), Seconds(5e-324)}};
  bundle.equivalence.sentence = "proved";
  bundle.equivalence.method = "te_p2p";
  bundle.equivalence.layout = "zigzag";
  bundle.equivalence.dtype = "bf16";
  bundle.equivalence.masks = {"causal"};
  bundle.equivalence.proofs = {{"cpfit", "0.1.0", "mpi", "te_p2p", "causal", "zigzag", "bf16", {2, 4}, sha256_hex("z"), 12345}};
  bundle.equivalence.cases = {{"te_p2p | causal", 7, sha256_hex("f"), true, true, {{"out", 1.0 / 7.0}}}};
  return bundle;
}

TEST(Bundle, ComesBackBitForBitAndIsNamedByItsBytes) {
  const Bundle bundle = sample_bundle();
  const std::string text = bundle_text(bundle);
  const Outcome<Bundle> read = parse_bundle(text, "b.json");
  ASSERT_TRUE(read.ok()) << to_text(read.problems()[0]);
  EXPECT_EQ(*read, bundle);
  EXPECT_EQ(bundle_text(*read), text);
  // Whoever wants to check by hand: the digits replaced by zeros, then sha256sum.
  std::string blank = text;
  blank.replace(blank.find(bundle_id(text)), 64, std::string(64, '0'));
  EXPECT_EQ(bundle_id(text), sha256_hex(blank));
  EXPECT_THAT(text, HasSubstr("\n    [5,1,2,0,0,1,1],\n")) << "a rank is a line";
}

TEST(Bundle, NoChangedByteAndNoCutPasses) {
  const std::string text = bundle_text(sample_bundle());
  for (std::size_t at = 0; at < text.size(); at += 11) {
    std::string changed = text;
    changed[at] = changed[at] == '1' ? '2' : '1';
    const Outcome<Bundle> read = parse_bundle(changed, "b.json");
    ASSERT_FALSE(read.ok()) << at;
    EXPECT_THAT(read.problems()[0].code, testing::AnyOf("bundle.changed", "bundle.foreign", "bundle.syntax")) << at;
    EXPECT_FALSE(read.problems()[0].repair.empty());
    EXPECT_FALSE(parse_bundle(text.substr(0, at), "b.json").ok()) << at;
  }
  EXPECT_FALSE(parse_bundle(text + " ", "b.json").ok());
  std::string figure = text;
  figure.replace(figure.find("0.3333333333333333"), 18, "0.3333333333333334");
  EXPECT_THAT(parse_bundle(figure, "b.json").problems()[0].message, HasSubstr("what differs: predicted"));
}

/// The same bytes with another piece, hashed as an export hashes.
std::string forged(std::string text, const std::string& piece, const std::string& other) {
  const std::size_t digits = text.find(bundle_id(text));
  text.replace(digits, 64, std::string(64, '0'));
  const std::size_t at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  text.replace(at, piece.size(), other);
  return text.replace(digits, 64, sha256_hex(text));
}

TEST(Bundle, WhatIsHashedButWrongIsAnsweredWithItsPlace) {
  const std::string text = bundle_text(sample_bundle());
  const auto refused = [&](const std::string& piece, const std::string& other, const std::string& code, const std::string& says) {
    const Outcome<Bundle> read = parse_bundle(forged(text, piece, other), "b.json");
    ASSERT_FALSE(read.ok()) << other;
    EXPECT_EQ(read.problems()[0].code, code) << other;
    EXPECT_THAT(read.problems()[0].message, HasSubstr(says)) << other;
  };
  refused("\"cpfit_bundle\": 1", "\"cpfit_bundle\": 2", "bundle.newer", "format version 2");
  refused("\"cpfit_bundle\": 1", "\"cpfit_bundle\": 0", "bundle.content", "cpfit_bundle");
  refused("0.3333333333333333", "null", "bundle.content", "predicted.figures.step_seconds");
  refused("[5,1,2,0,0,1,1]", "[5,1,2,0,0,1]", "bundle.content", "mesh.ranks");
  refused("[5,1,2,0,0,1,1]", "[5,-1,2,0,0,1,1]", "bundle.content", "mesh.ranks");
  refused("[5,1,2,0,0,1,1]", "[5,99999999999,2,0,0,1,1]", "bundle.content", "mesh.ranks");
  refused("[5,1,2,0,0,1,1]", "[18446744073709551615,1,2,0,0,1,1]", "bundle.content", "mesh.ranks");
  refused("\"gpus\": 8", "\"gpus\": 8.5", "bundle.content", "predicted.gpus");
  refused("\"equivalence\": {", "\"equivalent\": {", "bundle.content", "parts.equivalence");
  refused("[\"layers\",\"32\"]", "[\"layers\"]", "bundle.content", "parts.model");
  refused("\"run\": true", "\"run\": \"true\"", "bundle.content", "equivalence.cases.run");
  refused("[\"{\",\"}\"]", "[\"{\",\"]\"]", "bundle.content", "files.dir/config.json");
  refused("\"tool_version\": \"0.1.0\",\n", "\"tool_version\": \"0.1.0\",\n" + std::string(100000, '['), "bundle.syntax", "");
  for (const char* foreign : {"", "{}", "\"sha256\": \"", "SQLite format 3"})
    EXPECT_EQ(parse_bundle(foreign, "b.json").problems()[0].code, "bundle.foreign") << foreign;
}

TEST(Figures, MoveByWhatTheyWere) {
  const std::vector<FigureChange> changes =
      changed_figures({{"a", 2}, {"b", 0}, {"c", 5}, {"d", 1}}, {{"a", 3}, {"b", 4}, {"c", 5}});
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0], (FigureChange{"a", 2, 3}));
  EXPECT_DOUBLE_EQ(changes[0].relative(), 0.5);
  EXPECT_TRUE(std::isinf(changes[1].relative()));
  EXPECT_EQ(changes[2], (FigureChange{"d", 1, 0}));
}

}  // namespace
}  // namespace cpfit
