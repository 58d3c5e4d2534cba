#include "kernels/verify/block_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/core/require.h"
#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/fixture_numbers.h"
#include "kernels/reference/truth.h"
#include "kernels/transport/in_process.h"

namespace cpfit::kernels {

namespace {

constexpr std::uint32_t kParameterSeed = 700;
constexpr std::uint32_t kTokenSeed = 600;
constexpr std::chrono::milliseconds kRankTimeout{120'000};

/// The whole sequence, from the definition.
class TrueBlockAttention final : public BlockAttention {
 public:
  TrueBlockAttention(const Heads& heads, const Mask& mask) : heads_(heads), mask_(mask) {}

  DenseMatrix forward(std::int32_t /*layer*/, const DenseMatrix& q, const DenseMatrix& k, const DenseMatrix& v) override {
    kept_.push_back({q, k, v});
    DenseMatrix out(q.rows, std::int64_t{heads_.q} * heads_.v_dim);
    out.values = true_attention(heads_, mask_.view(), q.values, k.values, v.values).out;
    return out;
  }
  AttentionGradients backward(std::int32_t layer, const DenseMatrix& dout) override {
    const auto& [q, k, v] = kept_[static_cast<std::size_t>(layer)];
    TrueGradients found = true_gradients(heads_, mask_.view(), q.values, k.values, v.values, dout.values);
    AttentionGradients gradients{DenseMatrix(q.rows, q.columns), DenseMatrix(k.rows, k.columns), DenseMatrix(v.rows, v.columns)};
    gradients.dq.values = std::move(found.dq);
    gradients.dk.values = std::move(found.dk);
    gradients.dv.values = std::move(found.dv);
    return gradients;
  }

 private:
  struct Kept {
    DenseMatrix q, k, v;
  };
  Heads heads_;
  Mask mask_;
  std::vector<Kept> kept_;
};

/// One rank of a strategy.
class ShardedBlockAttention final : public BlockAttention {
 public:
  ShardedBlockAttention(const Method& method, const Layer& layer, Operators& operators, Transport& transport)
      : method_(method), layer_(layer), operators_(operators), transport_(transport) {}

  DenseMatrix forward(std::int32_t /*layer*/, const DenseMatrix& q, const DenseMatrix& k, const DenseMatrix& v) override {
    Kept kept{uploaded(q), uploaded(k), uploaded(v), {}};
    kept.forward = attend(method_, layer_, operators_, transport_, kept.q, kept.k, kept.v);
    DenseMatrix out = downloaded(kept.forward.out);
    kept_.push_back(std::move(kept));
    return out;
  }
  AttentionGradients backward(std::int32_t layer, const DenseMatrix& dout) override {
    const Kept& kept = kept_[static_cast<std::size_t>(layer)];
    const Gradients found =
        attend_backward(method_, layer_, operators_, transport_, kept.forward, kept.q, kept.k, kept.v, uploaded(dout));
    return {downloaded(found.dq), downloaded(found.dk), downloaded(found.dv)};
  }

 private:
  struct Kept {
    Array q, k, v;
    Forward forward;
  };
  Array uploaded(const DenseMatrix& x) { return operators_.upload(layer_.number, x.rows, x.columns, x.values); }
  DenseMatrix downloaded(const Array& array) {
    const View view = array.view();
    DenseMatrix x(view.rows, view.row_elements);
    x.values = operators_.download(view);
    return x;
  }
  const Method& method_;
  const Layer& layer_;
  Operators& operators_;
  Transport& transport_;
  std::vector<Kept> kept_;
};

template <class Value>
std::vector<Value> taken(const std::vector<Value>& all, const std::vector<std::int32_t>& index) {
  std::vector<Value> part;
  part.reserve(index.size());
  for (const std::int32_t row : index) part.push_back(all[static_cast<std::size_t>(row)]);
  return part;
}

/// What a rank holds. Labels were shifted before; the planted fault shifts them now, inside the shard.
BlockTokens tokens_of_rank(const Case& verified, const BlockTokens& whole, const Layer& layer, std::int32_t rank) {
  const std::vector<std::int32_t> index = storage_rows(layer.queries, layer.mask, rank);
  BlockTokens tokens{taken(whole.ids, index), taken(whole.labels, index), position_ids(layer.queries, layer.mask, rank)};
  if (verified.fault == Fault::kLabelsShiftedAfterShard) {
    for (std::size_t j = 0; j + 1 < tokens.ids.size(); ++j) {
      if (tokens.labels[j] >= 0) tokens.labels[j] = tokens.ids[j + 1];
    }
  }
  if (verified.fault == Fault::kSeamOffByOne) {  // the rotary position at a chunk's first token
    for (std::size_t j = 1; j < index.size(); ++j) {
      if (index[j] != index[j - 1] + 1 && tokens.positions[j] > 0) --tokens.positions[j];
    }
  }
  return tokens;
}

void append(const Parameters& parameters, std::vector<double>& flat) {
  for (const Parameter& parameter : parameters)
    flat.insert(flat.end(), parameter.matrix.values.begin(), parameter.matrix.values.end());
}

/// The rank's sums become sums over all ranks; the result is theirs by token.
BlockResult reduced(const Case& verified, BlockSums own, Operators& operators, Transport& transport) {
  std::vector<double> flat = {own.loss, static_cast<double>(own.valid)};
  append(own.gradients, flat);
  if (verified.fault == Fault::kLossMeanOfMeans) {  // each rank's mean, then the mean of the ranks
    const double mine = static_cast<double>(std::max<std::int64_t>(1, own.valid));
    for (double& value : flat) value /= mine * transport.size();
    flat[1] = 1.0 / transport.size();
  }
  const Array array = operators.upload(Number::kFp64, 1, static_cast<std::int64_t>(flat.size()), flat);
  std::vector<std::int32_t> group(static_cast<std::size_t>(transport.size()));
  std::iota(group.begin(), group.end(), 0);
  transport.all_reduce(operators, group, array);
  flat = operators.download(array);
  BlockResult result;
  result.loss = flat[0] / flat[1];
  result.gradients = std::move(own.gradients);
  const double by_cp = verified.fault == Fault::kGradientDividedByCp ? transport.size() : 1.0;
  std::size_t next = 2;
  for (Parameter& parameter : result.gradients) {
    for (double& value : parameter.matrix.values) value = flat[next++] / flat[1] / by_cp;
  }
  return result;
}

}  // namespace

bool BlockReport::passed() const {
  const auto good = [this](const ParameterError& parameter) {
    return parameter.error.normwise <= tolerance && parameter.error.largest <= tolerance;
  };
  return trouble.empty() && !errors.empty() && std::abs(loss - loss_truth) <= tolerance * std::abs(loss_truth) &&
         std::ranges::all_of(errors, good);
}

const ParameterError& BlockReport::worst() const {
  require(!errors.empty(), "a block that did not run has no worst parameter");
  return *std::ranges::max_element(errors, {}, [](const ParameterError& parameter) { return parameter.error.normwise; });
}

Case block_case(const std::string& method, std::int32_t cp, Fault fault) {
  const std::int64_t multiple = std::int64_t{2} * cp;
  Case made;
  made.method = method;
  made.mask = attention::MaskShape::kDocuments;
  for (const std::int64_t real : {std::int64_t{1}, 3 * multiple + 1, multiple - 1, 4 * multiple, 2 * multiple - 3}) {
    made.documents.push_back({real, attention::round_up(real, multiple)});
    made.query_tokens += made.documents.back().padded;
  }
  made.key_tokens = made.query_tokens;
  made.shape = fmt::format("two layers, {} tokens in 5 documents", made.query_tokens);
  made.per_document = true;
  made.cp = cp;
  made.number = Number::kFp64;
  made.heads = BlockSize{}.heads;
  made.fault = fault;
  made.name = fmt::format("{} | {} | cp {} | block", method, made.shape, cp);
  return made;
}

Parameters suite_parameters(const BlockSize& size) { return block_parameters(size, kParameterSeed); }

BlockTokens block_tokens(const Case& verified, const BlockSize& size) {
  const Layer layer = layer_of(verified);
  const auto count = static_cast<std::size_t>(verified.query_tokens);
  BlockTokens tokens;
  tokens.labels.assign(count, -1);
  tokens.positions.resize(count);
  for (std::size_t t = 0; t < count; ++t) {
    const double number = grid_number(kTokenSeed, static_cast<std::uint32_t>(t));  // in [-2, 2)
    tokens.ids.push_back(static_cast<std::int32_t>((number + 2.0) / 4.0 * size.vocabulary));
  }
  for (const attention::Document& document : layer.mask.documents) {
    for (std::int64_t place = 0; place < document.padded; ++place) {
      const auto t = static_cast<std::size_t>(document.start + place);
      tokens.positions[t] = static_cast<std::int32_t>(place);
      if (place + 1 < document.real) tokens.labels[t] = tokens.ids[t + 1];
    }
  }
  for (const std::int32_t t : storage_rows(layer.queries, layer.mask, verified.cp - 1))
    tokens.labels[static_cast<std::size_t>(t)] = -1;
  return tokens;
}

BlockResult unsharded_block(const Case& verified, const BlockSize& size, const Parameters& parameters) {
  TrueBlockAttention attention(size.heads, mask_of(verified));
  BlockSums sums = block_forward_backward(size, parameters, block_tokens(verified, size), attention);
  BlockResult result{sums.loss / static_cast<double>(sums.valid), std::move(sums.gradients)};
  for (Parameter& parameter : result.gradients) {
    for (double& value : parameter.matrix.values) value /= static_cast<double>(sums.valid);
  }
  return result;
}

BlockResult sharded_block(const Case& verified, const BlockSize& size, const Parameters& parameters) {
  const Outcome<Method> method = method_of(verified);
  require(method.ok(), "a block of the unknown method '{}' was to be run", verified.method);
  const Layer layer = layer_of(verified);
  const BlockTokens whole = block_tokens(verified, size);
  std::vector<BlockResult> ranks(static_cast<std::size_t>(verified.cp));
  run_ranks(verified.cp, kRankTimeout, [&](InProcessTransport& transport) {
    const std::unique_ptr<Operators> operators = make_cpu_operators(Number::kFp64);
    ShardedBlockAttention attention(*method, layer, *operators, transport);
    BlockSums sums =
        block_forward_backward(size, parameters, tokens_of_rank(verified, whole, layer, transport.rank()), attention);
    ranks[static_cast<std::size_t>(transport.rank())] = reduced(verified, std::move(sums), *operators, transport);
  });
  return ranks.front();
}

std::vector<Case> block_cases() {
  std::vector<Case> cases;
  for (const Method& method : methods()) {
    for (const std::int32_t cp : {2, 4}) {
      Case made = block_case(method.name, cp, Fault::kNone);
      if (why_not(method, layer_of(made), cp).empty()) cases.push_back(std::move(made));
    }
  }
  return cases;
}

BlockReport run_block(const Case& verified) {
  const BlockSize size;
  const Parameters parameters = suite_parameters(size);
  const BlockResult truth = unsharded_block(verified, size, parameters);
  BlockReport report;
  report.verified = verified;
  report.loss_truth = truth.loss;
  try {
    const BlockResult sharded = sharded_block(verified, size, parameters);
    report.loss = sharded.loss;
    for (std::size_t i = 0; i < truth.gradients.size(); ++i) {
      const DenseMatrix& expected = truth.gradients[i].matrix;
      report.errors.push_back(
          {truth.gradients[i].name, errors_of(sharded.gradients[i].matrix.values, expected.values, expected.columns,
                                              std::vector<std::uint8_t>(static_cast<std::size_t>(expected.rows), 1))});
    }
  } catch (const Error& error) {
    report.trouble = error.what();
    report.loss = std::numeric_limits<double>::quiet_NaN();
  }
  return report;
}

}  // namespace cpfit::kernels
