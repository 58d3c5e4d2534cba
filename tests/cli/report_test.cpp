// cpfit report as a person calls it: one file that says what plan says, pictures whose parts add up, and what can go wrong.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/cli/child.h"

namespace cpfit::cli_test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Every tag that opens is closed in its turn; what is left open, or closed out of turn.
std::string first_broken_tag(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    const std::size_t begin = at++;
    bool quoted = false;
    while (at < page.size() && (quoted || page[at] != '>')) quoted ^= page[at++] == '"';
    const std::string tag = page.substr(begin + 1, at - begin - 1);
    const bool closes = tag.starts_with("/");
    const std::string name = tag.substr(closes, tag.find_first_of(" \n/>", 1) - closes);
    if (tag.starts_with("!") || tag.ends_with("/") || name == "meta") continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> at " + std::to_string(begin);
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is left open";
}

std::size_t count_of(const std::string& page, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + part.size())) ++count;
  return count;
}

TEST(Report, IsOneFileThatSaysWhatPlanSays) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario()), out = (folder / "r.html");
  const Said said = cpfit({"report", scenario, "--out", out});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  EXPECT_THAT(said.out, HasSubstr("Report: " + out));
  const std::string page = read_file(out);
  EXPECT_EQ(first_broken_tag(page), "");
  const nlohmann::json plan = cpfit_json({"plan", scenario});
  EXPECT_THAT(page, HasSubstr(plan["verdict"]["answer"].get<std::string>().substr(0, 60)));
  // Memory and time by parts, two pictures along the length, the timeline twice.
  EXPECT_EQ(count_of(page, "role=\"img\""), 6u);
  for (const char* part : {"Along the sequence length", "Timeline of the whole step", "Timeline of one layer",
                           "Why not the neighbours", "Where the figures come from", "SHA-256"})
    EXPECT_THAT(page, HasSubstr(part));
  // Opens without a network and runs nothing.
  for (const char* never : {"<script", "http://", "https://", "src="}) EXPECT_THAT(page, Not(HasSubstr(never)));
}

TEST(Report, NothingFittingIsAReportToo) {
  const Folder folder;
  const std::string scenario =
      folder.file("s.toml", small_scenario("[search]\ncp = [1]\ntp = [1]\npp = [1]\nrecompute = [\"none\"]\n"));
  const std::string out = (folder / "r.html");
  const Said said = cpfit({"report", scenario, "--out", out});
  ASSERT_EQ(said.exit_code, 3) << said.err << said.out;
  const std::string page = read_file(out);
  EXPECT_EQ(first_broken_tag(page), "");
  EXPECT_THAT(page, HasSubstr("class=\"answer none\""));
}

TEST(Report, SaysWhatItCannotWriteOrRead) {
  const Folder folder;
  const std::string scenario = folder.file("s.toml", small_scenario());
  const Said unwritable = cpfit({"report", scenario, "--out", "/nowhere/at/all.html"});
  EXPECT_EQ(unwritable.exit_code, 2);
  EXPECT_EQ(cpfit({"report", scenario, "--out", folder / "."}).exit_code, 2);
  EXPECT_THAT(unwritable.err, HasSubstr("/nowhere/at/all.html cannot be written"));
  const Said unreadable = cpfit({"report", (folder / "absent.toml"), "--out", (folder / "r.html")});
  EXPECT_EQ(unreadable.exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists((folder / "r.html")));
}

TEST(Report, NamesAreTextNotMarkup) {
  const Folder folder;
  const std::string named = "name = \"<b>a & b</b>\"" + small_scenario().substr(small_scenario().find('\n'));
  const std::string out = (folder / "r.html");
  const Said said = cpfit({"report", folder.file("s.toml", named), "--out", out});
  ASSERT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(read_file(out), HasSubstr("&lt;b&gt;a &amp; b&lt;/b&gt;"));
  EXPECT_THAT(read_file(out), Not(HasSubstr("<b>a")));
}

}  // namespace
}  // namespace cpfit::cli_test
