#include "kernels/verify/block.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/fixture_numbers.h"
#include "kernels/reference/rope.h"

namespace cpfit::kernels {

namespace {

// Order of a layer's parameters; a model is [embedding][kPerLayer of layer 0]...[final norm][head].
enum : std::size_t { kNormAttention, kQuery, kKey, kValue, kOutput, kNormMlp, kGate, kUp, kDown, kPerLayer };
constexpr const char* kLayerNames[] = {"norm_attention", "query", "key", "value", "output", "norm_mlp", "gate", "up", "down"};

std::size_t of_layer(std::int32_t layer, std::size_t which) { return 1 + static_cast<std::size_t>(layer) * kPerLayer + which; }

/// What a layer's backward needs again.
struct LayerState {
  DenseMatrix input, normed, attended, middle, middle_normed, gate, up, product;
};

DenseMatrix embed(const DenseMatrix& table, const std::vector<std::int32_t>& ids) {
  DenseMatrix x(static_cast<std::int64_t>(ids.size()), table.columns);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    std::copy_n(table.row(ids[t]), table.columns, x.row(static_cast<std::int64_t>(t)));
  }
  return x;
}

class BlockPass {
 public:
  BlockPass(const BlockSize& size, const Parameters& parameters, const BlockTokens& tokens, BlockAttention& attention)
      : size_(size), parameters_(parameters), tokens_(tokens), attention_(attention), gradients_(zeros_like(parameters)) {}

  BlockSums run() {
    DenseMatrix x = embed(weight(0), tokens_.ids);
    for (std::int32_t layer = 0; layer < size_.layers; ++layer) x = layer_forward(layer, x);
    const std::size_t last_norm = of_layer(size_.layers, 0);
    const DenseMatrix normed = rms_norm(x, weight(last_norm));
    DenseMatrix dlogits;
    BlockSums sums;
    sums.loss = cross_entropy(times(normed, weight(last_norm + 1)), tokens_.labels, dlogits);
    for (const std::int32_t label : tokens_.labels) sums.valid += label >= 0 ? 1 : 0;
    DenseMatrix dx = rms_norm_backward(x, weight(last_norm), projected_back(last_norm + 1, normed, dlogits), gradient(last_norm));
    for (std::int32_t layer = size_.layers - 1; layer >= 0; --layer) dx = layer_backward(layer, dx);
    for (std::size_t t = 0; t < tokens_.ids.size(); ++t) {
      const double* from = dx.row(static_cast<std::int64_t>(t));
      double* to = gradient(0).row(tokens_.ids[t]);
      for (std::int64_t i = 0; i < dx.columns; ++i) to[i] += from[i];
    }
    sums.gradients = std::move(gradients_);
    return sums;
  }

 private:
  [[nodiscard]] const DenseMatrix& weight(std::size_t index) const { return parameters_[index].matrix; }
  [[nodiscard]] DenseMatrix& gradient(std::size_t index) { return gradients_[index].matrix; }

  /// Backward of y = x w: adds to dw, gives dx.
  DenseMatrix projected_back(std::size_t index, const DenseMatrix& x, const DenseMatrix& dy) {
    add_transposed_times(x, dy, gradient(index));
    return times_transposed(dy, weight(index));
  }

  DenseMatrix layer_forward(std::int32_t layer, const DenseMatrix& input) {
    LayerState state;
    state.input = input;
    state.normed = rms_norm(input, weight(of_layer(layer, kNormAttention)));
    DenseMatrix q = times(state.normed, weight(of_layer(layer, kQuery)));
    DenseMatrix k = times(state.normed, weight(of_layer(layer, kKey)));
    q.values = rotate(q.values, tokens_.positions, size_.heads.q, size_.heads.qk_dim);
    k.values = rotate(k.values, tokens_.positions, size_.heads.kv, size_.heads.qk_dim);
    state.attended = attention_.forward(layer, q, k, times(state.normed, weight(of_layer(layer, kValue))));
    state.middle = times(state.attended, weight(of_layer(layer, kOutput)));
    add_to(input, state.middle);
    state.middle_normed = rms_norm(state.middle, weight(of_layer(layer, kNormMlp)));
    state.gate = times(state.middle_normed, weight(of_layer(layer, kGate)));
    state.up = times(state.middle_normed, weight(of_layer(layer, kUp)));
    state.product = gated(state.gate, state.up);
    DenseMatrix y = times(state.product, weight(of_layer(layer, kDown)));
    add_to(state.middle, y);
    states_.push_back(std::move(state));
    return y;
  }

  DenseMatrix layer_backward(std::int32_t layer, const DenseMatrix& dy) {
    const LayerState& state = states_[static_cast<std::size_t>(layer)];
    DenseMatrix dgate, dup;
    gated_backward(state.gate, state.up, projected_back(of_layer(layer, kDown), state.product, dy), dgate, dup);
    DenseMatrix dnormed = projected_back(of_layer(layer, kGate), state.middle_normed, dgate);
    add_to(projected_back(of_layer(layer, kUp), state.middle_normed, dup), dnormed);
    const std::size_t norm_mlp = of_layer(layer, kNormMlp);
    DenseMatrix dmiddle = rms_norm_backward(state.middle, weight(norm_mlp), dnormed, gradient(norm_mlp));
    add_to(dy, dmiddle);  // the residual beside the MLP

    AttentionGradients d = attention_.backward(layer, projected_back(of_layer(layer, kOutput), state.attended, dmiddle));
    d.dq.values = rotate_gradient(d.dq.values, tokens_.positions, size_.heads.q, size_.heads.qk_dim);
    d.dk.values = rotate_gradient(d.dk.values, tokens_.positions, size_.heads.kv, size_.heads.qk_dim);
    dnormed = projected_back(of_layer(layer, kQuery), state.normed, d.dq);
    add_to(projected_back(of_layer(layer, kKey), state.normed, d.dk), dnormed);
    add_to(projected_back(of_layer(layer, kValue), state.normed, d.dv), dnormed);
    const std::size_t norm = of_layer(layer, kNormAttention);
    DenseMatrix dx = rms_norm_backward(state.input, weight(norm), dnormed, gradient(norm));
    add_to(dmiddle, dx);
    return dx;
  }

  const BlockSize& size_;
  const Parameters& parameters_;
  const BlockTokens& tokens_;
  BlockAttention& attention_;
  Parameters gradients_;
  std::vector<LayerState> states_;
};

}  // namespace

Parameters block_parameters(const BlockSize& size, std::uint32_t seed) {
  Parameters parameters;
  const auto add = [&](std::string name, std::int64_t rows, std::int64_t columns, double mean, double spread) {
    DenseMatrix matrix(rows, columns);
    matrix.values = grid_numbers(seed + static_cast<std::uint32_t>(parameters.size()), rows * columns, 22);
    for (double& value : matrix.values) value = mean + spread * value;
    parameters.push_back({std::move(name), std::move(matrix)});
  };
  const auto projection = [&](const std::string& name, std::int64_t from, std::int64_t to) {
    add(name, from, to, 0.0, 1.0 / std::sqrt(static_cast<double>(from)));
  };
  const Heads& heads = size.heads;
  add("embedding", size.vocabulary, size.hidden, 0.0, 1.0);
  for (std::int32_t layer = 0; layer < size.layers; ++layer) {
    const std::string prefix = "layer" + std::to_string(layer) + ".";
    const std::pair<std::int64_t, std::int64_t> shapes[kPerLayer] = {{1, size.hidden},
                                                                     {size.hidden, heads.q * heads.qk_dim},
                                                                     {size.hidden, heads.kv * heads.qk_dim},
                                                                     {size.hidden, heads.kv * heads.v_dim},
                                                                     {heads.q * heads.v_dim, size.hidden},
                                                                     {1, size.hidden},
                                                                     {size.hidden, size.ffn},
                                                                     {size.hidden, size.ffn},
                                                                     {size.ffn, size.hidden}};
    for (std::size_t i = 0; i < kPerLayer; ++i) {
      const std::string name = prefix + kLayerNames[i];
      if (i == kNormAttention || i == kNormMlp)
        add(name, 1, size.hidden, 1.0, 0.1);
      else
        projection(name, shapes[i].first, shapes[i].second);
    }
  }
  add("norm_final", 1, size.hidden, 1.0, 0.1);
  projection("head", size.hidden, size.vocabulary);
  return parameters;
}

Parameters zeros_like(const Parameters& parameters) {
  Parameters zeros;
  for (const Parameter& parameter : parameters) {
    zeros.push_back({parameter.name, DenseMatrix(parameter.matrix.rows, parameter.matrix.columns)});
  }
  return zeros;
}

BlockSums block_forward_backward(const BlockSize& size, const Parameters& parameters, const BlockTokens& tokens,
                                 BlockAttention& attention) {
  return BlockPass(size, parameters, tokens, attention).run();
}

}  // namespace cpfit::kernels
