#include "cli/calibrate/choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "db/store/calibration_store.h"
#include "model/quantity/text_file.h"

namespace cpfit::cli {

namespace {

Outcome<Calibration> calibration_in(const std::string& database, const std::string& which) {
  return find_calibration(open_store(database, {.access = StoreAccess::kRead}), which);
}

Outcome<Calibration> calibration_file(const std::string& path) {
  const Outcome<std::string> text = read_text_file(path, kMostWrittenBytes, "calibration.unreadable");
  if (!text) return text.problems();
  if (text->starts_with("SQLite format 3")) {
    return Problem{"calibration.which", path, "this is a database of calibrations",
                   "name one of them: --calibration " + path + ":NAME"};
  }
  return parse_calibration(*text, path);
}

}  // namespace

Outcome<Calibration> choose_calibration(const std::string& which, const std::string& database) {
  if (which == "defaults") return default_calibration();
  std::error_code ignored;
  if (std::filesystem::is_regular_file(which, ignored)) return calibration_file(which);
  if (const std::size_t colon = which.rfind(':'); colon != std::string::npos && colon > 0) {
    const std::string path = which.substr(0, colon);
    if (std::filesystem::exists(path, ignored)) return calibration_in(path, which.substr(colon + 1));
  }
  if (!database.empty()) return calibration_in(database, which);
  return Problem{"calibration.unknown", which, "there is no such file, and no database says what calibration this is",
                 "give a file of `cpfit calibrate fit --out`, DATABASE:NAME, or \"defaults\""};
}

std::string calibration_text(const std::optional<CalibrationUse>& use) {
  if (!use) return "";
  std::string text = fmt::format("Rates: calibration '{}' ({})", use->name, use->id.substr(0, 12));
  if (use->assumed) return text + ", data-sheet defaults\n";
  text += fmt::format(" over the defaults: {} {}", use->used.size(), use->used.size() == 1 ? "surface" : "surfaces");
  for (std::size_t i = 0; i < std::min<std::size_t>(use->used.size(), 4); ++i) text += (i == 0 ? " (" : ", ") + use->used[i];
  if (use->used.size() > 4) text += fmt::format(" and {} more", use->used.size() - 4);
  return text + (use->used.empty() ? "\n" : ")\n");
}

Json calibration_json(const std::optional<CalibrationUse>& use) {
  if (!use) return nullptr;
  return {{"id", use->id}, {"name", use->name}, {"assumed", use->assumed}, {"used", use->used}, {"warnings", use->warnings}};
}

}  // namespace cpfit::cli
