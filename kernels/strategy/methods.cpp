// The orders of the frameworks, by name. What tells them apart numerically: when partial outputs are corrected, which way the
// backward ring turns, and in which type the sums over steps are kept. Source: cp_model.md A.1, A.2, A.5, A.6, E.1.
#include "kernels/strategy/strategy.h"

namespace cpfit::kernels {

namespace {

constexpr Accumulation kWide{true, true, true};
constexpr Accumulation kNarrow{false, false, false};

Method ring(const char* name, Accumulation accumulation, bool transformer_engine) {
  Method method;
  method.name = name;
  method.accumulation = accumulation;
  method.deferred_output = transformer_engine;
  method.reversed_backward = transformer_engine;
  return method;
}

Method with(Method method, Exchange exchange) {
  method.exchange = exchange;
  return method;
}

std::vector<Method> all() {
  std::vector<Method> methods = {
      ring("te_p2p", kNarrow, true),       // TransformerEngine p2p: adds in the inputs' type
      ring("te_p2p_wide", kWide, true),    // its fp32 sums (FP8 current scaling, MXFP8)
      ring("fp32_ring", kWide, false),     // zhuzilin, USP and PyTorch (both ways to rotate), JAX's order
      ring("narrow_ring", kNarrow, false)  // the same, were its sums in the inputs' type
  };
  // TransformerEngine all_gather: reduce-scatter in the inputs' type; and one that keeps dK and dV wide.
  methods.push_back(with(ring("all_gather", kNarrow, false), Exchange::kAllGather));
  methods.push_back(with(ring("all_gather_wide", kWide, false), Exchange::kAllGather));
  // Ulysses as TransformerEngine and DeepSpeed have it, and HF/ALST's for few KV heads.
  methods.push_back(with(ring("a2a", kNarrow, true), Exchange::kAllToAll));
  methods.push_back(with(ring("a2a_repeat_kv", kNarrow, true), Exchange::kAllToAll));
  methods.back().repeat_kv = true;
  // TransformerEngine's hierarchy, and USP's: an fp32 ring under the all-to-all.
  methods.push_back(with(ring("a2a_p2p", kNarrow, true), Exchange::kAllToAllRing));
  methods.back().a2a_degree = 2;
  methods.push_back(with(ring("usp", kWide, false), Exchange::kAllToAllRing));
  methods.back().a2a_degree = 2;
  // LoongTrain / InternEvo: outputs wide, gradients cast at the first window's edge; and one that stays wide.
  methods.push_back(with(ring("double_ring", {true, false, false}, false), Exchange::kDoubleRing));
  methods.back().window = 2;
  methods.push_back(with(ring("double_ring_wide", kWide, false), Exchange::kDoubleRing));
  methods.back().window = 2;
  return methods;
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> kMethods = all();
  return kMethods;
}

}  // namespace cpfit::kernels
