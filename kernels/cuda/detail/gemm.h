// Matrix products on a device through a library: cuBLASLt on a GPU (gemm_cublaslt.cpp), a stand-in in the emulation
// (tests/cuda/library).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/cuda/detail/plan_cache.h>

#include <compare>
#include <memory>
#include <string>

namespace brigade::kernels::cuda {

// `batches` products c[m, n] = op(a)[m, k] op(b)[k, n], row-major, op = transpose where asked; all sizes at least 1.
struct GemmShape {
  DType dtype = kFloat32;    // of all operands; half types accumulate in float
  bool tf32 = false;         // float32 operands may be rounded to TF32
  bool accumulate = false;   // c += instead of c =
  bool transpose_a = false;  // a is stored as [k, m]
  bool transpose_b = false;  // b is stored as [n, k]
  int64_t m = 1, n = 1, k = 1;
  int64_t a_row = 1, b_row = 1, c_row = 1;  // elements from one stored row to the next
  int64_t batches = 1;
  int64_t a_batch = 0, b_batch = 0,
          c_batch = 0;  // elements from one product's operand to the next; 0: the same for all

  auto operator<=>(const GemmShape&) const = default;
};

struct GemmCall {
  GemmShape shape;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;  // [n], added to each row of c; kBiasAlignment; none when null
};
// cuBLASLt may load a bias in vectors, and is not told how it is aligned.
inline constexpr size_t kBiasAlignment = 16;

// Queues the products on the current stream of `device`. Any alignment of a, b and c. Throws DeviceError when the
// library refuses, with its reason and the shapes.
void gemm(const GemmCall& call, Device device);

// Of this thread's plans.
PlanStats gemm_plan_stats(int device);

// "float32 [3, 4] x [5, 4]^T + bias, 2 batches": for errors.
std::string describe(const GemmShape& shape, bool bias);

// --- what a library has to offer

// All that its choice depends on. Alignments in bytes, a power of two up to 256, of every batch; 0 without a bias.
struct GemmProblem {
  GemmShape shape;
  uint32_t a_alignment = 0, b_alignment = 0, c_alignment = 0, bias_alignment = 0;

  auto operator<=>(const GemmProblem&) const = default;
};

class GemmPlan {
 public:
  virtual ~GemmPlan() = default;
  virtual size_t workspace_bytes() const noexcept = 0;
  // Only queues. `workspace` is on the device and belongs to this call in the stream's order.
  virtual void run(const GemmCall& call, void* workspace, cudaStream_t stream) = 0;
};

// With the device current, on the thread that will run it.
std::unique_ptr<GemmPlan> plan_gemm(const GemmProblem& problem);

}  // namespace brigade::kernels::cuda
