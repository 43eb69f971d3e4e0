// A stand-in for cuDNN.
#include "stand_in.h"

#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/conv_library.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels::cuda {
namespace {

using test::require;
using test::require_on_device;

// Views device memory as a CPU tensor.
Tensor seen_by_cpu(const void* data, const Shape& sizes, DType dtype) {
  return from_blob(const_cast<void*>(data), sizes, dtype);
}

void compute(const ConvolutionCall& call) {
  const ConvShape& s = call.shape;
  const auto tensor = [&](const void* data, const Shape& sizes) { return seen_by_cpu(data, sizes, call.dtype); };
  switch (call.pass) {
    case ConvolutionPass::Forward: {
      const Tensor bias = call.bias ? tensor(call.bias, {s.out_channels}) : Tensor();
      copy(tensor(call.result, s.y_sizes()),
           conv2d(tensor(call.a, s.x_sizes()), tensor(call.b, s.weight_sizes()), bias, s.params));
      break;
    }
    case ConvolutionPass::BackwardInput:
      copy(tensor(call.result, s.x_sizes()),
           conv2d_backward_input(tensor(call.a, s.y_sizes()), tensor(call.b, s.weight_sizes()), {}, s.x_sizes(),
                                 s.params));
      break;
    case ConvolutionPass::BackwardWeight:
      conv2d_backward_weight(tensor(call.a, s.y_sizes()), tensor(call.b, s.x_sizes()), s.weight_sizes(), s.params,
                             tensor(call.result, s.weight_sizes()), call.accumulate);
      break;
  }
}

class StandIn final : public ConvolutionPlan {
 public:
  explicit StandIn(const ConvolutionProblem& problem) : problem_(problem) {
    of_this_thread<test::LibraryHandle>(brigade::cuda::current_device());
    const ConvShape& s = problem.shape;
    for (const Shape& sizes : {s.x_sizes(), s.weight_sizes(), s.y_sizes()})
      require(sizes.numel() > 0, "empty tensor in " + describe(problem));
    // The fast algorithm needs as much workspace as the result; the slow one needs none.
    workspace_bytes_ = static_cast<size_t>(s.y_sizes().numel()) * 4;
    if (workspace_bytes_ > problem.workspace_limit) workspace_bytes_ = 0;
  }

  size_t workspace_bytes() const noexcept override { return workspace_bytes_; }

  void run(const ConvolutionCall& call, void* workspace, cudaStream_t stream) override {
    require(call.pass == problem_.pass && call.dtype == problem_.dtype && call.shape == problem_.shape,
            "a plan of another problem");
    require(call.pass == ConvolutionPass::BackwardWeight || !call.accumulate, "accumulates where it cannot");
    require_on_device(call.a, kConvolutionAlignment, "a");
    require_on_device(call.b, kConvolutionAlignment, "b");
    require_on_device(call.result, kConvolutionAlignment, "result");
    if (call.bias) require_on_device(call.bias, kConvolutionAlignment, "bias");
    if (workspace_bytes_ > 0) require_on_device(workspace, 256, "workspace");
    test::queue(stream, workspace, workspace_bytes_, [call] { compute(call); });
  }

 private:
  ConvolutionProblem problem_;
  size_t workspace_bytes_;
};

}  // namespace

std::unique_ptr<ConvolutionPlan> plan_convolution(const ConvolutionProblem& problem) {
  return std::make_unique<StandIn>(problem);
}

}  // namespace brigade::kernels::cuda
