// One layer run by all its ranks as threads, its results put together again, beside the truth of the same numbers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/truth.h"
#include "kernels/strategy/strategy.h"
#include "kernels/transport/counting.h"
#include "kernels/transport/in_process.h"
#include "tests/kernels/reference/attention_problems.h"

namespace cpfit::kernels {

/// Rows in the order of the sequence.
struct LayerResult {
  std::vector<double> out, lse, dq, dk, dv;
  friend bool operator==(const LayerResult&, const LayerResult&) = default;
};

struct ShardedLayer {
  std::string name;
  Layer layer;
};

/// Messages and bytes that one rank sends in a pass.
struct PassTraffic {
  std::int64_t messages = 0, bytes = 0;
};
struct RankTraffic {
  PassTraffic forward, backward;
};

inline Method method_named(const std::string& name) {
  for (const Method& method : methods()) {
    if (method.name == name) return method;
  }
  ADD_FAILURE() << "no method " << name;
  return {};
}

inline ShardedLayer sharded_layer(std::string name, const Heads& heads, Mask mask, std::int64_t tokens, std::int32_t cp,
                                  attention::Layout layout = attention::Layout::kZigzag, bool per_document = false) {
  const Cut cut{layout, per_document, tokens, cp};
  return {std::move(name), {heads, std::move(mask), cut, cut, Number::kFp64}};
}

/// What runs between a rank's operators and the strategy; the identity unless a test looks on.
using WrapOperators = std::function<Operators&(std::int32_t rank, Operators& operators)>;

struct LayerRun {
  LayerResult result;
  std::vector<RankTraffic> traffic;  // (cp)
};

inline ProblemTensors layer_tensors(const Layer& layer, int fraction_bits = 10) {
  return tensors_of({"", layer.heads, layer.mask, layer.queries.tokens, layer.keys.tokens}, fraction_bits);
}

/// One rank's part: its rows of the results, what it sent.
inline LayerResult run_rank_of_layer(const Method& method, const Layer& layer, Operators& operators, Transport& inner,
                                     const ProblemTensors& tensors, RankTraffic& traffic) {
  const Heads& heads = layer.heads;
  CountingTransport transport(inner);
  const auto shard = [&](const std::vector<double>& rows, const Cut& cut, std::int64_t columns) {
    std::vector<double> local;
    for (const std::int32_t row : storage_rows(cut, layer.mask, transport.rank())) {
      local.insert(local.end(), rows.begin() + row * columns, rows.begin() + (row + 1) * columns);
    }
    return operators.upload(layer.number, cut.tokens_per_rank(), columns, local);
  };
  const Array q = shard(tensors.q, layer.queries, heads.q * heads.qk_dim);
  const Array k = shard(tensors.k, layer.keys, heads.kv * heads.qk_dim);
  const Array v = shard(tensors.v, layer.keys, heads.kv * heads.v_dim);
  const Array dout = shard(tensors.dout, layer.queries, heads.q * heads.v_dim);
  const Forward forward = attend(method, layer, operators, transport, q, k, v);
  traffic.forward = {transport.messages(), transport.bytes()};
  const Gradients gradients = attend_backward(method, layer, operators, transport, forward, q, k, v, dout);
  traffic.backward = {transport.messages() - traffic.forward.messages, transport.bytes() - traffic.forward.bytes};
  const Array lse = lse_of_shard(method, layer, operators, transport, forward);
  return {operators.download(forward.out), operators.download(lse), operators.download(gradients.dq),
          operators.download(gradients.dk), operators.download(gradients.dv)};
}

inline LayerResult results_together(const Method& method, const Layer& layer, const std::vector<LayerResult>& ranks) {
  const Heads& heads = layer.heads;
  LayerResult whole;
  const auto together = [&](std::vector<double> LayerResult::* tensor, const Cut& cut, std::int64_t columns) {
    std::vector<double> rank_major;
    for (const LayerResult& rank : ranks) rank_major.insert(rank_major.end(), (rank.*tensor).begin(), (rank.*tensor).end());
    std::vector<double>& ordered = whole.*tensor;
    for (const std::int32_t row : result_rows(method, cut, layer.mask)) {
      ordered.insert(ordered.end(), rank_major.begin() + row * columns, rank_major.begin() + (row + 1) * columns);
    }
  };
  together(&LayerResult::out, layer.queries, heads.q * heads.v_dim);
  together(&LayerResult::lse, layer.queries, heads.q);
  together(&LayerResult::dq, layer.queries, heads.q * heads.qk_dim);
  together(&LayerResult::dk, layer.keys, heads.kv * heads.qk_dim);
  together(&LayerResult::dv, layer.keys, heads.kv * heads.v_dim);
  return whole;
}

/// One method after another on the same ranks.
inline std::vector<LayerRun> run_methods(const std::vector<Method>& methods, const Layer& layer, Number sum,
                                         const ProblemTensors& tensors, const WrapOperators& wrap = {}) {
  const auto cp = static_cast<std::size_t>(layer.queries.cp);
  std::vector<std::vector<LayerResult>> ranks(methods.size(), std::vector<LayerResult>(cp));
  std::vector<LayerRun> runs(methods.size());
  for (LayerRun& run : runs) run.traffic.resize(cp);
  run_ranks(layer.queries.cp, std::chrono::seconds(60), [&](Transport& transport) {
    const std::unique_ptr<Operators> own = make_cpu_operators(sum);
    Operators& operators = wrap ? wrap(transport.rank(), *own) : *own;
    const auto rank = static_cast<std::size_t>(transport.rank());
    for (std::size_t i = 0; i < methods.size(); ++i) {
      ranks[i][rank] = run_rank_of_layer(methods[i], layer, operators, transport, tensors, runs[i].traffic[rank]);
    }
  });
  for (std::size_t i = 0; i < methods.size(); ++i) runs[i].result = results_together(methods[i], layer, ranks[i]);
  return runs;
}

inline LayerRun run_layer(const Method& method, const Layer& layer, Number sum, const ProblemTensors& tensors,
                          const WrapOperators& wrap = {}) {
  return run_methods({method}, layer, sum, tensors, wrap)[0];
}

inline LayerResult true_layer(const Layer& layer, const ProblemTensors& t) {
  const TrueAttention truth = true_attention(layer.heads, layer.mask.view(), t.q, t.k, t.v);
  const TrueGradients gradients = true_gradients(layer.heads, layer.mask.view(), t.q, t.k, t.v, t.dout);
  return {truth.out, truth.lse, gradients.dq, gradients.dk, gradients.dv};
}

/// The larger of both measures of error of each tensor.
struct LayerErrors {
  double out = 0, lse = 0, dq = 0, dk = 0, dv = 0;
  [[nodiscard]] double largest() const {
    double most = 0;
    for (const double error : {out, lse, dq, dk, dv}) most = error <= most ? most : error;  // NaN is the largest
    return most;
  }
};
inline LayerErrors layer_errors(const LayerResult& computed, const LayerResult& truth, const Heads& heads) {
  const auto worst = [](const std::vector<double>& a, const std::vector<double>& b, std::int64_t width) {
    EXPECT_EQ(a.size(), b.size());
    const TensorError error = error_of(a, b, width);
    return error.normwise >= error.worst_row ? error.normwise : error.worst_row;
  };
  return {worst(computed.out, truth.out, heads.q * heads.v_dim), worst(computed.lse, truth.lse, heads.q),
          worst(computed.dq, truth.dq, heads.q * heads.qk_dim), worst(computed.dk, truth.dk, heads.kv * heads.qk_dim),
          worst(computed.dv, truth.dv, heads.kv * heads.v_dim)};
}

/// Every kind of mask and cut over cp ranks, awkward lengths among them.
inline std::vector<ShardedLayer> sharded_layers(std::int32_t cp, const Heads& heads) {
  using attention::Layout;
  using attention::MaskShape;
  const std::int64_t multiple = 2 * cp;
  std::vector<ShardedLayer> layers;
  for (const Layout layout : {Layout::kZigzag, Layout::kContiguous, Layout::kStriped}) {
    constexpr const char* kNames[] = {"zigzag", "contiguous", "striped"};
    const std::string cut = std::string(" ") + kNames[static_cast<int>(layout)];
    const std::int64_t tokens = 5 * multiple;
    layers.push_back(sharded_layer("full" + cut, heads, {MaskShape::kFull, 0, {}}, tokens, cp, layout));
    layers.push_back(sharded_layer("causal" + cut, heads, {MaskShape::kCausal, 0, {}}, tokens, cp, layout));
    layers.push_back(sharded_layer("window of 7" + cut, heads, {MaskShape::kWindow, 7, {}}, tokens, cp, layout));
    layers.push_back(sharded_layer("one token a chunk" + cut, heads, {MaskShape::kCausal, 0, {}}, multiple, cp, layout));
    const Mask flat = documents_of({3, 1, 4 * multiple - 5, 0, 9}, 1);  // adds up to 4 * multiple + 8 tokens
    const std::int64_t stored = attention::round_up(tokens_of(flat), multiple);
    Mask padded = flat;
    padded.documents.back().padded += stored - tokens_of(flat);  // the tail alone is padded
    layers.push_back(sharded_layer("documents across shards" + cut, heads, padded, stored, cp, layout));
  }
  // One by one: of 1 token, shorter than 2 cp, empty, just over a multiple, and one whose padding fills whole ranks.
  const Mask documents = documents_of({1, multiple - 1, 0, 2 * multiple + 1, 3 * multiple}, multiple);
  layers.push_back(sharded_layer("documents one by one", heads, documents, tokens_of(documents), cp, Layout::kZigzag, true));
  const Mask windowed = documents_of({1, multiple - 1, 0, 2 * multiple + 1, 3 * multiple}, multiple, 5);
  layers.push_back(sharded_layer("windowed documents", heads, windowed, tokens_of(windowed), cp, Layout::kZigzag, true));
  for (const MaskShape shape : {MaskShape::kFull, MaskShape::kCausal, MaskShape::kWindow}) {
    for (const bool more_keys : {false, true}) {
      ShardedLayer cross = sharded_layer("cross lengths", heads, {shape, shape == MaskShape::kWindow ? 6 : 0, {}},
                                         (more_keys ? 2 : 4) * multiple, cp);
      cross.layer.keys.tokens = (more_keys ? 5 : 3) * multiple;
      layers.push_back(cross);
    }
  }
  return layers;
}

}  // namespace cpfit::kernels
