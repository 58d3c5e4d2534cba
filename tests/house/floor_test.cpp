// No floor of the house includes one above it, and each library stays on the floor that may use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "floors.h"
#include "one_definition.h"

namespace cpfit::house {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string verdict(std::string_view path, std::string_view line) { return judge_include(path, line).value_or("allowed"); }

/// C++ and CUDA files below the floors and any other top folder of the tree, tests and build folders left out.
std::vector<fs::path> house_sources(const fs::path& root) {
  std::vector<fs::path> sources;
  for (const fs::directory_entry& top : fs::directory_iterator(root)) {
    const std::string folder = top.path().filename().string();
    const bool ours =
        top.is_directory() && !folder.starts_with('.') && folder != "tests" && !fs::exists(top.path() / "CMakeCache.txt");
    if (!ours) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top.path())) {
      const std::string extension = entry.path().extension().string();
      const std::vector<std::string> kSources = {".h", ".hpp", ".cpp", ".cu", ".cuh"};
      if (entry.is_regular_file() && std::ranges::find(kSources, extension) != kSources.end()) sources.push_back(entry.path());
    }
  }
  std::ranges::sort(sources);
  return sources;
}

TEST(Floors, NoIncludeClimbsAndNoLibraryLeaks) {
  const fs::path root = CPFIT_SOURCE_DIR;
  std::vector<Include> includes;
  const std::vector<fs::path> sources = house_sources(root);
  ASSERT_GT(sources.size(), 30U) << "the tree was not found at " << root;
  for (const fs::path& source : sources) {
    const std::string path = fs::relative(source, root).generic_string();
    std::ifstream file(source);
    ASSERT_TRUE(file) << path;
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::optional<std::string> wrong = judge_include(path, line);
      EXPECT_FALSE(wrong) << path << ":" << number << ": " << line << "\n  " << wrong.value_or("");
      if (const std::optional<Include> include = read_include(path, line)) includes.push_back(*include);
    }
  }
  EXPECT_THAT(leaks(includes), testing::IsEmpty());
}

TEST(Names, EveryTypeHasOneDefinition) {
  const fs::path root = CPFIT_SOURCE_DIR;
  std::vector<TypeDefinition> types;
  for (const fs::path& source : house_sources(root)) {
    std::ifstream file(source);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<TypeDefinition> found = type_definitions(fs::relative(source, root).generic_string(), text);
    types.insert(types.end(), found.begin(), found.end());
  }
  ASSERT_GT(types.size(), 100U) << "the types were not found at " << root;
  EXPECT_THAT(namesakes(types), testing::IsEmpty());
}

TEST(Floors, EveryRuleNamesThingsThatExist) {
  const auto known_library = [](std::string_view name) {
    return std::ranges::any_of(libraries(), [&](const Library& library) { return library.name == name; });
  };
  const auto known_folder = [](std::string_view name) {
    return std::ranges::any_of(floors(), [&](const Floor& floor) { return name.starts_with(floor.folder); });
  };
  for (const Floor& floor : floors()) {
    for (const std::string_view name : floor.libraries) EXPECT_TRUE(known_library(name)) << floor.folder << ": " << name;
    for (const std::string_view name : floor.in_sources) EXPECT_TRUE(known_library(name)) << floor.folder << ": " << name;
    for (const std::string_view name : floor.may_include) EXPECT_TRUE(known_folder(name)) << floor.folder << ": " << name;
  }
}

// The check itself, on lines planted here.

TEST(FloorCheck, AllowsWhatTheTableAllows) {
  EXPECT_EQ(verdict("model/memory/plan.cpp", "#include \"model/quantity/units.h\""), "allowed");
  EXPECT_EQ(verdict("model/memory/plan.h", "#include <vector>"), "allowed");
  EXPECT_EQ(verdict("sim/plan/search.cpp", "#include <tbb/parallel_for.h>"), "allowed");
  EXPECT_EQ(verdict("kernels/reference/ring.cpp", "#include \"model/attention/shard.h\""), "allowed");
  EXPECT_EQ(verdict("model/cluster/routes.cpp", "#include <boost/graph/adjacency_list.hpp>"), "allowed");
  EXPECT_EQ(verdict("calibrate/fit/surface.cpp", "#include <ceres/ceres.h>"), "allowed");
  EXPECT_EQ(verdict("db/store.h", "#include <SQLiteCpp/Database.h>"), "allowed");
  EXPECT_EQ(verdict("cli/plan.cpp", "#include \"kernels/verify/cases.h\""), "allowed");
  EXPECT_EQ(verdict("gui/window.cpp", "#include <QMainWindow>"), "allowed");
}

TEST(FloorCheck, CatchesAFloorThatClimbs) {
  EXPECT_EQ(verdict("model/memory/plan.cpp", "#include \"sim/screen/screen.h\""), "model may not include sim/screen/screen.h");
  EXPECT_EQ(verdict("sim/plan/search.cpp", "#include \"db/store.h\""), "sim may not include db/store.h");
  EXPECT_EQ(verdict("db/store.cpp", "#include \"sim/plan/search.h\""), "db may not include sim/plan/search.h");
  EXPECT_EQ(verdict("kernels/cuda/ring.cu", "#include \"model/memory/ledger.h\""),
            "kernels/cuda may not include model/memory/ledger.h");
  EXPECT_EQ(verdict("calibrate/probe/gemm.cpp", "#include \"calibrate/fit/surface.h\""),
            "calibrate/probe may not include calibrate/fit/surface.h");
  EXPECT_EQ(verdict("calibrate/read/csv.cpp", "#include \"calibrate/fit/surface.h\""),
            "calibrate/read may not include calibrate/fit/surface.h");
  EXPECT_EQ(verdict("cli/verify.cpp", "#include \"kernels/cuda/ring.h\""), "cli may not include kernels/cuda/ring.h");
  EXPECT_EQ(verdict("model/quantity/text.cpp", "#include \"model/recipe/recipe.h\""),
            "model/quantity may not include model/recipe/recipe.h");
  EXPECT_EQ(verdict("model/a.cpp", "#include <sim/screen/screen.h>"),
            "model may not include sim/screen/screen.h");  // brackets hide nothing
}

TEST(FloorCheck, CatchesALibraryOnTheWrongFloor) {
  EXPECT_EQ(verdict("sim/plan/search.cpp", "#include <boost/graph/dijkstra_shortest_paths.hpp>"), "sim may not use Boost");
  EXPECT_EQ(verdict("model/recipe/grid.cpp", "#include <boost/graph/graph_traits.hpp>"), "model may not use Boost");
  EXPECT_EQ(verdict("cli/main.cpp", "#include <SQLiteCpp/Database.h>"), "cli may not use SQLiteCpp");
  EXPECT_EQ(verdict("calibrate/read/csv.cpp", "#include <Eigen/Dense>"), "calibrate/read may not use Eigen");
  EXPECT_EQ(verdict("gui/window.cpp", "#include <cuda_runtime.h>"), "gui may not use CUDA");
  EXPECT_EQ(verdict("cli/main.cpp", "#include <QWidget>"), "cli may not use Qt");
  EXPECT_THAT(verdict("model/memory/plan.cpp", "#include <chrono>"), HasSubstr("no clocks"));
}

TEST(FloorCheck, CatchesALibraryThatLeaksThroughHeaders) {
  const Include library = {"model/recipe/reader.h", "toml++/toml.h"};
  const Include same_folder = {"model/recipe/scenario.cpp", "model/recipe/reader.h"};
  const Include through = {"model/recipe/scenario.h", "model/recipe/reader.h"};
  const Include outside = {"sim/plan/search.cpp", "model/recipe/scenario.h"};
  EXPECT_THAT(leaks({library, same_folder}), testing::IsEmpty());
  EXPECT_THAT(leaks({same_folder, outside}), testing::IsEmpty());  // without a library nothing is private
  EXPECT_THAT(leaks({outside, through, library}),
              testing::ElementsAre(HasSubstr("sim/plan/search.cpp includes model/recipe/scenario.h")));
  const Include own_business = {"sim/plan/pool.h", "tbb/task_arena.h"};  // sim may show TBB in its headers
  EXPECT_THAT(leaks({own_business, {"cli/plan.cpp", "sim/plan/pool.h"}}), testing::IsEmpty());
}

TEST(FloorCheck, CatchesWhatItCannotPlace) {
  EXPECT_THAT(verdict("model/memory/plan.cpp", "#include \"ledger.h\""), HasSubstr("path from the root"));
  EXPECT_THAT(verdict("model/memory/plan.cpp", "#include \"../sim/screen/screen.h\""), HasSubstr("path from the root"));
  EXPECT_THAT(verdict("model/memory/plan.cpp", "#include <absl/strings/str_cat.h>"), HasSubstr("no known library"));
  EXPECT_THAT(verdict("model/memory/plan.cpp", "#include HEADER"), HasSubstr("literally"));
  EXPECT_THAT(verdict("attic/old.cpp", "#include <vector>"), HasSubstr("no floor"));
}

TEST(FloorCheck, ReadsIncludesHoweverTheyAreSpaced) {
  EXPECT_NE(verdict("model/a.cpp", "  #  include   \"sim/screen/screen.h\"  // why"), "allowed");
  EXPECT_EQ(verdict("model/a.cpp", "// #include \"sim/screen/screen.h\""), "allowed");
  EXPECT_EQ(verdict("model/a.cpp", "std::string text = \"sim/screen/screen.h\";"), "allowed");
}

TEST(NameCheck, CatchesTwoTypesOfOneName) {
  const auto types_of = [](std::string_view path, std::string_view body) {
    return type_definitions(path, "namespace cpfit {\n" + std::string(body) + "\n}  // namespace cpfit\n");
  };
  std::vector<TypeDefinition> types = types_of("model/rates/a.h", "struct Row {\n  int x;\n};\nclass Forward;");
  const auto add = [&types](const std::vector<TypeDefinition>& more) { types.insert(types.end(), more.begin(), more.end()); };
  ASSERT_EQ(types.size(), 1U);
  EXPECT_EQ(types[0].name, "cpfit::Row");
  add(types_of("model/cluster/private.cpp", "namespace {\nstruct Row {};\n}  // namespace"));
  add(types_of("cli/table.h", "namespace cli {\nclass Row final : public Base {\n}  // namespace cli"));
  add(types_of("db/store.h", "struct Row;\nstruct Table::Row {};\nenum class Kind : char { kRow };"));
  EXPECT_THAT(namesakes(types), testing::IsEmpty());
  add(types_of("model/cluster/b.cpp", "struct Row {};"));
  EXPECT_THAT(namesakes(types), testing::ElementsAre("cpfit::Row is defined in model/cluster/b.cpp model/rates/a.h"));
}

}  // namespace
}  // namespace cpfit::house
