#include "tests/cli/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cpfit::cli_test {

pid_t start(const Words& words, const std::string& out, const std::string& err) {
  std::vector<std::string> line{CPFIT_BINARY};
  line.insert(line.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : line) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  const int to_out = open(out.c_str(), O_WRONLY | O_CREAT, 0600), to_err = open(err.c_str(), O_WRONLY | O_CREAT, 0600);
  if (to_out < 0 || to_err < 0 || dup2(to_out, STDOUT_FILENO) < 0 || dup2(to_err, STDERR_FILENO) < 0) _exit(126);
  alarm(900);  // only a hang takes that long, even with sanitizers on a busy machine
  execv(argv[0], argv.data());
  _exit(127);
}

Said wait_for(pid_t child, const std::string& out, const std::string& err) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return {};
  Said said;
  if (WIFEXITED(status)) said.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) said.signal = WTERMSIG(status);
  if (std::filesystem::is_regular_file(out)) said.out = read_file(out);
  said.err = read_file(err);
  return said;
}

Said cpfit(const Words& words, const std::string& out) {
  const Folder folder;
  const std::string to = out.empty() ? folder / "out" : out;
  return wait_for(start(words, to, folder / "err"), to, folder / "err");
}

nlohmann::json cpfit_json(Words words, int exit_code) {
  words.emplace_back("--json");
  const Said said = cpfit(words);
  EXPECT_EQ(said.exit_code, exit_code) << said.err;
  nlohmann::json json = nlohmann::json::parse(said.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << said.out.substr(0, 200);
  return json;
}

Folder::Folder() {
  std::string name = testing::TempDir() + "cpfit_cli_XXXXXX";
  path_ = mkdtemp(name.data()) != nullptr ? name : std::string();
}

Folder::~Folder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string Folder::file(const std::string& name, const std::string& text) const {
  std::ofstream(*this / name, std::ios::binary) << text;
  return *this / name;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string example(const std::string& name) { return std::string(CPFIT_SOURCE_DIR) + "/examples/" + name + ".toml"; }

std::vector<std::string> example_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(CPFIT_SOURCE_DIR) + "/examples"))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
#ifdef __SANITIZE_ADDRESS__
  std::erase_if(names, [](const std::string& name) {
    return name.find("405b") != std::string::npos || name.find("70b") != std::string::npos ||
           name.find("256k") != std::string::npos;
  });
#endif
  std::sort(names.begin(), names.end());
  return names;
}

std::string small_scenario(const std::string& more) {
  return R"(name = "small"
model = {preset = "llama3-8b"}
cluster = {preset = "dgx-h100", nodes = 1}
[training]
sequence_length = "128k"
global_batch = 8
)" + more;
}

}  // namespace cpfit::cli_test
