#include "model/record/calibration.h"

#include <toml++/toml.h>

#include <cstdio>
#include <utility>

#include "model/presets/embedded.h"
#include "model/quantity/hash.h"
#include "model/rates/rate_tables.h"

namespace cpfit {

namespace {

std::string in_quotes(std::string_view text) {
  std::string plain = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') plain += '\\';
    if (c == '\n')
      plain += "\\n";
    else if (static_cast<unsigned char>(c) >= 0x20)
      plain += c;
  }
  return plain + "\"";
}

void text(std::string& out, const char* key, std::string_view value) {
  if (!value.empty()) out += std::string(key) + " = " + in_quotes(value) + "\n";
}
void number(std::string& out, const char* key, std::int64_t value) {
  if (value != 0) out += std::string(key) + " = " + std::to_string(value) + "\n";
}
void texts(std::string& out, const char* key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  out += std::string(key) + " = [";
  for (std::size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ", ") + in_quotes(values[i]);
  out += "]\n";
}

std::string real(double value) {
  char text[40];
  (void)std::snprintf(text, sizeof text, "%.17g", value);
  std::string out = text;
  if (out.find_first_of(".en") == std::string::npos) out += ".0";
  return out;
}

/// Text fields of a machine with their keys, so that writing, reading and comparing cannot differ.
struct MachineText {
  const char* key;
  std::string MeasuredMachine::* field;
  bool software;
};
constexpr MachineText kMachineTexts[] = {
    {"cpu", &MeasuredMachine::cpu, false},
    {"gpu", &MeasuredMachine::gpu, false},
    {"driver", &MeasuredMachine::driver, true},
    {"cuda", &MeasuredMachine::cuda, true},
    {"nccl", &MeasuredMachine::nccl, true},
    {"cudnn", &MeasuredMachine::cudnn, true},
    {"mpi", &MeasuredMachine::mpi, true},
    {"blas", &MeasuredMachine::blas, true},
    {"throttled", &MeasuredMachine::throttled, false},
    {"link", &MeasuredMachine::link, false},
};

std::string machine_toml(const MeasuredMachine& machine) {
  std::string out = "[calibration.machine]\n";
  texts(out, "hosts", machine.hosts);
  for (const MachineText& field : kMachineTexts) text(out, field.key, machine.*field.field);
  number(out, "cores", machine.cores);
  number(out, "memory_bytes", machine.memory_bytes);
  number(out, "gpus_per_host", machine.gpus_per_host);
  number(out, "gpu_memory_bytes", machine.gpu_memory_bytes);
  if (const auto& clocks = machine.clocks_mhz)
    out += "clocks_mhz = [" + real(clocks->min) + ", " + real(clocks->median) + ", " + real(clocks->max) + "]\n";
  if (machine.power_limit_watts) out += "power_limit_watts = " + real(*machine.power_limit_watts) + "\n";
  return out;
}

/// Everything that the id covers.
std::string content_toml(const Calibration& c) {
  std::string out = "[calibration]\nformat_version = " + std::to_string(c.excluded.empty() ? 1 : kCalibrationVersion) + "\n";
  text(out, "tool_version", c.tool_version);
  out += std::string("assumed = ") + (c.assumed ? "true" : "false") + "\n";
  texts(out, "groups", c.groups);
  return out;
}

std::string lists_toml(const Calibration& c) {
  std::string out = "\n" + machine_toml(c.machine);
  for (const CalibrationSource& source : c.sources) {
    out += "\n[[calibration.source]]\n";
    text(out, "path", source.path);
    text(out, "sha256", source.sha256);
    text(out, "format", source.format);
    out += "points = " + std::to_string(source.points) + "\nleft_out = " + std::to_string(source.left_out) + "\n";
  }
  for (const CalibrationGap& gap : c.gaps) {
    out += "\n[[calibration.gap]]\n";
    text(out, "surface", gap.surface);
    text(out, "reason", gap.reason);
  }
  for (const ExcludedPoint& point : c.excluded) {
    out += "\n[[calibration.excluded]]\n";
    text(out, "source", point.source);
    out += "line = " + std::to_string(point.line) + "\n";
    text(out, "point", point.point);
    text(out, "reason", point.reason);
  }
  return out;
}

std::string text_in(const toml::table& table, const char* key) { return table[key].value_or(std::string()); }

std::vector<std::string> texts_in(const toml::table& table, const char* key) {
  std::vector<std::string> values;
  if (const toml::array* array = table[key].as_array()) {
    for (const toml::node& node : *array) {
      if (const auto value = node.value<std::string>()) values.push_back(*value);
    }
  }
  return values;
}

MeasuredMachine read_machine(const toml::table& table) {
  MeasuredMachine machine;
  machine.hosts = texts_in(table, "hosts");
  for (const MachineText& field : kMachineTexts) machine.*field.field = text_in(table, field.key);
  machine.cores = table["cores"].value_or(0);
  machine.memory_bytes = table["memory_bytes"].value_or(std::int64_t{0});
  machine.gpus_per_host = table["gpus_per_host"].value_or(0);
  machine.gpu_memory_bytes = table["gpu_memory_bytes"].value_or(std::int64_t{0});
  if (const toml::array* clocks = table["clocks_mhz"].as_array(); clocks != nullptr && clocks->size() == 3) {
    machine.clocks_mhz = ClockRange{(*clocks)[0].value_or(0.0), (*clocks)[1].value_or(0.0), (*clocks)[2].value_or(0.0)};
  }
  machine.power_limit_watts = table["power_limit_watts"].value<double>();
  return machine;
}

template <class Read>
void each_table(const toml::table& table, const char* key, Read read) {
  if (const toml::array* rows = table[key].as_array()) {
    for (const toml::node& node : *rows) {
      if (const toml::table* row = node.as_table()) read(*row);
    }
  }
}

}  // namespace

namespace {

/// As they stand in a file: the last line has an end.
std::string rates_text(const Calibration& c) {
  return c.rates_toml.empty() || c.rates_toml.back() == '\n' ? c.rates_toml : c.rates_toml + '\n';
}

/// Whether a text is whole TOML without a [calibration] of its own.
bool stands_alone(const std::string& rates) {
  try {
    return !toml::parse(rates).contains("calibration");
  } catch (const toml::parse_error&) {
    return false;
  }
}

}  // namespace

std::string calibration_id(const Calibration& c) { return sha256_hex(rates_text(c) + content_toml(c) + lists_toml(c)); }

std::string calibration_toml(const Calibration& c) {
  std::string head = content_toml(c);
  text(head, "name", c.name);
  number(head, "created_unix_seconds", c.created_unix_seconds);
  return rates_text(c) + "\n# What the rows above were fitted on.\n" + head + lists_toml(c);
}

Outcome<Calibration> parse_calibration(const std::string& written, const std::string& where) {
  toml::table root;
  try {
    root = toml::parse(written);
  } catch (const toml::parse_error& error) {
    return Problem{"calibration.syntax", where + ":" + std::to_string(error.source().begin.line),
                   std::string(error.description()), "give a file of `cpfit calibrate fit --out`, or a rates.toml"};
  }
  Calibration c;
  // The rates are the text up to our section: their bytes are what the id covers.
  constexpr std::string_view kSection = "\n# What the rows above were fitted on.\n[calibration]\n";
  const std::size_t section = written.find(kSection);
  c.rates_toml = section == std::string::npos ? written : written.substr(0, section);
  if (const toml::table* table = root["calibration"].as_table()) {
    const int version = (*table)["format_version"].value_or(0);
    if (version > kCalibrationVersion) {
      return Problem{
          "calibration.newer", where,
          "the file has format version " + std::to_string(version) + ", this cpfit knows " + std::to_string(kCalibrationVersion),
          "update cpfit"};
    }
    if (section == std::string::npos || version < 1)
      return Problem{"calibration.content", where, "its [calibration] section is not as `cpfit calibrate fit` writes it",
                     "fit again, or remove the section"};
    // What belongs to the section must not stand above it: it would be written there and in the section again.
    if (!stands_alone(c.rates_toml))
      return Problem{"calibration.content", where, "rows of its [calibration] section stand among the rates",
                     "fit again, or remove the section"};
    c.name = text_in(*table, "name");
    c.tool_version = text_in(*table, "tool_version");
    c.created_unix_seconds = (*table)["created_unix_seconds"].value_or(std::int64_t{0});
    c.assumed = (*table)["assumed"].value_or(false);
    c.groups = texts_in(*table, "groups");
    if (const toml::table* machine = (*table)["machine"].as_table()) c.machine = read_machine(*machine);
    each_table(*table, "source", [&](const toml::table& row) {
      c.sources.push_back({text_in(row, "path"), text_in(row, "sha256"), text_in(row, "format"),
                           row["points"].value_or(std::int64_t{0}), row["left_out"].value_or(std::int64_t{0})});
    });
    each_table(*table, "gap",
               [&](const toml::table& row) { c.gaps.push_back({text_in(row, "surface"), text_in(row, "reason")}); });
    each_table(*table, "excluded", [&](const toml::table& row) {
      c.excluded.push_back(
          {text_in(row, "source"), row["line"].value_or(std::int64_t{0}), text_in(row, "point"), text_in(row, "reason")});
    });
  } else {
    const std::size_t slash = where.find_last_of('/');
    c.name = slash == std::string::npos ? where : where.substr(slash + 1);
  }
  const Outcome<RateTables> tables = parse_rate_tables(c.rates_toml);
  if (!tables) {
    Problems problems = tables.problems();
    for (Problem& problem : problems) problem.where = where + (problem.where.empty() ? "" : ": " + problem.where);
    return problems;
  }
  c.id = calibration_id(c);
  return c;
}

Calibration default_calibration() {
  Calibration c;
  c.name = "defaults";
  c.assumed = true;
  c.rates_toml = std::string(embedded_file("presets/rates.toml"));
  c.sources.push_back(
      {"presets/rates.toml", sha256_hex(c.rates_toml), "published kernel and collective tables, data sheets", 0, 0});
  c.id = calibration_id(c);
  return c;
}

Outcome<RateTables> tables_of(const Calibration& calibration) { return parse_rate_tables(calibration.rates_toml); }

std::vector<std::string> software_differences(const MeasuredMachine& measured, const MeasuredMachine& here) {
  std::vector<std::string> differences;
  for (const MachineText& field : kMachineTexts) {
    const std::string& then = measured.*field.field;
    const std::string& now = here.*field.field;
    if (!field.software || then.empty() || now.empty() || then == now) continue;
    differences.push_back(std::string(field.key) + ": " + then + " when it was measured, " + now + " here");
  }
  return differences;
}

}  // namespace cpfit
