// cpfit ask as a person calls it: every question answers in text and in JSON, mistakes are two with the repair.
#include <gmock/gmock.h>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;

TEST(Ask, EveryQuestionAnswersInTextAndJson) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  const std::string lengths = folder.file("lengths.csv", "length,count\n1k,600\n4k,250\n16k,120\n48k,30\n");
  const std::string message =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 0.31 GiB is free. "
      "Including "
      "non-PyTorch memory, this process has 78.79 GiB memory in use. Of the allocated memory 76.46 GiB is allocated by PyTorch, "
      "and 0.90 "
      "GiB is reserved by PyTorch but unallocated.";
  const std::vector<Words> questions = {{"ask", "longest", scenario},
                                        {"ask", "longest", scenario, "--recipe", "tp=1,cp=8,pp=1,dp=1,recompute=full"},
                                        {"ask", "fewest", scenario},
                                        {"ask", "why-not", scenario, "--cp", "8"},
                                        {"ask", "why-not", scenario, "--cp", "3"},
                                        {"ask", "matters", scenario, "recompute"},
                                        {"ask", "matters", scenario, "rates.gemm"},
                                        {"ask", "matters", scenario, "memory_margin"},
                                        {"ask", "matters", scenario, "cp_comm", "--recipe", "tp=8,cp=1,pp=1,dp=1,recompute=full"},
                                        {"ask", "oom", message},
                                        {"ask", "oom", message, scenario, "--recipe", "tp=1,cp=8,pp=1,dp=1"},
                                        {"ask", "documents", scenario, "--lengths", lengths}};
  for (const Words& words : questions) {
    SCOPED_TRACE(words[1] + " " + words.back());
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    const nlohmann::json answer = cpfit_json(words);
    ASSERT_TRUE(answer["answer"].is_string());
    // The sentence is the text's first words, broken to the terminal's width.
    EXPECT_THAT(said.out, HasSubstr(answer["answer"].get<std::string>().substr(0, 20)));
  }
  const Said hazards = cpfit({"ask", "hazards", scenario, "--recipe", "tp=1,cp=8,pp=1,dp=1"});
  EXPECT_EQ(hazards.exit_code, 0) << hazards.err;
  EXPECT_THAT(hazards.out, HasSubstr("TransformerEngine#1557"));
  EXPECT_EQ(cpfit_json({"ask", "hazards", scenario, "--recipe", "tp=8,cp=1,pp=1,dp=1"})["hazards"].size(), 0u);
}

TEST(Ask, AJobsArgumentsStandForTheRecipe) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  const std::string job =
      folder.file("job.sh",
                  "torchrun --nproc-per-node 8 p.py --bf16 --context-parallel-size 8 --use-distributed-optimizer "
                  "--overlap-grad-reduce --overlap-param-gather\n");
  const std::string message = "CUDA out of memory. Tried to allocate 2.00 GiB.";
  const nlohmann::json by_job = cpfit_json({"ask", "oom", message, scenario, "--job", job, "--format", "megatron"});
  const nlohmann::json by_recipe = cpfit_json({"ask", "oom", message, scenario, "--recipe", "tp=1,cp=8,pp=1,dp=1"});
  EXPECT_EQ(by_job, by_recipe);
  EXPECT_EQ(cpfit({"ask", "oom", message, scenario, "--job", job}).exit_code, 2);                // no --format
  EXPECT_EQ(cpfit({"ask", "oom", message, "--job", job, "--format", "megatron"}).exit_code, 2);  // no scenario
}

TEST(Ask, SaysWhySomethingChangesNothing) {
  const Folder folder;
  const Said said = cpfit(
      {"ask", "matters", folder.file("s.toml", small_scenario()), "cp_comm", "--recipe", "tp=8,cp=1,pp=1,dp=1,recompute=full"});
  EXPECT_THAT(said.out, HasSubstr("cp_comm changes nothing because cp is 1"));
}

TEST(Ask, MistakesAreTwoWithTheRepair) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  const Said key = cpfit({"ask", "matters", scenario, "recompte"});
  EXPECT_EQ(key.exit_code, 2);
  EXPECT_THAT(key.err, HasSubstr("recompute"));
  EXPECT_EQ(cpfit({"ask"}).exit_code, 2);
  EXPECT_EQ(cpfit({"ask", "why-not", scenario}).exit_code, 2);  // no --cp
  EXPECT_EQ(cpfit({"ask", "oom", "Segmentation fault"}).exit_code, 2);
  EXPECT_EQ(cpfit({"ask", "oom", "CUDA out of memory. Tried to allocate 2.00 GiB.", "--recipe", "tp=1"}).exit_code,
            2);  // no scenario
  EXPECT_EQ(cpfit({"ask", "longest", folder / "none.toml"}).exit_code, 2);
  EXPECT_EQ(cpfit({"ask", "hazards", scenario, "--recipe", "tp=1,cp=3,pp=1,dp=1"}).exit_code, 2);
  EXPECT_EQ(cpfit({"ask", "documents", scenario, "--lengths", folder.file("l.csv", "many\nmore\n")}).exit_code, 2);
  EXPECT_EQ(cpfit({"ask", "documents", scenario, "--lengths", folder / "none.csv"}).exit_code, 2);
  EXPECT_EQ(cpfit({"ask", "documents", scenario, "--lengths", folder.file("m.csv", "1M\n")}).exit_code, 2);  // longer than 128k
}

}  // namespace
}  // namespace cpfit::cli_test
