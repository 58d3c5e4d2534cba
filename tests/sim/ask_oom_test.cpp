// ask oom: PyTorch's messages as its versions write them, and what they are traced to.
#include "fixture.h"

#include <cmath>

#include "sim/ask/oom.h"

namespace cpfit::ask {
namespace {

constexpr const char* kNew =
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which "
    "1.31 "
    "GiB is free. Including non-PyTorch memory, this process has 77.79 GiB memory in use. Of the allocated memory 70.46 GiB is "
    "allocated by PyTorch, and 5.90 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try";
constexpr const char* kOld =
    "RuntimeError: CUDA out of memory. Tried to allocate 786.00 MiB (GPU 0; 31.75 GiB total capacity; 28.82 GiB already "
    "allocated; "
    "540.50 MiB free; 29.97 GiB reserved in total by PyTorch)";

TEST(AskOom, ReadsTheWordingOfEveryVersion) {
  const Outcome<OomMessage> recent = parse_oom(kNew);
  ASSERT_TRUE(recent.ok());
  EXPECT_DOUBLE_EQ(recent->tried.value(), 2.0 * kGiB);
  EXPECT_DOUBLE_EQ(recent->tried_resolution.value(), 0.005 * kGiB);
  EXPECT_DOUBLE_EQ(recent->capacity->value(), 79.11 * kGiB);
  EXPECT_DOUBLE_EQ(recent->free->value(), 1.31 * kGiB);
  EXPECT_DOUBLE_EQ(recent->allocated->value(), 70.46 * kGiB);
  EXPECT_NEAR(recent->cached()->value(), 5.90 * kGiB, 1.0);
  EXPECT_NEAR(recent->outside()->value() / kGiB, 77.79 - 70.46 - 5.90, 1e-6);          // 1.43
  EXPECT_NEAR(recent->other_processes()->value() / kGiB, 79.11 - 1.31 - 77.79, 1e-6);  // 0.01

  const Outcome<OomMessage> old = parse_oom(kOld);
  ASSERT_TRUE(old.ok());
  EXPECT_DOUBLE_EQ(old->tried.value(), 786.0 * kMiB);
  EXPECT_DOUBLE_EQ(old->capacity->value(), 31.75 * kGiB);
  EXPECT_DOUBLE_EQ(old->free->value(), 540.5 * kMiB);
  EXPECT_NEAR(old->cached()->value() / kGiB, 29.97 - 28.82, 1e-6);
  EXPECT_FALSE(old->in_use.has_value());

  std::string broken(kNew);  // a terminal breaks lines anywhere between words
  for (char& c : broken) c = c == ' ' ? '\n' : c;
  EXPECT_DOUBLE_EQ(parse_oom(broken)->free->value(), 1.31 * kGiB);
  EXPECT_EQ(parse_oom("Segmentation fault").problems().front().code, "ask.no_oom");
  EXPECT_EQ(parse_oom("").problems().front().code, "ask.no_oom");
}

TEST(AskOom, TellsPiecesAndOtherProcessesFromARealShortage) {
  // 5.90 cached + 1.31 free = 7.21 of 2.00: in pieces; 5.21 would be left.
  const OomDiagnosis pieces = diagnose(*parse_oom(kNew));
  EXPECT_EQ(pieces.cause, OomCause::kFragmentation);
  EXPECT_NE(pieces.repair.find("expandable_segments"), std::string::npos);
  EXPECT_NE(pieces.expected.find("5.21 GiB"), std::string::npos) << pieces.expected;
  // 79 - 2 - 50 = 27 GiB belong to others.
  const OomDiagnosis others =
      diagnose(*parse_oom("CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.00 GiB of "
                          "which 2.00 GiB is free. Process 12 has 27.00 GiB memory in use. Including non-PyTorch "
                          "memory, this process has 50.00 GiB memory in use. Of the allocated memory 48.00 GiB is "
                          "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."));
  EXPECT_EQ(others.cause, OomCause::kOtherProcess);
  EXPECT_NE(others.sentence.find("hold 27 GiB"), std::string::npos) << others.sentence;
  // 786 MiB of 540.5 MiB free and 1.15 GiB cached: in pieces too; with 100 MiB cached, short.
  const OomDiagnosis shortage =
      diagnose(*parse_oom("CUDA out of memory. Tried to allocate 786.00 MiB (GPU 0; 31.75 GiB total capacity; 29.87 GiB "
                          "already allocated; 540.50 MiB free; 29.97 GiB reserved in total by PyTorch)"));
  EXPECT_EQ(shortage.cause, OomCause::kRecipe);
}

TEST(AskOom, KnowsTheSizesOfSingleAllocations) {
  const Scenario scenario = test::llama_on_dgx(1, 131072, 8);
  const auto size = [&](const char* recipe, const std::string& tensor) {
    for (const TensorMatch& match :
         single_allocations(scenario.model, scenario.training, parse_recipe(recipe, scenario.base).value())) {
      if (match.tensor == tensor) return match.bytes.value();
    }
    return -1.0;
  };
  // Llama 3 8B has 8,030,261,248 parameters; 131,072 / 8 = 16,384 tokens a rank, H 4096, F 14336, 8 KV heads of 128.
  EXPECT_DOUBLE_EQ(size("tp=1,cp=8,pp=1,dp=1", "weights of the stage, 16 bits, one buffer"), 2.0 * 8030261248);
  EXPECT_DOUBLE_EQ(size("tp=1,cp=8,pp=1,dp=1", "one fp32 optimizer state"), 4.0 * 8030261248 / 8);
  EXPECT_DOUBLE_EQ(size("tp=1,cp=8,pp=1,dp=1", "MLP gate and up"), 2.0 * 16384 * 2 * 14336);
  EXPECT_DOUBLE_EQ(size("tp=1,cp=8,pp=1,dp=1", "one ring slot of keys and values"), 2.0 * 2 * 16384 * 8 * 128);
  EXPECT_DOUBLE_EQ(size("tp=1,cp=8,pp=1,dp=1", "all keys and values of a sequence, gathered"), 2.0 * 2 * 131072 * 8 * 128);
  // tp 8, cp 1: 131,072 tokens, cut over the tensor ranks between the layers; no ring.
  EXPECT_DOUBLE_EQ(size("tp=8,cp=1,pp=1,dp=1", "hidden state, cut over tensor ranks"), 2.0 * 131072 * 4096 / 8);
  EXPECT_DOUBLE_EQ(size("tp=8,cp=1,pp=1,dp=1", "hidden state, gathered"), 2.0 * 131072 * 4096);
  EXPECT_DOUBLE_EQ(size("tp=8,cp=1,pp=1,dp=1", "one ring slot of keys and values"), -1.0);
}

TEST(AskOom, NamesTheTensorAndAChangeThatFits) {
  // Llama 3 8B, 131,072 tokens, tp 1, cp 4: 32,768 tokens a rank. Logits: 128,256 words padded to 128: 128,256; fp32:
  // 4 * 32,768 * 128,256 bytes = 15.66 GiB.
  const Scenario scenario = test::llama_on_dgx(1, 131072, 8);
  const RateSet rates = RateSet::defaults();
  Workbench bench = Workbench::build(scenario, rates).value();
  const Recipe recipe = parse_recipe("tp=1,cp=4,pp=1,dp=2", scenario.base).value();
  EXPECT_NEAR(4.0 * 32768 * 128256 / kGiB, 15.656, 0.001);
  const Outcome<OomMessage> message = parse_oom(
      "CUDA out of memory. Tried to allocate 15.66 GiB. GPU 0 has a total capacity of 79.11 GiB of which 3.00 GiB is free. "
      "Including "
      "non-PyTorch memory, this process has 76.10 GiB memory in use. Of the allocated memory 72.00 GiB is allocated by PyTorch, "
      "and "
      "1.50 GiB is reserved by PyTorch but unallocated.");
  const Outcome<OomDiagnosis> diagnosis = diagnose(*message, bench, recipe);
  ASSERT_TRUE(diagnosis.ok());
  EXPECT_EQ(diagnosis->cause, OomCause::kRecipe);
  ASSERT_FALSE(diagnosis->tensors.empty());
  EXPECT_EQ(diagnosis->tensors.front().tensor, "logits, fp32");
  ASSERT_TRUE(diagnosis->change.has_value());
  EXPECT_EQ(diagnosis->change->verdict.fit, Fit::kFits);
  EXPECT_EQ(diagnosis->change->recipe.world(), 8);
  EXPECT_FALSE(diagnosis->changed.empty());
  EXPECT_LE(diagnosis->changed.size(), 2u);
  // 72 GiB live: more than the states of 8 GPUs' 8B parameters (57 GiB: 16-bit weights, fp32 gradients, a share of 12 bytes of
  // optimizer), less than all that 32,768 tokens save (136 GiB): in the forward pass.
  EXPECT_NE(diagnosis->where.find("in a forward pass that had saved about"), std::string::npos) << diagnosis->where;
  // An illegal recipe is said, not guessed at.
  const Recipe wrong = parse_recipe("tp=1,cp=3,pp=1,dp=2", scenario.base).value();
  EXPECT_FALSE(diagnose(*message, bench, wrong).ok());
}

}  // namespace
}  // namespace cpfit::ask
