// Tensors handed out and judged: a folder whose expected tensors are handed back passes; everything that can be wrong is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <algorithm>

#include <filesystem>

#include "kernels/verify/check.h"
#include "kernels/verify/emit.h"
#include "kernels/verify/fixture.h"
#include "kernels/verify/manifest.h"
#include "kernels/verify/npy.h"
#include "kernels/verify/suite_run.h"

namespace cpfit::kernels {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class EmittedFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / ("cpfit-emit-" + std::to_string(::getpid()))).string();
    fs::remove_all(folder_);
    request_.length = 61;
    request_.window = 9;
    request_.heads = {4, 2, 16, 8, 0.25};
    fs::create_directories(folder_);
    (void)emit_tensors(folder_, request_, "test");
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Hands back the expected tensors of one case, as `number`.
  void hand_back(const std::string& name, Number number = Number::kFp64) const {
    fs::create_directories(folder_ + "/" + name + "/got");
    for (const char* tensor : {"out", "lse", "dq", "dk", "dv"}) {
      const std::string expected = read_whole_file(folder_ + "/" + name + "/expected/" + tensor + ".npy");
      const Outcome<NpyArray> array = read_npy(expected, tensor);
      write_file(got(name, tensor), npy_bytes(number, array->shape, array->values));
    }
  }
  [[nodiscard]] std::string got(const std::string& name, const std::string& tensor) const {
    return folder_ + "/" + name + "/got/" + tensor + ".npy";
  }
  void change(const std::string& path, std::size_t index, double value) const {
    Outcome<NpyArray> array = read_npy(read_whole_file(path), path);
    ASSERT_TRUE(array.ok());
    array.value().values[index] = value;
    write_file(path, npy_bytes(Number::kFp64, array->shape, array->values));
  }
  [[nodiscard]] std::string first_problem(const CheckRequest& request = {}) const {
    const Outcome<CheckReport> report = check_tensors(folder_, request);
    return report.ok() ? std::string("accepted") : to_text(report.problems()[0]);
  }

  std::string folder_;
  EmitRequest request_;
};

TEST_F(EmittedFolder, HoldsInputsThatAreTheFixture) {
  const std::vector<Case> cases = emitted_cases(request_);
  ASSERT_EQ(cases.size(), 5u);
  for (const Case& one : cases) {
    const Outcome<NpyArray> q = read_npy(read_whole_file(folder_ + "/" + one.name + "/q.npy"), "q");
    ASSERT_TRUE(q.ok());
    EXPECT_EQ(q->shape, (std::vector<std::int64_t>{one.query_tokens, 4, 16}));
    EXPECT_EQ(q->values, fixture_of(one).q) << "bf16 bits are exact";
    EXPECT_EQ(one.query_tokens % 8, 0) << "divides by 2 * cp";
  }
  const Outcome<NpyArray> rows = read_npy(read_whole_file(folder_ + "/causal/shard_rows.npy"), "rows");
  EXPECT_EQ(rows->shape, (std::vector<std::int64_t>{4, 16}));
  EXPECT_EQ(rows->values[8], 56.0) << "64 tokens in 8 chunks of 8: rank 0's second chunk is the last";
  EXPECT_THAT(read_whole_file(folder_ + "/README.txt"), HasSubstr("cu_seqlens_padded.npy"));
}

TEST_F(EmittedFolder, HandedBackItPasses) {
  for (const char* name : {"causal", "full", "window", "documents", "padded_tail"}) hand_back(name, Number::kFp32);
  const Outcome<CheckReport> report = check_tensors(folder_, {});
  ASSERT_TRUE(report.ok()) << to_text(report.problems()[0]);
  ASSERT_EQ(report->cases.size(), 5u);
  for (const CheckedCase& one : report->cases) EXPECT_TRUE(one.judgement.passed()) << one.verified.name << one.judgement.trouble;
  EXPECT_TRUE(report->not_run.empty());
  EXPECT_FALSE(report->block.has_value());
}

TEST_F(EmittedFolder, OurOwnBf16RingPassesAsAForeignOne) {
  Case ours = emitted_cases(request_).front();
  ours.method = "te_p2p";
  const AttentionTensors result = run_in_process(ours);
  fs::create_directories(folder_ + "/causal/got");
  const std::int64_t s = ours.query_tokens;
  write_file(got("causal", "out"), npy_bytes(Number::kBf16, {s, 4, 8}, result.out));
  write_file(got("causal", "lse"), npy_bytes(Number::kFp32, {1, s, 4}, result.lse));  // a batch of one
  write_file(got("causal", "dq"), npy_bytes(Number::kBf16, {s, 4, 16}, result.dq));
  write_file(got("causal", "dk"), npy_bytes(Number::kBf16, {s, 2, 16}, result.dk));
  write_file(got("causal", "dv"), npy_bytes(Number::kBf16, {s, 2, 8}, result.dv));
  CheckRequest narrow;
  narrow.accumulation = Accumulation{false, false, false};
  const Outcome<CheckReport> report = check_tensors(folder_, narrow);
  ASSERT_TRUE(report.ok()) << to_text(report.problems()[0]);
  EXPECT_TRUE(report->cases[0].judgement.passed());
  EXPECT_EQ(report->not_run, (std::vector<std::string>{"full", "window", "documents", "padded_tail"}));
}

TEST_F(EmittedFolder, WrongTensorsFail) {
  hand_back("causal");
  change(got("causal", "dv"), 3, 7.0);
  const Outcome<CheckReport> report = check_tensors(folder_, {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->cases[0].judgement.passed());
  EXPECT_EQ(report->cases[0].judgement.worst(), TensorName::kDv);
  EXPECT_FALSE(report->cases[0].passes_when_narrow);
}

TEST_F(EmittedFolder, NanInARealTokenFailsAndIsNamed) {
  hand_back("causal");
  change(got("causal", "dq"), 0, std::nan(""));
  const Outcome<CheckReport> report = check_tensors(folder_, {});
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->cases[0].judgement.passed());
  EXPECT_THAT(report->cases[0].judgement.trouble, HasSubstr("dq holds NaN"));
}

TEST_F(EmittedFolder, PaddingMayHoldAnythingButGradients) {
  hand_back("padded_tail");  // 61 real of 64
  change(got("padded_tail", "out"), 62 * 4 * 8, std::nan(""));
  change(got("padded_tail", "lse"), 62 * 4, std::numeric_limits<double>::infinity());
  ASSERT_TRUE(check_tensors(folder_, {}).ok());
  EXPECT_TRUE(check_tensors(folder_, {})->cases[0].judgement.passed());
  change(got("padded_tail", "dk"), 62 * 2 * 16, 0.5);
  EXPECT_THAT(check_tensors(folder_, {})->cases[0].judgement.trouble, HasSubstr("dk of stored token 62"));
}

TEST_F(EmittedFolder, MissingAndMisshapenTensorsAreNamed) {
  EXPECT_THAT(first_problem(), HasSubstr("nothing was dumped"));
  hand_back("causal");
  fs::remove(got("causal", "lse"));
  EXPECT_THAT(first_problem(), testing::AllOf(HasSubstr("causal/got/lse.npy: this tensor is missing"), HasSubstr("[64][4]")));
  CheckRequest without;
  without.without_lse = true;
  ASSERT_TRUE(check_tensors(folder_, without).ok());
  EXPECT_TRUE(check_tensors(folder_, without)->cases[0].judgement.passed());
  write_file(got("causal", "lse"), npy_bytes(Number::kFp32, {4, 64}, std::vector<double>(256, 0.0)));
  EXPECT_THAT(first_problem(), testing::AllOf(HasSubstr("its shape is [4][64] instead of [64][4]"), HasSubstr("Transpose it")));
}

TEST_F(EmittedFolder, ChangedInputsAndManifestsAreRefused) {
  hand_back("causal");
  const std::string manifest = folder_ + "/manifest.json";
  const std::string text = read_whole_file(manifest);
  std::string other = text;
  other.replace(other.find("\"cp\": 4"), 7, "\"cp\": 2");
  write_file(manifest, other);
  EXPECT_THAT(first_problem(), HasSubstr("the manifest was changed"));
  write_file(manifest, text);
  change(folder_ + "/causal/expected/dq.npy", 0, 1.0);
  EXPECT_THAT(first_problem(), HasSubstr("expected/dq.npy: the file was changed"));
  fs::remove(folder_ + "/causal/expected/dq.npy");
  EXPECT_THAT(first_problem(), HasSubstr("expected/dq.npy: the file is gone"));
  write_file(manifest, "{}");
  EXPECT_THAT(first_problem(), HasSubstr("this is no manifest"));
  fs::remove(manifest);
  EXPECT_THAT(first_problem(), HasSubstr("there is no manifest.json"));
}

/// Whoever changes a manifest can make its hash right.
TEST_F(EmittedFolder, AManifestThatContradictsItselfIsRefused) {
  hand_back("causal");
  const std::string path = folder_ + "/manifest.json";
  Manifest manifest = parse_manifest(read_whole_file(path), "manifest").value();
  const auto lse = std::ranges::find(manifest.files, "causal/expected/lse.npy", &ManifestFile::path);
  ASSERT_NE(lse, manifest.files.end());
  lse->shape = {64};
  write_file(path, manifest_json(manifest));
  CheckRequest without;
  without.without_lse = true;
  EXPECT_THAT(first_problem(without), HasSubstr("causal/expected/lse.npy: the manifest contradicts itself"));
  write_file(path, R"({"schema": 7, "manifest_sha256": []})");
  EXPECT_THAT(first_problem(), HasSubstr("this is no manifest"));
  write_file(path, R"({"schema": "cpfit-verify/1", "cases": )" + std::string(100'000, '['));
  EXPECT_THAT(first_problem(), HasSubstr("this is no manifest"));
}

TEST_F(EmittedFolder, TheBlockIsJudgedByParameter) {
  const auto files = parse_manifest(read_whole_file(folder_ + "/manifest.json"), "manifest");
  ASSERT_TRUE(files.ok());
  fs::create_directories(folder_ + "/block/got");
  for (const ManifestFile& file : files->files) {
    const std::string prefix = "block/expected/";
    if (!file.path.starts_with(prefix)) continue;
    const Outcome<NpyArray> array = read_npy(read_whole_file(folder_ + "/" + file.path), file.path);
    write_file(folder_ + "/block/got/" + file.path.substr(prefix.size()), npy_bytes(Number::kFp32, array->shape, array->values));
  }
  Outcome<CheckReport> report = check_tensors(folder_, {});
  ASSERT_TRUE(report.ok()) << to_text(report.problems()[0]);
  ASSERT_TRUE(report->block.has_value());
  EXPECT_TRUE(report->block->passed());
  EXPECT_EQ(report->block->errors.size(), 21u);
  const std::string key = folder_ + "/block/got/grad.layer1.key.npy";
  const Outcome<NpyArray> array = read_npy(read_whole_file(key), key);
  std::vector<double> quarter = array->values;
  for (double& value : quarter) value /= 4;
  write_file(key, npy_bytes(Number::kFp32, array->shape, quarter));
  report = check_tensors(folder_, {});
  EXPECT_FALSE(report->block->passed());
  EXPECT_EQ(report->block->worst().name, "layer1.key");
  fs::remove(key);
  EXPECT_THAT(first_problem(), HasSubstr("grad.layer1.key.npy: this tensor is missing"));
}

}  // namespace
}  // namespace cpfit::kernels
