// Records with a different value in every field, for tests and benchmarks of the store; and a folder that cleans up after itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/record/run.h"
#include "model/record/validation.h"

namespace cpfit::sample {

/// Candidate number `i`: its recipe is told from all others by dp = i + 1; every figure differs from every other one.
[[nodiscard]] Candidate candidate(std::int32_t i);
[[nodiscard]] std::vector<Candidate> batch(std::int32_t first, std::int32_t count);
[[nodiscard]] Provenance provenance(const std::string& scenario_text = "[model]\npreset = \"llama-3-8b\"\n");
/// Ship, control, neighbours, levers, front, sweep, ledgers and links all present.
[[nodiscard]] PlanResult plan_result();
[[nodiscard]] ValidationResult validation_result();

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Starts a child process that runs `work`; it ends with 0, or with 1 after printing what was thrown. Returns its number.
[[nodiscard]] int start_child(const std::function<void()>& work);
/// Waits for it: its exit status, or 128 + the signal that killed it.
[[nodiscard]] int wait_for(int child);

}  // namespace cpfit::sample
