// The commands that README.md shows, run as it shows them; and what every example answers.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The lines of README.md that call the built binary, as words after it; comments and continuation marks cut off.
std::vector<Words> readme_commands() {
  std::vector<Words> commands;
  for (std::string line : lines_of(read_file(std::string(CPFIT_SOURCE_DIR) + "/README.md"))) {
    if (!line.starts_with("build/cli/cpfit ")) continue;
    line = line.substr(0, line.find(" #"));
    Words words;
    std::string word;
    bool quoted = false;
    for (const char c : line + " ") {
      if (c == '"')
        quoted = !quoted;
      else if (c != ' ' || quoted)
        word += c;
      else if (!word.empty())
        words.push_back(std::exchange(word, ""));
    }
    words.erase(words.begin());
    commands.push_back(words);
  }
  return commands;
}

TEST(Readme, EveryCommandRuns) {
  const Folder folder;
  const std::string mine = folder.file("my.toml", read_file(example("llama3-8b-128k-1node")));
  const std::string recorded = folder.file(
      "kineto.json", R"([{"ph":"X","cat":"kernel","name":"ncclDevKernel_SendRecv","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{}}])");
  std::string steps;
  for (int i = 1; i <= 9; ++i) steps += " iteration " + std::to_string(i) + "/ 9 | elapsed time per iteration (ms): 49000.0 |\n";
  const std::string log = folder.file("train.log", steps);
  const std::vector<Words> commands = readme_commands();
  ASSERT_GE(commands.size(), 5u) << "README.md shows how the program is called";
  for (Words words : commands) {
    for (std::string& word : words) {
      if (word == "my.toml") word = mine;
      if (word == "kineto.json.gz") word = recorded;
      if (word == "train.log") word = log;
      if (word == "build/cpfit.sqlite") word = folder / "cpfit.sqlite";
      if (word == "my.html") word = folder / "my.html";
    }
#ifdef __SANITIZE_ADDRESS__
    if (words[0] == "verify") continue;  // minutes here; VerifySuite runs the same cases under the sanitizer
#endif
    SCOPED_TRACE(testing::PrintToString(words));
    const Said said = cpfit(words);
    // A recipe may be shown because it does not fit: that is an answer.
    EXPECT_TRUE(said.exit_code == 0 || (words[0] == "simulate" && said.exit_code == 3)) << said.exit_code << said.err;
    EXPECT_FALSE(said.out.empty());
    EXPECT_EQ(said.err, "");
  }
}

TEST(Readme, ThePartsItPromisesAreThere) {
  const Said said = cpfit({"plan", example("llama3-8b-128k-1node")});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  for (const char* part :
       {"\nVerdict\n", "\nShip: ", "\nWhy not the neighbours\n", "\nWhere context parallelism starts to pay\n", "\nBest recipes ",
        "\nThe shortlist on the timeline ", "\nControlled sweep ", " recipes considered, "}) {
    EXPECT_THAT(said.out, HasSubstr(part));
  }
}

TEST(Examples, AnswerInWholeSentencesOnAPageOf100Columns) {
  for (const std::string& name : example_names()) {
    SCOPED_TRACE(name);
    const Said said = cpfit({"plan", example(name), "--no-crossover"});
    EXPECT_TRUE(said.exit_code == 0 || said.exit_code == 3) << said.err;
    EXPECT_THAT(said.out, Not(testing::ContainsRegex("[^a-z](nan|inf)[^a-z]")));
    EXPECT_THAT(said.out, Not(HasSubstr("-0.0 %")));
    bool prose = false;
    for (const std::string& line : lines_of(said.out)) {
      if (line == "Verdict" || line == "Why not the neighbours") prose = true;
      if (line.empty()) prose = false;
      EXPECT_TRUE(!prose || line.size() <= 100u) << line;
      EXPECT_FALSE(line.ends_with(" ")) << "blanks at the end of: " << line;
    }
  }
}

/// Letters on the screen: bytes that continue a UTF-8 character take no column.
std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST(Timeline, ReadsOnAPageOf100Columns) {
  const Folder folder;
  const std::string trace = folder / "t.json", spans = folder / "s.csv";
  std::string text = small_scenario();
  text.replace(text.find("nodes = 1"), 9, "nodes = 2");
  text.replace(text.find("global_batch = 8"), 16, "global_batch = 1");
  const std::string scenario = folder.file("s.toml", text);
  for (const Words& more : std::vector<Words>{{"--trace", trace, "--spans", spans},
                                              {"--slow-rank", "3=1.3"},
                                              {"--link", "n0.nic7 -> leaf7=0.25"},
                                              {"--second-job", "n0.gpu7 -> n1.gpu7=20 GB/s"}}) {
    Words words{"simulate", scenario, "--recipe", "tp=1,cp=16,pp=1,dp=1,recompute=full", "--fidelity", "timeline"};
    words.insert(words.end(), more.begin(), more.end());
    SCOPED_TRACE(testing::PrintToString(more));
    const Said said = cpfit(words);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_EQ(said.err, "");
    for (const char* part : {"\nCommunication of rank ", "\nCritical path", "\nBusiest of ", "\nmemory "})
      EXPECT_THAT(said.out, HasSubstr(part));
    EXPECT_EQ(said.out.find("\nLinks whose busy time changed most") != std::string::npos, more.size() == 2) << said.out;
    for (const std::string& line : lines_of(said.out)) {
      const bool path = line.starts_with("Trace") || line.starts_with("Spans");
      EXPECT_TRUE(path || columns_of(line) <= 100u) << line;
      EXPECT_FALSE(line.ends_with(" ")) << "blanks at the end of: " << line;
    }
  }
  const nlohmann::json events = nlohmann::json::parse(read_file(trace));
  EXPECT_FALSE(events["traceEvents"].empty());
  EXPECT_TRUE(read_file(spans).starts_with("rank,node,stage,lane,"));
}

TEST(Plan, WhatToDoNextCanBePasted) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario("[recipe]\nmicro_batch = 2\n"));
  const Said said = cpfit({"plan", scenario, "--no-crossover"});
  ASSERT_EQ(said.exit_code, 0) << said.err << said.out;
  const std::string mark = "--recipe \"";
  const std::size_t begin = said.out.find(mark);
  ASSERT_NE(begin, std::string::npos) << said.out;
  const std::string recipe = said.out.substr(begin + mark.size(), said.out.find('"', begin + mark.size()) - begin - mark.size());
  EXPECT_THAT(recipe, HasSubstr("micro_batch=1")) << "the scenario's own value is another";
  const Said simulated = cpfit({"simulate", scenario, "--ledger", "--recipe", recipe});
  EXPECT_EQ(simulated.exit_code, 0) << simulated.err;
  EXPECT_THAT(simulated.out, HasSubstr("It fits"));
}

}  // namespace
}  // namespace cpfit::cli_test
