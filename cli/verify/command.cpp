// cpfit verify: attention of every strategy against the unsharded truth, with faults planted to prove that they would be seen.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/verify/backend.h"
#include "cli/verify/names.h"
#include "cli/verify/record.h"
#include "cli/verify/tensors.h"
#include "cli/verify/text.h"
#include "cli/version.h"
#include "db/store/verification_store.h"

namespace cpfit::cli {

namespace {

struct VerifyArguments {
  std::string suite = "quick";
  std::vector<std::string> methods, masks, dtypes;
  std::vector<std::int32_t> cp;
  std::string backend = "reference";
  std::string database;
  bool json = false;
};

Outcome<kernels::SuiteFilter> filter_of(const VerifyArguments& arguments) {
  const auto methods = methods_named(arguments.methods);
  if (!methods.ok()) return methods.problems();
  const auto masks = masks_named(arguments.masks);
  if (!masks.ok()) return masks.problems();
  const auto numbers = numbers_named(arguments.dtypes);
  if (!numbers.ok()) return numbers.problems();
  return kernels::SuiteFilter{*methods, *masks, arguments.cp, *numbers};
}

int run_verify(const VerifyArguments& arguments) {
  const Outcome<kernels::SuiteFilter> filter = filter_of(arguments);
  if (!filter.ok()) {
    print_problems(filter.problems());
    return kBadInput;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto size = arguments.suite == "full" ? kernels::SuiteSize::kFull : kernels::SuiteSize::kQuick;
  const kernels::SuiteCases suite = kernels::suite_cases(size, *filter);
  Verification verification;
  for (const auto& [reason, count] : suite.left_out) verification.left_out.push_back({reason, count});
  if (suite.cases.empty()) {
    print_problems(
        {{"verify.nothing", "", "no case is left: no method serves what was asked for",
          verification.left_out.empty() ? "Widen --method, --mask, --cp or --dtype" : verification.left_out[0].reason}});
    return kBadInput;
  }
  // A store that cannot be opened is told before the work, not after it.
  std::optional<Store> store;
  if (!arguments.database.empty()) store.emplace(open_store(arguments.database));

  std::optional<ProgressBar> bar;
  if (!arguments.json) bar.emplace("verifying");
  const auto progress = [&](double share) {
    if (bar) bar->update(share);
  };
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
  kernels::TruthShelf shelf;
  const BackendRun run = arguments.backend == "reference"
                             ? BackendRun{kernels::run_cases(suite.cases, shelf, threads, progress), ""}
                             : run_on_processes(suite.cases, arguments.backend, shelf, progress);
  if (!run.waived.empty()) {
    bar.reset();
    if (arguments.json) print_json({{"waived", run.waived}, {"backend", arguments.backend}});
    fmt::print(stderr, "cpfit: waived: {}\n", run.waived);
    return kWaived;
  }
  for (const kernels::CaseReport& report : run.reports) verification.cases.push_back(to_record(report));
  for (const kernels::Case& block : kernels::block_cases()) {
    const bool wanted = filter->methods.empty() || std::ranges::find(filter->methods, block.method) != filter->methods.end();
    if (wanted) verification.blocks.push_back(to_record(kernels::run_block(block)));
  }
  for (const kernels::ControlReport& report : kernels::run_controls(shelf, threads))
    verification.controls.push_back(to_record(report));
  bar.reset();
  verification.suite = arguments.suite;
  verification.backend = arguments.backend;
  verification.implementation = "cpfit";
  verification.implementation_version = kVersion;
  verification.tool_version = kVersion;
  verification.fixture_hash = kernels::hash_of_fixtures(suite.cases);
  verification.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::optional<VerificationId> id;
  if (store) id = save_verification(*store, verification);
  if (arguments.json) {
    Json json = to_json(verification);
    json["verification"] = id ? Json(static_cast<std::int64_t>(*id)) : Json(nullptr);
    print_json(json);
  } else {
    std::string text = verification_text(verification);
    if (id) text += fmt::format("Stored as verification {} in {}\n", static_cast<std::int64_t>(*id), arguments.database);
    write_result(text);
  }
  return verification.passed() ? kDone : kFailed;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand("verify", "Attention of every strategy against the unsharded truth; planted faults");
  command->require_subcommand(0, 1);
  command->add_option("--suite", arguments->suite, "quick or full")
      ->capture_default_str()
      ->check(CLI::IsMember({"quick", "full"}));
  command->add_option("--method", arguments->methods, "Only these methods: " + method_list())->delimiter(',');
  command->add_option("--mask", arguments->masks, "Only these masks: full, causal, window, documents")->delimiter(',');
  command->add_option("--cp", arguments->cp, "These degrees instead of 2, 3, 4 and 8")->delimiter(',')->check(CLI::Range(2, 64));
  command->add_option("--dtype", arguments->dtypes, "Only these number types: fp64, fp32, bf16, fp16")->delimiter(',');
  command
      ->add_option("--backend", arguments->backend,
                   "reference: ranks as threads; mpi: processes of cpfit-bench; cuda: GPUs (waived where there are none)")
      ->capture_default_str()
      ->check(CLI::IsMember({"reference", "mpi", "cuda"}));
  command->add_option("--db", arguments->database, "SQLite file to store the result in; what passed proves recipes of cpfit plan")
      ->check(file_name());
  command->add_flag("--json", arguments->json, "Print one JSON object");
  add_verify_tensors(*command, exit_code);
  command->callback([command, arguments, &exit_code] {
    if (command->get_subcommands().empty()) exit_code = run_verify(*arguments);
  });
}

}  // namespace cpfit::cli
