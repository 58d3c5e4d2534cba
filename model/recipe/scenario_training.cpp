// The training of a scenario: sequence, batch, mask, optimizer; and the framework and precision that every recipe shares.
#include <map>

#include "model/quantity/text.h"
#include "model/recipe/scenario_sections.h"

namespace cpfit::scenario {

namespace {

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;  // sequences per step

/// lengths = ["8k", "4k"]: the documents of one packed sequence.
std::map<std::int64_t, double> read_lengths(const toml::node& node, Reading& reading) {
  std::map<std::int64_t, double> counts;
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) {
    reading.report(node, "scenario.wrong_type", "training.mask.lengths must be a list of token counts", "write [\"8k\", \"4k\"]");
    return counts;
  }
  for (const toml::node& item : *list) {
    if (const auto length = token_count(item, "training.mask.lengths", kMaxSequence, reading)) counts[length->count()] += 1.0;
  }
  return counts;
}

/// histogram = [{length = "8k", count = 12}]: relative counts of a data set.
std::map<std::int64_t, double> read_histogram(const toml::node& node, Reading& reading) {
  std::map<std::int64_t, double> counts;
  const toml::array* list = node.as_array();
  if (list == nullptr || list->empty()) {
    reading.report(node, "scenario.wrong_type", "training.mask.histogram must be a list of {length, count}",
                   "write [{length = \"8k\", count = 3}]");
    return counts;
  }
  for (const toml::node& item : *list) {
    const toml::table* table = item.as_table();
    if (table == nullptr) {
      reading.report(item, "scenario.wrong_type", fmt::format("an entry of training.mask.histogram is {}", type_text(item)),
                     "write {length = \"8k\", count = 3}");
      continue;
    }
    Section entry(*table, "training.mask.histogram", reading);
    const std::optional<Tokens> length = entry.tokens("length", kMaxSequence);
    const std::optional<double> count = entry.number("count", 0.0, 1e15);
    if (!table->contains("length") || !table->contains("count")) {
      entry.report("length", "scenario.missing_key", "an entry of training.mask.histogram lacks length or count",
                   "write {length = \"8k\", count = 3}");
    }
    entry.finish();
    if (length && count && *count > 0) counts[length->count()] += *count;
  }
  return counts;
}

Mask read_documents(Section& section, Tokens sequence) {
  Reading& reading = section.reading();
  Mask mask;
  mask.kind = MaskKind::kDocuments;
  const toml::node* lengths = section.node("lengths");
  const toml::node* histogram = section.node("histogram");
  const std::optional<double> fill = section.share("fill");
  if ((lengths == nullptr) == (histogram == nullptr)) {
    section.report("lengths", "scenario.missing_key", "training.mask needs either lengths or histogram",
                   "write lengths = [\"8k\", \"4k\"], or histogram = [{length = \"8k\", count = 3}]");
    return mask;
  }
  const std::map<std::int64_t, double> counts =
      lengths != nullptr ? read_lengths(*lengths, reading) : read_histogram(*histogram, reading);
  double tokens = 0;
  for (const auto& [length, count] : counts) tokens += static_cast<double>(length) * count;
  if (tokens <= 0 || sequence.count() == 0) {
    if (histogram != nullptr && histogram->is_array() && sequence.count() > 0 && reading.problems.empty()) {
      section.report("histogram", "scenario.impossible", "training.mask.histogram has no document", "write counts above 0");
    }
    return mask;
  }
  const std::int64_t longest = counts.rbegin()->first;
  if (longest > sequence.count()) {
    section.report(lengths != nullptr ? "lengths" : "histogram", "scenario.impossible",
                   fmt::format("a document of {} tokens is longer than the sequence of {}", longest, sequence.count()),
                   "raise training.sequence_length or cut the document");
    return mask;
  }
  double scale = 1.0;
  if (lengths != nullptr) {
    if (fill) section.report("fill", "scenario.contradiction", "fill goes with histogram only", "remove fill: lengths are exact");
    if (tokens > static_cast<double>(sequence.count())) {
      section.report("lengths", "scenario.impossible",
                     fmt::format("the documents hold {:.0f} tokens, the sequence {}", tokens, sequence.count()),
                     "name the documents of one packed sequence only, or use histogram");
    }
  } else {
    constexpr double kUsualFill = 0.95;  // best-fit packing leaves a few per cent, and each document is padded to 2cp tokens
    scale = fill.value_or(kUsualFill) * static_cast<double>(sequence.count()) / tokens;
    if (fill == 0.0) section.report("fill", "scenario.out_of_range", "fill is 0", "write a share like \"95 %\"");
  }
  for (const auto& [length, count] : counts) mask.documents.push_back({length, count * scale});
  return mask;
}

Mask read_mask(Section& training, Tokens sequence) {
  Mask mask;
  Reading& reading = training.reading();
  const toml::node* node = training.node("mask");
  if (node == nullptr) return mask;
  const toml::table* table = node->as_table();
  if (table == nullptr) {
    const std::optional<MaskKind> kind = training.choice<MaskKind>("mask");
    if (kind == MaskKind::kSlidingWindow || kind == MaskKind::kDocuments) {
      reading.report(*node, "scenario.missing_key", fmt::format("the mask {} needs more than its name", name_of(*kind)),
                     kind == MaskKind::kDocuments
                         ? "write a [training.mask] table with kind = \"documents\" and lengths or histogram"
                         : "write mask = {kind = \"sliding_window\", window = \"4k\"}");
    }
    if (kind) mask.kind = *kind;
    return mask;
  }
  Section section(*table, "training.mask", reading);
  const std::optional<MaskKind> kind = section.choice<MaskKind>("kind");
  if (!table->contains("kind")) {
    section.report("kind", "scenario.missing_key", "training.mask.kind is missing", "write kind = \"documents\"");
  }
  if (kind) mask.kind = *kind;
  if (kind == MaskKind::kSlidingWindow) {
    const std::optional<Tokens> window = section.tokens("window", kMaxSequence);
    if (window) mask.window = window->count();
    if (!table->contains("window")) {
      section.report("window", "scenario.missing_key", "training.mask.window is missing", "write window = \"4k\"");
    }
  }
  if (kind == MaskKind::kDocuments) mask = read_documents(section, sequence);
  if (kind) section.finish();
  return mask;
}

/// Sequences per step, from either way to say it.
std::int64_t read_batch(Section& section, Tokens sequence) {
  const std::optional<std::int64_t> batch = section.integer("global_batch", 1, kMaxBatch);
  const std::optional<Tokens> tokens = section.tokens("global_batch_tokens", std::int64_t{1} << 50);
  const bool has_batch = section.body().contains("global_batch");
  const bool has_tokens = section.body().contains("global_batch_tokens");
  if (has_batch && has_tokens) {
    section.report("global_batch_tokens", "scenario.contradiction", "training gives global_batch and global_batch_tokens",
                   "keep one of them");
  } else if (!has_batch && !has_tokens) {
    section.report("global_batch", "scenario.missing_key", "training.global_batch is missing",
                   "write global_batch = 64 (sequences per step), or global_batch_tokens = \"4M\"");
  } else if (tokens && sequence.count() > 0) {
    const std::int64_t count = tokens->count() / sequence.count();
    if (tokens->count() % sequence.count() != 0 || count > kMaxBatch) {
      section.report(
          "global_batch_tokens", "scenario.impossible",
          fmt::format("{} tokens are no whole number of sequences of {}", tokens->count(), sequence.count()),
          fmt::format("write {} or {}", std::max<std::int64_t>(1, count) * sequence.count(), (count + 1) * sequence.count()));
    }
    return std::max<std::int64_t>(1, count);
  }
  return batch.value_or(1);
}

}  // namespace

TrainingChoice read_training(const toml::table& table, Reading& reading) {
  TrainingChoice choice;
  Section section(table, "training", reading);
  Training& training = choice.training;
  if (const std::optional<Tokens> sequence = section.tokens("sequence_length", kMaxSequence)) training.sequence = *sequence;
  if (!table.contains("sequence_length")) {
    section.report("sequence_length", "scenario.missing_key", "training.sequence_length is missing",
                   "write sequence_length = \"128k\"");
  }
  training.global_batch = read_batch(section, training.sequence);
  training.mask = read_mask(section, training.sequence);
  if (const auto value = section.choice<OptimizerKind>("optimizer")) training.optimizer = *value;
  if (const auto value = section.choice<GradDtype>("grad_dtype")) training.grad_dtype = *value;
  if (const auto value = section.flag("cuda_graphs")) training.cuda_graphs = *value;
  if (const auto value = section.integer("vocab_divisor", 1, 1 << 16)) training.vocab_divisor = *value;
  if (const auto value = section.choice<Precision>("precision")) choice.precision = *value;
  const std::optional<std::string> framework = section.text("framework");
  if (framework || !table.contains("framework")) {
    Outcome<RuleSet> rules = find_framework(framework.value_or(Recipe{}.framework));
    if (rules) {
      choice.rules = std::move(rules).value();
    } else {
      section.adopt("framework", rules.problems());
    }
  }
  section.finish();
  return choice;
}

}  // namespace cpfit::scenario
