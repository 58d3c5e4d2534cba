#include "emulated_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>

#include "device_twin.h"
#include "kernels/cuda/attention_dkdv.cuh"
#include "kernels/cuda/attention_dq.cuh"
#include "kernels/cuda/attention_forward.cuh"
#include "kernels/cuda/plain_attention.cuh"
#include "kernels/cuda/tile_extremes.cuh"

namespace cpfit::kernels::emulated {

namespace {

using attention::BlockKind;
using attention::KeyRange;

/// `count` elements at a place aligned to 16 bytes, and nothing behind them: what is read or written there, the sanitizer sees.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::int64_t count) : values_(static_cast<std::size_t>(count)) {
    if (!values_.empty()) std::memset(static_cast<void*>(values_.data()), 0xFF, values_.size() * sizeof(T));
  }
  explicit Buffer(const std::vector<double>& from) : Buffer(static_cast<std::int64_t>(from.size())) {
    for (std::size_t i = 0; i < from.size(); ++i) values_[i] = device::from_real<T>(from[i]);
  }
  T* data() { return values_.data(); }
  [[nodiscard]] const T* data() const { return values_.data(); }
  [[nodiscard]] std::vector<double> read() const {
    std::vector<double> numbers;
    for (const T& value : values_) numbers.push_back(device::to_real<double>(value));
    return numbers;
  }

 private:
  std::vector<T> values_;
};

/// Results in either type.
template <class Element>
class Results {
 public:
  Results(std::int64_t rows, int heads, int columns, bool wide)
      : wide_values_(wide ? rows * heads * columns : 0), values_(wide ? 0 : rows * heads * columns) {
    out_ = {wide ? static_cast<void*>(wide_values_.data()) : values_.data(), wide, heads, columns};
  }
  [[nodiscard]] const device::Output<Element>& output() const { return out_; }
  [[nodiscard]] std::vector<double> read() const { return out_.wide ? wide_values_.read() : values_.read(); }

 private:
  Buffer<float> wide_values_;
  Buffer<Element> values_;
  device::Output<Element> out_;
};

/// A mask and the extremes that its kind asks for, as the launchers prepare them.
struct PreparedMask {
  std::vector<device::RowExtremes> rows;
  std::vector<device::KeyExtremes> keys;
  device::DeviceMask mask;
};

class EmulatedRun {
 public:
  EmulatedRun(const Block& block, bool reversed) : block_(block), reversed_(reversed) {}

  void launch(int blocks_x, int blocks_y, int threads, int shared_bytes, const std::function<void()>& kernel) {
    if (!failure_.empty() || blocks_x * blocks_y == 0) return;
    failure_ = simt::run({blocks_x, blocks_y, threads, static_cast<std::size_t>(shared_bytes), reversed_}, kernel);
  }
  PreparedMask prepare(int query_tile, int key_tile) {
    PreparedMask prepared;
    device::DeviceMask& mask = prepared.mask;
    mask.kind = block_.kind;
    mask.queries = static_cast<int>(block_.queries);
    mask.keys = static_cast<int>(block_.keys);
    if (block_.kind != BlockKind::kMixed) return prepared;
    mask.ranges = block_.ranges.data();
    mask.positions = block_.positions.data();
    prepared.rows.resize(static_cast<std::size_t>(device::tiles_in(mask.queries, query_tile)));
    prepared.keys.resize(static_cast<std::size_t>(device::tiles_in(mask.keys, key_tile)));
    launch(static_cast<int>(prepared.rows.size() + prepared.keys.size()), 1, 32, 0,
           [&] { device::tile_extremes_kernel<32>(mask, query_tile, key_tile, prepared.rows.data(), prepared.keys.data()); });
    mask.row_extremes = prepared.rows.data();
    mask.key_extremes = prepared.keys.data();
    return prepared;
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  const Block& block_;
  bool reversed_;
  std::string failure_;
};

template <class Real>
Buffer<Real> row_delta(const Block& block, const std::vector<double>& dout, const std::vector<double>& out) {
  std::vector<double> delta;
  const std::int64_t v_dim = block.heads.v_dim;
  for (std::int64_t i = 0; i < block.queries * block.heads.q; ++i) {
    double sum = 0;
    for (std::int64_t c = i * v_dim; c < (i + 1) * v_dim; ++c) {
      sum += dout[static_cast<std::size_t>(c)] * out[static_cast<std::size_t>(c)];
    }
    delta.push_back(sum);
  }
  return Buffer<Real>(delta);
}

template <class Element, int kQk, int kV>
Tensors run_tensor_cores(const Block& block, bool reversed) {
  const Heads& h = block.heads;
  const Inputs inputs = inputs_of(block);
  const int queries = static_cast<int>(block.queries);
  const int keys = static_cast<int>(block.keys);
  Buffer<Element> q(inputs.q);
  Buffer<Element> k(inputs.k);
  Buffer<Element> v(inputs.v);
  Buffer<Element> dout(inputs.dout);
  Buffer<float> lse(block.queries * h.q);
  Results<Element> out(block.queries, h.q, h.v_dim, block.wide);
  EmulatedRun emulator(block, reversed);

  device::ForwardArguments<Element> forward;
  forward.q = {q.data(), queries, h.q, h.qk_dim};
  forward.k = {k.data(), keys, h.kv, h.qk_dim};
  forward.v = {v.data(), keys, h.kv, h.v_dim};
  forward.out = out.output();
  forward.lse = lse.data();
  forward.heads = h.q;
  forward.group = h.q / h.kv;
  forward.scale_log2 = static_cast<float>(h.scale * std::log2(std::exp(1.0)));
  {
    using Tiles = device::ForwardTiles<Element, kQk, kV>;
    const PreparedMask mask = emulator.prepare(Tiles::kRows, Tiles::kKeys);
    forward.mask = mask.mask;
    emulator.launch(device::tiles_in(queries, Tiles::kRows), h.q, Tiles::kThreads, Tiles::kSharedBytes,
                    [&] { device::attention_forward_kernel<Element, kQk, kV>(forward); });
  }
  Tensors tensors;
  tensors.out = out.read();
  tensors.lse = lse.read();

  const Buffer<float> delta = row_delta<float>(block, inputs.dout, tensors.out);
  Results<Element> dq(block.queries, h.q, h.qk_dim, block.wide);
  Results<Element> dk(block.keys, h.kv, h.qk_dim, block.wide);
  Results<Element> dv(block.keys, h.kv, h.v_dim, block.wide);
  device::BackwardArguments<Element> backward;
  backward.q = forward.q;
  backward.k = forward.k;
  backward.v = forward.v;
  backward.dout = {dout.data(), queries, h.q, h.v_dim};
  backward.dq = dq.output();
  backward.dk = dk.output();
  backward.dv = dv.output();
  backward.lse = lse.data();
  backward.delta = delta.data();
  backward.heads = h.q;
  backward.group = forward.group;
  backward.scale = static_cast<float>(h.scale);
  backward.scale_log2 = forward.scale_log2;
  {
    using Tiles = device::DqTiles<Element, kQk, kV>;
    const PreparedMask mask = emulator.prepare(Tiles::kRows, Tiles::kKeys);
    backward.mask = mask.mask;
    emulator.launch(device::tiles_in(queries, Tiles::kRows), h.q, Tiles::kThreads, Tiles::kSharedBytes,
                    [&] { device::attention_dq_kernel<Element, kQk, kV>(backward); });
  }
  {
    using Tiles = device::DkdvTiles<Element, kQk, kV>;
    const PreparedMask mask = emulator.prepare(Tiles::kRows, Tiles::kKeys);
    backward.mask = mask.mask;
    emulator.launch(device::tiles_in(keys, Tiles::kKeys), h.kv, Tiles::kThreads, Tiles::kSharedBytes,
                    [&] { device::attention_dkdv_kernel<Element, kQk, kV>(backward); });
  }
  tensors.delta = delta.read();
  tensors.dq = dq.read();
  tensors.dk = dk.read();
  tensors.dv = dv.read();
  tensors.failure = emulator.failure();
  return tensors;
}

template <class Element, class Real, int kTile>
Tensors run_plain(const Block& block, bool reversed) {
  const Heads& h = block.heads;
  const Inputs inputs = inputs_of(block);
  const int queries = static_cast<int>(block.queries);
  const int keys = static_cast<int>(block.keys);
  Buffer<Element> q(inputs.q);
  Buffer<Element> k(inputs.k);
  Buffer<Element> v(inputs.v);
  Buffer<Element> dout(inputs.dout);
  Buffer<Real> lse(block.queries * h.q);
  Buffer<Real> out(block.queries * h.q * h.v_dim);
  Buffer<Element> narrow_dq(block.queries * h.q * h.qk_dim);
  Buffer<Real> dk(block.keys * h.kv * h.qk_dim);
  Buffer<Real> dv(block.keys * h.kv * h.v_dim);
  EmulatedRun emulator(block, reversed);
  const PreparedMask mask = emulator.prepare(kTile, kTile);

  device::PlainArguments<Element, Real> in;
  in.mask = mask.mask;
  in.q = q.data();
  in.k = k.data();
  in.v = v.data();
  in.dout = dout.data();
  in.out = out.data();
  in.dq = narrow_dq.data();
  in.dk = dk.data();
  in.dv = dv.data();
  in.wide_out = in.wide_dk = in.wide_dv = true;
  in.lse = lse.data();
  in.heads = h.q;
  in.group = h.q / h.kv;
  in.qk_dim = h.qk_dim;
  in.v_dim = h.v_dim;
  in.scale = static_cast<Real>(h.scale);
  emulator.launch(device::tiles_in(queries, kTile), h.q, device::kPlainThreads<kTile>,
                  device::plain_forward_bytes<Real, kTile>(h.qk_dim, h.v_dim),
                  [&] { device::plain_forward_kernel<Element, Real, kTile>(in); });
  Tensors tensors;
  tensors.out = out.read();
  tensors.lse = lse.read();
  const Buffer<Real> delta = row_delta<Real>(block, inputs.dout, tensors.out);
  in.final_lse = lse.data();
  in.delta = delta.data();
  const int bytes = device::plain_backward_bytes<Real, kTile>(h.qk_dim, h.v_dim);
  emulator.launch(device::tiles_in(keys, kTile), h.kv, device::kPlainThreads<kTile>, bytes,
                  [&] { device::plain_dkdv_kernel<Element, Real, kTile>(in); });
  emulator.launch(device::tiles_in(queries, kTile), h.q, device::kPlainThreads<kTile>, bytes,
                  [&] { device::plain_dq_kernel<Element, Real, kTile>(in); });
  tensors.delta = delta.read();
  tensors.dq = narrow_dq.read();
  tensors.dk = dk.read();
  tensors.dv = dv.read();
  tensors.failure = emulator.failure();
  return tensors;
}

/// fp16 differs from bf16 in one instruction and one rounding: its large heads would only take time to compile.
template <class Element>
Tensors run_element(const Block& block, bool reversed) {
  if (block.heads.qk_dim % 8 != 0) return run_plain<Element, float, 32>(block, reversed);
  if (block.heads.qk_dim <= 64 && block.heads.v_dim <= 64) return run_tensor_cores<Element, 64, 64>(block, reversed);
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    if (block.heads.qk_dim <= 128) return run_tensor_cores<Element, 128, 128>(block, reversed);
    return run_tensor_cores<Element, 192, 128>(block, reversed);
  }
  ADD_FAILURE() << block.name << ": these heads are emulated in bf16 only";
  return {};
}

}  // namespace

Tensors on_emulator(const Block& block, bool reversed) {
  if (block.number == Number::kFp64) return run_plain<double, double, 16>(block, reversed);
  if (block.number == Number::kFp32) return run_plain<float, float, 32>(block, reversed);
  if (block.number == Number::kFp16) return run_element<__half>(block, reversed);
  return run_element<__nv_bfloat16>(block, reversed);
}

}  // namespace cpfit::kernels::emulated
