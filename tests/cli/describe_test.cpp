// What the manual and the completions say: the same commands and options that the command line takes.
#include <gmock/gmock.h>

#include <set>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;

/// Names of commands that `cpfit WORDS... --help` lists.
Words commands_below(Words words) {
  words.emplace_back("--help");
  const std::string help = cpfit(words).out;
  Words names;
  const std::size_t begin = help.find("Subcommands:");
  if (begin == std::string::npos) return names;
  for (std::size_t at = help.find("\n  ", begin); at != std::string::npos; at = help.find("\n  ", at + 1)) {
    if (help[at + 3] == ' ') continue;  // a description goes on
    names.push_back(help.substr(at + 3, help.find_first_of(" \n", at + 3) - at - 3));
  }
  return names;
}

/// Long options that `cpfit WORDS... --help` lists.
std::set<std::string> options_of(Words words) {
  words.emplace_back("--help");
  const std::string help = cpfit(words).out;
  std::set<std::string> names;
  for (std::size_t at = help.find("\n  -"); at != std::string::npos; at = help.find("\n  -", at + 1)) {
    const std::size_t name = help.find("--", at);
    names.insert(help.substr(name, help.find_first_of(" ,\n:", name) - name));
  }
  return names;
}

std::string without_escapes(std::string page) {
  std::erase(page, '\\');
  return page;
}

TEST(Describe, TheManualHasEveryCommandAndOptionOfHelp) {
  const std::string page = without_escapes(cpfit({"manual"}).out);
  const Words commands = commands_below({});
  ASSERT_GE(commands.size(), 13u);
  std::size_t options = 0;
  const auto look_for = [&](const Words& words, const std::string& name) {
    EXPECT_THAT(page, HasSubstr(".SS cpfit " + name + "\n"));
    const std::size_t begin = page.find(".SS cpfit " + name + "\n"), end = page.find("\n.S", begin + 1);
    for (const std::string& option : options_of(words)) {
      EXPECT_THAT(page.substr(begin, end - begin), HasSubstr("fB" + option + "fR")) << name;
      ++options;
    }
  };
  for (const std::string& command : commands) {
    look_for({command}, command);
    for (const std::string& below : commands_below({command})) look_for({command, below}, command + " " + below);
  }
  EXPECT_GE(options, 100u);
}

TEST(Describe, CompletionsAreScriptsOfTheShellNamed) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Said said = cpfit({"completion", shell});
    EXPECT_EQ(said.exit_code, 0) << said.err;
    for (const char* offered : {"screen timeline" /* what --fidelity takes */, "calibrate", "suggest"})
      EXPECT_TRUE(said.out.find(offered) != std::string::npos) << shell << " does not offer " << offered;
  }
  EXPECT_EQ(cpfit({"completion", "tcsh"}).exit_code, 2);
  EXPECT_EQ(cpfit({"completion"}).exit_code, 2);
}

TEST(Describe, APageOfASisterProgramIsMadeOfItsHelp) {
  const Folder folder;
  const std::string help = folder.file("help", "Measures things.\nUsage: sister [options]\n  .dotted -x\n");
  const Said said = cpfit({"manual", "--program", "sister", "--help-text", help});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr(".TH SISTER 1 "));
  EXPECT_THAT(said.out, HasSubstr("sister \\- Measures things.\n"));
  EXPECT_THAT(said.out, HasSubstr("\n  .dotted \\-x\n"));
  EXPECT_EQ(cpfit({"manual", "--program", "sister"}).exit_code, 2);
  EXPECT_EQ(cpfit({"manual", "--program", "sister", "--help-text", folder / "absent"}).exit_code, 2);
}

}  // namespace
}  // namespace cpfit::cli_test
