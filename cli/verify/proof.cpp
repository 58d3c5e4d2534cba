#include "cli/verify/proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace cpfit::cli {

namespace {

/// As kernels/strategy/methods.cpp names the orders of the frameworks.
std::string method_of(const Recipe& recipe, const RuleSet& rules, const Architecture& model) {
  const bool wide = rules.accumulate_fp32;
  switch (recipe.cp_comm) {
    case CpComm::kP2p:
      if (rules.reverse_ring_in_backward) return wide ? "te_p2p_wide" : "te_p2p";
      return wide ? "fp32_ring" : "narrow_ring";
    case CpComm::kAllGather:
      return rules.dkv_wire == DkvWire::kFp32 ? "all_gather_wide" : "all_gather";
    case CpComm::kA2a:
      return rules.kv_heads_repeated_for_a2a && recipe.cp > model.kv_heads / std::max(1, recipe.tp) ? "a2a_repeat_kv" : "a2a";
    case CpComm::kA2aP2p:
      return wide ? "usp" : "a2a_p2p";
    case CpComm::kDoubleRing:
      return "double_ring";
  }
  return "";
}

std::vector<std::string> masks_of(const Architecture& model, const Training& training) {
  std::vector<std::string> masks;
  switch (training.mask.kind) {
    case MaskKind::kCausal:
      masks = {"causal"};
      break;
    case MaskKind::kFull:
      masks = {"full"};
      break;
    case MaskKind::kSlidingWindow:
      masks = {"window"};
      break;
    case MaskKind::kDocuments:
      masks = {"documents"};
      break;
  }
  const bool windowed = model.sliding_window > 0 && masks.front() != "window";
  if (windowed) masks.emplace_back("window");
  return masks;
}

int rank_of(const std::string& backend) { return backend == "check" ? 3 : backend == "cuda" ? 2 : backend == "mpi" ? 1 : 0; }

/// Of the proofs that fit, which one is shown: another implementation's before ours, then the better place, then the younger.
bool better(const AttentionProof& a, const AttentionProof& b) {
  const auto key = [](const AttentionProof& proof) {
    return std::tuple(proof.implementation != "cpfit", rank_of(proof.backend), proof.unix_seconds);
  };
  return key(a) > key(b);
}

bool same_source(const AttentionProof& a, const AttentionProof& b) {
  return a.implementation == b.implementation && a.implementation_version == b.implementation_version && a.backend == b.backend;
}

}  // namespace

ProofNeed proof_need(const Recipe& recipe, const RuleSet& rules, const Architecture& model, const Training& training) {
  ProofNeed need;
  if (recipe.cp <= 1) return need;
  need.method = method_of(recipe, rules, model);
  need.masks = masks_of(model, training);
  const bool exchanges_sequence = recipe.cp_comm == CpComm::kA2a;  // any cut will do: the whole sequence is put together
  need.layout = name_of(recipe.shard_layout);
  if (need.masks.front() == "documents" && recipe.shard_layout == ShardLayout::kZigzag) need.layout += " per document";
  if (exchanges_sequence && need.masks.front() != "documents") need.layout = "zigzag";
  need.dtype = recipe.precision == Precision::kFp16 ? "fp16" : "bf16";
  return need;
}

RecipeProof find_proof(ProofNeed need, const std::vector<AttentionProof>& proofs) {
  RecipeProof found{std::move(need), {}};
  if (!found.needed()) return found;
  const auto fits = [&](const AttentionProof& proof, const std::string& mask) {
    // A window inside documents is proved by windows over the whole sequence, which are not cut document by document.
    const std::string layout = mask == "window" && found.need.layout == "zigzag per document" ? "zigzag" : found.need.layout;
    return proof.method == found.need.method && proof.mask == mask && proof.layout == layout && proof.dtype == found.need.dtype;
  };
  const AttentionProof* best = nullptr;
  for (const AttentionProof& proof : proofs) {
    if (!fits(proof, found.need.masks.front()) || (best != nullptr && !better(proof, *best))) continue;
    std::vector<AttentionProof> by = {proof};
    for (std::size_t i = 1; i < found.need.masks.size(); ++i) {
      const auto other = std::ranges::find_if(
          proofs, [&](const AttentionProof& entry) { return same_source(entry, proof) && fits(entry, found.need.masks[i]); });
      if (other != proofs.end()) by.push_back(*other);
    }
    if (by.size() != found.need.masks.size()) continue;
    best = &proof;
    found.by = std::move(by);
  }
  return found;
}

std::string proof_word(const RecipeProof& proof) {
  if (!proof.needed()) return "not_needed";
  if (!proof.proved()) return "none";
  const AttentionProof& by = proof.by.front();
  return by.implementation + " " + by.implementation_version;
}

std::string proof_text(const RecipeProof& proof, const std::string& database) {
  if (!proof.needed()) return "attention: not cut (cp = 1), nothing to prove";
  if (!proof.proved()) {
    return fmt::format("attention: unproven - run `cpfit verify --method {} --db {}`", proof.need.method,
                       database.empty() ? "FILE" : database);
  }
  const AttentionProof& by = proof.by.front();
  const std::string whose = by.implementation == "cpfit" ? fmt::format("cpfit {}'s own strategy", by.implementation_version)
                                                         : by.implementation + " " + by.implementation_version;
  return fmt::format("attention: proved: {} ({}, {}, {}, cp {})", whose, by.method, fmt::join(proof.need.masks, " and "),
                     proof.need.dtype, fmt::join(by.cp, ", "));
}

Json proof_json(const RecipeProof& proof) {
  if (!proof.needed()) return nullptr;
  Json json = {{"method", proof.need.method},
               {"masks", proof.need.masks},
               {"layout", proof.need.layout},
               {"dtype", proof.need.dtype},
               {"by", Json::array()}};
  for (const AttentionProof& by : proof.by) {
    json["by"].push_back({{"implementation", by.implementation},
                          {"version", by.implementation_version},
                          {"backend", by.backend},
                          {"mask", by.mask},
                          {"cp", by.cp},
                          {"fixture_hash", by.fixture_hash},
                          {"unix_seconds", by.unix_seconds}});
  }
  return json;
}

ProofBook::ProofBook(const Scenario& scenario, std::vector<AttentionProof> proofs)
    : model_(scenario.model), training_(scenario.training), rules_(framework_presets()), proofs_(std::move(proofs)) {}

RecipeProof ProofBook::of(const Recipe& recipe) const {
  const auto rules = std::ranges::find(rules_, recipe.framework, &RuleSet::name);
  return find_proof(proof_need(recipe, rules == rules_.end() ? RuleSet{} : *rules, model_, training_), proofs_);
}

ProofSource proof_source(const ProofBook& book) {
  return [&book](const Recipe& recipe) {
    const RecipeProof proof = book.of(recipe);
    return std::pair(proof_word(proof), proof_json(proof));
  };
}

}  // namespace cpfit::cli
