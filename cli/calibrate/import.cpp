// cpfit calibrate import: what a file is, how many points it has, what was left out and why. Nothing is stored: `fit` reads the
// same files.
#include <fmt/format.h>

#include <memory>

#include "cli/calibrate/commands.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

struct CalibrateImportArguments {
  std::vector<std::string> files;
  HintArguments options;
  bool json = false;
};

struct PointCounts {
  std::int64_t gemm = 0, attention = 0, memory = 0, collective = 0, message = 0;
};

PointCounts counts_of(const KernelTable& table) {
  PointCounts counts;
  for (const KernelMeasurement& row : table.rows) {
    if (std::holds_alternative<GemmMeasurement>(row.what)) ++counts.gemm;
    if (std::holds_alternative<AttentionMeasurement>(row.what)) ++counts.attention;
    if (std::holds_alternative<StreamMeasurement>(row.what)) ++counts.memory;
    if (const auto* c = std::get_if<CollectiveMeasurement>(&row.what))
      ++(c->kind == CollectiveKind::kSendRecv ? counts.message : counts.collective);
  }
  return counts;
}

std::string machine_line(const MeasuredMachine& machine) {
  std::string text;
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, value);
  };
  add("GPU", machine.gpu);
  if (machine.gpus_per_host > 0) add("GPUs per host", std::to_string(machine.gpus_per_host));
  add("processor", machine.cpu);
  add("driver", machine.driver);
  add("CUDA", machine.cuda);
  add("NCCL", machine.nccl);
  add("cuDNN", machine.cudnn);
  add("MPI", machine.mpi);
  add("link", machine.link);
  if (machine.clocks_mhz) add("clock", fmt::format("{:.0f}-{:.0f} MHz", machine.clocks_mhz->min, machine.clocks_mhz->max));
  if (machine.power_limit_watts) add("power limit", fmt::format("{:.0f} W", *machine.power_limit_watts));
  return text;
}

Json import_json(const ImportedFile& file) {
  const PointCounts counts = counts_of(file.table);
  Json left = Json::array();
  for (const auto& [reason, count] : reasons_counted(file.table.unused)) left.push_back({{"reason", reason}, {"count", count}});
  const MeasuredMachine& m = file.machine;
  return {{"path", file.path},
          {"format", file.format},
          {"sha256", file.sha256},
          {"points", file.points()},
          {"by_kind",
           {{"gemm", counts.gemm},
            {"attention", counts.attention},
            {"memory", counts.memory},
            {"collective", counts.collective},
            {"message", counts.message},
            {"launch", file.launches.size()},
            {"overlap", file.overlaps.size()}}},
          {"left_out", left},
          {"machine",
           {{"gpu", m.gpu},
            {"gpus_per_host", m.gpus_per_host},
            {"cpu", m.cpu},
            {"driver", m.driver},
            {"cuda", m.cuda},
            {"nccl", m.nccl},
            {"cudnn", m.cudnn},
            {"throttled", m.throttled},
            {"power_limit_watts", m.power_limit_watts ? Json(*m.power_limit_watts) : Json(nullptr)}}},
          {"remarks", file.remarks}};
}

std::string import_text_of(const ImportedFile& file) {
  const PointCounts counts = counts_of(file.table);
  std::string kinds;
  const auto add = [&](std::int64_t count, const char* what) {
    if (count > 0) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, what);
  };
  add(counts.attention, "attention");
  add(counts.gemm, "GEMM");
  add(counts.memory, "memory-bound");
  add(counts.collective, "collectives");
  add(counts.message, "messages");
  add(static_cast<std::int64_t>(file.launches.size()), "launch");
  add(static_cast<std::int64_t>(file.overlaps.size()), "overlap");
  std::string text = fmt::format("{}\n  {}: {} {}{}\n", styled(file.path, Style::kBold), file.format, file.points(),
                                 file.points() == 1 ? "point" : "points", kinds.empty() ? "" : " (" + kinds + ")");
  if (const std::string machine = machine_line(file.machine); !machine.empty()) text += wrapped("  " + machine, 4) + "\n";
  for (const std::string& remark : file.remarks) text += wrapped("  beware: " + remark, 4) + "\n";
  for (const auto& [reason, count] : reasons_counted(file.table.unused))
    text += wrapped(fmt::format("  left out: {} x {}", count, reason), 4) + "\n";
  return text;
}

int run_calibrate_import(const CalibrateImportArguments& arguments) {
  const Outcome<ImportHints> options = import_hints(arguments.options);
  if (!options.ok()) {
    print_problems(options.problems());
    return kBadInput;
  }
  Json all = Json::array();
  std::string text;
  Problems problems;
  for (const std::string& path : arguments.files) {
    const Outcome<ImportedFile> file = import_file(path, *options);
    if (!file.ok()) {
      problems.insert(problems.end(), file.problems().begin(), file.problems().end());
      continue;
    }
    all.push_back(import_json(*file));
    text += import_text_of(*file);
  }
  if (arguments.json)
    print_json({{"files", all}});
  else
    write_result(text);
  print_problems(problems);
  return problems.empty() ? kDone : kBadInput;
}

}  // namespace

void add_calibrate_import(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<CalibrateImportArguments>();
  CLI::App* import = command.add_subcommand("import", "Recognise files by their content: points, what was left out and why");
  import
      ->add_option("FILE", arguments->files,
                   "cpfit-bench, nccl-tests, nvbandwidth -j, FlashAttention and cuDNN benchmarks, nvidia-smi, kernel tables")
      ->required()
      ->check(file_name());
  add_hint_options(*import, arguments->options);
  import->add_flag("--json", arguments->json, "Print one JSON object");
  import->callback([arguments, &exit_code] { exit_code = run_calibrate_import(*arguments); });
}

}  // namespace cpfit::cli
