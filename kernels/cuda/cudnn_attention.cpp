#include "kernels/cuda/cudnn_attention.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <compare>
#include <map>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/cuda_call.h"
#include "model/quantity/problem.h"

namespace cpfit::kernels::cuda {

namespace {

namespace fe = cudnn_frontend;

/// The tensors of a graph by number.
enum TensorId : std::int64_t { kQ = 1, kK, kV, kO, kStats, kDo, kDq, kDk, kDv };

/// What a graph was built for.
struct GraphKey {
  bool backward = false;
  Number number = Number::kBf16;
  bool causal = false;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int32_t heads_q = 0;
  std::int32_t heads_kv = 0;
  std::int32_t qk_dim = 0;
  std::int32_t v_dim = 0;
  double scale = 0;
  auto operator<=>(const GraphKey&) const = default;
};

/// A built graph; no graph when cuDNN has no engine for it.
struct BuiltGraph {
  std::shared_ptr<fe::graph::Graph> graph;
  std::int64_t workspace_bytes = 0;
};

using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

/// [rows][heads][columns] as cuDNN's (batch, head, row, column).
std::vector<std::int64_t> dims_of(std::int64_t rows, std::int64_t heads, std::int64_t columns) {
  return {1, heads, rows, columns};
}
std::vector<std::int64_t> strides_of(std::int64_t rows, std::int64_t heads, std::int64_t columns) {
  return {rows * heads * columns, columns, heads * columns, 1};
}

class CudnnGraphs final : public CudnnAttention {
 public:
  CudnnGraphs() {
    const cudnnStatus_t status = cudnnCreate(&handle_);
    if (status != CUDNN_STATUS_SUCCESS) throw Error(fmt::format("cuDNN: making a handle: {}", cudnnGetErrorString(status)));
  }
  ~CudnnGraphs() override { (void)cudnnDestroy(handle_); }

  bool forward(const Target& target, const BlockInputs& block, const View& out, const View& lse) override {
    if (!takes(block) || !is_aligned(out)) return false;
    const BuiltGraph& built = graph_for(block, false);
    if (built.graph == nullptr) return false;
    const Heads& heads = block.heads;
    const bool wide = out.number != block.q.number;
    const Scratch narrow_out(wide ? out.elements() * 2 : 0, target.stream, "forward by cuDNN");
    const Scratch stats(lse.bytes(), target.stream, "forward by cuDNN");
    const View cudnn_out = {wide ? narrow_out.data() : out.data, block.q.number, out.rows, out.row_elements};
    execute(target, built,
            {{kQ, block.q.data}, {kK, block.k.data}, {kV, block.v.data}, {kO, cudnn_out.data}, {kStats, stats.data()}},
            "forward");
    launch_transpose(target, static_cast<const float*>(stats.data()), static_cast<float*>(lse.data), heads.q,
                     static_cast<int>(lse.rows));
    if (wide) launch_convert(target, cudnn_out, out);
    return true;
  }

  bool backward(const Target& target, const BlockInputs& block, const View& out, const BlockGradients& gradients) override {
    if (!takes(block) || out.number != block.q.number || !is_aligned(out) || !is_aligned(gradients.dout)) return false;
    const BuiltGraph& built = graph_for(block, true);
    if (built.graph == nullptr) return false;
    const Scratch stats(gradients.lse.bytes(), target.stream, "backward by cuDNN");
    launch_transpose(target, static_cast<const float*>(gradients.lse.data), static_cast<float*>(stats.data()), gradients.lse.rows,
                     block.heads.q);
    const Result dq(target, gradients.dq, block.q.number);
    const Result dk(target, gradients.dk, block.q.number);
    const Result dv(target, gradients.dv, block.q.number);
    execute(target, built,
            {{kQ, block.q.data},
             {kK, block.k.data},
             {kV, block.v.data},
             {kO, out.data},
             {kStats, stats.data()},
             {kDo, gradients.dout.data},
             {kDq, dq.view().data},
             {kDk, dk.view().data},
             {kDv, dv.view().data}},
            "backward");
    for (const Result* result : {&dq, &dk, &dv}) result->store(target);
    return true;
  }

 private:
  /// Where cuDNN writes a gradient: in place when the target has the inputs' type, else aside.
  class Result {
   public:
    Result(const Target& target, const View& view, Number number)
        : view_(view), aside_(view.number == number ? 0 : view.elements() * 2, target.stream, "backward by cuDNN") {
      cudnn_view_ = {view.number == number ? view.data : aside_.data(), number, view.rows, view.row_elements};
    }
    [[nodiscard]] const View& view() const { return cudnn_view_; }
    void store(const Target& target) const {
      if (cudnn_view_.data != view_.data) launch_convert(target, cudnn_view_, view_);
    }

   private:
    View view_;
    Scratch aside_;
    View cudnn_view_;
  };

  static bool is_aligned(const View& view) { return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0; }

  /// Full and causal blocks in which every query sees a key; the rest is decided by what cuDNN says to the graph.
  static bool takes(const BlockInputs& block) {
    const bool causal = block.mask.kind == attention::BlockKind::kCausal;
    if (!causal && block.mask.kind != attention::BlockKind::kFull) return false;
    if (block.q.number != Number::kBf16 && block.q.number != Number::kFp16) return false;
    if (block.heads.qk_dim % 8 != 0 || block.heads.v_dim % 8 != 0) return false;
    if (block.q.rows == 0 || block.k.rows == 0 || (causal && block.q.rows > block.k.rows)) return false;
    return is_aligned(block.q) && is_aligned(block.k) && is_aligned(block.v);
  }

  const BuiltGraph& graph_for(const BlockInputs& block, bool backward) {
    const Heads& h = block.heads;
    const GraphKey key = {backward,     block.q.number, block.mask.kind == attention::BlockKind::kCausal,
                          block.q.rows, block.k.rows,   h.q,
                          h.kv,         h.qk_dim,       h.v_dim,
                          h.scale};
    const auto found = graphs_.find(key);
    return found != graphs_.end() ? found->second : graphs_.emplace(key, build(key)).first->second;
  }

  static Tensor add_tensor(fe::graph::Graph& graph, TensorId id, std::int64_t rows, std::int64_t heads, std::int64_t columns) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(fmt::format("tensor {}", static_cast<std::int64_t>(id)))
                            .set_uid(id)
                            .set_dim(dims_of(rows, heads, columns))
                            .set_stride(strides_of(rows, heads, columns)));
  }
  static void add_result(const Tensor& tensor, TensorId id, std::int64_t rows, std::int64_t heads, std::int64_t columns) {
    tensor->set_output(true).set_uid(id).set_dim(dims_of(rows, heads, columns)).set_stride(strides_of(rows, heads, columns));
  }
  /// Log-sum-exps by heads: [h_q][s_q], fp32.
  static std::vector<std::int64_t> stats_strides(const GraphKey& key) { return {key.heads_q * key.queries, key.queries, 1, 1}; }

  [[nodiscard]] BuiltGraph build(const GraphKey& key) const {
    BuiltGraph built;
    built.graph = std::make_shared<fe::graph::Graph>();
    fe::graph::Graph& graph = *built.graph;
    graph.set_io_data_type(key.number == Number::kBf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const Tensor q = add_tensor(graph, kQ, key.queries, key.heads_q, key.qk_dim);
    const Tensor k = add_tensor(graph, kK, key.keys, key.heads_kv, key.qk_dim);
    const Tensor v = add_tensor(graph, kV, key.keys, key.heads_kv, key.v_dim);
    const auto scale = static_cast<float>(key.scale);
    const bool square = key.queries == key.keys;  // there the two causal masks are one, and more engines know the first
    if (!key.backward) {
      auto attributes = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true).set_attn_scale(scale);
      if (key.causal && square) attributes.set_causal_mask(true);
      if (key.causal && !square) attributes.set_causal_mask_bottom_right(true);
      auto [o, stats] = graph.sdpa(q, k, v, attributes);
      add_result(o, kO, key.queries, key.heads_q, key.v_dim);
      stats->set_output(true)
          .set_uid(kStats)
          .set_data_type(fe::DataType_t::FLOAT)
          .set_dim({1, key.heads_q, key.queries, 1})
          .set_stride(stats_strides(key));
    } else {
      const Tensor o = add_tensor(graph, kO, key.queries, key.heads_q, key.v_dim);
      const Tensor d_o = add_tensor(graph, kDo, key.queries, key.heads_q, key.v_dim);
      const Tensor stats = graph.tensor(fe::graph::Tensor_attributes()
                                            .set_name("log-sum-exps")
                                            .set_uid(kStats)
                                            .set_dim({1, key.heads_q, key.queries, 1})
                                            .set_stride(stats_strides(key))
                                            .set_data_type(fe::DataType_t::FLOAT));
      auto attributes = fe::graph::SDPA_backward_attributes().set_name("attention backward").set_attn_scale(scale);
      if (key.causal && square) attributes.set_causal_mask(true);
      if (key.causal && !square) attributes.set_causal_mask_bottom_right(true);
      auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, o, d_o, stats, attributes);
      add_result(dq, kDq, key.queries, key.heads_q, key.qk_dim);
      add_result(dk, kDk, key.keys, key.heads_kv, key.qk_dim);
      add_result(dv, kDv, key.keys, key.heads_kv, key.v_dim);
    }
    // No engine for this block is an answer, not a failure: our own kernels take it then.
    if (graph.build(handle_, {fe::HeurMode_t::A}).is_bad() || graph.get_workspace_size(built.workspace_bytes).is_bad()) return {};
    return built;
  }

  void execute(const Target& target, const BuiltGraph& built, std::unordered_map<std::int64_t, void*> tensors,
               const char* operation) {
    const cudnnStatus_t status = cudnnSetStream(handle_, target.stream);
    if (status != CUDNN_STATUS_SUCCESS) throw Error(fmt::format("cuDNN: {}: {}", operation, cudnnGetErrorString(status)));
    const Scratch workspace(built.workspace_bytes, target.stream, operation);
    fe::error_t result = built.graph->execute(handle_, tensors, workspace.data());
    if (result.is_bad()) throw Error(fmt::format("cuDNN: {}: {}", operation, result.get_message()));
  }

  cudnnHandle_t handle_ = nullptr;
  std::map<GraphKey, BuiltGraph> graphs_;
};

}  // namespace

std::string why_no_cudnn() { return {}; }

std::string cudnn_version() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::unique_ptr<CudnnAttention> make_cudnn_attention() { return std::make_unique<CudnnGraphs>(); }

}  // namespace cpfit::kernels::cuda
