// Legality of what happens to a sequence: heads over tp, tokens over cp, the kinds of CP communication, masks, documents.
// Private to legality.cpp.
#pragma once

#include "model/recipe/legality_text.h"

namespace cpfit::legality {

/// Padded tokens of one packed sequence: every document is cut into 2cp chunks on its own (zigzag), so each is padded to that.
inline double packed_tokens(const LegalityCase& at) {
  const std::int64_t step = at.recipe.cp > 1 && at.recipe.shard_layout == ShardLayout::kZigzag ? 2 * at.recipe.cp : 1;
  double tokens = 0;
  for (const DocumentClass& entry : at.training.mask.documents) {
    const std::int64_t padded = (entry.length + step - 1) / step * step;
    tokens += entry.count * static_cast<double>(padded);
  }
  return tokens;
}

/// Keys a windowed layer sees, or 0 when no layer of the model is windowed at this length.
inline std::int64_t active_window(const LegalityCase& at) {
  const std::int64_t window =
      at.training.mask.kind == MaskKind::kSlidingWindow ? at.training.mask.window : at.model.sliding_window;
  return window > 0 && window < sequence(at) ? window : 0;
}

inline bool kv_divides(const LegalityCase& at, std::int64_t ranks) {
  const std::int64_t held = kv_heads_on_rank(at);
  return held % ranks == 0 || (at.rules.kv_heads_repeated_for_a2a && ranks % held == 0);
}

inline bool a2a_divides(const LegalityCase& at, std::int64_t ranks) {
  return at.model.heads % (at.recipe.tp * ranks) == 0 && kv_divides(at, ranks);
}

inline std::int64_t framework_multiple(const LegalityCase& at) {
  const std::int64_t over_cp = at.recipe.cp > 1 ? std::int64_t{at.rules.cp_chunk_multiple} * at.recipe.cp : 1;
  if (!at.rules.sequence_multiple_has_tp) return over_cp;
  return std::int64_t{at.rules.cp_chunk_multiple} * at.recipe.cp * at.recipe.tp;
}

inline constexpr LegalityRule kSequenceRules[] = {
    {"heads_over_tp", "heads % tp = 0", "each TP rank holds whole query heads (Megatron transformer_config)", "change tp",
     [](const LegalityCase& at) { return at.model.heads % at.recipe.tp == 0; },
     [](const LegalityCase& at) {
       return fmt::format("{} heads % tp {} = {}", at.model.heads, at.recipe.tp, at.model.heads % at.recipe.tp);
     },
     [](const LegalityCase& at) {
       return may_be("tp", at.recipe.tp, at.model.heads, [&](std::int64_t v) { return at.model.heads % v == 0; });
     }},
    {"kv_heads_over_tp", "kv_heads % tp = 0, or tp % kv_heads = 0 where KV is replicated",
     "KV heads are cut like query heads; Megatron replicates each over tp/kv_heads ranks (num_query_groups must be a multiple or "
     "divisor of tp)",
     "change tp",
     [](const LegalityCase& at) {
       const std::int64_t g = at.model.kv_heads;
       return g % at.recipe.tp == 0 || (at.rules.kv_heads_replicated_over_tp && at.recipe.tp % g == 0);
     },
     [](const LegalityCase& at) {
       return fmt::format("{} KV heads, tp {}, {} {} KV", at.model.kv_heads, at.recipe.tp, at.rules.name,
                          at.rules.kv_heads_replicated_over_tp ? "replicates" : "does not replicate");
     },
     [](const LegalityCase& at) {
       return may_be("tp", at.recipe.tp, at.model.heads, [&](std::int64_t v) {
         return at.model.kv_heads % v == 0 || (at.rules.kv_heads_replicated_over_tp && v % at.model.kv_heads == 0);
       });
     }},
    {"ffn_over_tp", "ffn_hidden % tp = 0", "the MLP matrices are cut along their width (Megatron ColumnParallelLinear)",
     "change tp", [](const LegalityCase& at) { return at.model.ffn_hidden % at.recipe.tp == 0; },
     [](const LegalityCase& at) {
       return fmt::format("{} % tp {} = {}", at.model.ffn_hidden, at.recipe.tp, at.model.ffn_hidden % at.recipe.tp);
     },
     [](const LegalityCase& at) {
       return may_be("tp", at.recipe.tp, at.model.heads, [&](std::int64_t v) { return at.model.ffn_hidden % v == 0; });
     }},
    {"cp_comm_offered", "the framework offers this CP communication", "policy cp_comms of the rule set",
     "choose another cp_comm or framework",
     [](const LegalityCase& at) { return at.recipe.cp == 1 || offers(at.rules.cp_comms, at.recipe.cp_comm); },
     [](const LegalityCase& at) { return fmt::format("{} has no {}", at.rules.name, name_of(at.recipe.cp_comm)); },
     [](const LegalityCase& at) { return fmt::format("it offers {}", listed(at.rules.cp_comms)); }},
    {"cp_needs_fused_attention", "cp > 1 needs a fused attention kernel on this GPU",
     "partial outputs are merged by the log-sum-exp that FlashAttention and cuDNN return; TransformerEngine refuses context "
     "parallelism over unfused attention, an exchange of heads needs no merge elsewhere",
     "set cp = 1, or take a GPU from Ampere on and a head size of at most 256 that is a multiple of 8",
     [](const LegalityCase& at) {
       if (at.gpu == nullptr || at.recipe.cp == 1) return true;
       if (at.recipe.cp_comm == CpComm::kA2a && !at.rules.te_workspace) return true;
       return attention_backend_on(at.rules, at.gpu->generation, at.model.head_dim) != AttentionBackend::kUnfused;
     },
     [](const LegalityCase& at) {
       return fmt::format("{} forms scores unfused on {} with heads of {}", at.rules.name, at.gpu->name, at.model.head_dim);
     },
     nothing},
    {"shard_layout_offered", "the framework offers this shard layout", "policy shard_layouts of the rule set",
     "choose another shard_layout or framework",
     [](const LegalityCase& at) { return at.recipe.cp == 1 || offers(at.rules.shard_layouts, at.recipe.shard_layout); },
     [](const LegalityCase& at) { return fmt::format("{} has no {} shards", at.rules.name, name_of(at.recipe.shard_layout)); },
     [](const LegalityCase& at) { return fmt::format("it offers {}", listed(at.rules.shard_layouts)); }},
    {"a2a_degree", "a2a+p2p: a2a_degree * ring = cp with 1 < a2a_degree < cp",
     "hierarchical sizes multiply to cp; the ends are plain p2p and plain a2a (TransformerEngine, Megatron "
     "hierarchical_context_parallel_sizes)",
     "change a2a_degree, or write cp_comm=p2p or cp_comm=a2a",
     [](const LegalityCase& at) {
       const std::int32_t u = at.recipe.a2a_degree;
       return at.recipe.cp_comm != CpComm::kA2aP2p || at.recipe.cp == 1 || (u > 1 && u < at.recipe.cp && at.recipe.cp % u == 0);
     },
     [](const LegalityCase& at) { return fmt::format("a2a_degree {}, cp {}", at.recipe.a2a_degree, at.recipe.cp); },
     [](const LegalityCase& at) {
       return may_be("a2a_degree", at.recipe.a2a_degree, at.recipe.cp - 1,
                     [&](std::int64_t v) { return v > 1 && at.recipe.cp % v == 0; });
     }},
    {"ring_window", "double_ring: window * windows = cp with 1 < window < cp",
     "the ring is cut into equal windows; at the ends it is the plain ring (InternEvo, LoongTrain)",
     "change window, or write cp_comm=p2p",
     [](const LegalityCase& at) {
       const std::int32_t w = at.recipe.window;
       return at.recipe.cp_comm != CpComm::kDoubleRing || at.recipe.cp == 1 ||
              (w > 1 && w < at.recipe.cp && at.recipe.cp % w == 0);
     },
     [](const LegalityCase& at) { return fmt::format("window {}, cp {}", at.recipe.window, at.recipe.cp); },
     [](const LegalityCase& at) {
       return may_be("window", at.recipe.window, at.recipe.cp - 1,
                     [&](std::int64_t v) { return v > 1 && at.recipe.cp % v == 0; });
     }},
    {"a2a_heads", "the a2a ranks divide the query and the KV heads of a TP rank (KV may be repeated where the framework does)",
     "the exchange gives every rank whole heads: with few KV heads a2a ends early (TransformerEngine, Megatron, DeepSpeed "
     "Ulysses)",
     "lower the a2a degree or tp; p2p has no such limit, and a2a+p2p goes beyond it with a ring outside",
     [](const LegalityCase& at) {
       const std::int64_t u = a2a_ranks(at.recipe);
       return u <= 1 || at.model.heads % at.recipe.tp != 0 || a2a_divides(at, u);
     },
     [](const LegalityCase& at) {
       return fmt::format("{} a2a ranks, {} query heads and {} KV heads on a TP rank", a2a_ranks(at.recipe),
                          at.model.heads / at.recipe.tp, kv_heads_on_rank(at));
     },
     [](const LegalityCase& at) {
       return may_be("the a2a degree", a2a_ranks(at.recipe), at.recipe.cp, [&](std::int64_t v) { return a2a_divides(at, v); });
     }},
    {"sequence_chunks", "sequence % (2 * cp) = 0 for zigzag, % cp otherwise",
     "all ranks hold equal chunks (Megatron argument check, PyTorch HeadTail)", "change cp or pad the sequence",
     [](const LegalityCase& at) { return sequence(at) % (at.recipe.cp == 1 ? 1 : chunks_per_rank(at) * at.recipe.cp) == 0; },
     [](const LegalityCase& at) {
       const std::int64_t chunks = chunks_per_rank(at) * at.recipe.cp;
       return fmt::format("{} % {} = {} with {} shards", sequence(at), chunks, sequence(at) % chunks,
                          name_of(at.recipe.shard_layout));
     },
     [](const LegalityCase& at) {
       return multiples_around("sequence_length", sequence(at), chunks_per_rank(at) * at.recipe.cp);
     }},
    {"sequence_framework", "sequence % what the framework asks = 0",
     "policies cp_chunk_multiple and sequence_multiple_has_tp of the rule set (torchtitan: 2 * cp * tp)", "pad the sequence",
     [](const LegalityCase& at) { return sequence(at) % framework_multiple(at) == 0; },
     [](const LegalityCase& at) {
       return fmt::format("{} asks for multiples of {}: {} % {} = {}", at.rules.name, framework_multiple(at), sequence(at),
                          framework_multiple(at), sequence(at) % framework_multiple(at));
     },
     [](const LegalityCase& at) { return multiples_around("sequence_length", sequence(at), framework_multiple(at)); }},
    {"sequence_over_tp", "with sequence_parallel and tp > 1: (sequence / cp) % tp = 0",
     "norms and dropout run on 1/tp of a rank's tokens (Megatron argument check)", "change tp, or set sequence_parallel=false",
     [](const LegalityCase& at) {
       if (!at.recipe.sequence_parallel || at.recipe.tp == 1 || sequence(at) % at.recipe.cp != 0) return true;
       return sequence(at) / at.recipe.cp % at.recipe.tp == 0;
     },
     [](const LegalityCase& at) {
       return fmt::format("{} tokens per rank % tp {} = {}", sequence(at) / at.recipe.cp, at.recipe.tp,
                          sequence(at) / at.recipe.cp % at.recipe.tp);
     },
     [](const LegalityCase& at) {
       return multiples_around("sequence_length", sequence(at), chunks_per_rank(at) * at.recipe.cp * at.recipe.tp);
     }},
    {"window_comm", "a sliding window with cp > 1 needs all_gather or a2a",
     "the ring kernels see one block at a time and refuse windows (TransformerEngine)", "write cp_comm=all_gather or cp_comm=a2a",
     [](const LegalityCase& at) {
       return at.recipe.cp == 1 || at.recipe.cp_comm == CpComm::kAllGather || at.recipe.cp_comm == CpComm::kA2a ||
              active_window(at) == 0;
     },
     [](const LegalityCase& at) {
       return fmt::format("window of {} tokens, cp {}, cp_comm {}", active_window(at), at.recipe.cp, name_of(at.recipe.cp_comm));
     },
     nothing},
    {"bias_comm", "an attention bias (ALiBi) does not go with a2a+p2p", "TransformerEngine refuses it", "write cp_comm=p2p",
     [](const LegalityCase& at) {
       return at.model.position != PositionKind::kAlibi || at.recipe.cp == 1 || at.recipe.cp_comm != CpComm::kA2aP2p;
     },
     [](const LegalityCase& at) { return fmt::format("{} has ALiBi, cp_comm {}", at.model.name, name_of(at.recipe.cp_comm)); },
     nothing},
    {"positions", "sequence <= learned positions", "a table of positions has no row beyond its end", "shorten the sequence",
     [](const LegalityCase& at) {
       return at.model.position != PositionKind::kLearned || at.model.max_positions == 0 ||
              sequence(at) <= at.model.max_positions;
     },
     [](const LegalityCase& at) { return fmt::format("{} tokens, {} positions", sequence(at), at.model.max_positions); },
     nothing},
    {"documents_fit", "the documents, each padded to 2 * cp tokens, fit the sequence",
     "every document is cut into 2 * cp chunks on its own (TransformerEngine thd_partition, PyTorch PerDocumentHeadTail)",
     "lower cp, put fewer documents into a sequence, or lengthen it",
     [](const LegalityCase& at) {
       if (at.training.mask.kind != MaskKind::kDocuments) return true;
       const double slack = 1e-6 * static_cast<double>(sequence(at));  // a histogram's counts are fractions
       return packed_tokens(at) <= static_cast<double>(sequence(at)) + slack;
     },
     [](const LegalityCase& at) {
       return fmt::format("{:.0f} padded tokens in a sequence of {} at cp {}", packed_tokens(at), sequence(at), at.recipe.cp);
     },
     [](const LegalityCase& at) {
       const std::int64_t step = chunks_per_rank(at) * at.recipe.cp * at.recipe.tp;
       return fmt::format("sequence_length may be {}", (static_cast<std::int64_t>(packed_tokens(at)) + step) / step * step);
     }},
    {"documents_comm", "packed documents do not go with double_ring",
     "InternEvo's double ring has no packed data (InternEvo#346)", "write cp_comm=p2p",
     [](const LegalityCase& at) {
       return at.training.mask.kind != MaskKind::kDocuments || at.recipe.cp == 1 || at.recipe.cp_comm != CpComm::kDoubleRing;
     },
     [](const LegalityCase& at) { return fmt::format("documents, cp {}, cp_comm double_ring", at.recipe.cp); }, nothing},
};

}  // namespace cpfit::legality
