// Matrix products with cuBLASLt.
//
// The library is column-major: our row-major c[m, n] is its matrix c^T[n, m], so it computes c^T = op(b)^T op(a)^T and
// takes our operands in swapped order. A bias per column of c is a bias per row of c^T, which its epilogue adds. Its
// GELU is the tanh approximation.
#include <brigade/kernels/cuda/detail/gemm.h>

#include <cublasLt.h>

#include <array>

namespace brigade::kernels::cuda {
namespace {

// NVIDIA's recommendation for Hopper; only the size that the chosen algorithm needs is allocated.
constexpr size_t kMostWorkspaceBytes = size_t{32} << 20;
constexpr int kCandidates = 8;

[[noreturn]] void refuse(cublasStatus_t status, const char* call, const std::string& what) {
  throw DeviceError("{} failed: {} ({}){}{}", call, cublasLtGetStatusString(status), cublasLtGetStatusName(status),
                    what.empty() ? "" : " for ", what);
}

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
    refuse(status, call, {});
}

struct Handle {
  Handle() { check(cublasLtCreate(&handle), "cublasLtCreate"); }
  cublasLtHandle_t handle = nullptr;
};
cublasLtHandle_t handle() { return of_this_thread<Handle>(brigade::cuda::current_device()).handle; }

template <class T, cublasStatus_t (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const noexcept { destroy(object); }
};
using Layout =
    std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Destroy<cublasLtMatrixLayoutOpaque_t, &cublasLtMatrixLayoutDestroy>>;
using Operation =
    std::unique_ptr<cublasLtMatmulDescOpaque_t, Destroy<cublasLtMatmulDescOpaque_t, &cublasLtMatmulDescDestroy>>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                                   Destroy<cublasLtMatmulPreferenceOpaque_t, &cublasLtMatmulPreferenceDestroy>>;

template <class Value>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}
template <class Value>
void set(const Layout& layout, cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  check(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof(value)),
        "cublasLtMatrixLayoutSetAttribute");
}
template <class Value>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
        "cublasLtMatmulPreferenceSetAttribute");
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::Float64: return CUDA_R_64F;
    case DType::Float16: return CUDA_R_16F;
    case DType::BFloat16: return CUDA_R_16BF;
    default: return CUDA_R_32F;
  }
}

// A matrix of `rows` rows with a stride of `row` elements. A row is a column for the library.
Layout make_layout(const GemmShape& shape, int64_t rows, int64_t columns, int64_t row, int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, data_type(shape.dtype), static_cast<uint64_t>(columns),
                                   static_cast<uint64_t>(rows), row),
        "cublasLtMatrixLayoutCreate");
  Layout layout(made);
  if (shape.batches > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(shape.batches));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch);
  }
  return layout;
}

cublasLtEpilogue_t epilogue_of(const GemmProblem& problem) {
  const bool bias = problem.bias_alignment > 0;
  if (!problem.shape.activation) return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  if (*problem.shape.activation == FusedActivation::Relu) {
    return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  }
  if (problem.pre_alignment > 0) return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
}

// A fake address that gives the heuristic the alignment; it is never read.
const void* stand_in_address(uint32_t alignment) {
  return reinterpret_cast<const void*>(static_cast<uintptr_t>(alignment));
}

Operation make_operation(const GemmProblem& problem) {
  const GemmShape& shape = problem.shape;
  const bool wide = shape.dtype == kFloat64;
  cublasLtMatmulDesc_t made = nullptr;
  check(cublasLtMatmulDescCreate(&made,
                                 wide         ? CUBLAS_COMPUTE_64F
                                 : shape.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                              : CUBLAS_COMPUTE_32F,
                                 wide ? CUDA_R_64F : CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  Operation operation(made);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(problem));
  if (problem.bias_alignment > 0) {
    set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, stand_in_address(problem.bias_alignment));
  }
  if (problem.pre_alignment > 0) {
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, stand_in_address(problem.pre_alignment));
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.c_row);
  }
  return operation;
}

Preference make_preference(const GemmProblem& problem) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
  Preference preference(made);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kMostWorkspaceBytes));
  // Partial sums over k are added in the compute type, not in half precision.
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, problem.b_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, problem.a_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, problem.c_alignment);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, problem.c_alignment);
  return preference;
}

class CublasLtPlan final : public GemmPlan {
 public:
  explicit CublasLtPlan(const GemmProblem& problem) : operation_(make_operation(problem)) {
    const GemmShape& s = problem.shape;
    a_ = make_layout(s, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k, s.a_row, s.a_batch);
    b_ = make_layout(s, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n, s.b_row, s.b_batch);
    c_ = make_layout(s, s.m, s.n, s.c_row, s.c_batch);
    possible_ = choose(problem);
  }

  bool possible() const noexcept override { return possible_; }

  size_t workspace_bytes() const noexcept override { return chosen_.workspaceSize; }

  void run(const GemmCall& call, void* workspace, cudaStream_t stream) override {
    if (call.bias) set(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
    if (call.pre) set(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, call.pre);
    if (call.shape.dtype == kFloat64) {
      run_scaled(call, 1.0, call.shape.accumulate ? 1.0 : 0.0, workspace, stream);
    } else {
      run_scaled(call, 1.0F, call.shape.accumulate ? 1.0F : 0.0F, workspace, stream);
    }
  }

 private:
  // Returns false if the library does not support this combination with a bias or an activation.
  bool choose(const GemmProblem& problem) {
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> candidates{};
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle(), operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(),
                                       make_preference(problem).get(), kCandidates, candidates.data(), &count);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < count; ++i) {
      if (candidates[static_cast<size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
      chosen_ = candidates[static_cast<size_t>(i)];
      return true;
    }
    // Other status values are errors, not missing support.
    const bool missing = status == CUBLAS_STATUS_SUCCESS || status == CUBLAS_STATUS_NOT_SUPPORTED ||
                         status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ARCH_MISMATCH;
    const bool plain = !problem.shape.activation && problem.bias_alignment == 0;
    if (!plain && missing) return false;
    refuse(status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status, "cublasLtMatmulAlgoGetHeuristic",
           describe(problem.shape, problem.bias_alignment > 0) + " (row lengths " +
               to_string(Shape{problem.shape.a_row, problem.shape.b_row, problem.shape.c_row}) +
               ", bytes of alignment " +
               to_string(Shape{problem.a_alignment, problem.b_alignment, problem.c_alignment}) + ")");
  }

  template <class Scale>
  void run_scaled(const GemmCall& call, Scale alpha, Scale beta, void* workspace, cudaStream_t stream) {
    const cublasStatus_t status =
        cublasLtMatmul(handle(), operation_.get(), &alpha, call.b, b_.get(), call.a, a_.get(), &beta, call.c, c_.get(),
                       call.c, c_.get(), &chosen_.algo, workspace, chosen_.workspaceSize, stream);
    if (status != CUBLAS_STATUS_SUCCESS) [[unlikely]]
      refuse(status, "cublasLtMatmul", describe(call.shape, call.bias != nullptr));
  }

  Operation operation_;
  Layout a_, b_, c_;
  cublasLtMatmulHeuristicResult_t chosen_{};
  bool possible_ = false;
};

}  // namespace

std::unique_ptr<GemmPlan> plan_gemm(const GemmProblem& problem) { return std::make_unique<CublasLtPlan>(problem); }

}  // namespace brigade::kernels::cuda
