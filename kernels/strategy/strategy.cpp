#include "kernels/strategy/strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/core/require.h"
#include "kernels/strategy/all_gather.h"
#include "kernels/strategy/double_ring.h"
#include "kernels/strategy/head_exchange.h"
#include "kernels/strategy/ring.h"

namespace cpfit::kernels {

namespace {

/// The method as the ranks run it: an all-to-all alone is one over all of them.
Method resolved(const Method& method, std::int32_t cp) {
  Method resolved = method;
  if (method.exchange == Exchange::kAllToAll) resolved.a2a_degree = cp;
  if (method.exchange != Exchange::kAllToAll && method.exchange != Exchange::kAllToAllRing) resolved.a2a_degree = 1;
  return resolved;
}

bool exchanges_heads(const Method& method) { return method.a2a_degree > 1; }

/// Ranks among which KV goes round, or is gathered.
std::int32_t ring_size(const Method& method, std::int32_t cp) { return cp / method.a2a_degree; }

RingSeat whole_ring(const Transport& transport) { return {transport.rank(), transport.size(), 0, 1}; }

void require_group(const Method& method, const Layer& layer, const Transport& transport) {
  const std::string reason = why_not(method, layer, transport.size());
  require(reason.empty(), "{} on {} ranks: {}", method.name, transport.size(), reason);
}

std::string why_not_heads(const Method& method, const Heads& heads) {
  const std::int32_t u = method.a2a_degree;
  if (heads.kv < 1 || heads.q % heads.kv != 0) {
    return fmt::format("{} query heads do not divide by {} KV heads", heads.q, heads.kv);
  }
  if (heads.q % u != 0) {
    return fmt::format("{} query heads do not divide by {} ranks that exchange heads: take a degree that divides them", heads.q,
                       u);
  }
  if (heads.kv % u == 0) return "";
  if (u % heads.kv != 0) {
    return fmt::format("{} KV heads and {} ranks that exchange heads: one must divide the other", heads.kv, u);
  }
  if (method.repeat_kv) return "";
  return fmt::format(
      "{} KV heads do not divide by {} ranks that exchange heads: take a degree of at most {}, or a method that "
      "repeats KV heads",
      heads.kv, u, heads.kv);
}

std::string why_not_degree(const Method& method, const Layer& layer, std::int32_t cp) {
  if (method.exchange == Exchange::kDoubleRing) {
    if (method.window >= 1 && cp % method.window == 0) return "";
    return fmt::format("{} ranks do not divide into windows of {}", cp, method.window);
  }
  const std::int32_t u = method.a2a_degree;
  if (u < 1 || cp % u != 0) return fmt::format("{} ranks do not divide into groups of {} that exchange heads", cp, u);
  if (groups_make_shards(layer.queries, layer.mask, u) && groups_make_shards(layer.keys, layer.mask, u)) return "";
  return fmt::format("the shards of {} neighbours make no shard of a ring of {}: cut zigzag or contiguous", u, cp / u);
}

/// A planted fault needs the thing that it spoils.
std::string why_not_fault(const Method& method, const Layer& layer, std::int32_t cp) {
  const bool gathers = method.exchange == Exchange::kAllGather;
  const bool turns = !gathers && ring_size(method, cp) > 1;
  const auto padded = [](const attention::Document& document) { return document.real > 0 && document.real < document.padded; };
  const auto uneven = [&](const attention::Document& document) { return document.real % ring_size(method, cp) != 0; };
  switch (method.fault) {
    case Fault::kSeamOffByOne:
      if (ring_size(method, cp) > 1 && layer.mask.shape != attention::MaskShape::kFull) return "";
      return "this fault needs shards with seams and a mask that sees positions";
    case Fault::kMaskShiftedByBlock:
      return gathers || turns ? "" : "this fault needs ring steps";
    case Fault::kMergeThroughExp:
    case Fault::kDkvOneHopShort:
    case Fault::kKvOfStepZero:
      return turns ? "" : "this fault needs a ring";
    case Fault::kLengthFloored:
      return std::ranges::any_of(layer.mask.documents, uneven) ? ""
                                                               : "this fault needs a document whose real length leaves a rest";
    case Fault::kPaddedKeyAttended:
      return std::ranges::any_of(layer.mask.documents, padded) ? "" : "this fault needs a document with padding";
    default:
      return "";
  }
}

}  // namespace

std::string why_not(const Method& asked, const Layer& layer, std::int32_t cp) {
  if (cp < 1) return fmt::format("{} ranks", cp);
  if (layer.queries.cp != cp || layer.keys.cp != cp) {
    return fmt::format("the layer is cut over {} and {} ranks, there are {}", layer.queries.cp, layer.keys.cp, cp);
  }
  const Method method = resolved(asked, cp);
  for (const Cut& cut : {layer.queries, layer.keys}) {
    if (std::string reason = why_not(cut, layer.mask); !reason.empty()) return reason;
  }
  const bool same_length = layer.queries.tokens == layer.keys.tokens;
  if (!same_length && layer.mask.shape == attention::MaskShape::kDocuments) {
    return fmt::format("packed documents with {} queries and {} keys: they belong to self attention", layer.queries.tokens,
                       layer.keys.tokens);
  }
  if (layer.queries.layout != layer.keys.layout || layer.queries.per_document != layer.keys.per_document) {
    return "queries and keys are cut in different ways";
  }
  if (std::string reason = why_not_degree(method, layer, cp); !reason.empty()) return reason;
  if (std::string reason = why_not_heads(method, layer.heads); !reason.empty()) return reason;
  return why_not_fault(method, layer, cp);
}

Forward attend(const Method& asked, const Layer& layer, Operators& operators, Transport& transport, const View& q, const View& k,
               const View& v) {
  require_group(asked, layer, transport);
  const Method method = resolved(asked, transport.size());
  const RankContext context{method, layer, operators, transport};
  const KvView own{k, v};
  if (exchanges_heads(method)) return exchanged_forward(context, q, own);
  switch (method.exchange) {
    case Exchange::kAllGather:
      return all_gather_forward(context, q, own);
    case Exchange::kDoubleRing:
      return double_ring_forward(context, q, own);
    default:
      return ring_forward(context, whole_ring(transport), q, own);
  }
}

Gradients attend_backward(const Method& asked, const Layer& layer, Operators& operators, Transport& transport,
                          const Forward& forward, const View& q, const View& k, const View& v, const View& dout) {
  require_group(asked, layer, transport);
  const Method method = resolved(asked, transport.size());
  const RankContext context{method, layer, operators, transport};
  const KvView own{k, v};
  if (exchanges_heads(method)) return exchanged_backward(context, forward, dout);
  switch (method.exchange) {
    case Exchange::kAllGather:
      return all_gather_backward(context, forward, q, own, dout);
    case Exchange::kDoubleRing:
      return double_ring_backward(context, forward, q, own, dout);
    default:
      return ring_backward(context, whole_ring(transport), forward, forward.out, q, own, dout);
  }
}

Array lse_of_shard(const Method& asked, const Layer& layer, Operators& operators, Transport& transport, const Forward& forward) {
  const Method method = resolved(asked, transport.size());
  if (!exchanges_heads(method)) return forward.lse;
  return lse_sent_home({method, layer, operators, transport}, forward.lse);
}

std::vector<std::int32_t> result_rows(const Method& method, const Cut& cut, const Mask& mask) {
  if (method.fault != Fault::kPermutationNotInverted) return unshard_rows(cut, mask);
  std::vector<std::int32_t> rows;  // the permutation that cut the sequence, applied once more
  for (std::int32_t rank = 0; rank < cut.cp; ++rank) {
    const std::vector<std::int32_t> of_rank = storage_rows(cut, mask, rank);
    rows.insert(rows.end(), of_rank.begin(), of_rank.end());
  }
  return rows;
}

}  // namespace cpfit::kernels
