// Matrix products on a device through a library: cuBLASLt on a GPU (gemm_cublaslt.cpp), a substitute in the emulation
// (evidence/stand_ins).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/cuda/detail/plan_cache.h>
#include <brigade/kernels/matmul.h>

#include <compare>
#include <memory>
#include <optional>
#include <string>

namespace brigade::kernels::cuda {

// `batches` products c[m, n] = op(a)[m, k] op(b)[k, n], row-major, where op transposes on request; all sizes at least
// 1.
struct GemmShape {
  DType dtype = kFloat32;    // of all operands; half types accumulate in float
  bool tf32 = false;         // float32 operands may be rounded to TF32
  bool accumulate = false;   // c += instead of c =
  bool transpose_a = false;  // a is stored as [k, m]
  bool transpose_b = false;  // b is stored as [n, k]
  int64_t m = 1, n = 1, k = 1;
  int64_t a_row = 1, b_row = 1, c_row = 1;  // elements from one stored row to the next
  int64_t batches = 1;
  // Elements from one product's operand to the next; 0: the same for all.
  int64_t a_batch = 0, b_batch = 0, c_batch = 0;
  std::optional<FusedActivation> activation = {};  // applied to c after the bias; for gemm_with_epilogue

  auto operator<=>(const GemmShape&) const = default;
};

struct GemmCall {
  GemmShape shape;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  // For gemm_with_epilogue.
  const void* bias = nullptr;  // [n], added to each row of c; kBiasAlignment; none when null
  void* pre = nullptr;         // the input of GeluTanh, laid out as c; not stored when null
};
// cuBLASLt may load a bias in vectors, and its interface has no way to state its alignment.
inline constexpr size_t kBiasAlignment = 16;

// Enqueues the products on the current stream of `device`. a, b and c may have any alignment. Throws DeviceError with
// the reason and the shapes when the library fails.
void gemm(const GemmCall& call, Device device);

// The same for one product with a bias, an activation or both, in one pass over c. Returns false without enqueueing
// anything if the library does not support that: the caller then uses gemm() on top of the bias, and a separate
// activation pass. This is the case for float64 activations (the library does not document their accuracy), for a `pre`
// that breaks its rules (rows of a multiple of kPreRowMultiple elements; kPreAlignment), and if the heuristic, which is
// asked only once, finds no algorithm: with a bias mostly for a single column, and for half rows that are not a
// multiple of a word.
bool gemm_with_epilogue(const GemmCall& call, Device device);
// cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD.
inline constexpr int64_t kPreRowMultiple = 8;
// For the same reason as kBiasAlignment.
inline constexpr size_t kPreAlignment = 16;

// Statistics of this thread's plans.
PlanStats gemm_plan_stats(int device);
// The number of products of this thread whose activation the library computed.
uint64_t gemm_activations(int device);

// "float32 [3, 4] x [5, 4]^T + bias, relu, 2 batches": for errors.
std::string describe(const GemmShape& shape, bool bias);

// --- interface of a library

// Everything that the choice of an algorithm depends on. Alignments are in bytes, a power of two up to 256, and hold
// for every batch; 0 without a bias or `pre`.
struct GemmProblem {
  GemmShape shape;
  uint32_t a_alignment = 0, b_alignment = 0, c_alignment = 0, bias_alignment = 0, pre_alignment = 0;

  auto operator<=>(const GemmProblem&) const = default;
};

class GemmPlan {
 public:
  virtual ~GemmPlan() = default;
  // False when the library knows no algorithm that adds the bias or computes the activation as well.
  virtual bool possible() const noexcept = 0;
  virtual size_t workspace_bytes() const noexcept = 0;
  // Enqueues only. `workspace` is on the device and belongs to this call in stream order.
  virtual void run(const GemmCall& call, void* workspace, cudaStream_t stream) = 0;
};

// Called with the device current, on the thread that will run the plan. Throws DeviceError when the library has no
// algorithm for the product alone.
std::unique_ptr<GemmPlan> plan_gemm(const GemmProblem& problem);

}  // namespace brigade::kernels::cuda
