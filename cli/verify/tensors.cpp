#include "cli/verify/tensors.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/verify/names.h"
#include "cli/verify/record.h"
#include "cli/verify/text.h"
#include "cli/version.h"
#include "db/store/verification_store.h"
#include "kernels/verify/check.h"
#include "kernels/verify/emit.h"
#include "model/quantity/given_path.h"

namespace cpfit::cli {

namespace {

struct EmitArguments {
  std::string folder;
  std::vector<std::string> masks;
  std::string dtype = "bf16";
  std::int64_t length = 698;
  std::int64_t window = 0;
  std::int32_t cp = 4, heads = 8, kv_heads = 2, head_dim = 64, v_dim = 0;
  bool force = false;
  bool json = false;
};

Outcome<kernels::EmitRequest> request_of(const EmitArguments& arguments) {
  const auto masks = masks_named(arguments.masks);
  if (!masks.ok()) return masks.problems();
  const auto numbers = numbers_named({arguments.dtype});
  if (!numbers.ok()) return numbers.problems();
  if (arguments.heads % arguments.kv_heads != 0) {
    return Problem{"verify.heads", "--kv-heads", fmt::format("{} does not divide {} heads", arguments.kv_heads, arguments.heads),
                   "Take a divisor of --heads"};
  }
  kernels::EmitRequest request;
  request.masks = *masks;
  request.length = arguments.length;
  request.window = arguments.window > 0 ? arguments.window : arguments.length / 4;
  request.cp = arguments.cp;
  request.number = numbers->front();
  request.heads = {arguments.heads, arguments.kv_heads, arguments.head_dim,
                   arguments.v_dim > 0 ? arguments.v_dim : arguments.head_dim,
                   1.0 / std::sqrt(static_cast<double>(arguments.head_dim))};
  return request;
}

int run_emit(const EmitArguments& arguments) {
  const Outcome<kernels::EmitRequest> request = request_of(arguments);
  if (!request.ok()) {
    print_problems(request.problems());
    return kBadInput;
  }
  if (std::filesystem::exists(arguments.folder + "/manifest.json") && !arguments.force) {
    print_problems({{"verify.folder", arguments.folder, "there are emitted tensors in it already",
                     "Name another folder, or write over them with --force"}});
    return kBadInput;
  }
  make_given_folder(arguments.folder);
  const std::vector<std::string> lines = kernels::emit_tensors(arguments.folder, *request, kVersion);
  if (arguments.json) {
    print_json({{"folder", arguments.folder}, {"manifest", arguments.folder + "/manifest.json"}, {"cases", lines}});
    return kDone;
  }
  std::string text;
  for (const std::string& line : lines) text += wrapped(line, 4) + "\n";
  text +=
      wrapped(fmt::format("What to run and how to hand it back: {0}/README.txt. Then: cpfit verify check {0} --framework NAME "
                          "--version VERSION --method METHOD",
                          arguments.folder),
              2) +
      "\n";
  write_result(text);
  return kDone;
}

struct CheckArguments {
  std::string folder;
  std::string framework, version, method, accumulation;
  std::int32_t cp = 0;
  bool without_lse = false;
  std::string database;
  bool json = false;
};

/// What was run decides how its sums are kept, unless that is said.
Outcome<kernels::CheckRequest> request_of(const CheckArguments& arguments) {
  kernels::CheckRequest request;
  request.cp = arguments.cp;
  request.without_lse = arguments.without_lse;
  if (!arguments.method.empty()) {
    const auto methods = methods_named({arguments.method});
    if (!methods.ok()) return methods.problems();
    for (const kernels::Method& method : kernels::methods()) {
      if (method.name == methods->front()) request.accumulation = method.accumulation;
    }
  }
  if (arguments.accumulation == "fp32") request.accumulation = kernels::Accumulation{true, true, true};
  if (arguments.accumulation == "inputs") request.accumulation = kernels::Accumulation{false, false, false};
  if (!arguments.database.empty() && (arguments.framework.empty() || arguments.version.empty() || arguments.method.empty())) {
    return Problem{"verify.whose", "--db", "a stored proof must say whose attention it is",
                   "Give --framework NAME, --version VERSION and --method METHOD (the order of its ring or exchange)"};
  }
  return request;
}

Verification record_of(const kernels::CheckReport& report, const CheckArguments& arguments) {
  Verification verification;
  verification.suite = "check";
  verification.backend = "check";
  verification.implementation = arguments.framework.empty() ? "unnamed" : arguments.framework;
  verification.implementation_version = arguments.version;
  verification.tool_version = kVersion;
  verification.fixture_hash = report.fixture_hash;
  for (const kernels::CheckedCase& checked : report.cases) {
    kernels::CaseReport as_ours;
    as_ours.verified = checked.verified;
    as_ours.verified.method = arguments.method.empty() ? "unnamed" : arguments.method;
    as_ours.judgement = checked.judgement;
    VerifiedCase record = to_record(as_ours);
    if (checked.passes_when_narrow) {
      record.trouble +=
          fmt::format("{}It would pass if its sums over the ranks are kept in {}: say so with --accumulation inputs",
                      record.trouble.empty() ? "" : ". ", record.dtype);
    }
    verification.cases.push_back(std::move(record));
  }
  if (report.block) {
    VerifiedBlock block = to_record(*report.block);
    block.method = arguments.method.empty() ? "unnamed" : arguments.method;
    verification.blocks.push_back(std::move(block));
  }
  return verification;
}

std::string check_text(const Verification& verification, const kernels::CheckReport& report) {
  std::string text;
  for (std::size_t i = 0; i < verification.cases.size(); ++i) {
    const VerifiedCase& one = verification.cases[i];
    text +=
        fmt::format("{}: {} ({}, {}, cp {})\n", report.cases[i].verified.name,
                    one.passed ? styled("passed", Style::kGood) : styled("failed", Style::kBad), one.shape, one.dtype, one.cp);
    text += errors_text(one, false) + "\n";
  }
  for (const VerifiedBlock& block : verification.blocks) {
    text += wrapped(fmt::format("block: {}; loss {:.6f}, true {:.6f}; worst gradient {} off by {:.1e} (may be {:.0e}) {}",
                                block.passed ? styled("passed", Style::kGood) : styled("failed", Style::kBad), block.loss,
                                block.loss_truth, block.parameter, block.error, block.limit, block.trouble),
                    2) +
            "\n";
  }
  std::string absent;
  for (const std::string& name : report.not_run) absent += (absent.empty() ? "" : ", ") + name;
  if (!absent.empty()) text += wrapped("Not run (no folder got/): " + absent, 2) + "\n";
  text += fmt::format("{}: {}{}{}\n", verification.passed() ? styled("Passed", Style::kGood) : styled("Failed", Style::kBad),
                      verification.implementation, verification.implementation_version.empty() ? "" : " ",
                      verification.implementation_version);
  return text;
}

int run_check(const CheckArguments& arguments) {
  const Outcome<kernels::CheckRequest> request = request_of(arguments);
  if (!request.ok()) {
    print_problems(request.problems());
    return kBadInput;
  }
  std::optional<Store> store;
  if (!arguments.database.empty()) store.emplace(open_store(arguments.database));
  const Outcome<kernels::CheckReport> report = kernels::check_tensors(arguments.folder, *request);
  if (!report.ok()) {
    print_problems(report.problems());
    return kBadInput;
  }
  const Verification verification = record_of(*report, arguments);
  std::optional<VerificationId> id;
  if (store) id = save_verification(*store, verification);
  if (arguments.json) {
    Json json = to_json(verification);
    json["not_run"] = report->not_run;
    json["verification"] = id ? Json(static_cast<std::int64_t>(*id)) : Json(nullptr);
    print_json(json);
  } else {
    std::string text = check_text(verification, *report);
    if (id) text += fmt::format("Stored as verification {} in {}\n", static_cast<std::int64_t>(*id), arguments.database);
    write_result(text);
  }
  return verification.passed() ? kDone : kFailed;
}

}  // namespace

void add_verify_tensors(CLI::App& verify, int& exit_code) {
  auto emitted = std::make_shared<EmitArguments>();
  CLI::App* emit = verify.add_subcommand("emit", "Write inputs and expected tensors (.npy) for any framework to run");
  emit->add_option("folder", emitted->folder, "Folder to write, made when absent")->required()->check(file_name());
  emit->add_option("--mask", emitted->masks, "Only these masks: full, causal, window, documents")->delimiter(',');
  emit->add_option("--length", emitted->length, "Real tokens")->capture_default_str()->check(CLI::Range(8, 65536));
  emit->add_option("--window", emitted->window,
                   "Keys that a query of the window mask sees, itself included; default: a quarter of the length")
      ->check(CLI::Range(1, 65536));
  emit->add_option("--cp", emitted->cp, "Degree that lengths are padded for and cut over")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  emit->add_option("--heads", emitted->heads, "Query heads")->capture_default_str()->check(CLI::Range(1, 256));
  emit->add_option("--kv-heads", emitted->kv_heads, "KV heads")->capture_default_str()->check(CLI::Range(1, 256));
  emit->add_option("--head-dim", emitted->head_dim, "Size of a head of q and k")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  emit->add_option("--v-dim", emitted->v_dim, "Size of a head of v; 0: as --head-dim")->check(CLI::Range(0, 1024));
  emit->add_option("--dtype", emitted->dtype, "fp64, fp32, bf16 or fp16")->capture_default_str();
  emit->add_flag("--force", emitted->force, "Write over tensors that were emitted before");
  emit->add_flag("--json", emitted->json, "Print one JSON object");
  emit->callback([emitted, &exit_code] { exit_code = run_emit(*emitted); });

  auto checked = std::make_shared<CheckArguments>();
  CLI::App* check = verify.add_subcommand("check", "Judge the tensors that a framework dumped into an emitted folder");
  check->add_option("folder", checked->folder, "Folder of `cpfit verify emit` with the results under CASE/got")->required();
  check->add_option("--framework", checked->framework, "Whose attention it is: TransformerEngine, PyTorch, ...");
  check->add_option("--version", checked->version, "Its version");
  check->add_option("--method", checked->method, "What it ran: te_p2p, fp32_ring, all_gather, a2a, ... (cpfit verify --help)");
  check->add_option("--cp", checked->cp, "Degree it ran at; default: as emitted")->check(CLI::Range(1, 64));
  check->add_option("--accumulation", checked->accumulation, "Type of its sums over ranks: fp32 or inputs; default: the method's")
      ->check(CLI::IsMember({"fp32", "inputs"}));
  check->add_flag("--without-lse", checked->without_lse, "It gives no lse");
  check->add_option("--db", checked->database, "SQLite file to store the result in; it proves recipes of cpfit plan")
      ->check(file_name());
  check->add_flag("--json", checked->json, "Print one JSON object");
  check->callback([checked, &exit_code] { exit_code = run_check(*checked); });
}

}  // namespace cpfit::cli
