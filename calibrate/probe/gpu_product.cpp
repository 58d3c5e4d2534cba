#include "calibrate/probe/gpu_product.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include "calibrate/probe/points.h"
#include "kernels/cuda/cuda_call.h"
#include "kernels/transport/loaded_library.h"
#include "model/quantity/problem.h"

namespace cpfit::probe {

namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{64} << 20;  // frameworks give 32 MiB on Hopper; more never costs time

void check(cublasStatus_t status, const char* operation) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Error(fmt::format("cuBLASLt: {}: status {}", operation, static_cast<int>(status)));
}

struct LtFunctions {
  kernels::LoadedLibrary library{{fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR), "libcublasLt.so"}};
  decltype(cublasLtCreate)* create = nullptr;
  decltype(cublasLtDestroy)* destroy = nullptr;
  decltype(cublasLtMatmulDescCreate)* describe = nullptr;
  decltype(cublasLtMatmulDescDestroy)* forget = nullptr;
  decltype(cublasLtMatrixLayoutCreate)* lay_out = nullptr;
  decltype(cublasLtMatrixLayoutDestroy)* forget_layout = nullptr;
  decltype(cublasLtMatmulPreferenceCreate)* prefer = nullptr;
  decltype(cublasLtMatmulPreferenceDestroy)* forget_preference = nullptr;
  decltype(cublasLtMatmulPreferenceSetAttribute)* set_preference = nullptr;
  decltype(cublasLtMatmulAlgoGetHeuristic)* choose = nullptr;
  decltype(cublasLtMatmul)* multiply = nullptr;

  LtFunctions() {
    if (!library.loaded()) throw Error("cuBLASLt cannot be loaded (libcublasLt.so is not in the library path)");
    const bool all = library.find("cublasLtCreate", create) && library.find("cublasLtDestroy", destroy) &&
                     library.find("cublasLtMatmulDescCreate", describe) && library.find("cublasLtMatmulDescDestroy", forget) &&
                     library.find("cublasLtMatrixLayoutCreate", lay_out) &&
                     library.find("cublasLtMatrixLayoutDestroy", forget_layout) &&
                     library.find("cublasLtMatmulPreferenceCreate", prefer) &&
                     library.find("cublasLtMatmulPreferenceDestroy", forget_preference) &&
                     library.find("cublasLtMatmulPreferenceSetAttribute", set_preference) &&
                     library.find("cublasLtMatmulAlgoGetHeuristic", choose) && library.find("cublasLtMatmul", multiply);
    if (!all) throw Error("cuBLASLt: the library that was found lacks functions");
  }
};

class GpuProduct final : public MatrixProduct {
 public:
  GpuProduct(kernels::DeviceOperators& operators, std::int64_t m, std::int64_t n, std::int64_t k)
      : operators_(operators),
        a_(random_array(operators, kernels::Number::kBf16, m, k, 1)),
        b_(random_array(operators, kernels::Number::kBf16, k, n, 2)),
        c_(operators.allocate(kernels::Number::kBf16, m, n)),
        workspace_(operators.allocate(kernels::Number::kFp32, kWorkspaceBytes / 4, 1)) {
    check(lt_.create(&handle_), "starting");
    check(lt_.describe(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
    // The library's matrices go down columns: rows of c = a b are columns of c' = b' a'.
    const auto columns = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
    check(lt_.lay_out(&left_, CUDA_R_16BF, columns(n), columns(k), n), "describing a matrix");
    check(lt_.lay_out(&right_, CUDA_R_16BF, columns(k), columns(m), k), "describing a matrix");
    check(lt_.lay_out(&result_, CUDA_R_16BF, columns(n), columns(m), n), "describing a matrix");
    cublasLtMatmulPreference_t preference = nullptr;
    check(lt_.prefer(&preference), "choosing an algorithm");
    const auto bytes = static_cast<std::size_t>(kWorkspaceBytes);
    const cublasStatus_t set = lt_.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    int found = 0;
    const cublasStatus_t chosen =
        lt_.choose(handle_, operation_, left_, right_, result_, result_, preference, 1, &algorithm_, &found);
    lt_.forget_preference(preference);
    check(set, "choosing an algorithm");
    check(chosen, "choosing an algorithm");
    if (found == 0) throw Error(fmt::format("cuBLASLt has no algorithm for {} x {} x {}", m, n, k));
  }
  GpuProduct(const GpuProduct&) = delete;
  GpuProduct& operator=(const GpuProduct&) = delete;
  ~GpuProduct() override {
    for (cublasLtMatrixLayout_t layout : {left_, right_, result_}) {
      if (layout != nullptr) lt_.forget_layout(layout);
    }
    if (operation_ != nullptr) lt_.forget(operation_);
    if (handle_ != nullptr) lt_.destroy(handle_);
  }

  void run() override {
    const float one = 1;
    const float zero = 0;
    check(lt_.multiply(handle_, operation_, &one, b_.view().data, left_, a_.view().data, right_, &zero, c_.view().data, result_,
                       c_.view().data, result_, &algorithm_.algo, workspace_.view().data,
                       static_cast<std::size_t>(kWorkspaceBytes), operators_.stream()),
          "multiplying");
  }
  [[nodiscard]] std::vector<double> left() override { return operators_.download(a_); }
  [[nodiscard]] std::vector<double> right() override { return operators_.download(b_); }
  [[nodiscard]] std::vector<double> result() override { return operators_.download(c_); }

 private:
  LtFunctions lt_;
  kernels::DeviceOperators& operators_;
  kernels::Array a_, b_, c_, workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t left_ = nullptr, right_ = nullptr, result_ = nullptr;
  cublasLtMatmulHeuristicResult_t algorithm_{};
};

}  // namespace

std::unique_ptr<MatrixProduct> make_gpu_product(kernels::DeviceOperators& operators, std::int64_t m, std::int64_t n,
                                                std::int64_t k) {
  return std::make_unique<GpuProduct>(operators, m, n, k);
}

}  // namespace cpfit::probe
