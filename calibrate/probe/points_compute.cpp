// Probes that every rank measures for itself, all at the same time: a rank has its share of the machine's memory and heat, as in
// a real step. The figure is the mean over ranks.
#include <fmt/format.h>

#include <limits>

#include "calibrate/probe/points.h"
#include "kernels/reference/truth.h"
#include "model/attention/merge.h"

namespace cpfit::probe {

using kernels::Array;
using kernels::Heads;
using kernels::Number;
using kernels::View;

namespace {

SeriesRequest request_of(const PointContext& context, std::function<double()> seconds) {
  Together& together = context.together;
  return {context.rule,
          {"seconds"},
          {Combine::kMean},
          [seconds = std::move(seconds), &together] {
            together.barrier();
            return std::vector<double>{seconds()};
          },
          context.interrupted};
}

/// The tensors of one operator bound by memory; `bytes` are those of the result.
struct MemoryTensors {
  Heads heads{8, 8, 64, 64, 0.125};
  Array part, part_lse, sum, sum_lse, index;
};

MemoryTensors memory_tensors(const PointContext& context, std::int64_t bytes) {
  kernels::Operators& operators = context.device.operators();
  const Number number = context.device.number();
  MemoryTensors tensors;
  const std::int64_t columns = tensors.heads.out_columns();
  const std::int64_t rows = std::max<std::int64_t>(bytes / (columns * kernels::bytes_of(number)), 1);
  tensors.part = random_array(operators, number, rows, columns, context.seed + 1);
  tensors.sum = random_array(operators, number, rows, columns, context.seed + 2);
  tensors.part_lse = random_array(operators, operators.sum_number(), rows, tensors.heads.q, context.seed + 3);
  tensors.sum_lse = random_array(operators, operators.sum_number(), rows, tensors.heads.q, context.seed + 4);
  // As a cut does it: rows that follow each other in runs, the runs in another order.
  std::vector<std::int32_t> index(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    index[static_cast<std::size_t>(i)] = static_cast<std::int32_t>((i + rows / 2) % rows);
  }
  tensors.index = operators.upload_int(rows, 1, index);
  return tensors;
}

void run_memory(kernels::Operators& operators, const MemoryTensors& tensors, const std::string& operation) {
  if (operation == "copy") operators.copy(tensors.part, tensors.sum);
  if (operation == "gather") operators.gather_rows(tensors.part, tensors.index, tensors.sum);
  if (operation == "sum") operators.add(tensors.part, tensors.sum);
  if (operation == "merge") {
    operators.merge(tensors.heads, kernels::MergeForm::kStable, tensors.part, tensors.part_lse, tensors.sum, tensors.sum_lse);
  }
}

std::string differs(const std::string& what, double error, double limit) {
  return error <= limit ? std::string()
                        : fmt::format("{} differs from the truth by {:.3g}, {:.3g} is allowed", what, error, limit);
}

}  // namespace

void measure_attention(const PointContext& context, MeasuredPoint& point) {
  const std::string kernel = point.text("kernel");
  kernels::Operators& operators = context.device.operators(kernel);
  const bool backward = point.text("pass") == "backward";
  const BlockTensors block = make_block(operators, context.device.number(), heads_at(point), *point.integer("q"),
                                        *point.integer("kv"), point.text("mask") == "causal", context.seed);
  run_block(operators, block, backward);
  operators.finish();
  // All ranks have the same device and the same block: they agree.
  if (!context.device.was_taken_by(kernel)) {
    point.outcome = MeasuredOutcome::kSkipped;
    point.reason = kernel + " does not take this block";
    return;
  }
  take(context,
       request_of(context, [&] { return context.device.seconds_of(operators, [&] { run_block(operators, block, backward); }); }),
       point);
}

void measure_gemm(const PointContext& context, MeasuredPoint& point) {
  const auto product = context.device.product(*point.integer("m"), *point.integer("n"), *point.integer("k"));
  take(context,
       request_of(context, [&] { return context.device.seconds_of(context.device.operators(), [&] { product->run(); }); }),
       point);
}

void measure_memory(const PointContext& context, MeasuredPoint& point) {
  const std::string operation = point.text("operation");
  const MemoryTensors tensors = memory_tensors(context, *point.integer("bytes"));
  kernels::Operators& operators = context.device.operators();
  take(context,
       request_of(context,
                  [&] { return context.device.seconds_of(operators, [&] { run_memory(operators, tensors, operation); }); }),
       point);
}

void measure_launch(const PointContext& context, MeasuredPoint& point) {
  const std::string mode = point.text("mode");
  take(context, request_of(context, [&] { return context.device.launch_seconds(mode); }), point);
}

std::string check_attention(const PointContext& context, const std::string& kernel) {
  kernels::Operators& operators = context.device.operators(kernel);
  const Heads heads{4, 2, 64, 64, 0.125};
  const double limit = tolerance_of(context.device.number());
  for (const bool causal : {true, false}) {
    const BlockTensors block = make_block(operators, context.device.number(), heads, 128, 128, causal, context.seed);
    run_block(operators, block, true);
    const auto q = operators.download(block.q);
    const auto k = operators.download(block.k);
    const auto v = operators.download(block.v);
    const auto mask = causal ? attention::causal_mask() : attention::full_mask();
    const kernels::TrueAttention truth = kernels::true_attention(heads, mask, q, k, v);
    const kernels::TrueGradients gradients = kernels::true_gradients(heads, mask, q, k, v, operators.download(block.dout));
    for (const std::string& text : {differs("out", relative_error(operators.download(block.out), truth.out), limit),
                                    differs("lse", relative_error(operators.download(block.lse), truth.lse), limit),
                                    differs("dq", relative_error(operators.download(block.dq), gradients.dq), limit),
                                    differs("dk", relative_error(operators.download(block.dk), gradients.dk), limit),
                                    differs("dv", relative_error(operators.download(block.dv), gradients.dv), limit)}) {
      if (!text.empty()) return fmt::format("attention of {}: {}", kernel, text);
    }
  }
  return "";
}

std::string check_gemm(const PointContext& context) {
  constexpr std::size_t kM = 24, kN = 40, kK = 56;  // three sizes, so that a transposition shows
  const auto product = context.device.product(kM, kN, kK);
  product->run();
  const std::vector<double> a = product->left();
  const std::vector<double> b = product->right();
  std::vector<double> expected(kM * kN, 0.0);
  for (std::size_t i = 0; i < kM; ++i) {
    for (std::size_t l = 0; l < kK; ++l) {
      for (std::size_t j = 0; j < kN; ++j) expected[i * kN + j] += a[i * kK + l] * b[l * kN + j];
    }
  }
  return differs("a matrix product", relative_error(product->result(), expected), tolerance_of(context.device.number()));
}

std::string check_memory(const PointContext& context) {
  kernels::Operators& operators = context.device.operators();
  const double limit = tolerance_of(context.device.number());
  for (const char* operation : {"copy", "merge", "gather", "sum"}) {
    const MemoryTensors tensors = memory_tensors(context, 64 * 1024);
    const auto part = operators.download(tensors.part);
    const auto part_lse = operators.download(tensors.part_lse);
    auto expected = operators.download(tensors.sum);
    const auto sum_lse = operators.download(tensors.sum_lse);
    const auto index = operators.download(tensors.index);
    const auto columns = static_cast<std::size_t>(tensors.heads.out_columns());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string name = operation;
      const std::size_t row = i / columns;
      if (name == "copy") expected[i] = part[i];
      if (name == "sum") expected[i] += part[i];
      if (name == "gather") expected[i] = part[static_cast<std::size_t>(index[row]) * columns + i % columns];
      if (name == "merge") {
        const std::size_t at =
            row * static_cast<std::size_t>(tensors.heads.q) + i % columns / static_cast<std::size_t>(tensors.heads.v_dim);
        const auto weights = attention::merge_weights(sum_lse[at], part_lse[at]);
        expected[i] = weights.first * expected[i] + weights.second * part[i];
      }
    }
    run_memory(operators, tensors, operation);
    const std::string text = differs(operation, relative_error(operators.download(tensors.sum), expected), limit);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace cpfit::probe
