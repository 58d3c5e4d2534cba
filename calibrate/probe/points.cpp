#include "calibrate/probe/points.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/quantity/problem.h"

namespace cpfit::probe {

using kernels::Array;
using kernels::Heads;
using kernels::Number;

void take(const PointContext& context, const SeriesRequest& request, MeasuredPoint& point) {
  Series series = take_series(context.together, request);
  point.warm_ups = series.warm_ups;
  point.results = std::move(series.results);
  point.reason = series.caution;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // two minus infinities too
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  if (difference == 0) return 0;
  const double error = std::sqrt(difference / std::max(size, 1e-300));
  return std::isfinite(error) ? error : HUGE_VAL;
}

double tolerance_of(Number number) { return number == Number::kFp64 ? 1e-11 : number == Number::kFp32 ? 1e-4 : 0.03; }

Array random_array(kernels::Operators& operators, Number number, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  // Many numbers are some 10^6 of them again and again: no time depends on it, and making them would cost more than measuring.
  constexpr std::int64_t kMostNumbers = std::int64_t{1} << 20;
  const std::int64_t some_rows = std::clamp<std::int64_t>(kMostNumbers / std::max<std::int64_t>(columns, 1), 1, rows);
  std::vector<double> values(static_cast<std::size_t>(some_rows * columns));
  std::uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
  for (double& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<double>(state >> 40) / 8388608.0 - 1.0;
  }
  Array some = operators.upload(number, some_rows, columns, values);
  if (some_rows == rows) return some;
  Array all = operators.allocate(number, rows, columns);
  for (std::int64_t row = 0; row < rows; row += some_rows) {
    const std::int64_t count = std::min(some_rows, rows - row);
    operators.copy(some.view().slice(0, count), all.view().slice(row, count));
  }
  operators.finish();
  return all;
}

Heads heads_at(const MeasuredPoint& point) {
  Heads heads;
  heads.q = static_cast<std::int32_t>(point.integer("heads").value_or(1));
  heads.kv = static_cast<std::int32_t>(point.integer("kv_heads").value_or(heads.q));
  heads.qk_dim = static_cast<std::int32_t>(point.integer("head_dim").value_or(64));
  heads.v_dim = static_cast<std::int32_t>(point.integer("head_dim_v").value_or(heads.qk_dim));
  heads.scale = 1 / std::sqrt(static_cast<double>(heads.qk_dim));
  return heads;
}

BlockTensors make_block(kernels::Operators& operators, Number number, const Heads& heads, std::int64_t queries, std::int64_t keys,
                        bool causal, std::uint64_t seed) {
  BlockTensors block;
  block.heads = heads;
  block.q = random_array(operators, number, queries, heads.q_columns(), seed + 1);
  block.k = random_array(operators, number, keys, heads.k_columns(), seed + 2);
  block.v = random_array(operators, number, keys, heads.v_columns(), seed + 3);
  block.dout = random_array(operators, number, queries, heads.out_columns(), seed + 4);
  block.out = operators.allocate(number, queries, heads.out_columns());
  block.lse = operators.allocate(operators.sum_number(), queries, heads.q);
  block.delta = operators.allocate(operators.sum_number(), queries, heads.q);
  block.dq = operators.allocate(number, queries, heads.q_columns());
  block.dk = operators.allocate(number, keys, heads.k_columns());
  block.dv = operators.allocate(number, keys, heads.v_columns());
  std::vector<std::int32_t> range;
  for (std::int64_t i = 0; i < queries; ++i) {
    range.push_back(0);
    range.push_back(static_cast<std::int32_t>(causal ? i + 1 + keys - queries : keys));
  }
  std::vector<std::int32_t> position(static_cast<std::size_t>(keys));
  for (std::size_t i = 0; i < position.size(); ++i) position[i] = static_cast<std::int32_t>(i);
  block.range = operators.upload_int(queries, 2, range);
  block.position = operators.upload_int(keys, 1, position);
  block.mask = {causal ? attention::BlockKind::kCausal : attention::BlockKind::kFull, block.range, block.position};
  run_block(operators, block, false);
  operators.row_delta(heads, block.out, block.dout, block.delta);
  operators.finish();
  return block;
}

void run_block(kernels::Operators& operators, const BlockTensors& block, bool backward) {
  if (backward) {
    operators.backward(block.heads, block.mask, block.q, block.k, block.v, block.dout, block.lse, block.delta, block.dq, block.dk,
                       block.dv);
  } else {
    operators.forward(block.heads, block.mask, block.q, block.k, block.v, block.out, block.lse);
  }
}

std::string check_key(const MeasuredPoint& point) {
  if (point.probe == "attention") return "attention " + point.text("kernel");
  if (point.probe == "ring_step") {
    return "ring_step " + point.text("method") + " " + point.text("mask") + " " + point.text("layout") + " cp " +
           std::to_string(point.integer("cp").value_or(0));
  }
  const bool messages =
      point.probe == "p2p" || point.probe == "collective" || point.probe == "overlap" || point.probe == "shared_nic";
  return messages ? "messages" : point.probe;
}

std::string check_probe(const PointContext& context, const MeasuredPoint& point) {
  const auto own = [&]() -> std::string {
    if (point.probe == "ring_step") return check_ring(context, point);
    if (check_key(point) == "messages") return check_messages(context);
    try {  // no rank meets another in these: what fails on one (a library that is missing) is an answer
      if (point.probe == "attention") return check_attention(context, point.text("kernel"));
      if (point.probe == "gemm") return check_gemm(context);
      if (point.probe == "memory") return check_memory(context);
    } catch (const Error& failure) {
      return failure.what();
    }
    return "";
  };
  // The first rank's trouble is everybody's.
  for (const std::string& text : context.together.texts(own())) {
    if (!text.empty()) return text;
  }
  return "";
}

void measure_point(const PointContext& context, MeasuredPoint& point) {
  using Measure = void (*)(const PointContext&, MeasuredPoint&);
  static const std::map<std::string, Measure> kMeasures = {{"attention", measure_attention},
                                                           {"gemm", measure_gemm},
                                                           {"memory", measure_memory},
                                                           {"launch", measure_launch},
                                                           {"p2p", measure_p2p},
                                                           {"collective", measure_collective},
                                                           {"overlap", measure_overlap},
                                                           {"shared_nic", measure_shared_nic},
                                                           {"ring_step", measure_ring_step}};
  kMeasures.at(point.probe)(context, point);
}

}  // namespace cpfit::probe
