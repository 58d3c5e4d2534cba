#include "sim/ask/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "model/attention/mask.h"
#include "model/attention/packed.h"
#include "model/quantity/counted.h"
#include "model/quantity/text.h"
#include "sim/plan/search.h"
#include "sim/plan/uncertainty.h"
#include "sim/plan/verdict.h"

namespace cpfit::ask {

namespace {

constexpr double kMostPacked = 20000;  // documents placed one by one; more are thinned, their shares kept

std::int64_t multiple_of(std::int32_t cp) { return cp > 1 ? 2 * cp : 1; }

struct Packs {
  Packing figures;
  std::vector<std::vector<attention::Document>> sequences;
};

Packs place(const std::vector<DocumentClass>& documents, std::int64_t length, std::int64_t multiple) {
  Packs packs;
  packs.figures.length = length;
  std::vector<DocumentClass> longest_first = documents;
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [](const DocumentClass& a, const DocumentClass& b) { return a.length > b.length; });
  std::multimap<std::int64_t, std::size_t> room;  // free tokens -> sequence
  for (const DocumentClass& one : longest_first) {
    const std::int64_t padded = attention::round_up(one.length, multiple);
    for (double n = 0; n + 0.5 <= one.count; n += 1.0) {
      auto fit = room.lower_bound(padded);
      std::size_t at = 0;
      std::int64_t free = length;
      if (fit == room.end()) {
        at = packs.sequences.size();
        packs.sequences.emplace_back();
      } else {
        free = fit->first;
        at = fit->second;
        room.erase(fit);
      }
      packs.sequences[at].push_back({length - free, one.length, padded});
      room.emplace(free - padded, at);
      packs.figures.real_tokens += static_cast<double>(one.length);
      packs.figures.padded_tokens += static_cast<double>(padded);
      ++packs.figures.documents;
    }
  }
  packs.figures.sequences = static_cast<std::int64_t>(packs.sequences.size());
  return packs;
}

/// Busiest rank over the mean, summed over the sequences, when each is cut zigzag as one.
double whole_imbalance(const Packs& packs, std::int32_t cp) {
  if (cp == 1) return 1.0;
  const std::int64_t chunk = packs.figures.length / (std::int64_t{2} * cp);
  double busiest = 0, mean = 0;
  for (const std::vector<attention::Document>& sequence : packs.sequences) {
    const attention::MaskView mask = attention::document_mask(sequence.data(), static_cast<std::int32_t>(sequence.size()));
    std::vector<double> of_chunk;
    for (std::int64_t c = 0; c < std::int64_t{2} * cp; ++c) {
      const attention::Positions queries{c * chunk, chunk, 1}, keys{0, packs.figures.length, 1};
      of_chunk.push_back(static_cast<double>(attention::pairs_between(mask, queries, keys)));
    }
    double most = 0, sum = 0;
    for (std::int32_t rank = 0; rank < cp; ++rank) {
      const double pairs = of_chunk[static_cast<std::size_t>(rank)] + of_chunk[static_cast<std::size_t>(2 * cp - 1 - rank)];
      most = std::max(most, pairs);
      sum += pairs;
    }
    busiest += most;
    mean += sum / cp;
  }
  return mean > 0 ? busiest / mean : 1.0;
}

double share_up_to(const std::vector<DocumentClass>& documents, std::int64_t length) {
  double all = 0, inside = 0;
  for (const DocumentClass& one : documents) {
    const double tokens = one.count * static_cast<double>(one.length);
    all += tokens;
    if (one.length <= length) inside += tokens;
  }
  return all > 0 ? inside / all : 0.0;
}

/// Share of the step that scales with attention's rates.
double attention_share(Workbench& bench, const Recipe& recipe) {
  const Outcome<StepUncertainty> step = step_uncertainty(bench, recipe);
  double share = 0;
  if (step.ok()) {
    for (const UncertainSurface& surface : step->surfaces) {
      if (surface.probe == ProbeKind::kAttention) share += surface.sensitivity;
    }
  }
  return share;
}

void price(const Workbench& bench, const std::vector<DocumentClass>& documents, DocumentsRow& row) {
  Scenario scenario = bench.scenario();
  scenario.training.mask = {MaskKind::kDocuments, 0, documents};
  const double scale = 1.0 / static_cast<double>(row.packing.sequences);  // the mean packed sequence
  for (DocumentClass& one : scenario.training.mask.documents) one.count *= scale;
  Workbench packed = bench.with(scenario);
  Axes axes = resolve_axes(scenario, packed.rules());
  axes.cp = {row.cp};
  const SearchResult found = search(packed, scenario.training, axes, {});
  for (const Candidate& candidate : found.candidates) {
    if (!row.candidate || ranks_before(candidate, *row.candidate, scenario.requirements)) row.candidate = candidate;
  }
  if (!row.candidate) {
    row.reason = "no recipe of the search space is legal";
    return;
  }
  row.per_document_gain = attention_share(packed, row.candidate->recipe) * (row.whole_cut_imbalance - 1.0);
  const double exposed = exposed_cp_share(*row.candidate) * row.local_share;
  row.dynamic_gain_bound = 1.0 / (1.0 - exposed) - 1.0;
}

std::vector<DocumentClass> thinned(const std::vector<DocumentClass>& documents, bool& sampled) {
  double count = 0;
  for (const DocumentClass& one : documents) count += one.count;
  sampled = count > kMostPacked;
  if (!sampled) return documents;
  std::vector<DocumentClass> fewer = documents;
  double owed = 0;  // what rounding down left, so that many small classes keep their share together
  for (DocumentClass& one : fewer) {
    owed += one.count * kMostPacked / count;
    one.count = std::floor(owed);
    owed -= one.count;
  }
  std::erase_if(fewer, [](const DocumentClass& one) { return one.count < 0.5; });
  return fewer;
}

}  // namespace

Outcome<std::vector<DocumentClass>> parse_lengths(std::string_view text) {
  constexpr std::size_t kLongest = 64u << 20;
  if (text.size() > kLongest) return Problem{"ask.lengths", "", "the file is longer than 64 MiB", "write LENGTH, COUNT classes"};
  std::map<std::int64_t, double> counts;
  std::istringstream stream{std::string(text)};
  int number = 0;
  bool first = true;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    for (char& c : line) c = c == ',' || c == ';' || c == '\t' || c == '\r' ? ' ' : c;
    std::istringstream words(line);
    std::string length, count = "1", more;
    if (!(words >> length)) continue;
    words >> count;
    const std::string where = fmt::format("line {}", number);
    const bool heading = first && !(length[0] >= '0' && length[0] <= '9');
    first = false;
    if (heading) continue;
    const Outcome<Tokens> tokens = parse_tokens(length);
    char* end = nullptr;
    const double times = std::strtod(count.c_str(), &end);
    if (!tokens.ok() || tokens->count() < 1 || *end != '\0' || !(times > 0) || times > 1e15 || (words >> more)) {
      return Problem{"ask.lengths", where, fmt::format("'{}' is no document length with a count", line),
                     "write LENGTH or LENGTH, COUNT"};
    }
    counts[tokens->count()] += times;
  }
  std::vector<DocumentClass> classes;
  for (const auto& [length, count] : counts) classes.push_back({length, count});
  if (classes.empty()) return Problem{"ask.lengths", "", "there is no document", "write one LENGTH, or LENGTH, COUNT, a line"};
  return classes;
}

Packing pack(const std::vector<DocumentClass>& documents, std::int64_t length, std::int64_t multiple) {
  return place(documents, length, multiple).figures;
}

Outcome<DocumentsAnswer> documents(Workbench& bench, const std::vector<DocumentClass>& lengths) {
  const Scenario& scenario = bench.scenario();
  DocumentsAnswer answer;
  answer.length = scenario.training.sequence.count();
  double count = 0, tokens = 0;
  for (const DocumentClass& one : lengths) {
    count += one.count;
    tokens += one.count * static_cast<double>(one.length);
    answer.longest = std::max(answer.longest, one.length);
  }
  if (lengths.empty() || count <= 0)
    return Problem{"ask.lengths", "", "there is no document", "write one LENGTH, or LENGTH, COUNT, a line"};
  if (answer.longest > answer.length) {
    return Problem{"ask.document_too_long", "",
                   fmt::format("the longest document has {} tokens, a sequence {}", answer.longest, answer.length),
                   "raise training.sequence_length, or cut the document"};
  }
  answer.documents = std::llround(count);
  answer.mean = tokens / count;
  answer.one_a_sequence_waste = 1.0 - answer.mean / static_cast<double>(answer.length);
  const std::vector<DocumentClass> packed = thinned(lengths, answer.sampled);
  for (const std::int32_t cp : resolve_axes(scenario, bench.rules()).cp) {
    DocumentsRow row;
    row.cp = cp;
    const std::int64_t multiple = multiple_of(cp);
    if (answer.length % multiple != 0 || attention::round_up(answer.longest, multiple) > answer.length) {
      row.reason = fmt::format("{} tokens do not hold documents padded to multiples of {}", answer.length, multiple);
      answer.rows.push_back(std::move(row));
      continue;
    }
    const Packs packs = place(packed, answer.length, multiple);
    row.packing = packs.figures;
    row.whole_cut_imbalance = whole_imbalance(packs, cp);
    row.local_share = share_up_to(packed, answer.length / cp);
    price(bench, packed, row);
    answer.rows.push_back(std::move(row));
  }
  return answer;
}

std::string sentence_of(const DocumentsAnswer& answer) {
  std::string text = fmt::format("{} of {:.0f} tokens on average, the longest {}. One a sequence of {} wastes {}",
                                 counted(answer.documents, "document"), answer.mean, answer.longest, answer.length,
                                 print_share(answer.one_a_sequence_waste));
  const auto best = std::max_element(answer.rows.begin(), answer.rows.end(), [](const DocumentsRow& a, const DocumentsRow& b) {
    const auto speed = [](const DocumentsRow& row) {
      return row.candidate && row.candidate->verdict.fit == Fit::kFits ? row.candidate->tokens_per_second_per_gpu : -1.0;
    };
    return speed(a) < speed(b);
  });
  if (best == answer.rows.end() || !best->candidate || best->candidate->verdict.fit != Fit::kFits) return text + ".";
  text += fmt::format("; packed, {} at cp={}, the fastest degree that fits ({:.0f} tokens/s per GPU)",
                      print_share(best->packing.waste_share()), best->cp, best->candidate->tokens_per_second_per_gpu);
  if (best->cp > 1) {
    text += fmt::format(
        ". There cutting each document by itself gains {} over cutting the packed sequence as one, and dynamic CP at most {}",
        print_share(best->per_document_gain), print_share(best->dynamic_gain_bound));
  }
  return text + ".";
}

}  // namespace cpfit::ask
