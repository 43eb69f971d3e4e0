// Convolutions on a device through a library: cuDNN on a GPU (conv_cudnn.cpp), a substitute in the emulation
// (evidence/stand_ins).
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/cuda/detail/plan_cache.h>

#include <compare>
#include <memory>
#include <string>

namespace brigade::kernels::cuda {

enum class ConvolutionPass : uint8_t { Forward, BackwardInput, BackwardWeight };

// Dense NCHW tensors, none of them empty, all at multiples of kConvolutionAlignment.
struct ConvolutionCall {
  ConvolutionPass pass = ConvolutionPass::Forward;
  ConvShape shape = {};
  DType dtype = kFloat32;
  // Forward: y from x, weight. BackwardInput: dx from grad, weight. BackwardWeight: dweight from
  // grad, x.
  const void* a = nullptr;
  const void* b = nullptr;
  void* result = nullptr;
  const void* bias = nullptr;  // Forward: [out], added to y; none when null
  bool accumulate = false;     // BackwardWeight: result += instead of result =
};
// cuDNN's tensor core kernels load vectors of 16 bytes, and its interface has no way to state a smaller alignment.
inline constexpr size_t kConvolutionAlignment = 16;

// Enqueues the convolution on the current stream of `device`, with the settings of core/cuda/device.h. Half types
// accumulate in float. Throws DeviceError with the reason and the shapes when the library fails, and ShapeError for a
// tensor of 2^31 elements or more.
void convolution(const ConvolutionCall& call, Device device);

// Statistics of this thread's plans.
PlanStats convolution_plan_stats(int device);

// --- interface of a library

// Everything that the choice of an algorithm depends on.
struct ConvolutionProblem {
  ConvolutionPass pass;
  DType dtype;
  bool tf32;
  bool deterministic;
  size_t workspace_limit;
  ConvShape shape;

  auto operator<=>(const ConvolutionProblem&) const = default;
};

// "conv2d backward (weight) of float32 [1, 3, 8, 8] with weight [4, 3, 3, 3], stride [1, 1], ...":
// for errors.
std::string describe(const ConvolutionProblem& problem);

class ConvolutionPlan {
 public:
  virtual ~ConvolutionPlan() = default;
  virtual size_t workspace_bytes() const noexcept = 0;
  // Enqueues only. `workspace` is on the device and belongs to this call in stream order.
  virtual void run(const ConvolutionCall& call, void* workspace, cudaStream_t stream) = 0;
};

// Called with the device current, on the thread that will run the plan.
std::unique_ptr<ConvolutionPlan> plan_convolution(const ConvolutionProblem& problem);

}  // namespace brigade::kernels::cuda
