// What a search or a stored run found, as columns: one figure per recipe and field, so that sorting, filtering and drawing are
// scans of plain arrays. Immutable, shared between views. Pure.
#pragma once

#include <QString>
#include <QStringList>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/study/simulator.h"
#include "model/recipe/scenario.h"
#include "model/record/candidate.h"

namespace cpfit::gui {

enum class FieldGroup : std::uint8_t { kVerdict, kRecipe, kResult };
enum class Better : std::uint8_t { kNeither, kLess, kMore };

struct ResultField {
  std::string_view key;    // as a filter names it: "memory"
  std::string_view label;  // "Peak memory"
  std::string_view unit;   // of every figure in its column: "GiB", "s", "%"; empty: a plain number or a word
  FieldGroup group;
  bool word;   // figures are places in a vocabulary
  bool shown;  // unless a person chose otherwise
  Better better;
  std::string_view help;
};
[[nodiscard]] std::span<const ResultField> result_fields();
/// By key, or by a beginning of it that is nobody else's; kNoField when none.
inline constexpr std::size_t kNoField = static_cast<std::size_t>(-1);
[[nodiscard]] std::size_t field_named(std::string_view key);

/// Words of the field "verdict", best first: their places are its figures.
enum class RowVerdict : std::uint8_t { kShip, kControl, kOk, kExposed, kSlow, kAtRisk, kTooMuch };
[[nodiscard]] QString name_of(RowVerdict verdict);  // "ship", "control", "ok", "exposed", "slow", "at risk", "does not fit"

struct ResultColumn {
  std::vector<double> values;  // (rows); NaN: the recipe has none
  QStringList vocabulary;      // of words, in the order of their figures
  double low = 0, high = 0;    // of the values that are numbers; low > high: there are none
};

struct ResultSet {
  QString name;     // "Search of this study", "Run 3 of cpfit.sqlite"
  QString command;  // the command line that makes it
  std::shared_ptr<const Scenario> scenario;
  std::vector<Candidate> candidates;
  std::vector<RowVerdict> verdicts;   // (rows)
  std::vector<ResultColumn> columns;  // (fields)
  std::optional<std::uint32_t> ship, control;
  PlanStats stats;
  [[nodiscard]] std::size_t size() const { return candidates.size(); }
  [[nodiscard]] const ResultColumn& column(std::string_view key) const { return columns[field_named(key)]; }
};

/// `candidates` in the order of their search. Ship and control are found by their recipes.
[[nodiscard]] std::shared_ptr<const ResultSet> result_set(QString name, QString command, std::shared_ptr<const Scenario> scenario,
                                                          std::vector<Candidate> candidates, const PlanResult& plan);

/// Why a row was not chosen, or what it is: one sentence.
[[nodiscard]] QString reason_of(const ResultSet& set, std::uint32_t row);
/// Choices besides the degrees in which a row differs from the control while only the row fits: "recompute, micro_batch".
[[nodiscard]] QString policy_of(const ResultSet& set, std::uint32_t row);

/// A figure of a column without its unit, three significant digits; a word as it is; "–" where there is none.
[[nodiscard]] QString figure_text(const ResultColumn& column, const ResultField& field, double value);
/// The same in full and with its unit.
[[nodiscard]] QString full_figure_text(const ResultColumn& column, const ResultField& field, double value);
/// "Peak memory, GiB".
[[nodiscard]] QString header_text(const ResultField& field);

}  // namespace cpfit::gui
