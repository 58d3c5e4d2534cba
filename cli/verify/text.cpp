#include "cli/verify/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/terminal.h"
#include "kernels/verify/block_run.h"
#include "model/quantity/counted.h"

namespace cpfit::cli {

namespace {

constexpr const char* kMasks[] = {"full", "causal", "window", "documents"};
constexpr const char* kTypes[] = {"fp64", "fp32", "bf16", "fp16"};
constexpr std::size_t kMostFailures = 12;

std::string share(double value) { return std::isfinite(value) ? fmt::format("{:.1e}", value) : std::string("not a number"); }

/// Names of methods in the order of the cases.
std::vector<std::string> methods_of(const Verification& verification) {
  std::vector<std::string> methods;
  for (const VerifiedCase& one : verification.cases) {
    if (std::ranges::find(methods, one.method) == methods.end()) methods.push_back(one.method);
  }
  return methods;
}

/// "24 ok", "2 of 24 failed", "-" of the cases that `belongs` picks.
template <class Belongs>
std::string count_of(const std::vector<VerifiedCase>& cases, Belongs&& belongs) {
  std::int64_t all = 0, failed = 0;
  for (const VerifiedCase& one : cases) {
    if (!belongs(one)) continue;
    ++all;
    failed += one.passed ? 0 : 1;
  }
  if (all == 0) return "-";
  return failed == 0 ? fmt::format("{} ok", all) : styled(fmt::format("{} of {} failed", failed, all), Style::kBad);
}

/// Largest error of a method in a number type: as it is for fp64 and fp32, in multiples of the unsharded kernel's for 16 bits.
std::string worst_error(const std::vector<VerifiedCase>& cases, const std::string& method, const std::string& type) {
  const bool relative = type == "bf16" || type == "fp16";
  double worst = -1;
  for (const VerifiedCase& one : cases) {
    if (one.method != method || one.dtype != type) continue;
    for (int i = 0; i < kVerifiedTensors; ++i) {
      const TensorError& error = one.errors[static_cast<std::size_t>(i)];
      if (!error.judged || (relative && static_cast<VerifiedTensor>(i) == VerifiedTensor::kLse)) continue;
      worst = std::max(worst, relative && error.kernel_normwise > 0 ? error.normwise / error.kernel_normwise : error.normwise);
    }
  }
  if (worst < 0) return "-";
  return relative && std::isfinite(worst) ? fmt::format("{:.2f} x", worst) : share(worst);
}

std::string methods_text(const Verification& verification) {
  std::vector<Table::Column> columns = {{"method", false}};
  for (const char* mask : kMasks) columns.push_back({mask});
  for (const char* type : kTypes) columns.push_back({type});
  Table table(columns);
  for (const std::string& method : methods_of(verification)) {
    std::vector<std::string> cells = {method};
    for (const char* mask : kMasks) {
      cells.push_back(
          count_of(verification.cases, [&](const VerifiedCase& one) { return one.method == method && one.mask == mask; }));
    }
    for (const char* type : kTypes) cells.push_back(worst_error(verification.cases, method, type));
    table.row(std::move(cells));
  }
  return heading("Attention, forward and backward, against the fp64 truth") + table.text() +
         styled(
             wrapped("Cases by mask, and the worst normwise error of out, dq, dk and dv: fp64 and fp32 against the truth (may be "
                     "1e-12 and 1e-5), bf16 and fp16 in multiples of the unsharded kernel's own error (may be 2.5, and one "
                     "rounding a rank more where a method keeps its sums in 16 bits).",
                     2),
             Style::kFaint) +
         "\n";
}

std::string failures_text(const Verification& verification) {
  std::string text;
  std::size_t shown = 0, failed = 0;
  for (const VerifiedCase& one : verification.cases) {
    if (one.passed) continue;
    ++failed;
    if (shown == kMostFailures) continue;
    ++shown;
    text += wrapped(fmt::format("- {} | {} {} | {} | cp {} | {}", one.method, one.mask, one.shape, one.layout, one.cp, one.dtype),
                    2) +
            "\n" + errors_text(one, true);
  }
  if (failed == 0) return {};
  if (failed > shown) text += fmt::format("  and {} more: --json lists all\n", failed - shown);
  return heading(fmt::format("Failed: {} of {}", failed, counted(verification.cases.size(), "case"))) + text;
}

std::string checks_text(const Verification& verification) {
  std::int64_t padded = 0, invariant = 0, uncovered = 0;
  double occupancy = 1;
  for (const VerifiedCase& one : verification.cases) {
    padded += one.pad_checked ? 1 : 0;
    invariant += one.pad_checked && one.pad_invariant ? 1 : 0;
    uncovered += one.covered ? 0 : 1;
    occupancy = std::min(occupancy, one.occupancy);
  }
  std::string text;
  if (padded > 0) {
    text += fmt::format("More masked padding changed no real number in {} of {} padded fp64 cases. ", invariant, padded);
  }
  text += fmt::format("Every token lies on one rank, once, in {} of {} cuts. ",
                      static_cast<std::int64_t>(verification.cases.size()) - uncovered, verification.cases.size());
  text += occupancy == 0 ? std::string("Some ranks held nothing but padding.")
                         : fmt::format("Of what the emptiest rank stored, {} was real tokens.", percent(occupancy));
  return wrapped(text, 0) + "\n";
}

std::string blocks_text(const std::vector<VerifiedBlock>& blocks) {
  if (blocks.empty()) return {};
  const auto worst = std::ranges::max_element(blocks, {}, &VerifiedBlock::error);
  std::string text = heading("Two-layer block: loss and gradients by parameter, reduced over cp");
  const auto failed = std::ranges::count(blocks, false, &VerifiedBlock::passed);
  text +=
      wrapped(fmt::format("{} of {} runs agree with the unsharded model; the worst gradient is {} of {} at cp {}, off by {} (may "
                          "be {}).",
                          static_cast<std::int64_t>(blocks.size()) - failed, blocks.size(), worst->parameter, worst->method,
                          worst->cp, share(worst->error), share(worst->limit)),
              0) +
      "\n";
  for (const VerifiedBlock& block : blocks) {
    if (block.passed) continue;
    text += wrapped(fmt::format("- {} at cp {}: loss {:.6f}, true {:.6f}; gradient of {} off by {} {}", block.method, block.cp,
                                block.loss, block.loss_truth, block.parameter, share(block.error), block.trouble),
                    2) +
            "\n";
  }
  return text;
}

std::string controls_text(const std::vector<VerifiedControl>& controls) {
  if (controls.empty()) return {};
  std::string text = heading("Planted faults: each must be caught");
  Table table({{"fault", false}, {"caught", false}, {"worst in", false}, {"error"}, {"may be"}, {"loss  "}, {"gradient"}});
  bool alike = false;
  for (const VerifiedControl& control : controls) {
    table.row({control.name, styled(control.caught ? "caught" : "MISSED", control.caught ? Style::kGood : Style::kBad),
               control.tensor, share(control.error), share(control.limit),
               fmt::format("{:.4f}{}", control.loss_faulty, control.loss_looks_alike ? " *" : "  "),
               control.gradient_error > kernels::kBlockTolerance ? share(control.gradient_error) : std::string("right")});
    alike = alike || control.loss_looks_alike;
  }
  text += table.text();
  for (const VerifiedControl& control : controls) {
    if (!control.caught)
      text += wrapped(fmt::format("- {} ({}) was not caught in {}. {}", control.name, control.meaning, control.planted_in,
                                  control.trouble),
                      2) +
              "\n";
  }
  std::string note = fmt::format("Loss and worst gradient: of the two-layer block with the fault; its true loss is {:.4f}.",
                                 controls.front().loss_truth);
  if (alike) note += " * The loss looks alike while a gradient is wrong: a healthy loss curve proves nothing.";
  return text + styled(wrapped(note, 2), Style::kFaint) + "\n";
}

std::string left_out_text(const std::vector<LeftOutCases>& left_out) {
  if (left_out.empty()) return {};
  std::int64_t all = 0;
  for (const LeftOutCases& entry : left_out) all += entry.count;
  std::string text = heading(fmt::format("Left out: {} that a method cannot serve", counted(all, "combination")));
  for (const LeftOutCases& entry : left_out) text += wrapped(fmt::format("{} x {}", entry.count, entry.reason), 4) + "\n";
  return text;
}

std::string verdict_text(const Verification& verification) {
  const auto failed = std::ranges::count(verification.cases, false, &VerifiedCase::passed);
  const auto blocks = std::ranges::count(verification.blocks, false, &VerifiedBlock::passed);
  const auto missed = std::ranges::count(verification.controls, false, &VerifiedControl::caught);
  std::string text = verification.passed() ? styled("Passed", Style::kGood) : styled("Failed", Style::kBad);
  text += ": " + counted(verification.cases.size(), "case");
  if (failed > 0) text += fmt::format(", {} failed", failed);
  if (blocks > 0) text += fmt::format(", {} failed", counted(blocks, "block"));
  if (!verification.controls.empty()) {
    text += missed == 0 ? fmt::format(", all {} planted faults caught", verification.controls.size())
                        : fmt::format(", {} of {} planted faults NOT caught", missed, verification.controls.size());
  }
  return wrapped(text + fmt::format(" ({} {}, backend {}, {:.1f} s).", verification.implementation,
                                    verification.implementation_version, verification.backend, verification.seconds),
                 0) +
         "\n" + styled("fixtures " + verification.fixture_hash, Style::kFaint) + "\n";
}

Json tensors_json(const VerifiedCase& one, double TensorError::* figure) {
  Json json;
  for (int i = 0; i < kVerifiedTensors; ++i) {
    const TensorError& error = one.errors[static_cast<std::size_t>(i)];
    json[std::string(name_of(static_cast<VerifiedTensor>(i)))] =
        error.judged && std::isfinite(error.*figure) ? Json(error.*figure) : Json(nullptr);
  }
  return json;
}

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string errors_text(const VerifiedCase& one, bool failed_only) {
  std::string text;
  Table table({{"  tensor", false}, {"normwise"}, {"may be"}, {"largest / row"}, {"may be"}, {"kernel's own"}, {"", false}});
  bool any = false;
  for (int i = 0; i < kVerifiedTensors; ++i) {
    const TensorError& error = one.errors[static_cast<std::size_t>(i)];
    if (failed_only && error.passed()) continue;
    any = true;
    const std::string name = "  " + std::string(name_of(static_cast<VerifiedTensor>(i)));
    if (!error.judged) {
      table.row({name, "-", "-", "-", "-", "-", "not given"});
      continue;
    }
    table.row({name, share(error.normwise), share(error.normwise_limit), share(error.largest), share(error.largest_limit),
               share(error.kernel_normwise), error.passed() ? styled("ok", Style::kGood) : styled("failed", Style::kBad)});
  }
  if (any) text += table.text();
  if (!one.trouble.empty()) text += wrapped("  " + one.trouble, 2) + "\n";
  if (!one.pad_invariant) text += "  more masked padding changed real numbers\n";
  if (!one.covered) text += "  a token is on no rank, or on two\n";
  return text;
}

std::string verification_text(const Verification& verification) {
  return methods_text(verification) + checks_text(verification) + failures_text(verification) + blocks_text(verification.blocks) +
         controls_text(verification.controls) + left_out_text(verification.left_out) + "\n" + verdict_text(verification);
}

Json to_json(const Verification& verification) {
  Json json;
  json["passed"] = verification.passed();
  json["suite"] = verification.suite;
  json["backend"] = verification.backend;
  json["implementation"] = {{"name", verification.implementation}, {"version", verification.implementation_version}};
  json["tool_version"] = verification.tool_version;
  json["fixture_hash"] = verification.fixture_hash;
  json["seconds"] = verification.seconds;
  json["cases"] = Json::array();
  for (const VerifiedCase& one : verification.cases) {
    Json entry = {{"method", one.method}, {"mask", one.mask},     {"cp", one.cp},       {"dtype", one.dtype},
                  {"length", one.length}, {"passed", one.passed}, {"shape", one.shape}, {"layout", one.layout}};
    if (one.inner > 0) entry["inner_ranks"] = one.inner;
    entry["errors"] = tensors_json(one, &TensorError::normwise);
    entry["errors_largest"] = tensors_json(one, &TensorError::largest);
    entry["limits"] = tensors_json(one, &TensorError::normwise_limit);
    entry["limits_largest"] = tensors_json(one, &TensorError::largest_limit);
    entry["kernel_errors"] = tensors_json(one, &TensorError::kernel_normwise);
    entry["kernel_errors_largest"] = tensors_json(one, &TensorError::kernel_largest);
    entry["pad_invariant"] = one.pad_checked ? Json(one.pad_invariant) : Json(nullptr);
    entry["covered"] = one.covered;
    entry["occupancy"] = one.occupancy;
    entry["trouble"] = one.trouble;
    json["cases"].push_back(std::move(entry));
  }
  json["blocks"] = Json::array();
  for (const VerifiedBlock& block : verification.blocks) {
    json["blocks"].push_back({{"method", block.method},
                              {"shape", block.shape},
                              {"cp", block.cp},
                              {"passed", block.passed},
                              {"loss_truth", number_json(block.loss_truth)},
                              {"loss", number_json(block.loss)},
                              {"worst_parameter", block.parameter},
                              {"error", number_json(block.error)},
                              {"limit", block.limit},
                              {"trouble", block.trouble}});
  }
  json["controls"] = Json::array();
  for (const VerifiedControl& control : verification.controls) {
    json["controls"].push_back({{"name", control.name},
                                {"caught", control.caught},
                                {"meaning", control.meaning},
                                {"planted_in", control.planted_in},
                                {"worst_tensor", control.tensor},
                                {"error", number_json(control.error)},
                                {"limit", control.limit},
                                {"loss_truth", number_json(control.loss_truth)},
                                {"loss_faulty", number_json(control.loss_faulty)},
                                {"worst_gradient", control.gradient},
                                {"gradient_error", number_json(control.gradient_error)},
                                {"loss_looks_alike", control.loss_looks_alike},
                                {"trouble", control.trouble}});
  }
  json["left_out"] = Json::array();
  for (const LeftOutCases& entry : verification.left_out)
    json["left_out"].push_back({{"reason", entry.reason}, {"count", entry.count}});
  return json;
}

}  // namespace cpfit::cli
