#include "block_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/cpu_operators.h"
#include "kernels/reference/fixture_numbers.h"
#include "model/attention/mask.h"

namespace cpfit::kernels::block_case {

using attention::BlockKind;
using attention::KeyRange;

namespace {

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}
/// |x - truth| / |truth|; infinity when x has anything that is not finite.
double error_of(const std::vector<double>& x, const std::vector<double>& truth) {
  EXPECT_EQ(x.size(), truth.size());
  std::vector<double> difference(truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(x[i])) return INFINITY;
    difference[i] = x[i] - truth[i];
  }
  const double size = norm(truth);
  return size == 0 ? norm(difference) : norm(difference) / size;
}
/// Largest difference of log-sum-exps; rows that attend to nothing must say so in both.
double lse_error(const std::vector<double>& lse, const std::vector<double>& truth) {
  double worst = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (std::isinf(truth[i])) {
      if (lse[i] != truth[i]) return INFINITY;
      continue;
    }
    worst = std::isnan(lse[i]) ? INFINITY : std::max(worst, std::abs(lse[i] - truth[i]));
  }
  return worst;
}

std::vector<double> numbers_of(std::uint32_t seed, std::int64_t count) { return grid_numbers(seed, count, 7); }

Block block_of(const char* name, Number number, std::int64_t queries, std::int64_t keys, Heads heads, BlockKind kind) {
  heads.scale = 1 / std::sqrt(static_cast<double>(heads.qk_dim));
  return {name, number, heads, kind, queries, keys, {}, {}, true};
}
/// Queries and keys at storage rows `row_of(local)`.
template <class RowOf>
Block mixed_block(const char* name, Number number, std::int64_t rows, const Heads& heads, const attention::MaskView& mask,
                  std::int64_t storage, RowOf row_of, std::int64_t key_shift) {
  Block block = block_of(name, number, rows, rows, heads, BlockKind::kMixed);
  for (std::int64_t i = 0; i < rows; ++i) {
    block.ranges.push_back(attention::visible_keys(mask, row_of(i), storage));
    block.positions.push_back(static_cast<std::int32_t>(row_of(i) - key_shift));
  }
  return block;
}

}  // namespace

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

Inputs inputs_of(const Block& block) {
  const Heads& h = block.heads;
  return {numbers_of(1, block.queries * h.q * h.qk_dim), numbers_of(2, block.keys * h.kv * h.qk_dim),
          numbers_of(3, block.keys * h.kv * h.v_dim), numbers_of(4, block.queries * h.q * h.v_dim)};
}

std::vector<Block> blocks() {
  std::vector<Block> all;
  all.push_back(block_of("bf16_full_odd_lengths", Number::kBf16, 77, 131, {2, 1, 64, 64}, BlockKind::kFull));
  all.push_back(block_of("fp16_causal_grouped_heads", Number::kFp16, 150, 150, {4, 2, 64, 64}, BlockKind::kCausal));
  all.push_back(block_of("bf16_causal_longer_keys_narrow_results", Number::kBf16, 70, 139, {2, 1, 128, 128}, BlockKind::kCausal));
  all.back().wide = false;
  all.push_back(block_of("bf16_causal_fewer_keys", Number::kBf16, 90, 41, {1, 1, 64, 64}, BlockKind::kCausal));
  // The first query sees keys 0..62: the tile of keys 0..63 is full but for one.
  all.push_back(block_of("bf16_causal_one_key_short_of_a_tile", Number::kBf16, 40, 102, {1, 1, 64, 64}, BlockKind::kCausal));
  all.push_back(block_of("bf16_latent_heads", Number::kBf16, 65, 97, {2, 2, 192, 128}, BlockKind::kCausal));
  all.push_back(block_of("fp16_small_odd_head", Number::kFp16, 33, 17, {3, 1, 40, 24}, BlockKind::kFull));
  all.push_back(block_of("bf16_one_token", Number::kBf16, 1, 1, {1, 1, 64, 64}, BlockKind::kCausal));
  all.push_back(mixed_block(
      "bf16_window", Number::kBf16, 200, {2, 1, 64, 64}, attention::window_mask(50), 200, [](std::int64_t i) { return i; }, 0));
  static const attention::Document kDocuments[] = {{0, 1, 8}, {8, 60, 64}, {72, 0, 0}, {72, 90, 104}, {176, 17, 24}};
  all.push_back(mixed_block(
      "fp16_documents_with_padding", Number::kFp16, 200, {2, 2, 64, 64}, attention::document_mask(kDocuments, 5), 200,
      [](std::int64_t i) { return i; }, 0));
  all.push_back(mixed_block(
      "bf16_striped_strictly_causal", Number::kBf16, 100, {1, 1, 64, 64}, attention::causal_mask(), 400,
      [](std::int64_t i) { return 4 * i + 1; }, -1));
  all.push_back(mixed_block(
      "bf16_zigzag_first_against_last", Number::kBf16, 128, {1, 1, 64, 64}, attention::causal_mask(), 512,
      [](std::int64_t i) { return i < 64 ? 64 + i : 384 + i - 64; }, 0));
  all.push_back(block_of("fp32_causal", Number::kFp32, 75, 75, {2, 1, 48, 48}, BlockKind::kCausal));
  all.push_back(block_of("fp32_full_one_key", Number::kFp32, 40, 1, {1, 1, 17, 5}, BlockKind::kFull));
  all.push_back(mixed_block(
      "fp32_documents", Number::kFp32, 200, {2, 1, 32, 16}, attention::document_mask(kDocuments, 5), 200,
      [](std::int64_t i) { return i; }, 0));
  all.push_back(block_of("fp64_causal_fewer_keys", Number::kFp64, 50, 37, {2, 2, 24, 40}, BlockKind::kCausal));
  all.push_back(block_of("bf16_head_of_odd_size", Number::kBf16, 50, 50, {2, 1, 20, 12}, BlockKind::kCausal));
  return all;
}

Tensors run_block(Operators& on, const Block& block) {
  const Heads& h = block.heads;
  const Inputs inputs = inputs_of(block);
  const Array q = on.upload(block.number, block.queries, std::int64_t{h.q} * h.qk_dim, inputs.q);
  const Array k = on.upload(block.number, block.keys, std::int64_t{h.kv} * h.qk_dim, inputs.k);
  const Array v = on.upload(block.number, block.keys, std::int64_t{h.kv} * h.v_dim, inputs.v);
  const Array dout = on.upload(block.number, block.queries, std::int64_t{h.q} * h.v_dim, inputs.dout);
  std::vector<std::int32_t> ranges;
  std::vector<std::int32_t> positions = block.positions;
  for (std::int64_t i = 0; i < block.queries; ++i) {
    KeyRange range = {0, static_cast<std::int32_t>(block.keys)};
    if (block.kind == BlockKind::kCausal) range.end = static_cast<std::int32_t>(i + 1 + block.keys - block.queries);
    if (block.kind == BlockKind::kMixed) range = block.ranges[static_cast<std::size_t>(i)];
    ranges.insert(ranges.end(), {range.begin, range.end});
  }
  if (block.kind != BlockKind::kMixed) {
    positions.clear();
    for (std::int64_t j = 0; j < block.keys; ++j) positions.push_back(static_cast<std::int32_t>(j));
  }
  const Array range_array = on.upload_int(block.queries, 2, ranges);
  const Array position_array = on.upload_int(block.keys, 1, positions);
  const BlockMask mask = {block.kind, range_array, position_array};
  const Number wide = block.wide ? on.sum_number() : block.number;
  const Array out = on.allocate(wide, block.queries, std::int64_t{h.q} * h.v_dim);
  const Array lse = on.allocate(on.sum_number(), block.queries, h.q);
  const Array delta = on.allocate(on.sum_number(), block.queries, h.q);
  on.forward(h, mask, q, k, v, out, lse);
  on.row_delta(h, out, dout, delta);
  const Array dq = on.allocate(wide, block.queries, std::int64_t{h.q} * h.qk_dim);
  const Array dk = on.allocate(wide, block.keys, std::int64_t{h.kv} * h.qk_dim);
  const Array dv = on.allocate(wide, block.keys, std::int64_t{h.kv} * h.v_dim);
  on.backward(h, mask, q, k, v, dout, lse, delta, dq, dk, dv);
  return {on.download(out), on.download(lse), on.download(delta), on.download(dq), on.download(dk), on.download(dv), ""};
}

Tensors on_cpu(const Block& block, Number sum) {
  const auto operators = make_cpu_operators(sum);
  return run_block(*operators, block);
}

void expect_agreement(const Block& block, const Tensors& got, double multiple) {
  const Tensors truth = on_cpu(block, Number::kFp64);
  const bool is_fp64 = block.number == Number::kFp64;
  const Tensors other = on_cpu(block, is_fp64 ? Number::kFp64 : Number::kFp32);
  EXPECT_LE(lse_error(got.lse, truth.lse), is_fp64 ? 1e-13 : 2e-5);  // scores of up to 40: 40 * 2^-24, the sum's roundings
  // As good as another kernel of the same type: both round the weights and the gradients of scores once before products.
  const auto check = [&](const char* name, const std::vector<double>& x, const std::vector<double>& t,
                         const std::vector<double>& o) {
    EXPECT_LE(error_of(x, t), multiple * error_of(o, t) + (is_fp64 ? 1e-14 : 1e-6))
        << name << ": the other kernel " << error_of(o, t);
  };
  check("out", got.out, truth.out, other.out);
  check("dq", got.dq, truth.dq, other.dq);
  check("dk", got.dk, truth.dk, other.dk);
  check("dv", got.dv, truth.dv, other.dv);
}

}  // namespace cpfit::kernels::block_case
