#include "sim/ask/oom.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/quantity/text.h"
#include "model/transformer/parameters.h"
#include "sim/ask/fit_space.h"
#include "sim/plan/search.h"

namespace cpfit::ask {

namespace {

constexpr double kRounding = 512.0;          // the allocator rounds requests up to this
constexpr double kOtherProcessShare = 0.01;  // of the capacity: below this, what others hold is their bare contexts' rounding

Bytes part(const Candidate& candidate, Component component) {
  return candidate.memory.components[static_cast<std::size_t>(component)];
}

/// Where in a step the rank was, by its live bytes.
std::string moment_of(const Workbench& bench, const Candidate& candidate, const ResolvedLayout& layout,
                      const OomMessage& message) {
  if (!message.allocated) return {};
  const Scenario& scenario = bench.scenario();
  const MemoryCase at{scenario.model, scenario.training, candidate.recipe, bench.rules(), scenario.cluster.gpu, layout};
  const double live = message.allocated->value(), resident = candidate.memory.resident.value();
  const auto bytes_at = [&](Moment moment) {
    double bytes = 0.0;
    for (const Bytes& one : allocated_at(at, candidate.memory.stage, moment)) bytes += one.value();
    return bytes;
  };
  const std::string found = fmt::format("{} were live", print_bytes(*message.allocated));
  if (live < resident * (1.0 - kLedgerUncertainty)) {
    return fmt::format("{}, less than the {} that stay between steps: weights or states were still being built", found,
                       print_bytes(candidate.memory.resident));
  }
  const double saved = bytes_at(Moment::kForwardEnd) - resident;
  if (saved > 0.0 && live < resident + saved) {
    return fmt::format("{}, {} stay between steps: in a forward pass that had saved about {} of its {} of activations", found,
                       print_bytes(candidate.memory.resident), print_share(std::max(0.0, live - resident) / saved),
                       print_bytes(Bytes(saved)));
  }
  Moment nearest = Moment::kForwardEnd;
  for (int m = 0; m < kMomentCount; ++m) {
    const auto moment = static_cast<Moment>(m);
    if (std::abs(bytes_at(moment) - live) < std::abs(bytes_at(nearest) - live)) nearest = moment;
  }
  if (bytes_at(nearest) < live * (1.0 - kLedgerUncertainty)) {
    return fmt::format("{}, more than any moment of this recipe's step holds ({}: {})", found, name_of(nearest),
                       print_bytes(Bytes(bytes_at(nearest))));
  }
  return fmt::format("{}: of the moments of a step on stage {} the nearest is {}, with {}", found, candidate.memory.stage,
                     name_of(nearest), print_bytes(Bytes(bytes_at(nearest))));
}

/// Fewest keys changed (dp follows from the others), then fastest, among recipes that fit.
void find_change(Workbench& bench, const Recipe& recipe, OomDiagnosis& diagnosis) {
  const Scenario& scenario = bench.scenario();
  Scenario widened = scenario;
  widened.base = recipe;
  widened.search.dp.clear();
  Workbench wide = bench.with(widened);
  const SearchResult found = search(wide, scenario.training, resolve_axes(widened, wide.rules()), {});
  const auto changed = [&](const Candidate& candidate) {
    std::vector<std::string> keys = differences(recipe, candidate.recipe);
    std::erase_if(keys, [](const std::string& key) { return key == "dp" || key == "schedule" || key == "a2a_degree"; });
    return keys;
  };
  for (const Candidate& candidate : found.candidates) {
    if (candidate.verdict.fit != Fit::kFits) continue;
    std::vector<std::string> keys = changed(candidate);
    const bool better = !diagnosis.change || keys.size() < diagnosis.changed.size() ||
                        (keys.size() == diagnosis.changed.size() &&
                         candidate.tokens_per_second_per_gpu > diagnosis.change->tokens_per_second_per_gpu);
    if (!better) continue;
    diagnosis.change = candidate;
    diagnosis.changed = std::move(keys);
  }
}

void say_change(const Recipe& recipe, OomDiagnosis& diagnosis) {
  if (!diagnosis.change) {
    diagnosis.repair =
        "no recipe of the scenario's search space fits: take more GPUs or a shorter sequence (ask fewest, ask longest)";
    return;
  }
  const Candidate& change = *diagnosis.change;
  if (change.recipe == recipe) {
    diagnosis.repair = "the recipe itself fits by the ledger: look at the figures above before changing it";
    return;
  }
  diagnosis.repair = fmt::format("cheapest change: {}", to_text(change.recipe, recipe));
  diagnosis.expected = fmt::format("{} of {} on stage {}, leaving {} at its upper bound", print_bytes(change.memory.device),
                                   print_bytes(change.verdict.capacity), change.memory.stage, print_bytes(change.verdict.margin));
  if (diagnosis.predicted) {
    const double speed = change.tokens_per_second_per_gpu / diagnosis.predicted->tokens_per_second_per_gpu - 1.0;
    diagnosis.expected += fmt::format("; tokens/s per GPU {}{}", speed < 0 ? "-" : "+", print_share(std::abs(speed)));
  }
}

}  // namespace

std::string_view name_of(OomCause cause) {
  constexpr std::string_view kNames[] = {"other_process", "fragmentation", "outside_the_allocator", "recipe", "unexplained"};
  return kNames[static_cast<std::size_t>(cause)];
}

std::vector<TensorMatch> single_allocations(const Architecture& model, const Training& training, const Recipe& recipe) {
  const double tokens = static_cast<double>(recipe.micro_batch) * static_cast<double>(training.sequence.count()) / recipe.cp;
  const double tp = recipe.tp, cut = recipe.sequence_parallel ? tp : 1.0;
  const auto of = [](std::int64_t count) { return static_cast<double>(count); };
  const double query = of(model.heads * model.head_dim), kv = of(model.kv_heads * model.head_dim), hidden = of(model.hidden),
               ffn = of(model.ffn_hidden), vocab = of(padded_vocab(model.vocab, training.vocab_divisor, recipe.tp));
  std::vector<TensorMatch> all;
  const auto add = [&](const char* tensor, const char* formula, double bytes) { all.push_back({tensor, formula, Bytes(bytes)}); };
  add("hidden state, cut over tensor ranks", "2*T*H/tp", 2 * tokens * hidden / cut);
  if (cut > 1.0) add("hidden state, gathered", "2*T*H", 2 * tokens * hidden);
  add("query, key and value", "2*T*(a+2g)*d/tp", 2 * tokens * (query + 2 * kv) / tp);
  add("attention output", "2*T*a*d/tp", 2 * tokens * query / tp);
  if (recipe.cp > 1) {
    add("one ring slot of keys and values", "2*2*T*g*d/tp", 4 * tokens * kv / tp);
    add("all keys and values of a sequence, gathered", "2*2*T*cp*g*d/tp", 4 * tokens * recipe.cp * kv / tp);
  }
  add(model.gated() ? "MLP gate and up" : "MLP inner activation", model.gated() ? "2*T*2F/tp" : "2*T*F/tp",
      2 * tokens * (model.gated() ? 2 : 1) * ffn / tp);
  if (model.gated()) add("MLP product of gate and up", "2*T*F/tp", 2 * tokens * ffn / tp);
  add("logits, 16 bits", "2*T*V/tp", 2 * tokens * vocab / tp);
  add("logits, fp32", "4*T*V/tp", 4 * tokens * vocab / tp);
  const ParameterCount count = count_parameters(model);
  const double layers = std::ceil(of(model.layers) / recipe.pp);
  const bool whole_model = recipe.pp == 1;  // else the first stage, without the head
  const double weights = layers * (of(count.layer.sharded()) / tp + of(count.layer.replicated())) +
                         (whole_model && !model.tied_embeddings ? 2 : 1) * vocab * hidden / tp +
                         (whole_model ? of(count.final_norm) : 0.0);
  const double shards = static_cast<double>(shard_ranks(recipe));
  const bool whole = recipe.state_sharding == StateSharding::kNone;
  add("weights of the stage, 16 bits, one buffer", "2*P/(tp*pp)", 2 * weights);
  add("gradients of the stage, fp32, one buffer", "4*P/(tp*pp)", 4 * weights);
  add("one fp32 optimizer state",
      whole                        ? "4*P/(tp*pp)"
      : shard_replicas(recipe) > 1 ? "4*P/(tp*pp*state_shards)"
                                   : "4*P/(tp*pp*dp*cp)",
      4 * weights / (whole ? 1.0 : shards));
  return all;
}

OomDiagnosis diagnose(const OomMessage& message) {
  OomDiagnosis diagnosis;
  const std::optional<Bytes> cached = message.cached(), others = message.other_processes();
  const double free = message.free ? message.free->value() : 0.0;
  if (others && message.capacity && others->value() > kOtherProcessShare * message.capacity->value() &&
      others->value() + free >= message.tried.value()) {
    diagnosis.cause = OomCause::kOtherProcess;
    diagnosis.sentence = fmt::format("other processes hold {} of this GPU: without them the {} would have fitted",
                                     print_bytes(*others), print_bytes(message.tried));
    diagnosis.repair = "end them (a former run, a notebook), or give the job the whole GPU";
    diagnosis.expected =
        fmt::format("{} free after the allocation", print_bytes(Bytes(others->value() + free - message.tried.value())));
  } else if (cached && cached->value() + free >= message.tried.value()) {
    diagnosis.cause = OomCause::kFragmentation;
    diagnosis.sentence =
        fmt::format("{} are reserved but not allocated{}: enough for the {}, but in pieces", print_bytes(*cached),
                    message.free ? fmt::format(" and {} free", print_bytes(*message.free)) : "", print_bytes(message.tried));
    diagnosis.repair = "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (not together with CUDA graphs)";
    diagnosis.expected = fmt::format("at most {} left after the allocation: tight all the same",
                                     print_bytes(Bytes(cached->value() + free - message.tried.value())));
  } else {
    diagnosis.cause = OomCause::kRecipe;
    const double missing = message.tried.value() - free - (cached ? cached->value() : 0.0);
    diagnosis.sentence = fmt::format("{} are missing{}", print_bytes(Bytes(std::max(0.0, missing))),
                                     cached ? " even if every cached piece could be used" : "");
    diagnosis.repair = "name the scenario and the recipe that ran: the ledger then says what fills the memory and what to change";
  }
  return diagnosis;
}

Outcome<OomDiagnosis> diagnose(const OomMessage& message, Workbench& bench, const Recipe& recipe) {
  const Scenario& scenario = bench.scenario();
  Outcome<Candidate> evaluated = bench.evaluate(scenario.training, recipe);
  if (!evaluated.ok()) return evaluated.problems();
  const Outcome<ResolvedLayout> layout = resolve_layout(scenario.model, recipe);
  if (!layout.ok()) return layout.problems();
  const Candidate& candidate = *evaluated;
  OomDiagnosis diagnosis = diagnose(message);

  for (TensorMatch& match : single_allocations(scenario.model, scenario.training, recipe)) {
    if (std::abs(match.bytes.value() - message.tried.value()) <= message.tried_resolution.value() + kRounding)
      diagnosis.tensors.push_back(std::move(match));
  }
  std::stable_sort(diagnosis.tensors.begin(), diagnosis.tensors.end(), [&](const TensorMatch& a, const TensorMatch& b) {
    return std::abs(a.bytes.value() - message.tried.value()) < std::abs(b.bytes.value() - message.tried.value());
  });
  diagnosis.where = moment_of(bench, candidate, *layout, message);
  diagnosis.predicted = candidate;
  if (diagnosis.cause == OomCause::kOtherProcess) return diagnosis;

  const Bytes around = part(candidate, Component::kCommunicators) + part(candidate, Component::kContext);
  const double outside_more = message.outside() ? message.outside()->value() - around.value() : 0.0;
  const double live_more =
      message.allocated ? message.allocated->value() + message.tried.value() - candidate.memory.peak.value() : 0.0;
  const bool by_fragments = diagnosis.cause == OomCause::kFragmentation;
  if (candidate.verdict.fit == Fit::kOom) {
    std::array<int, kComponentCount> order{};
    for (int i = 0; i < kComponentCount; ++i) order[static_cast<std::size_t>(i)] = i;
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return candidate.memory.components[static_cast<std::size_t>(a)] > candidate.memory.components[static_cast<std::size_t>(b)];
    });
    diagnosis.cause = OomCause::kRecipe;
    diagnosis.sentence = fmt::format(
        "the recipe needs {} of {} on stage {} in {}, {} of them {} and {} {}", print_bytes(candidate.memory.device),
        print_bytes(candidate.verdict.capacity), candidate.memory.stage, name_of(candidate.memory.phase),
        print_bytes(candidate.memory.components[static_cast<std::size_t>(order[0])]), name_of(static_cast<Component>(order[0])),
        print_bytes(candidate.memory.components[static_cast<std::size_t>(order[1])]), name_of(static_cast<Component>(order[1])));
  } else if (by_fragments) {
    return diagnosis;  // the recipe fits, the pieces do not
  } else if (outside_more > 0.0 && outside_more >= live_more) {
    diagnosis.cause = OomCause::kOutside;
    diagnosis.sentence =
        fmt::format("{} lie outside the allocator, {} more than context and communicators of this recipe should take",
                    print_bytes(*message.outside()), print_bytes(Bytes(outside_more)));
  } else if (live_more > kLedgerUncertainty * candidate.memory.peak.value()) {
    diagnosis.cause = OomCause::kUnexplained;
    diagnosis.sentence = fmt::format(
        "{} were live or asked for, {} more than the ledger's peak of {}: something is alive that the "
        "recipe does not name (another length or batch, an encoder, tensors kept by a reference)",
        print_bytes(*message.allocated + message.tried), print_bytes(Bytes(live_more)), print_bytes(candidate.memory.peak));
  } else {
    diagnosis.sentence = fmt::format(
        "the recipe needs {} of {}: {}", print_bytes(candidate.memory.device), print_bytes(candidate.verdict.capacity),
        candidate.verdict.fit == Fit::kFits ? "it fits by the ledger, so this device had less to give"
                                            : "at risk, as its upper bound said");
  }
  find_change(bench, recipe, diagnosis);
  say_change(recipe, diagnosis);
  return diagnosis;
}

}  // namespace cpfit::ask
