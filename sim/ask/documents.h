// ask documents: what a histogram of document lengths costs and could gain. Padding and packing waste by CP degree, the balance
// that cutting each document by itself gains over cutting the packed sequence as one, and what could be gained where short
// documents need no other rank (dynamic CP).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/record/candidate.h"
#include "sim/plan/workbench.h"

namespace cpfit::ask {

/// One document or class a line: "LENGTH" or "LENGTH, COUNT", lengths as "4096" or "4k"; # begins a comment, a first line of
/// words is a heading. Problems: "ask.lengths" with the line, "quantity.*".
[[nodiscard]] Outcome<std::vector<DocumentClass>> parse_lengths(std::string_view text);

/// Packed sequences of the scenario's length, by best fit of the longest first; each document padded to a multiple.
struct Packing {
  std::int64_t documents = 0, sequences = 0;
  double real_tokens = 0, padded_tokens = 0;
  std::int64_t length = 0;
  [[nodiscard]] double stored() const { return static_cast<double>(sequences) * static_cast<double>(length); }
  [[nodiscard]] double padding_share() const { return (padded_tokens - real_tokens) / stored(); }  // inside documents' rounding
  [[nodiscard]] double gap_share() const { return (stored() - padded_tokens) / stored(); }         // at the ends of sequences
  [[nodiscard]] double waste_share() const { return (stored() - real_tokens) / stored(); }
};

struct DocumentsRow {
  std::int32_t cp = 1;
  Packing packing;
  double whole_cut_imbalance =
      1;                   // busiest rank's attended pairs over the mean, the packed sequence cut zigzag as one; mean of all
  double local_share = 0;  // real tokens in documents that fit a rank's share of a sequence: they need no other rank
  std::optional<Candidate> candidate;  // best recipe of that degree, every document cut by itself
  double per_document_gain = 0;        // of tokens/s: against the whole cut's imbalance of attention
  double dynamic_gain_bound = 0;       // of tokens/s, at most: exposed CP traffic of the tokens that need none
  std::string reason;                  // why there is no candidate
};

struct DocumentsAnswer {
  std::int64_t documents = 0, longest = 0, length = 0;
  double mean = 0;
  double one_a_sequence_waste = 0;  // every document alone in a sequence of the scenario's length
  bool sampled = false;             // more documents than are packed one by one: their shares were kept
  std::vector<DocumentsRow> rows;
};

/// Packs the documents; `multiple` is what each is padded to.
[[nodiscard]] Packing pack(const std::vector<DocumentClass>& documents, std::int64_t length, std::int64_t multiple);

/// Problems: "ask.document_too_long", "ask.lengths" (no document).
[[nodiscard]] Outcome<DocumentsAnswer> documents(Workbench& bench, const std::vector<DocumentClass>& lengths);

[[nodiscard]] std::string sentence_of(const DocumentsAnswer& answer);

}  // namespace cpfit::ask
