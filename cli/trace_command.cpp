// cpfit trace: exposed communication of a recorded or simulated trace.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "calibrate/read/trace.h"
#include "calibrate/read/trace_overlap.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"

namespace cpfit::cli {

namespace {

struct TraceArguments {
  std::vector<std::string> files;
  bool json = false;
};

double seconds_of(std::int64_t picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }
std::string printed(std::int64_t picoseconds) { return print_time(Seconds(seconds_of(picoseconds))); }

/// Of the device itself, or of the process that recorded the file.
std::optional<std::int64_t> rank_of(const RecordedTrace& trace, const TracedDevice& device) {
  return device.rank ? device.rank : trace.rank;
}

Json device_json(const RecordedTrace& trace, const TracedDevice& device, const TraceOverlap& overlap) {
  const std::optional<std::int64_t> rank = rank_of(trace, device);
  return {{"file", trace.path},
          {"format", trace.format},
          {"rank", rank ? Json(*rank) : Json(nullptr)},
          {"device", device.name},
          {"streams", device.streams},
          {"works", overlap.works},
          {"communication_kernels", overlap.communication_kernels},
          {"span_seconds", seconds_of(overlap.span)},
          {"communication_seconds", seconds_of(overlap.communication)},
          {"compute_seconds", seconds_of(overlap.compute)},
          {"copy_seconds", seconds_of(overlap.copy)},
          {"overlapped_seconds", seconds_of(overlap.overlapped)},
          {"exposed_seconds", seconds_of(overlap.exposed)},
          {"idle_seconds", seconds_of(overlap.idle)},
          {"remark", overlap_remark(overlap)}};
}

int run_trace(const TraceArguments& arguments) {
  Table table({{"rank", true},
               {"device", true},
               {"streams", true},
               {"span", true},
               {"compute", true},
               {"communication", true},
               {"hidden", true},
               {"exposed", true},
               {"of span", true},
               {"idle", true}});
  Json devices = Json::array(), remarks = Json::array();
  std::string sentences;
  for (const std::string& path : arguments.files) {
    const Outcome<RecordedTrace> trace = read_trace(path);
    if (!trace.ok()) {
      print_problems(trace.problems());
      return kBadInput;
    }
    for (const Problem& remark : trace->remarks) {
      remarks.push_back({{"code", remark.code}, {"where", remark.where}, {"message", remark.message}});
      sentences += fmt::format("{}: {}\n", remark.where, remark.message);
    }
    for (const TracedDevice& device : trace->devices) {
      const TraceOverlap overlap = overlap_of(device);
      devices.push_back(device_json(*trace, device, overlap));
      const double span = static_cast<double>(overlap.span);
      const std::optional<std::int64_t> rank = rank_of(*trace, device);
      table.row({rank ? std::to_string(*rank) : "-", device.name, std::to_string(device.streams), printed(overlap.span),
                 printed(overlap.compute), printed(overlap.communication), printed(overlap.overlapped), printed(overlap.exposed),
                 span > 0 ? percent(static_cast<double>(overlap.exposed) / span) : "-", printed(overlap.idle)});
      const std::string remark = overlap_remark(overlap);
      if (!remark.empty())
        sentences += fmt::format("{}, {}: {}\n", path, rank ? fmt::format("rank {}", *rank) : "device " + device.name, remark);
    }
  }
  if (arguments.json) {
    print_json({{"devices", devices}, {"remarks", remarks}});
    return kDone;
  }
  write_result(table.text() + (sentences.empty() ? "" : "\n" + sentences));
  return kDone;
}

}  // namespace

void add_trace(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TraceArguments>();
  CLI::App* command = app.add_subcommand("trace", "Exposed communication of a real Kineto/nsys trace, or of one of ours");
  command
      ->add_option("FILE", arguments->files,
                   "Kineto or Chrome JSON (.gz too), nsys export (.sqlite), simulate --trace; several: one per rank")
      ->required()
      ->check(file_name());
  command->add_flag("--json", arguments->json, "One JSON object on standard output");
  command->callback([arguments, &exit_code] { exit_code = run_trace(*arguments); });
}

}  // namespace cpfit::cli
