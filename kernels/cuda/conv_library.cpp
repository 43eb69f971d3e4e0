// Convolution plans, cached by thread, device and problem; each call passes a workspace and a stream.
#include <brigade/kernels/cuda/detail/conv_library.h>

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/core/factory.h>

#include <limits>

namespace brigade::kernels::cuda {
namespace {

using Plans = PlanCache<ConvolutionProblem, ConvolutionPlan>;

// cuDNN uses 32-bit sizes.
void check_size(const ConvolutionProblem& problem) {
  for (const Shape& sizes : {problem.shape.x_sizes(), problem.shape.weight_sizes(), problem.shape.y_sizes()}) {
    if (sizes.numel() <= std::numeric_limits<int32_t>::max()) continue;
    throw ShapeError("{}: {} has 2^31 elements or more, which cuDNN does not take; cut the batch into parts",
                     describe(problem), sizes);
  }
}

}  // namespace

void convolution(const ConvolutionCall& call, Device device) {
  const ConvolutionProblem problem{.pass = call.pass,
                                   .dtype = call.dtype,
                                   .tf32 = call.dtype == kFloat32 && brigade::cuda::allow_tf32(),
                                   .deterministic = brigade::cuda::deterministic_convolution(),
                                   .workspace_limit = brigade::cuda::convolution_workspace_limit(),
                                   .shape = call.shape};
  check_size(problem);
  const brigade::cuda::DeviceGuard guard(device.index);
  ConvolutionPlan& plan = of_this_thread<Plans>(device.index).get(problem, &plan_convolution);
  const Tensor workspace = empty({static_cast<int64_t>(plan.workspace_bytes())}, {kUInt8, device});
  brigade::cuda::note_launch("convolution", std::source_location::current());
  plan.run(call, workspace.raw_data(), brigade::cuda::current_stream(device.index).get());
}

PlanStats convolution_plan_stats(int device) { return of_this_thread<Plans>(device).stats(); }

std::string describe(const ConvolutionProblem& problem) {
  const auto pair = [](const std::array<int64_t, 2>& values) { return to_string(Shape{values[0], values[1]}); };
  const Conv2dParams& p = problem.shape.params;
  const char* const pass = problem.pass == ConvolutionPass::Forward         ? "conv2d"
                           : problem.pass == ConvolutionPass::BackwardInput ? "conv2d backward (input)"
                                                                            : "conv2d backward (weight)";
  return std::string(pass) + " of " + name(problem.dtype) + " " + to_string(problem.shape.x_sizes()) + " with weight " +
         to_string(problem.shape.weight_sizes()) + ", stride " + pair(p.stride) + ", padding " + pair(p.padding) +
         ", dilation " + pair(p.dilation) + ", groups " + std::to_string(p.groups);
}

}  // namespace brigade::kernels::cuda
