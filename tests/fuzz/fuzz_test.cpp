// The fuzz targets without libFuzzer: the seeds and a fixed sequence of mutations of them. What ends the program (a signal, a
// hang, an exception, a sanitizer) first writes the bytes to `finding-TARGET` in the current folder. To repeat one:
//   CPFIT_FUZZ_FINDING=finding-trace fuzz_test --gtest_filter='*/trace'
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace cpfit::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 1 << 17;
constexpr unsigned kMostSeconds = 20;  // of one input: it is milliseconds elsewhere
#if defined(CPFIT_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr std::chrono::milliseconds kBudget{kSanitized ? 500 : 300};  // of one target: CI has many; libFuzzer has the hours
constexpr rlim_t kMostMemory = rlim_t{4} << 30;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What a signal handler may touch: the bytes under test, and where they go.
const std::string* under_test = nullptr;
char finding[256];

void write_finding() {
  if (under_test == nullptr) return;
  std::FILE* file = std::fopen(finding, "wb");
  if (file == nullptr) return;
  std::fwrite(under_test->data(), 1, under_test->size(), file);
  std::fclose(file);
  constexpr char kSaid[] = "\nfuzz_test: the bytes that did this are kept as ";
  (void)!::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  (void)!::write(STDERR_FILENO, finding, std::strlen(finding));
  (void)!::write(STDERR_FILENO, "\n", 1);
}

extern "C" void keep_finding(int number) {
  write_finding();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void run(const Target& target, const std::string& bytes) {
  under_test = &bytes;
  ::alarm(kMostSeconds);
  try {
    target.run(bytes);
  } catch (...) {
    write_finding();
    throw;
  }
  ::alarm(0);
  under_test = nullptr;
}

std::vector<std::string> seeds_of(const Target& target) {
  std::vector<std::string> seeds;
  std::vector<fs::path> paths;
  for (const std::string& folder : {"tests/fuzz/seeds/" + std::string(target.name), std::string(target.folder)}) {
    const fs::path path = fs::path(CPFIT_SOURCE_DIR) / folder;
    if (folder.empty() || !fs::exists(path)) continue;
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::ranges::sort(paths);
  for (const fs::path& path : paths) seeds.push_back(content_of(path));
  if (target.seeds != nullptr) std::ranges::copy(target.seeds(), std::back_inserter(seeds));
  return seeds;
}

class Reader : public ::testing::TestWithParam<Target> {
 protected:
  /// An input that asks for all memory fails here, and not the machine.
  static void SetUpTestSuite() {
    const rlimit limit{kMostMemory, kMostMemory};
    if (!kSanitized) (void)::setrlimit(RLIMIT_AS, &limit);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(write_finding);
#else
    for (const int number : {SIGSEGV, SIGFPE, SIGBUS}) ::signal(number, keep_finding);
#endif
    for (const int number : {SIGABRT, SIGALRM}) ::signal(number, keep_finding);
  }
};

TEST_P(Reader, LivesThroughDamage) {
  const Target& target = GetParam();
  const std::string name(target.name);
  std::snprintf(finding, sizeof finding, "finding-%s", name.c_str());
  if (const char* repeated = std::getenv("CPFIT_FUZZ_FINDING")) return run(target, content_of(repeated));
  const std::vector<std::string> seeds = seeds_of(target);
  if (const char* folder = std::getenv("CPFIT_FUZZ_SEEDS")) {  // run.sh asks for what libFuzzer begins with
    for (std::size_t i = 0; i < seeds.size(); ++i) std::ofstream(fs::path(folder) / ("seed_" + std::to_string(i))) << seeds[i];
    return;
  }
  ASSERT_FALSE(seeds.empty()) << "tests/fuzz/seeds/" << name << " holds nothing to begin with";
  const std::vector<std::string> words =
      dictionary(content_of(fs::path(CPFIT_SOURCE_DIR) / "tests/fuzz/dictionaries" / (name + ".dict")));
  for (const std::string& seed : seeds) run(target, seed);
  run(target, "");
  const auto begin = std::chrono::steady_clock::now();
  int done = 0;
  while (done < target.mutations && std::chrono::steady_clock::now() - begin < kBudget) {
    Dice dice(static_cast<std::uint64_t>(++done));
    run(target, mutated(seeds, words, dice, kMostBytes));
  }
  RecordProperty("mutations", done);
  EXPECT_GT(done, 0);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Reader, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(Mutation, IsTheSameEverywhere) {
  const std::vector<std::string> seeds = {"a = 12\n[b]\nc = \"34 GiB\"\n", "x"};
  for (std::uint64_t number = 0; number < 200; ++number) {
    Dice one(number), two(number);
    const std::string text = mutated(seeds, {"word"}, one, 1000);
    EXPECT_EQ(text, mutated(seeds, {"word"}, two, 1000));
    EXPECT_LE(text.size(), 1000U);
  }
  Dice dice(1);  // xorshift64* of 3, by hand: 3 ^ 3<<25 = 0x6000003, times the constant, the upper 48 bits
  EXPECT_EQ(dice.next(), (0x6000003ULL * 2685821657736338717ULL) >> 16);
}

TEST(Mutation, ReadsADictionary) {
  EXPECT_EQ(dictionary("# \"no\"\nkw=\"a\\\"b\"\n\"\\x41c\"\n"), (std::vector<std::string>{"a\"b", "Ac"}));
}

}  // namespace
}  // namespace cpfit::fuzz
