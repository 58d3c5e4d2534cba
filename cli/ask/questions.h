// cpfit ask: the questions, one file each, and what they share. Each prints its answer, as text or JSON, and returns the exit
// code.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/json.h"
#include "cli/study.h"
#include "sim/plan/workbench.h"

namespace cpfit::cli {

struct AskArguments {
  std::string scenario, recipe, calibration, key, message, lengths, job, format;
  std::int32_t cp = 0;
  bool json = false;
};

/// A scenario with its rates and workbench, and the recipe that was said.
struct Asked {
  Study study;
  std::optional<Recipe> recipe;
  std::unique_ptr<Workbench> bench;
};

/// On problems prints them; nothing then.
[[nodiscard]] std::unique_ptr<Asked> ask_about(const AskArguments& arguments);

/// What `plan` says of the recipe that it ships: which of its groups the calibration was not measured with.
void warn_of(Asked& asked, const std::optional<Candidate>& candidate);

/// The answer with the calibration it rests on: one object, or text and its line.
void print_answer(const Asked& asked, Json json);
void write_answer(const Asked& asked, const std::string& text);

[[nodiscard]] Json candidate_or_null(const std::optional<Candidate>& candidate);
/// "tp=2 pp=1 dp=4 full".
[[nodiscard]] std::string degrees_text(const Recipe& recipe);

int ask_longest(const AskArguments& arguments);
int ask_fewest(const AskArguments& arguments);
int ask_why_not(const AskArguments& arguments);
int ask_matters(const AskArguments& arguments);
int ask_oom(const AskArguments& arguments);
int ask_documents(const AskArguments& arguments);
int ask_hazards(const AskArguments& arguments);

}  // namespace cpfit::cli
