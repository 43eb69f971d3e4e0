// Convolutions on a device through a library: cuDNN on a GPU (conv_cudnn.cpp), a stand-in in the
// emulation (tests/cuda/library).
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
// cuDNN's kernels for tensor cores load in vectors of 16 bytes, and are not told of less.
inline constexpr size_t kConvolutionAlignment = 16;

// Queues it on the current stream of `device`, with the settings of core/cuda/libraries.h. Half
// types accumulate in float. Throws DeviceError when the library refuses, with its reason and the
// shapes, and ShapeError for a tensor of 2^31 elements or more.
void convolution(const ConvolutionCall& call, Device device);

// Of this thread's plans.
PlanStats convolution_plan_stats(int device);

// --- what a library has to offer

// All that its choice depends on.
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
  // Only queues. `workspace` is on the device and belongs to this call in the stream's order.
  virtual void run(const ConvolutionCall& call, void* workspace, cudaStream_t stream) = 0;
};

// With the device current, on the thread that will run it.
std::unique_ptr<ConvolutionPlan> plan_convolution(const ConvolutionProblem& problem);

}  // namespace brigade::kernels::cuda
