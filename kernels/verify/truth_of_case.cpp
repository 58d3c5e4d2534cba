#include "kernels/verify/truth_of_case.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/core/require.h"
#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/truth.h"
#include "kernels/verify/fixture.h"

namespace cpfit::kernels {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr std::array<std::vector<double> AttentionTensors::*, kTensorCount> kMembers = {
    &AttentionTensors::out, &AttentionTensors::lse, &AttentionTensors::dq, &AttentionTensors::dk, &AttentionTensors::dv};

bool by_key(TensorName tensor) { return tensor == TensorName::kDk || tensor == TensorName::kDv; }

/// Heads in a row of the tensor.
std::int64_t heads_of(const Heads& heads, TensorName tensor) {
  return tensor == TensorName::kLse ? 1 : by_key(tensor) ? heads.kv : heads.q;
}

std::vector<double> part_of(const std::vector<double>& rows, std::int64_t begin, std::int64_t count, std::int64_t columns) {
  return {rows.begin() + begin * columns, rows.begin() + (begin + count) * columns};
}

void append(const std::vector<double>& rows, std::vector<double>& to) { to.insert(to.end(), rows.begin(), rows.end()); }

/// Documents attend to themselves alone: each is a causal (or windowed) sequence of its own.
AttentionTensors compact_truth(const Case& compact) {
  const Fixture fixture = fixture_of(compact);
  const Heads& heads = compact.heads;
  AttentionTensors truth;
  const auto add = [&](const attention::MaskView& mask, const std::vector<double>& q, const std::vector<double>& k,
                       const std::vector<double>& v, const std::vector<double>& dout) {
    const TrueAttention forward = true_attention(heads, mask, q, k, v);
    const TrueGradients gradients = true_gradients(heads, mask, q, k, v, dout);
    append(forward.out, truth.out);
    append(forward.lse, truth.lse);
    append(gradients.dq, truth.dq);
    append(gradients.dk, truth.dk);
    append(gradients.dv, truth.dv);
  };
  if (compact.documents.empty()) {
    const Mask mask = mask_of(compact);
    add(mask.view(), fixture.q, fixture.k, fixture.v, fixture.dout);
    return truth;
  }
  const attention::MaskView inside = compact.window > 0 ? attention::window_mask(compact.window) : attention::causal_mask();
  std::int64_t start = 0;
  for (const DocumentLength& length : compact.documents) {
    if (length.real > 0) {
      add(inside, part_of(fixture.q, start, length.real, std::int64_t{heads.q} * heads.qk_dim),
          part_of(fixture.k, start, length.real, std::int64_t{heads.kv} * heads.qk_dim),
          part_of(fixture.v, start, length.real, std::int64_t{heads.kv} * heads.v_dim),
          part_of(fixture.dout, start, length.real, std::int64_t{heads.q} * heads.v_dim));
    }
    start += length.real;
  }
  return truth;
}

/// What is left out of it (method, cut, name) does not change the truth.
std::string key_of(const Case& verified, bool with_number) {
  Case key = without_padding(verified);
  key.name = key.method = key.shape = "";
  key.layout = attention::Layout::kZigzag;
  key.inner = 0;
  key.fault = Fault::kNone;
  if (!with_number) key.number = key.number == Number::kFp64 || key.number == Number::kFp32 ? Number::kFp64 : Number::kBf16;
  return case_json(key);
}

}  // namespace

const char* name_of(TensorName tensor) {
  constexpr const char* kNames[] = {"out", "lse", "dq", "dk", "dv"};
  return kNames[static_cast<int>(tensor)];
}

const std::vector<double>& tensor_of(const AttentionTensors& tensors, TensorName tensor) {
  return tensors.*kMembers[static_cast<std::size_t>(tensor)];
}

std::int64_t row_elements(const Heads& heads, TensorName tensor) {
  if (tensor == TensorName::kLse) return heads.q;
  return tensor == TensorName::kOut || tensor == TensorName::kDv ? heads.v_dim : heads.qk_dim;
}

ErrorFigures errors_of(const std::vector<double>& x, const std::vector<double>& truth, std::int64_t row,
                       const std::vector<std::uint8_t>& judged) {
  require(x.size() == truth.size() && truth.size() == judged.size() * static_cast<std::size_t>(row),
          "{} numbers were compared with {} in {} rows of {}", x.size(), truth.size(), judged.size(), row);
  double truth_squares = 0, error_squares = 0;
  std::vector<std::pair<double, double>> rows;  // norm of the truth, largest error
  for (std::size_t r = 0; r < judged.size(); ++r) {
    if (judged[r] == 0) continue;
    double squares = 0, largest = 0;
    for (std::size_t i = r * static_cast<std::size_t>(row); i < (r + 1) * static_cast<std::size_t>(row); ++i) {
      const double error = std::abs(x[i] - truth[i]);
      if (!std::isfinite(error)) return {kInfinity, kInfinity};
      squares += truth[i] * truth[i];
      error_squares += error * error;
      largest = std::max(largest, error);
    }
    truth_squares += squares;
    rows.emplace_back(std::sqrt(squares), largest);
  }
  if (rows.empty()) return {};
  const double mean_norm = std::sqrt(truth_squares / static_cast<double>(rows.size()));
  ErrorFigures figures;
  figures.normwise = error_squares == 0 ? 0 : truth_squares == 0 ? kInfinity : std::sqrt(error_squares / truth_squares);
  for (const auto& [norm, largest] : rows) {
    if (largest > 0)
      figures.largest = std::max(figures.largest, mean_norm == 0 ? kInfinity : largest / std::max(norm, mean_norm));
  }
  return figures;
}

std::vector<std::uint8_t> judged_rows(const Case& verified, TensorName tensor, const std::vector<double>& truth_lse) {
  const std::vector<TokenOrigin> origins = token_origins(verified, by_key(tensor) ? verified.key_tokens : verified.query_tokens);
  std::vector<std::uint8_t> judged;
  for (std::size_t token = 0; token < origins.size(); ++token) {
    bool real = origins[token].document >= 0;
    if (!by_key(tensor)) real = real && std::isfinite(truth_lse[token * static_cast<std::size_t>(verified.heads.q)]);
    judged.insert(judged.end(), static_cast<std::size_t>(heads_of(verified.heads, tensor)), real ? 1 : 0);
  }
  return judged;
}

Case without_padding(const Case& verified) {
  Case compact = verified;
  compact.cp = 1;
  compact.per_document = false;
  if (verified.documents.empty()) return compact;
  compact.query_tokens = 0;
  for (DocumentLength& length : compact.documents) {
    length.padded = length.real;
    compact.query_tokens += length.real;
  }
  compact.key_tokens = compact.query_tokens;
  return compact;
}

AttentionTensors with_padding(const Case& verified, const AttentionTensors& compact) {
  AttentionTensors whole;
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    const std::vector<TokenOrigin> origins =
        token_origins(verified, by_key(tensor) ? verified.key_tokens : verified.query_tokens);
    const std::int64_t columns = row_elements(verified.heads, tensor) * heads_of(verified.heads, tensor);
    const std::vector<double>& from = tensor_of(compact, tensor);
    std::vector<double>& to = whole.*kMembers[static_cast<std::size_t>(i)];
    to.reserve(origins.size() * static_cast<std::size_t>(columns));
    std::int64_t next = 0;
    for (const TokenOrigin& origin : origins) {
      if (origin.document < 0) {
        to.insert(to.end(), static_cast<std::size_t>(columns), tensor == TensorName::kLse ? -kInfinity : 0.0);
      } else {
        to.insert(to.end(), from.begin() + next * columns, from.begin() + (next + 1) * columns);
        ++next;
      }
    }
  }
  return whole;
}

AttentionTensors truth_of(const Case& verified) { return with_padding(verified, compact_truth(without_padding(verified))); }

AttentionTensors unsharded_kernel(const Case& verified, Operators& operators) {
  const Fixture fixture = fixture_of(verified);
  const Mask mask = mask_of(verified);
  const Heads& heads = verified.heads;
  const std::int64_t s_q = verified.query_tokens, s_k = verified.key_tokens;
  const Number number = verified.number;
  const Array q = operators.upload(number, s_q, std::int64_t{heads.q} * heads.qk_dim, fixture.q);
  const Array k = operators.upload(number, s_k, std::int64_t{heads.kv} * heads.qk_dim, fixture.k);
  const Array v = operators.upload(number, s_k, std::int64_t{heads.kv} * heads.v_dim, fixture.v);
  const Array dout = operators.upload(number, s_q, std::int64_t{heads.q} * heads.v_dim, fixture.dout);
  const Cut whole{attention::Layout::kZigzag, false, s_q, 1};
  std::vector<std::int32_t> ranges;
  for (const attention::KeyRange& range : query_ranges(whole, mask, s_k, 0)) {
    ranges.push_back(range.begin);
    ranges.push_back(range.end);
  }
  std::vector<std::int32_t> positions(static_cast<std::size_t>(s_k));
  std::iota(positions.begin(), positions.end(), 0);
  const Array query_range = operators.upload_int(s_q, 2, ranges);
  const Array key_position = operators.upload_int(s_k, 1, positions);
  const BlockMask block{attention::BlockKind::kMixed, query_range, key_position};
  const Array out = operators.allocate(number, s_q, std::int64_t{heads.q} * heads.v_dim);
  const Array lse = operators.allocate(operators.sum_number(), s_q, heads.q);
  const Array delta = operators.allocate(operators.sum_number(), s_q, heads.q);
  const Array dq = operators.allocate(number, s_q, std::int64_t{heads.q} * heads.qk_dim);
  const Array dk = operators.allocate(number, s_k, std::int64_t{heads.kv} * heads.qk_dim);
  const Array dv = operators.allocate(number, s_k, std::int64_t{heads.kv} * heads.v_dim);
  operators.forward(heads, block, q, k, v, out, lse);
  operators.row_delta(heads, out, dout, delta);
  operators.backward(heads, block, q, k, v, dout, lse, delta, dq, dk, dv);
  return {operators.download(out), operators.download(lse), operators.download(dq), operators.download(dk),
          operators.download(dv)};
}

std::string sequence_key(const Case& verified) { return key_of(verified, true); }

std::array<ErrorFigures, kTensorCount> errors_by_tensor(const Case& verified, const AttentionTensors& compact,
                                                        const AttentionTensors& truth) {
  const Case sequence = without_padding(verified);
  std::array<ErrorFigures, kTensorCount> errors;
  for (int i = 0; i < kTensorCount; ++i) {
    const auto tensor = static_cast<TensorName>(i);
    errors[static_cast<std::size_t>(i)] =
        errors_of(tensor_of(compact, tensor), tensor_of(truth, tensor), row_elements(sequence.heads, tensor),
                  judged_rows(sequence, tensor, truth.lse));
  }
  return errors;
}

std::shared_ptr<const TruthShelf::Entry> TruthShelf::of(const Case& verified) {
  std::shared_ptr<Place> place;
  {
    const std::lock_guard guard(lock_);
    std::shared_ptr<Place>& found = places_[sequence_key(verified)];
    if (!found) found = std::make_shared<Place>();
    place = found;
  }
  std::call_once(place->made, [&] {
    const Case compact = without_padding(verified);
    auto entry = std::make_shared<Entry>();
    const std::string truth_key = key_of(verified, false);
    bool known = false;
    {
      const std::lock_guard guard(lock_);
      const auto found = truths_.find(truth_key);
      known = found != truths_.end();
      if (known) entry->truth = found->second;
    }
    if (!known) {
      entry->truth = compact_truth(compact);
      const std::lock_guard guard(lock_);
      truths_.emplace(truth_key, entry->truth);
    }
    const std::unique_ptr<Operators> operators =
        make_cpu_operators(verified.number == Number::kFp64 ? Number::kFp64 : Number::kFp32);
    entry->kernel = errors_by_tensor(verified, unsharded_kernel(compact, *operators), entry->truth);
    place->entry = entry;
  });
  return place->entry;
}

}  // namespace cpfit::kernels
