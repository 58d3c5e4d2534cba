// One function per reader: bytes in, whatever they are. A target ends in silence, whether the reader took the bytes or answered
// with problems; a crash, an exception that the reader does not promise, a hang or unbounded memory is a finding. Two programs
// call them: libFuzzer (libfuzzer_entry.cpp, one program a target, tests/fuzz/run.sh) and fuzz_test, with mutations of our own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cpfit::fuzz {

// A person's question.
void scenario(std::string_view bytes);
void study(std::string_view bytes);  // a scenario that could be read, evaluated: sizes that overflow
void recipe(std::string_view bytes);
void quantity(std::string_view bytes);
void config_json(std::string_view bytes);
// Clusters.
void topology(std::string_view bytes);
void import_topology(std::string_view bytes);
// Jobs.
void launch(std::string_view bytes);
void oom(std::string_view bytes);
// Measurements of others, and of our own.
void measurement(std::string_view bytes);
void calibrate_import(std::string_view bytes);
void published(std::string_view bytes);
void calibration(std::string_view bytes);
void trace(std::string_view bytes);
void trace_nsys(std::string_view bytes);
void trace_kernels(std::string_view bytes);
void job_log(std::string_view bytes);
void memory_snapshot(std::string_view bytes);
// What is stored.
void database(std::string_view bytes);
void database_cells(std::string_view bytes);
void tensors(std::string_view bytes);
void bundle(std::string_view bytes);

struct Target {
  std::string_view name;  // of the function, of its folder in seeds/ and of its dictionary
  void (*run)(std::string_view);
  std::string_view folder = "";                   // of more seeds, below the project
  int mutations = 2000;                           // of fuzz_test
  std::vector<std::string> (*seeds)() = nullptr;  // binary ones, made by the program
};
[[nodiscard]] std::span<const Target> targets();

// Seeds that the program writes itself.
[[nodiscard]] std::vector<std::string> measurement_seeds();
[[nodiscard]] std::vector<std::string> calibration_seeds();
[[nodiscard]] std::vector<std::string> tensor_seeds();
[[nodiscard]] std::vector<std::string> bundle_seeds();

/// Stops the program: what must hold whatever was read does not.
void must(bool holds, const char* what);

}  // namespace cpfit::fuzz
