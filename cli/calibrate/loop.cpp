// cpfit calibrate loop: measure this host, fit, predict ring attention that the fit never saw, compare. Over several speeds of
// link: shared memory, and TCP that the kernel slows down where a network of our own may be made (unshare, tc), else TCP as it
// is.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "calibrate/fit/fit_imported.h"
#include "cli/calibrate/commands.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/mpi_launch.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "db/store/calibration_store.h"
#include "db/store/validation_store.h"
#include "model/cluster/gpu.h"
#include "model/quantity/counted.h"
#include "model/quantity/given_path.h"
#include "model/quantity/text.h"
#include "model/rates/overlay.h"
#include "sim/evaluate/ring_validation.h"
#include "sim/evaluate/score.h"
#include "sim/screen/composition.h"

namespace cpfit::cli {

namespace {

struct LoopArguments {
  std::int32_t cp = 2;
  double minutes = 2;
  std::vector<std::string> links;
  std::string folder, database, name;
  bool smoke = false, reuse = false, rows = false, json = false;
};

/// A speed of link: its name in the files, and how ranks are started so that they have it.
struct LoopLink {
  std::string name;
  bool tcp = false;
  std::string rate;  // of tc's token bucket, "4gbit"; empty: as fast as it goes
};

constexpr const char* kShaped =
    "ip link set lo up && tc qdisc add dev lo root tbf rate \"$1\" burst 256kb latency 100ms && shift && exec \"$@\"";

/// Whether a network namespace with a slowed loopback can be made here.
bool can_shape() {
  try {
    ChildCommand probe;
    probe.words = {"unshare", "-n", "sh", "-c", kShaped, "sh", "1gbit", "true"};
    probe.timeout = std::chrono::milliseconds(10'000);
    return run_child(probe, [](std::string_view) {}).ok();
  } catch (const Error&) {
    return false;
  }
}

ChildCommand loop_command(const LoopLink& link, std::int32_t cp, const std::string& bench,
                          const std::vector<std::string>& arguments) {
  ChildCommand command = mpi_command(cp, bench, arguments);
  if (!link.tcp) return command;
  for (const auto& [variable, value] :
       {std::pair("OMPI_MCA_btl", "self,tcp"), std::pair("OMPI_MCA_pml", "ob1"), std::pair("OMPI_MCA_btl_tcp_if_include", "lo"),
        std::pair("OMPI_MCA_oob_tcp_if_include", "lo")}) {
    command.environment.emplace_back(variable, value);
  }
  if (link.rate.empty()) return command;
  std::vector<std::string> words = {"unshare", "-n", "sh", "-c", kShaped, "sh", link.rate};
  words.insert(words.end(), command.words.begin(), command.words.end());
  command.words = std::move(words);
  return command;
}

/// "shared memory", "tcp", "4 Gbit/s": the last is tc's.
Outcome<LoopLink> link_named(const std::string& word) {
  if (word == "shared memory" || word == "shm") return LoopLink{"shared memory", false, ""};
  if (word == "tcp") return LoopLink{"tcp", true, ""};
  const Outcome<BytesPerSecond> rate = parse_rate(word);
  if (!rate) {
    return Problem{"loop.link", "--link", "'" + word + "' is no link that can be had on one host",
                   "write \"shared memory\", \"tcp\" or a rate like \"4 Gbit/s\" (TCP slowed by tc, as root)"};
  }
  const double megabits = rate->value() * 8 / 1e6;
  return LoopLink{fmt::format("tcp tbf {:.6g} Gbit/s", megabits / 1000), true, fmt::format("{:.0f}mbit", megabits)};
}

/// What is measured, and its share of a link's minutes; the ring is measured twice.
struct ProbeShare {
  const char* name;
  double share;
  bool of_link;
};
constexpr ProbeShare kProbeShares[] = {
    {"attention", 0.4, false}, {"memory", 0.1, false}, {"p2p", 0.1, true}, {"overlap", 0.1, true}, {"ring_step", 0.15, true}};

/// One run of cpfit-bench; its file when it ended well.
MeasurementFile measured(const LoopLink& link, const LoopArguments& arguments, const std::string& bench, const std::string& path,
                         const std::vector<std::string>& probes, double minutes) {
  if (arguments.reuse) {
    Outcome<MeasurementFile> file = read_measurement(path);
    if (!file) throw Error(to_text(file.problems().front()));
    return std::move(file).value();
  }
  std::vector<std::string> words = {"--backend", "host", "--out", path, "--link", link.name};
  for (const std::string& probe : probes) words.insert(words.end(), {"--probe", probe});
  if (arguments.smoke)
    words.emplace_back("--smoke");
  else
    words.insert(words.end(), {"--budget", fmt::format("{:.3f}", minutes)});
  ChildCommand command = loop_command(link, arguments.cp, bench, words);
  command.timeout = std::chrono::milliseconds(static_cast<std::int64_t>((minutes * 3 + 5) * 60'000));
  std::optional<ProgressBar> bar;
  if (!arguments.json) bar.emplace(probes.back() + " over " + link.name);
  const ChildResult result = run_child(command, [&](std::string_view line) {
    const std::size_t done = line.find("\"done\":"), total = line.find("\"total\":");
    if (!bar || done == std::string_view::npos || total == std::string_view::npos) return;
    const double all = std::atof(std::string(line.substr(total + 8)).c_str());
    if (all > 0) bar->update(std::atof(std::string(line.substr(done + 7)).c_str()) / all);
  });
  bar.reset();
  if (!result.ok()) throw Error("cpfit-bench over " + link.name + ": " + mpi_outcome_text(command, result));
  Outcome<MeasurementFile> file = read_measurement(path);
  if (!file) throw Error(to_text(file.problems().front()));
  return std::move(file).value();
}

struct LoopRow {
  std::string link, label, method, pass;
  double measured = 0, predicted = 0, low = 0, high = 0;
  double measured_exposed = 0, predicted_exposed = 0;
  double noise = 0;  // |second measurement / first - 1|; negative: there is no second
  bool in_range = true;
  std::array<ValidationRow, 2> records;  // the step and its exposed time, as they are stored
  [[nodiscard]] double error() const { return predicted / measured - 1; }
  [[nodiscard]] double exposed_error() const { return (predicted_exposed - measured_exposed) / measured; }  // of the step
};

double loop_median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double value_of(const MeasuredPoint& point, const char* name) {
  const MeasuredResult* result = point.result(name);
  return result == nullptr ? 0 : result->median;
}

bool is_ring(const MeasuredPoint& point) { return point.probe == "ring_step" && point.outcome == MeasuredOutcome::kMeasured; }

/// Takes from the files' points what a ring step itself launches or sends, so that the steps are new to the fit.
std::int64_t hide_ring_shapes(std::vector<ImportedFile>& files) {
  std::set<std::string> kernels;
  std::set<double> messages;
  const auto key = [](const AttentionShape& s) {
    return fmt::format("{} {} {} {} {} {}", s.q_len, s.kv_len, s.heads, s.kv_heads, s.head_dim, s.causal);
  };
  for (const ImportedFile& file : files) {
    for (const MeasuredPoint& point : file.measurement->points) {
      if (!is_ring(point)) continue;
      const RingWork work = ring_work(point);
      for (const AttentionShape& shape : work.kernels) kernels.insert(key(shape));
      messages.insert(work.message_bytes.begin(), work.message_bytes.end());
    }
  }
  std::int64_t hidden = 0;
  for (ImportedFile& file : files) {
    hidden += static_cast<std::int64_t>(std::erase_if(file.table.rows, [&](const KernelMeasurement& row) {
      if (const auto* a = std::get_if<AttentionMeasurement>(&row.what)) return kernels.contains(key(a->shape));
      const auto* c = std::get_if<CollectiveMeasurement>(&row.what);
      return c != nullptr && c->kind == CollectiveKind::kSendRecv && messages.contains(c->bytes.value());
    }));
  }
  return hidden;
}

struct LoopResult {
  std::vector<LoopRow> rows;
  std::map<std::string, std::int64_t> left_out;  // reason -> steps
  Calibration calibration;
  ImportedFit fit;
  std::int64_t hidden = 0;
};

LoopResult compare(std::vector<ImportedFile> files, const std::vector<MeasurementFile>& repeats, const std::string& name) {
  LoopResult result;
  result.hidden = hide_ring_shapes(files);
  result.fit = fit_imported(files, gpu_presets());
  result.calibration = calibration_of(result.fit, files, name, kVersion, unix_now());
  for (const ImportedFile& file : files) {
    const MeasurementFile& measurement = *file.measurement;
    const Outcome<RingRates> rates = ring_rates(result.fit.tables, measured_device(measurement), measurement.machine.link);
    for (const MeasuredPoint& point : measurement.points) {
      if (!is_ring(point)) continue;
      const Outcome<RingStepPrediction> predicted =
          rates.ok() ? predict_ring_step(*rates, point) : Outcome<RingStepPrediction>(rates.problems());
      if (!predicted.ok()) {
        ++result.left_out[predicted.problems()[0].message];
        continue;
      }
      LoopRow row;
      row.link = measurement.machine.link;
      row.label = axes_text(point.axes);
      row.method = point.text("method");
      row.pass = point.text("pass");
      row.measured = value_of(point, "seconds");
      row.measured_exposed = value_of(point, "exposed_seconds");
      row.predicted = predicted->seconds;
      row.predicted_exposed = predicted->exposed_seconds;
      row.records = ring_rows(point, *predicted, 0, row.link);
      row.low = row.records[0].low;
      row.high = row.records[0].high;
      row.in_range = predicted->in_range;
      row.noise = -1;
      for (const MeasurementFile& repeat : repeats) {
        if (repeat.machine.link != row.link) continue;
        for (const MeasuredPoint& again : repeat.points) {
          if (is_ring(again) && again.axes == point.axes) row.noise = std::abs(value_of(again, "seconds") / row.measured - 1);
        }
      }
      if (row.measured > 0) result.rows.push_back(std::move(row));
    }
  }
  return result;
}

struct LoopSummary {
  std::size_t steps = 0;
  double step = 0, exposed = 0, noise = 0, worst = 0;  // medians of absolute errors; the largest of the step
};
LoopSummary summary_of(const std::vector<const LoopRow*>& rows) {
  std::vector<double> step, exposed, noise;
  for (const LoopRow* row : rows) {
    step.push_back(std::abs(row->error()));
    exposed.push_back(std::abs(row->exposed_error()));
    if (row->noise >= 0) noise.push_back(row->noise);
  }
  return {rows.size(), loop_median(step), loop_median(exposed), loop_median(noise),
          step.empty() ? 0 : *std::max_element(step.begin(), step.end())};
}

std::vector<std::pair<std::string, std::vector<const LoopRow*>>> groups_of(const LoopResult& result) {
  std::vector<std::pair<std::string, std::vector<const LoopRow*>>> groups;
  for (const LoopRow& row : result.rows) {
    const std::string key = fmt::format("{}, {} {}", row.link, row.method, row.pass);
    auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == key; });
    if (found == groups.end()) found = groups.insert(groups.end(), {key, {}});
    found->second.push_back(&row);
  }
  std::vector<const LoopRow*> all;
  for (const LoopRow& row : result.rows) all.push_back(&row);
  groups.emplace_back("all", all);
  return groups;
}

ValidationResult loop_validation(const LoopResult& result, const std::string& path) {
  ValidationResult validation;
  validation.path = path;
  std::int64_t line = 0;
  for (const LoopRow& row : result.rows) {
    ++line;
    for (ValidationRow record : row.records) {
      record.line = line;
      validation.rows.push_back(std::move(record));
    }
  }
  for (const auto& [reason, count] : result.left_out) {
    for (std::int64_t i = 0; i < count; ++i) validation.skipped.push_back({++line, reason});
  }
  validation.summary = summarize(validation.rows);
  validation.groups = summarize_groups(validation.rows);
  return validation;
}

Json loop_json(const LoopResult& result) {
  Json json;
  json["calibration"] = {{"id", result.calibration.id}, {"name", result.calibration.name}};
  json["hidden_from_the_fit"] = result.hidden;
  json["rows"] = Json::array();
  for (const LoopRow& row : result.rows) {
    json["rows"].push_back({{"link", row.link},
                            {"point", row.label},
                            {"measured_seconds", row.measured},
                            {"predicted_seconds", row.predicted},
                            {"low_seconds", row.low},
                            {"high_seconds", row.high},
                            {"error", row.error()},
                            {"measured_exposed_seconds", row.measured_exposed},
                            {"predicted_exposed_seconds", row.predicted_exposed},
                            {"exposed_error_of_step", row.exposed_error()},
                            {"noise", row.noise < 0 ? Json(nullptr) : Json(row.noise)},
                            {"in_range", row.in_range}});
  }
  json["summary"] = Json::array();
  for (const auto& [name, rows] : groups_of(result)) {
    const LoopSummary s = summary_of(rows);
    json["summary"].push_back({{"group", name},
                               {"steps", s.steps},
                               {"median_abs_error", s.step},
                               {"median_exposed_error_of_step", s.exposed},
                               {"median_noise", s.noise},
                               {"max_abs_error", s.worst}});
  }
  json["left_out"] = Json::array();
  for (const auto& [reason, count] : result.left_out) json["left_out"].push_back({{"reason", reason}, {"count", count}});
  return json;
}

std::string loop_text(const LoopResult& result, bool every_row) {
  std::string text;
  if (every_row) {
    Table table({{"link", false},
                 {"measured"},
                 {"predicted"},
                 {"error"},
                 {"exposed"},
                 {"predicted"},
                 {"of step"},
                 {"noise"},
                 {"step", false}});
    for (const LoopRow& row : result.rows) {
      table.row({row.link, print_time(Seconds(row.measured)), print_time(Seconds(row.predicted)), signed_percent(row.error()),
                 print_time(Seconds(row.measured_exposed)), print_time(Seconds(row.predicted_exposed)),
                 signed_percent(row.exposed_error()), row.noise < 0 ? "-" : percent(row.noise), row.label});
    }
    text += table.text() + "\n";
  }
  Table table({{"ring steps the fit never saw", false},
               {"steps"},
               {"step: median |error|"},
               {"worst"},
               {"exposed: median |error|, of the step"},
               {"noise"}});
  for (const auto& [name, rows] : groups_of(result)) {
    const LoopSummary s = summary_of(rows);
    table.row({name, std::to_string(s.steps), percent(s.step), percent(s.worst), percent(s.exposed), percent(s.noise)});
  }
  text += table.text();
  text += wrapped(fmt::format("Fitted to the elementary probes alone; {} of their points have a shape or size of these steps and "
                              "were hidden from the "
                              "fit. Noise: the same step measured again.",
                              result.hidden),
                  0) +
          "\n";
  for (const auto& [reason, count] : result.left_out)
    text += fmt::format("{} not predicted: {}\n", counted(count, "step"), reason);
  return text;
}

int waived(const std::string& reason) {
  fmt::print(stderr, "cpfit: waived: {}\n", reason);
  return kWaived;
}

/// Where the measurements go: a folder that stays, or one that is gone at the end.
class LoopFolder {
 public:
  explicit LoopFolder(const std::string& wanted) : kept_(!wanted.empty()) {
    path_ =
        kept_ ? std::filesystem::path(wanted) : std::filesystem::temp_directory_path() / fmt::format("cpfit-loop-{}", ::getpid());
    make_given_folder(path_.string());
  }
  ~LoopFolder() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove_all(path_, ignored);
  }
  LoopFolder(const LoopFolder&) = delete;
  LoopFolder& operator=(const LoopFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  bool kept_;
  std::filesystem::path path_;
};

int run_calibrate_loop(const LoopArguments& arguments) {
  const std::string bench = find_companion("cpfit-bench");
  if (bench.empty()) return waived("cpfit-bench is neither beside cpfit nor in PATH");
  if (find_mpirun().empty()) return waived("mpirun is not in PATH: the ring needs ranks");
  std::vector<LoopLink> links;
  for (const std::string& word : arguments.links) {
    const Outcome<LoopLink> link = link_named(word);
    if (!link) {
      print_problems(link.problems());
      return kBadInput;
    }
    links.push_back(*link);
  }
  if (links.empty()) {
    links.push_back({"shared memory", false, ""});
    links.push_back(can_shape() ? LoopLink{"tcp tbf 4 Gbit/s", true, "4000mbit"} : LoopLink{"tcp", true, ""});
  }
  const LoopFolder folder(arguments.folder);
  std::vector<ImportedFile> files;
  std::vector<MeasurementFile> repeats;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto run = [&](const std::vector<std::string>& probes, double share, const char* which) {
      const std::string path = folder.file(fmt::format("{}-{}{}.json", probes.back(), i, which));
      return std::pair(path, measured(links[i], arguments, bench, path, probes, share * arguments.minutes));
    };
    std::vector<std::string> together;  // a smoke run takes seconds: one start for all
    for (const ProbeShare& probe : kProbeShares) {
      // Kernels and sums do not depend on the link: measured once.
      if (i > 0 && !probe.of_link) continue;
      together.emplace_back(probe.name);
      const bool last = &probe == std::end(kProbeShares) - 1;
      if (arguments.smoke && !last) continue;
      auto [path, file] = run(arguments.smoke ? together : std::vector<std::string>{probe.name}, probe.share, "");
      files.push_back(read_measured_points(std::move(file), path));
      if (last) repeats.push_back(run({probe.name}, probe.share, "-again").second);
    }
  }
  const LoopResult result = compare(std::move(files), repeats, arguments.name.empty() ? "this host" : arguments.name);
  if (!arguments.database.empty()) {
    Store store = open_store(arguments.database);
    (void)save_calibration(store, result.calibration, surfaces_of(result.fit.tables));
    (void)save_validation(store, loop_validation(result, "calibrate loop, cp " + std::to_string(arguments.cp)), kVersion,
                          "calibration " + result.calibration.short_id());
  }
  if (arguments.json)
    print_json(loop_json(result));
  else
    write_result(loop_text(result, arguments.rows));
  return result.rows.empty() ? kFailed : kDone;
}

}  // namespace

void add_calibrate_loop(CLI::App& command, int& exit_code) {
  auto arguments = std::make_shared<LoopArguments>();
  CLI::App* loop = command.add_subcommand("loop", "Measure this host, fit, predict ring attention the fit never saw, compare");
  loop->add_option("--cp", arguments->cp, "Ranks of the ring")->capture_default_str()->check(CLI::Range(2, 64));
  loop->add_option("--minutes", arguments->minutes, "Of measuring, for each link")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 600.0));
  loop->add_option(
      "--link", arguments->links,
      "\"shared memory\", \"tcp\", or a rate that TCP is slowed to, \"4 Gbit/s\"; several times for several (default: shared "
      "memory, and 4 Gbit/s where root allows, else tcp)");
  CLI::Option* keep = loop->add_option("--keep", arguments->folder, "Folder for the measurement files (default: not kept)");
  keep->check(file_name());
  loop->add_flag("--reuse", arguments->reuse, "Compare the files that --keep left, without measuring")->needs(keep);
  loop->add_option("--db", arguments->database, "SQLite file to store calibration and comparison in")->check(file_name());
  loop->add_option("--name", arguments->name, "Of the calibration (default: this host)")->check(file_name());
  loop->add_flag("--smoke", arguments->smoke, "Tiny sizes: does everything run?");
  loop->add_flag("--rows", arguments->rows, "List every step");
  loop->add_flag("--json", arguments->json, "Print one JSON object");
  loop->callback([arguments, &exit_code] { exit_code = run_calibrate_loop(*arguments); });
}

}  // namespace cpfit::cli
