// cpfit ask documents: what document lengths waste.
#include <fmt/format.h>

#include "cli/ask/questions.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "model/quantity/text.h"
#include "model/quantity/text_file.h"
#include "sim/ask/documents.h"

namespace cpfit::cli {

int ask_documents(const AskArguments& arguments) {
  const Outcome<std::string> text = read_text_file(arguments.lengths, kMostTableBytes, "ask.file");
  if (!text.ok()) {
    print_problems(text.problems());
    return kBadInput;
  }
  const Outcome<std::vector<DocumentClass>> lengths = ask::parse_lengths(*text);
  if (!lengths.ok()) {
    print_argument_problems(arguments.lengths, lengths.problems());
    return kBadInput;
  }
  const std::unique_ptr<Asked> asked = ask_about(arguments);
  if (!asked) return kBadInput;
  const Outcome<ask::DocumentsAnswer> answer = ask::documents(*asked->bench, *lengths);
  if (!answer.ok()) {
    print_argument_problems(arguments.lengths, answer.problems());
    return kBadInput;
  }
  for (const ask::DocumentsRow& row : answer->rows) warn_of(*asked, row.candidate);
  const std::string sentence = ask::sentence_of(*answer);
  if (arguments.json) {
    Json rows = Json::array();
    for (const ask::DocumentsRow& row : answer->rows) {
      const bool packed = row.packing.sequences > 0;
      rows.push_back({{"cp", row.cp},
                      {"packed_sequences", row.packing.sequences},
                      {"padding_share", packed ? row.packing.padding_share() : 0.0},
                      {"gap_share", packed ? row.packing.gap_share() : 0.0},
                      {"waste_share", packed ? row.packing.waste_share() : 0.0},
                      {"whole_cut_imbalance", row.whole_cut_imbalance},
                      {"local_token_share", row.local_share},
                      {"per_document_gain", row.per_document_gain},
                      {"dynamic_gain_bound", row.dynamic_gain_bound},
                      {"candidate", candidate_or_null(row.candidate)},
                      {"reason", row.reason}});
    }
    print_answer(*asked, {{"answer", sentence},
                          {"documents", answer->documents},
                          {"mean_tokens", answer->mean},
                          {"longest_tokens", answer->longest},
                          {"sequence_tokens", answer->length},
                          {"one_a_sequence_waste_share", answer->one_a_sequence_waste},
                          {"sampled", answer->sampled},
                          {"by_cp", rows}});
    return kDone;
  }
  Table table({{"cp"},
               {"padding"},
               {"gaps"},
               {"whole cut"},
               {"per document gains"},
               {"need no ring"},
               {"dynamic gains <="},
               {"tokens/s per GPU"},
               {"memory", false}});
  for (const ask::DocumentsRow& row : answer->rows) {
    if (row.packing.sequences == 0) {
      table.row({std::to_string(row.cp), "", "", "", "", "", "", "", row.reason});
      continue;
    }
    table.row(
        {std::to_string(row.cp), percent(row.packing.padding_share()), percent(row.packing.gap_share()),
         fmt::format("{:.2f}", row.whole_cut_imbalance), percent(row.per_document_gain), percent(row.local_share),
         percent(row.dynamic_gain_bound), row.candidate ? fmt::format("{:.0f}", row.candidate->tokens_per_second_per_gpu) : "-",
         row.candidate ? fmt::format("{} {}", print_bytes(row.candidate->memory.device), name_of(row.candidate->verdict.fit))
                       : row.reason});
  }
  std::string out = wrapped(sentence, 0) + "\n\n" + table.text();
  out += wrapped(
             "whole cut: the busiest rank's attended pairs over the mean, when a packed sequence is cut as one. need no ring: "
             "tokens in "
             "documents no longer than a rank's share.",
             0) +
         "\n";
  if (answer->sampled) out += "note: the documents were thinned to 20000 for packing, their shares kept\n";
  write_answer(*asked, out);
  return kDone;
}

}  // namespace cpfit::cli
