#include "floors.h"

#include <algorithm>
#include <set>

namespace cpfit::house {

const std::vector<Library>& libraries() {
  static const std::vector<Library> kLibraries = {
      {"fmt", {"fmt/"}},
      {"toml++", {"toml++/"}},
      {"nlohmann-json", {"nlohmann/"}},
      {"Boost", {"boost/"}},
      {"pugixml", {"pugixml.hpp"}},
      {"RapidJSON", {"rapidjson/"}},
      {"oneTBB", {"tbb/", "oneapi/tbb"}},
      {"zlib", {"zlib.h"}},
      {"Ceres", {"ceres/"}},
      {"Eigen", {"Eigen/"}},
      {"SQLiteCpp", {"SQLiteCpp/"}},
      {"SQLite", {"sqlite3.h"}},
      {"CLI11", {"CLI/"}},
      {"Qt", {"Qt", "Q"}},  // Qt 6 names its headers QWidget, QtCore/…; no other library here begins with Q
      {"QCustomPlot", {"qcustomplot.h"}},
      {"CUDA", {"cuda", "cublas", "cupti", "nvtx3/", "mma.h"}},
      {"cuDNN", {"cudnn"}},
      {"NCCL", {"nccl"}},
      {"MPI", {"mpi.h"}},
      {"BLAS", {"cblas.h", "openblas/"}},
      {"hwloc", {"hwloc.h", "hwloc/"}},
      {"glibc", {"malloc.h"}},  // settings of its allocator, where there is one
      // The operating system: terminals, child processes, host names.
      {"POSIX", {"unistd.h", "fcntl.h", "poll.h", "signal.h", "spawn.h", "sched.h", "dlfcn.h", "time.h", "sys/"}},
  };
  return kLibraries;
}

const std::vector<Floor>& floors() {
  // The ground floor reads no clock and starts no thread. A lock around a table that callers' threads share is no thread.
  const std::vector<std::string_view> no_clock_no_thread = {"thread", "chrono", "ctime", "future", "condition_variable"};
  static const std::vector<Floor> kFloors = {
      {"model", {"model"}, {}, {"fmt", "toml++", "nlohmann-json"}, no_clock_no_thread},
      {"model/quantity", {"model/quantity"}, {}, {"fmt"}, no_clock_no_thread},
      {"model/attention", {"model/attention", "model/quantity"}, {}, {}, no_clock_no_thread},  // nvcc compiles it too
      {"model/cluster", {"model"}, {}, {"fmt", "toml++", "nlohmann-json", "Boost", "pugixml"}, no_clock_no_thread},
      {"sim", {"model", "sim"}, {"fmt", "oneTBB"}, {"nlohmann-json", "glibc"}, {}},  // JSON: the trace export; glibc: kept memory
      {"kernels", {"model/attention", "model/quantity", "kernels"}, {"fmt"}, {"nlohmann-json"}, {}},
      {"kernels/reference", {"model/attention", "model/quantity", "kernels"}, {"fmt"}, {"BLAS"}, {}},
      {"kernels/cuda", {"model/attention", "model/quantity", "kernels"}, {"CUDA", "cuDNN", "fmt"}, {}, {}},
      {"kernels/transport", {"model/attention", "model/quantity", "kernels"}, {"CUDA", "NCCL", "MPI", "fmt", "POSIX"}, {}, {}},
      {"calibrate/read", {"model", "calibrate/read"}, {"fmt"}, {"nlohmann-json", "RapidJSON", "zlib", "SQLiteCpp"}, {}},
      // The fit takes what read yields; never the other way round.
      {"calibrate/fit", {"model", "calibrate/read", "calibrate/fit"}, {"fmt"}, {"Ceres", "Eigen"}, {}},
      {"calibrate/probe",
       {"model", "kernels", "calibrate/probe"},
       {"CUDA", "cuDNN", "NCCL", "MPI", "BLAS", "hwloc", "fmt", "CLI11", "POSIX"},
       {"nlohmann-json"},
       {}},
      {"db", {"model", "db"}, {"SQLiteCpp", "SQLite", "fmt", "POSIX"}, {"nlohmann-json"}, {}},
      {"cli",
       {"model", "sim", "calibrate/read", "calibrate/fit", "db", "kernels/reference", "kernels/verify", "cli"},
       {"CLI11", "fmt", "nlohmann-json", "POSIX"},
       {},
       {}},
      {"gui",
       {"model", "sim", "calibrate/read", "calibrate/fit", "db", "gui"},
       {"Qt", "QCustomPlot", "fmt", "nlohmann-json"},
       {},
       {}},
  };
  return kFloors;
}

namespace {

bool is_within(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

const Floor* floor_of(std::string_view path) {
  const Floor* found = nullptr;
  for (const Floor& floor : floors()) {
    if (is_within(path, floor.folder) && (found == nullptr || floor.folder.size() > found->folder.size())) found = &floor;
  }
  return found;
}

const Library* library_of(std::string_view header) {
  for (const Library& library : libraries()) {
    if (std::ranges::any_of(library.headers, [&](std::string_view prefix) { return header.starts_with(prefix); }))
      return &library;
  }
  return nullptr;
}

/// <vector>, <cstdint>: lower case, no folder and no ending.
bool is_standard(std::string_view header) {
  return !header.empty() &&
         std::ranges::all_of(header, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

bool is_header(std::string_view path) { return path.ends_with(".h") || path.ends_with(".hpp") || path.ends_with(".cuh"); }

std::string_view folder_of(std::string_view path) { return path.substr(0, path.rfind('/')); }

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view skip_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

/// What stands between the quotes or angle brackets; nothing when the line is no #include; empty when it names no file.
std::optional<std::string_view> included_name(std::string_view line, bool& quoted) {
  line = skip_blanks(line);
  if (!line.starts_with('#')) return std::nullopt;
  line = skip_blanks(line.substr(1));
  if (!line.starts_with("include")) return std::nullopt;
  line = skip_blanks(line.substr(std::string_view("include").size()));
  quoted = line.starts_with('"');
  if (!quoted && !line.starts_with('<')) return std::string_view{};
  const std::size_t end = line.find(quoted ? '"' : '>', 1);
  return end == std::string_view::npos ? std::string_view{} : line.substr(1, end - 1);
}

std::string joined(std::string_view a, std::string_view b, std::string_view c, std::string_view d = {}) {
  return std::string(a).append(b).append(c).append(d);
}

}  // namespace

std::optional<std::string> judge_include(std::string_view path, std::string_view line) {
  bool quoted = false;
  const std::optional<std::string_view> name = included_name(line, quoted);
  if (!name) return std::nullopt;
  if (name->empty()) return "an #include must name its file literally";
  const Floor* floor = floor_of(path);
  if (floor == nullptr) return "this folder is on no floor: give it a rule in tests/house/floors.cpp";

  if (const Floor* target = floor_of(*name); target != nullptr) {
    const bool allowed =
        std::ranges::any_of(floor->may_include, [&](std::string_view folder) { return is_within(*name, folder); });
    if (allowed) return std::nullopt;
    return joined(floor->folder, " may not include ", *name);
  }
  if (quoted) return joined("\"", *name, "\" is on no floor: write our own headers with their path from the root, others in <>");

  if (const Library* library = library_of(*name); library != nullptr) {
    if (contains(floor->libraries, library->name) || contains(floor->in_sources, library->name)) return std::nullopt;
    return joined(floor->folder, " may not use ", library->name);
  }
  if (!is_standard(*name)) return joined("<", *name, "> belongs to no known library: add it to tests/house/floors.cpp");
  if (contains(floor->std_refused, *name)) return joined(floor->folder, " has no clocks and no threads: not <", *name, ">");
  return std::nullopt;
}

std::optional<Include> read_include(std::string_view path, std::string_view line) {
  bool quoted = false;
  const std::optional<std::string_view> name = included_name(line, quoted);
  if (!name || name->empty()) return std::nullopt;
  return Include{std::string(path), std::string(*name)};
}

std::vector<std::string> leaks(const std::vector<Include>& includes) {
  std::set<std::string> private_headers;
  const auto makes_private = [&](const Include& include) {
    if (private_headers.contains(include.name)) return true;
    const Floor* floor = floor_of(include.from);
    const Library* library = floor_of(include.name) == nullptr ? library_of(include.name) : nullptr;
    return floor != nullptr && library != nullptr && contains(floor->in_sources, library->name);
  };
  for (bool grew = true; grew;) {
    grew = false;
    for (const Include& include : includes) {
      if (is_header(include.from) && makes_private(include)) grew = private_headers.insert(include.from).second || grew;
    }
  }
  std::vector<std::string> offences;
  for (const Include& include : includes) {
    if (private_headers.contains(include.name) && folder_of(include.from) != folder_of(include.name)) {
      offences.push_back(include.from + " includes " + include.name + ", which is private to its folder: it meets a library");
    }
  }
  return offences;
}

}  // namespace cpfit::house
