// Matrix product plans, cached by thread, device, shape and alignment, with or without a bias and an activation.
#include <brigade/kernels/cuda/detail/gemm.h>

#include <brigade/core/cuda/stream.h>
#include <brigade/core/error.h>
#include <brigade/core/factory.h>

#include <algorithm>
#include <bit>

namespace brigade::kernels::cuda {
namespace {

using Plans = PlanCache<GemmProblem, GemmPlan>;

// Counts per thread and device.
struct ActivationCount {
  uint64_t fused = 0;
};

// The largest power of two up to 256 that divides `bytes`.
uint32_t alignment_of(uint64_t bytes) { return 1U << std::min(8, std::countr_zero(bytes)); }

// The alignment of all batches.
uint32_t alignment_of(const void* data, int64_t batch, const GemmShape& shape) {
  const uint64_t step = shape.batches > 1 ? static_cast<uint64_t>(batch) * itemsize(shape.dtype) : 0;
  return alignment_of(reinterpret_cast<uintptr_t>(data) | step);
}

std::string matrix(int64_t rows, int64_t columns, bool transposed) {
  return to_string(transposed ? Shape{columns, rows} : Shape{rows, columns}) + (transposed ? "^T" : "");
}

// The alignment of a single vector or matrix; 0 if there is none.
uint32_t alignment_if_any(const void* data) { return data ? alignment_of(reinterpret_cast<uintptr_t>(data)) : 0; }

// Returns false if the plan is not possible.
bool run(const GemmCall& call, Device device) {
  const GemmShape& shape = call.shape;
  const GemmProblem problem{.shape = shape,
                            .a_alignment = alignment_of(call.a, shape.a_batch, shape),
                            .b_alignment = alignment_of(call.b, shape.b_batch, shape),
                            .c_alignment = alignment_of(call.c, shape.c_batch, shape),
                            .bias_alignment = alignment_if_any(call.bias),
                            .pre_alignment = alignment_if_any(call.pre)};
  const brigade::cuda::DeviceGuard guard(device.index);
  GemmPlan& plan = of_this_thread<Plans>(device.index).get(problem, &plan_gemm);
  if (!plan.possible()) return false;
  const Tensor workspace = empty({static_cast<int64_t>(plan.workspace_bytes())}, {kUInt8, device});
  brigade::cuda::note_launch("gemm", std::source_location::current());
  plan.run(call, workspace.raw_data(), brigade::cuda::current_stream(device.index).get());
  return true;
}

// Whether the library's documented rules allow this epilogue.
bool may_follow(const GemmCall& call) {
  if (call.shape.activation && call.shape.dtype == kFloat64) return false;
  return !call.pre ||
         (call.shape.c_row % kPreRowMultiple == 0 && reinterpret_cast<uintptr_t>(call.pre) % kPreAlignment == 0);
}

}  // namespace

void gemm(const GemmCall& call, Device device) {
  if (run(call, device)) return;
  throw DeviceError("gemm: the library has no algorithm for {} in one pass; gemm_with_epilogue() tells that apart",
                    describe(call.shape, call.bias != nullptr));
}

bool gemm_with_epilogue(const GemmCall& call, Device device) {
  if (!may_follow(call) || !run(call, device)) return false;
  if (call.shape.activation) ++of_this_thread<ActivationCount>(device.index).fused;
  return true;
}

PlanStats gemm_plan_stats(int device) { return of_this_thread<Plans>(device).stats(); }
uint64_t gemm_activations(int device) { return of_this_thread<ActivationCount>(device).fused; }

std::string describe(const GemmShape& shape, bool bias) {
  std::string text = std::string(name(shape.dtype)) + " " + matrix(shape.m, shape.k, shape.transpose_a) + " x " +
                     matrix(shape.k, shape.n, shape.transpose_b);
  if (bias) text += " + bias";
  if (shape.activation) text += *shape.activation == FusedActivation::Relu ? ", relu" : ", gelu";
  if (shape.batches > 1) text += ", " + std::to_string(shape.batches) + " batches";
  return text;
}

}  // namespace brigade::kernels::cuda
