#include "model/record/measurement.h"
#include "model/quantity/given_path.h"
#include "model/quantity/text_file.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace cpfit {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "cpfit-measurement";

Json axis_json(const AxisValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return std::get<std::string>(value);
}

Json machine_json(const MeasuredMachine& machine) {
  Json json;
  json["hosts"] = machine.hosts;
  json["cpu"] = machine.cpu;
  json["cores"] = machine.cores;
  json["memory_bytes"] = machine.memory_bytes;
  json["gpu"] = machine.gpu;
  json["gpus_per_host"] = machine.gpus_per_host;
  json["gpu_memory_bytes"] = machine.gpu_memory_bytes;
  json["driver"] = machine.driver;
  json["cuda"] = machine.cuda;
  json["nccl"] = machine.nccl;
  json["cudnn"] = machine.cudnn;
  json["mpi"] = machine.mpi;
  json["blas"] = machine.blas;
  json["clocks_mhz"] = nullptr;
  if (const auto& clocks = machine.clocks_mhz) {
    json["clocks_mhz"] = {{"min", clocks->min}, {"median", clocks->median}, {"max", clocks->max}};
  }
  json["throttled"] = machine.throttled;
  json["power_limit_watts"] = nullptr;
  if (machine.power_limit_watts) json["power_limit_watts"] = *machine.power_limit_watts;
  json["link"] = machine.link;
  return json;
}

Json point_json(const MeasuredPoint& point) {
  Json json;
  json["probe"] = point.probe;
  json["axes"] = Json::object();
  for (const MeasuredAxis& axis : point.axes) json["axes"][axis.name] = axis_json(axis.value);
  json["outcome"] = name_of(point.outcome);
  json["reason"] = point.reason;
  json["warm_ups"] = point.warm_ups;
  json["results"] = Json::object();
  for (const MeasuredResult& result : point.results) {
    json["results"][result.name] = {{"median", result.median}, {"low", result.low},         {"high", result.high},
                                    {"spread", result.spread}, {"samples", result.samples}, {"outliers", result.outliers}};
  }
  if (point.windows.empty()) return json;
  for (const MeasuredWindow& window : point.windows) {
    json["windows"].push_back({{"rank", window.rank},
                               {"lane", window.lane},
                               {"ring_step", window.ring_step},
                               {"start_seconds", window.start_seconds},
                               {"end_seconds", window.end_seconds}});
  }
  return json;
}

/// Any bytes that a system prints may stand in a text: what is no UTF-8 is replaced.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// A number, finite; null is what JSON makes of others.
double figure(const Json& json, const char* key) {
  const double value = json.at(key).get<double>();
  if (!std::isfinite(value)) throw Error(std::string("\"") + key + "\" is no finite number");
  return value;
}

/// nlohmann would read 1.5 as 1, and -1 as a huge seed.
template <class Whole>
Whole whole(const Json& json, const char* key) {
  const Json& value = json.at(key);
  const bool fits = value.is_number_unsigned() || (value.is_number_integer() && (std::is_signed_v<Whole> || value >= 0));
  if (!fits) throw Error(std::string("\"") + key + "\" is no whole number of 0 or more");
  return value.get<Whole>();
}

MeasuredMachine read_machine(const Json& json) {
  MeasuredMachine machine;
  machine.hosts = json.at("hosts").get<std::vector<std::string>>();
  machine.cpu = json.at("cpu");
  machine.cores = whole<std::int32_t>(json, "cores");
  machine.memory_bytes = whole<std::int64_t>(json, "memory_bytes");
  machine.gpu = json.at("gpu");
  machine.gpus_per_host = whole<std::int32_t>(json, "gpus_per_host");
  machine.gpu_memory_bytes = whole<std::int64_t>(json, "gpu_memory_bytes");
  machine.driver = json.at("driver");
  machine.cuda = json.at("cuda");
  machine.nccl = json.at("nccl");
  machine.cudnn = json.at("cudnn");
  machine.mpi = json.at("mpi");
  machine.blas = json.at("blas");
  if (const Json& clocks = json.at("clocks_mhz"); !clocks.is_null()) {
    machine.clocks_mhz = ClockRange{figure(clocks, "min"), figure(clocks, "median"), figure(clocks, "max")};
  }
  machine.throttled = json.at("throttled");
  if (!json.at("power_limit_watts").is_null()) machine.power_limit_watts = figure(json, "power_limit_watts");
  machine.link = json.at("link");
  return machine;
}

MeasuredOutcome outcome_of(const std::string& name) {
  for (const auto outcome : {MeasuredOutcome::kMeasured, MeasuredOutcome::kSkipped, MeasuredOutcome::kFailed}) {
    if (name == name_of(outcome)) return outcome;
  }
  throw Error("there is no outcome \"" + name + "\"");
}

MeasuredPoint read_point(const Json& json) {
  MeasuredPoint point;
  point.probe = json.at("probe");
  for (const auto& [name, value] : json.at("axes").items()) {
    if (!value.is_number_integer() && !value.is_string())
      throw Error("axis \"" + name + "\" is neither a whole number nor a text");
    point.axes.push_back({name, value.is_string() ? AxisValue(value.get<std::string>()) : AxisValue(value.get<std::int64_t>())});
  }
  point.outcome = outcome_of(json.at("outcome"));
  point.reason = json.at("reason");
  point.warm_ups = whole<std::int64_t>(json, "warm_ups");
  for (const auto& [name, result] : json.at("results").items()) {
    point.results.push_back({name, figure(result, "median"), figure(result, "low"), figure(result, "high"),
                             figure(result, "spread"), whole<std::int64_t>(result, "samples"),
                             whole<std::int64_t>(result, "outliers")});
  }
  if (!json.contains("windows")) return point;
  for (const Json& window : json.at("windows")) {
    point.windows.push_back({whole<std::int32_t>(window, "rank"), window.at("lane"), whole<std::int32_t>(window, "ring_step"),
                             figure(window, "start_seconds"), figure(window, "end_seconds")});
  }
  return point;
}

MeasurementFile read_body(const Json& json) {
  MeasurementFile file;
  file.tool_version = json.at("tool_version");
  file.started_at = json.at("started_at");
  file.backend = json.at("backend");
  file.ranks = whole<std::int32_t>(json, "ranks");
  file.ranks_per_host = whole<std::int32_t>(json, "ranks_per_host");
  file.seed = whole<std::uint64_t>(json, "seed");
  file.smoke = json.at("smoke").get<bool>();
  file.machine = read_machine(json.at("machine"));
  for (const Json& point : json.at("points")) {
    try {
      file.points.push_back(read_point(point));
    } catch (const std::exception& failure) {
      throw Error("point " + std::to_string(file.points.size() + 1) + ": " + failure.what());
    }
  }
  return file;
}

Problem foreign(const std::string& where, const std::string& message) {
  return {"measurement.foreign", where, message, "Give the file that cpfit-bench --out wrote."};
}

}  // namespace

std::string_view name_of(MeasuredOutcome outcome) {
  switch (outcome) {
    case MeasuredOutcome::kMeasured:
      return "measured";
    case MeasuredOutcome::kSkipped:
      return "skipped";
    case MeasuredOutcome::kFailed:
      return "failed";
  }
  std::fprintf(stderr, "cpfit: MeasuredOutcome has no value %d\n", static_cast<int>(outcome));
  std::abort();
}

const MeasuredResult* MeasuredPoint::result(std::string_view name) const {
  for (const MeasuredResult& one : results) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::optional<std::int64_t> MeasuredPoint::integer(std::string_view axis) const {
  for (const MeasuredAxis& one : axes) {
    if (one.name != axis) continue;
    if (const auto* number = std::get_if<std::int64_t>(&one.value)) return *number;
  }
  return std::nullopt;
}

std::string MeasuredPoint::text(std::string_view axis) const {
  for (const MeasuredAxis& one : axes) {
    if (one.name != axis) continue;
    if (const auto* word = std::get_if<std::string>(&one.value)) return *word;
  }
  return "";
}

std::string axes_text(const std::vector<MeasuredAxis>& axes) {
  std::string text;
  for (const MeasuredAxis& axis : axes) {
    if (!text.empty()) text += ' ';
    const auto* number = std::get_if<std::int64_t>(&axis.value);
    text += axis.name + '=' + (number != nullptr ? std::to_string(*number) : std::get<std::string>(axis.value));
  }
  return text;
}

std::string measurement_json(const MeasurementFile& file) {
  Json head;
  head["format"] = kFormat;
  head["format_version"] = kMeasurementVersion;
  head["tool_version"] = file.tool_version;
  head["started_at"] = file.started_at;
  head["backend"] = file.backend;
  head["ranks"] = file.ranks;
  head["ranks_per_host"] = file.ranks_per_host;
  head["seed"] = file.seed;
  head["smoke"] = file.smoke;
  head["machine"] = machine_json(file.machine);
  std::string text = dump(head);
  text.back() = ',';  // instead of the brace
  text += "\n\"points\":[";
  const char* separator = "\n";
  for (const MeasuredPoint& point : file.points) {
    text += separator + dump(point_json(point));
    separator = ",\n";
  }
  return text + "\n]}\n";
}

Outcome<MeasurementFile> parse_measurement(const std::string& text, const std::string& where) {
  const Json json = json_nesting(text) > kMostNesting ? Json() : Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    if (text.find(kFormat) == std::string::npos) return foreign(where, "this is no JSON");
    return Problem{"measurement.not_json", where, "this measurement is cut short or damaged: its JSON does not end",
                   "Copy the file again, or measure again with the same --out."};
  }
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
    return foreign(where, std::string("this JSON is no measurement: it has no \"format\": \"") + kFormat + "\"");
  }
  const Json version = json.value("format_version", Json());
  if (!version.is_number_integer() || version < 1) return foreign(where, "\"format_version\" is no whole number above 0");
  if (version > kMeasurementVersion) {
    return Problem{"measurement.newer", where,
                   "this measurement has format_version " + version.dump() + ", this program reads up to " +
                       std::to_string(kMeasurementVersion),
                   "Use the cpfit of the cpfit-bench that wrote it, or a later one."};
  }
  try {
    return read_body(json);
  } catch (const std::exception& failure) {
    return Problem{"measurement.content", where, std::string("this measurement is damaged: ") + failure.what(),
                   "Copy the file again, or measure again."};
  }
}

Outcome<MeasurementFile> read_measurement(const std::filesystem::path& path) {
  const Outcome<std::string> text = read_text_file(path.string(), kMostTableBytes, "measurement.unreadable");
  if (!text) return text.problems();
  return parse_measurement(*text, path.string());
}

void write_measurement(const MeasurementFile& file, const std::filesystem::path& path) {
  const std::string text = measurement_json(file);
  if (!given_path_trouble(path.string()).empty()) throw_unwritable(path.string(), "");
  const std::filesystem::path beside = path.string() + ".writing";
  errno = 0;
  std::ofstream stream(beside, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  std::error_code ignored;
  if (!stream) {
    const int reason = errno;
    std::filesystem::remove(beside, ignored);
    throw Error("'" + path.string() + "' cannot be written: " + (reason != 0 ? std::strerror(reason) : "the disk may be full"));
  }
  std::error_code reason;
  std::filesystem::rename(beside, path, reason);
  if (!reason) return;
  std::filesystem::remove(beside, ignored);
  throw Error("'" + path.string() + "' cannot be written: " + reason.message());
}

}  // namespace cpfit
