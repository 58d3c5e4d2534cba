#include "cli/verify/backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/exit_code.h"
#include "cli/mpi_launch.h"

namespace cpfit::cli {

namespace {

namespace fs = std::filesystem;
using kernels::AttentionTensors;
using kernels::Case;

constexpr std::chrono::seconds kJobTimeout{1800};

/// A folder of our own for cases and tensors, gone when the value dies.
class JobFolder {
 public:
  JobFolder() : path_((fs::temp_directory_path() / "cpfit-verify-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw Error("cannot make a folder in " + fs::temp_directory_path().string());
  }
  ~JobFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// "cpfit-bench: waived: REASON" on a line of its own; else how it ended.
std::string waived_reason(const ChildCommand& command, const ChildResult& ended) {
  constexpr std::string_view kMark = "waived: ";
  const std::size_t mark = ended.errors.find(kMark);
  if (mark == std::string::npos) return outcome_text(command, ended);
  const std::size_t begin = mark + kMark.size();
  return ended.errors.substr(begin, ended.errors.find('\n', begin) - begin);
}

/// What one start of cpfit-bench gave.
struct JobResult {
  std::vector<std::optional<AttentionTensors>> whole;  // by line of the job; nothing: not written
  std::string trouble;                                 // how it ended when it did not end well
  std::string waived;
};

class Launcher {
 public:
  Launcher(std::string bench, std::string backend) : bench_(std::move(bench)), backend_(std::move(backend)) {}

  [[nodiscard]] JobResult run(std::int32_t ranks, const std::vector<Case>& cases,
                              const std::function<void(double)>& progress) const {
    const JobFolder folder;
    const std::string job = folder.path() + "/cases.jsonl";
    std::ofstream file(job);
    for (const Case& one : cases) file << case_json(one) << '\n';
    file.close();
    if (!file) throw Error("cannot write '" + job + "'");
    const std::vector<std::string> arguments = {"--probe", "verify-case", "--backend", backend_,
                                                "--job",   job,           "--results", folder.path()};
    ChildCommand command = mpi_command(ranks, bench_, arguments);
    if (ranks == 1) {  // needs no launcher
      command.words = {bench_};
      command.words.insert(command.words.end(), arguments.begin(), arguments.end());
    }
    command.timeout = kJobTimeout;
    const ChildResult ended = run_child(command, [&](std::string_view line) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_object() || !json.contains("total") || !json.contains("done")) return;
      if (!json["total"].is_number() || !json["done"].is_number() || json["total"] <= 0) return;
      progress(json["done"].get<double>() / json["total"].get<double>());
    });
    JobResult result;
    if (ended.exit_code == kWaived) {
      result.waived = waived_reason(command, ended);
      return result;
    }
    if (!ended.ok()) result.trouble = outcome_text(command, ended);
    for (std::size_t i = 0; i < cases.size(); ++i) result.whole.push_back(read(folder.path(), cases[i], i, result.trouble));
    return result;
  }

 private:
  static std::optional<AttentionTensors> read(const std::string& folder, const Case& one, std::size_t index,
                                              std::string& trouble) {
    try {
      std::vector<AttentionTensors> ranks;
      for (std::int32_t rank = 0; rank < one.cp; ++rank)
        ranks.push_back(kernels::read_rank(folder, static_cast<std::int64_t>(index), rank));
      return kernels::unshard(one, ranks);
    } catch (const Error& error) {
      if (trouble.empty()) trouble = error.what();
      return std::nullopt;
    }
  }
  std::string bench_, backend_;
};

/// The errors of the unsharded kernel of a backend, by sequence; one process finds them.
std::map<std::string, kernels::KernelErrors> kernel_errors(const Launcher& launcher, const std::vector<Case>& cases,
                                                           kernels::TruthShelf& shelf, std::string& waived) {
  std::vector<Case> whole;
  std::set<std::string> seen;
  for (const Case& one : cases) {
    if (!seen.insert(kernels::sequence_key(one)).second) continue;
    Case unsharded = kernels::without_padding(one);
    unsharded.method = "te_p2p";
    unsharded.layout = attention::Layout::kZigzag;
    unsharded.inner = 0;
    whole.push_back(std::move(unsharded));
  }
  const JobResult result = launcher.run(1, whole, [](double) {});
  waived = result.waived;
  std::map<std::string, kernels::KernelErrors> errors;
  for (std::size_t i = 0; i < result.whole.size(); ++i) {
    if (result.whole[i])
      errors[kernels::sequence_key(whole[i])] = kernels::errors_by_tensor(whole[i], *result.whole[i], shelf.of(whole[i])->truth);
  }
  return errors;
}

}  // namespace

BackendRun run_on_processes(const std::vector<Case>& cases, const std::string& backend, kernels::TruthShelf& shelf,
                            const std::function<void(double)>& progress) {
  BackendRun run;
  const std::string bench = find_companion("cpfit-bench");
  if (bench.empty()) {
    run.waived = "there is no cpfit-bench beside this program or in PATH: build the target cpfit-bench";
    return run;
  }
  if (find_mpirun().empty()) {
    run.waived = "there is no mpirun in PATH: install Open MPI (openmpi-bin)";
    return run;
  }
  const Launcher launcher(bench, backend == "mpi" ? "host" : backend);
  std::map<std::string, kernels::KernelErrors> of_backend;
  if (backend != "mpi") {
    of_backend = kernel_errors(launcher, cases, shelf, run.waived);
    if (!run.waived.empty()) return run;
  }
  std::map<std::int32_t, std::vector<std::size_t>> by_degree;
  for (std::size_t i = 0; i < cases.size(); ++i) by_degree[cases[i].cp].push_back(i);
  run.reports.resize(cases.size());
  std::size_t before = 0;
  for (const auto& [cp, indices] : by_degree) {
    std::vector<Case> job;
    for (const std::size_t i : indices) {
      job.push_back(cases[i]);
      if (kernels::has_padded_twin(cases[i])) job.push_back(kernels::padded_twin(cases[i]));
    }
    const JobResult result = launcher.run(cp, job, [&](double share) {
      progress((static_cast<double>(before) + share * static_cast<double>(indices.size())) / static_cast<double>(cases.size()));
    });
    run.waived = result.waived;
    if (!run.waived.empty()) return run;
    std::size_t line = 0;
    for (const std::size_t i : indices) {
      const bool twin = kernels::has_padded_twin(cases[i]);
      const std::optional<AttentionTensors>& whole = result.whole[line];
      const bool complete = whole && (!twin || result.whole[line + 1]);
      const auto kernel = of_backend.find(kernels::sequence_key(cases[i]));
      run.reports[i] = complete ? kernels::judge_case(cases[i], *whole, twin ? &*result.whole[line + 1] : nullptr, shelf,
                                                      kernel == of_backend.end() ? nullptr : &kernel->second)
                                : kernels::failed_case(cases[i], result.trouble);
      line += twin ? 2 : 1;
    }
    before += indices.size();
  }
  return run;
}

}  // namespace cpfit::cli
