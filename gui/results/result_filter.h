// One filter for the table, the scatter and the parallel axes; the order of rows; the front. Pure scans over the columns of a
// result set.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <limits>
#include <vector>

#include "gui/results/result_set.h"
#include "model/quantity/problem.h"

namespace cpfit::gui {

/// A limit on one field: an interval, both ends included, or a set of values. Of words by their text, so that a term outlives
/// the set it was made for.
struct FilterTerm {
  std::size_t field = 0;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  std::vector<double> values;  // one of these; empty: the interval holds
  QStringList words;           // one of these, of a word field
  bool brushed = false;        // drawn on an axis: a newer brush of the field replaces it
  friend bool operator==(const FilterTerm&, const FilterTerm&) = default;
};

struct ResultFilter {
  bool fits_only = true;    // leave out what does not fit or is at risk
  bool front_only = false;  // leave out what another recipe beats in time and memory
  QString text;             // contained in the recipe's text or the verdict
  std::vector<FilterTerm> terms;
  friend bool operator==(const ResultFilter&, const ResultFilter&) = default;
};

/// "cp>=4", "memory < 70 GiB", "step<800ms", "recompute=none|full", "exposed<5%". Problems "filter.form", "filter.field",
/// "filter.value" say what is understood.
[[nodiscard]] Outcome<FilterTerm> parse_term(const QString& text);
/// "CP ≥ 4", "Memory < 70 GiB", "Recompute none or full".
[[nodiscard]] QString text_of_term(const FilterTerm& term);

/// The whole filter as one line that parse_filter reads back: "+fits, cp>=4, recompute=none|full, zigzag".
[[nodiscard]] QString line_of_filter(const ResultFilter& filter);
/// Terms, and words that are looked for in the recipe; +fits and +front ask for these alone. Problems: those of parse_term.
[[nodiscard]] Outcome<ResultFilter> parse_filter(const QString& line);
/// For people: "fits, CP ≥ 4, Recompute none or full"; "everything" without a limit.
[[nodiscard]] QString text_of_filter(const ResultFilter& filter);

/// Replaces the brush of the term's field, or adds it.
void set_brush(ResultFilter& filter, const FilterTerm& term);
void clear_brush(ResultFilter& filter, std::size_t field);

struct FilteredRows {
  std::vector<std::uint32_t> considered;  // all but the terms and the front: what axes are laid out for
  std::vector<std::uint32_t> rows;        // what passes everything, in the order of the set
  std::vector<std::uint8_t> passes;       // (rows of the set)
  std::vector<std::uint32_t> front;       // of those that pass the terms and fit, by x
};

/// `x` and `y`: fields of the front; the better end of each is its own.
[[nodiscard]] FilteredRows filtered(const ResultSet& set, const ResultFilter& filter, std::size_t x, std::size_t y);

/// Rows that no other row beats in both figures, by x from its better end; of equal ones the first.
[[nodiscard]] std::vector<std::uint32_t> front_of(const std::vector<std::uint32_t>& rows, const std::vector<double>& x,
                                                  Better better_x, const std::vector<double>& y, Better better_y);

/// Who beats a row in both figures by most of y; the row itself when it is on the front.
[[nodiscard]] std::uint32_t dominator_of(std::uint32_t row, const std::vector<std::uint32_t>& front, const std::vector<double>& x,
                                         Better better_x, const std::vector<double>& y, Better better_y);

struct SortKey {
  std::size_t field = 0;
  bool descending = false;
  friend bool operator==(const SortKey&, const SortKey&) = default;
};
/// Sorts by the keys, first key first; equal ones stay in the order of the set. Rows without a figure come last either way.
void sort_rows(const ResultSet& set, const std::vector<SortKey>& keys, std::vector<std::uint32_t>& rows);

}  // namespace cpfit::gui
