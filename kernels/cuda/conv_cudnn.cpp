// Convolution with cuDNN: uses the first algorithm in the order of its heuristics that fits the settings.
#include <brigade/kernels/cuda/detail/conv_library.h>

#include <cudnn.h>

#include <array>

namespace brigade::kernels::cuda {
namespace {

// More than the number of algorithms times math types.
constexpr int kCandidates = 24;

[[noreturn]] void refuse(cudnnStatus_t status, const char* call, const std::string& what) {
  std::array<char, 512> details{};
  cudnnGetLastErrorString(details.data(), details.size());
  const bool known = details[0] != '\0';
  throw DeviceError("{} failed: {}{}{}{}{}{}", call, cudnnGetErrorString(status), known ? " (" : "", details.data(),
                    known ? ")" : "", what.empty() ? "" : " for ", what);
}

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    refuse(status, call, {});
}

struct Handle {
  Handle() { check(cudnnCreate(&handle), "cudnnCreate"); }
  cudnnHandle_t handle = nullptr;
};
cudnnHandle_t handle() { return of_this_thread<Handle>(brigade::cuda::current_device()).handle; }

template <class T, cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)>
class Descriptor {
 public:
  Descriptor() { check(create(&descriptor_), "the creation of a cuDNN descriptor"); }
  ~Descriptor() { destroy(descriptor_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  T get() const noexcept { return descriptor_; }

 private:
  T descriptor_ = nullptr;
};
using TensorDescriptor =
    Descriptor<cudnnTensorDescriptor_t, &cudnnCreateTensorDescriptor, &cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Descriptor<cudnnFilterDescriptor_t, &cudnnCreateFilterDescriptor, &cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<cudnnConvolutionDescriptor_t, &cudnnCreateConvolutionDescriptor, &cudnnDestroyConvolutionDescriptor>;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::Float64: return CUDNN_DATA_DOUBLE;
    case DType::Float16: return CUDNN_DATA_HALF;
    case DType::BFloat16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;
  }
}

void describe_tensor(const TensorDescriptor& descriptor, DType dtype, const Shape& sizes) {
  check(cudnnSetTensor4dDescriptor(descriptor.get(), CUDNN_TENSOR_NCHW, data_type(dtype), static_cast<int>(sizes[0]),
                                   static_cast<int>(sizes[1]), static_cast<int>(sizes[2]), static_cast<int>(sizes[3])),
        "cudnnSetTensor4dDescriptor");
}

void describe_filter(const FilterDescriptor& descriptor, DType dtype, const Shape& sizes) {
  check(cudnnSetFilter4dDescriptor(descriptor.get(), data_type(dtype), CUDNN_TENSOR_NCHW, static_cast<int>(sizes[0]),
                                   static_cast<int>(sizes[1]), static_cast<int>(sizes[2]), static_cast<int>(sizes[3])),
        "cudnnSetFilter4dDescriptor");
}

class CudnnPlan final : public ConvolutionPlan {
 public:
  explicit CudnnPlan(const ConvolutionProblem& problem) : problem_(problem) {
    const ConvShape& s = problem.shape;
    describe_tensor(x_, problem.dtype, s.x_sizes());
    describe_tensor(y_, problem.dtype, s.y_sizes());
    describe_tensor(bias_, problem.dtype, {1, s.out_channels, 1, 1});
    describe_filter(weight_, problem.dtype, s.weight_sizes());
    const auto number = [](int64_t value) { return static_cast<int>(value); };
    const Conv2dParams& p = s.params;
    check(cudnnSetConvolution2dDescriptor(convolution_.get(), number(p.padding[0]), number(p.padding[1]),
                                          number(p.stride[0]), number(p.stride[1]), number(p.dilation[0]),
                                          number(p.dilation[1]), CUDNN_CROSS_CORRELATION,
                                          problem.dtype == kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnnSetConvolutionGroupCount(convolution_.get(), number(p.groups)), "cudnnSetConvolutionGroupCount");
    set_math_type(is_half(problem.dtype) ? CUDNN_TENSOR_OP_MATH : exact() ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH);
    choose();
  }

  size_t workspace_bytes() const noexcept override { return workspace_bytes_; }

  void run(const ConvolutionCall& call, void* workspace, cudaStream_t stream) override {
    check(cudnnSetStream(handle(), stream), "cudnnSetStream");
    if (problem_.dtype == kFloat64) {
      run_scaled(call, workspace, 1.0, call.accumulate ? 1.0 : 0.0);
    } else {
      run_scaled(call, workspace, 1.0F, call.accumulate ? 1.0F : 0.0F);
    }
  }

 private:
  // Whether float32 must stay exact: cuDNN's default math type allows TF32.
  bool exact() const noexcept { return problem_.dtype == kFloat32 && !problem_.tf32; }

  void set_math_type(cudnnMathType_t type) {
    check(cudnnSetConvolutionMathType(convolution_.get(), type), "cudnnSetConvolutionMathType");
  }

  // The first of cuDNN's candidates that the settings allow and whose workspace fits. `ask` fills a list of candidates,
  // `bytes_of` queries an algorithm's workspace, and fails if the algorithm does not support the math type.
  template <class Candidate, class Ask, class BytesOf>
  auto first_suitable(const char* call, Ask ask, BytesOf bytes_of) {
    std::array<Candidate, kCandidates> candidates{};
    int count = 0;
    const cudnnStatus_t status = ask(kCandidates, &count, candidates.data());
    if (status != CUDNN_STATUS_SUCCESS) refuse(status, call, describe(problem_));
    for (int i = 0; i < count; ++i) {
      const Candidate& candidate = candidates[static_cast<size_t>(i)];
      if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
      if (problem_.deterministic && candidate.determinism != CUDNN_DETERMINISTIC) continue;
      if (candidate.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) continue;  // to half types
      if (exact() && candidate.mathType == CUDNN_TENSOR_OP_MATH) continue;
      set_math_type(exact() ? CUDNN_FMA_MATH : candidate.mathType);
      size_t bytes = 0;
      if (bytes_of(candidate.algo, &bytes) != CUDNN_STATUS_SUCCESS || bytes > problem_.workspace_limit) continue;
      workspace_bytes_ = bytes;
      return candidate.algo;
    }
    throw DeviceError("{} found no algorithm for {} that needs at most {} bytes{}; see core/cuda/device.h for both",
                      call, describe(problem_), problem_.workspace_limit,
                      problem_.deterministic ? " and gives the same bits each time" : "");
  }

  void choose() {
    const cudnnHandle_t h = handle();
    const auto x = x_.get();
    const auto y = y_.get();
    const auto w = weight_.get();
    const auto c = convolution_.get();
    switch (problem_.pass) {
      case ConvolutionPass::Forward:
        forward_ = first_suitable<cudnnConvolutionFwdAlgoPerf_t>(
            "cudnnGetConvolutionForwardAlgorithm_v7",
            [=](auto... out) { return cudnnGetConvolutionForwardAlgorithm_v7(h, x, w, c, y, out...); },
            [=](auto... out) { return cudnnGetConvolutionForwardWorkspaceSize(h, x, w, c, y, out...); });
        break;
      case ConvolutionPass::BackwardInput:
        backward_input_ = first_suitable<cudnnConvolutionBwdDataAlgoPerf_t>(
            "cudnnGetConvolutionBackwardDataAlgorithm_v7",
            [=](auto... out) { return cudnnGetConvolutionBackwardDataAlgorithm_v7(h, w, y, c, x, out...); },
            [=](auto... out) { return cudnnGetConvolutionBackwardDataWorkspaceSize(h, w, y, c, x, out...); });
        break;
      case ConvolutionPass::BackwardWeight:
        backward_weight_ = first_suitable<cudnnConvolutionBwdFilterAlgoPerf_t>(
            "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
            [=](auto... out) { return cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, x, y, c, w, out...); },
            [=](auto... out) { return cudnnGetConvolutionBackwardFilterWorkspaceSize(h, x, y, c, w, out...); });
        break;
    }
  }

  template <class Scale>
  void run_scaled(const ConvolutionCall& call, void* workspace, Scale one, Scale beta) {
    const cudnnHandle_t h = handle();
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    switch (problem_.pass) {
      case ConvolutionPass::Forward:
        status = cudnnConvolutionForward(h, &one, x_.get(), call.a, weight_.get(), call.b, convolution_.get(), forward_,
                                         workspace, workspace_bytes_, &beta, y_.get(), call.result);
        if (call.bias && status == CUDNN_STATUS_SUCCESS)
          status = cudnnAddTensor(h, &one, bias_.get(), call.bias, &one, y_.get(), call.result);
        break;
      case ConvolutionPass::BackwardInput:
        status =
            cudnnConvolutionBackwardData(h, &one, weight_.get(), call.b, y_.get(), call.a, convolution_.get(),
                                         backward_input_, workspace, workspace_bytes_, &beta, x_.get(), call.result);
        break;
      case ConvolutionPass::BackwardWeight:
        status = cudnnConvolutionBackwardFilter(h, &one, x_.get(), call.b, y_.get(), call.a, convolution_.get(),
                                                backward_weight_, workspace, workspace_bytes_, &beta, weight_.get(),
                                                call.result);
        break;
    }
    if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
      refuse(status, "cuDNN", describe(problem_));
  }

  ConvolutionProblem problem_;
  TensorDescriptor x_, y_, bias_;
  FilterDescriptor weight_;
  ConvolutionDescriptor convolution_;
  // Only the algorithm of the pass is set.
  cudnnConvolutionFwdAlgo_t forward_ = {};
  cudnnConvolutionBwdDataAlgo_t backward_input_ = {};
  cudnnConvolutionBwdFilterAlgo_t backward_weight_ = {};
  size_t workspace_bytes_ = 0;
};

}  // namespace

std::unique_ptr<ConvolutionPlan> plan_convolution(const ConvolutionProblem& problem) {
  return std::make_unique<CudnnPlan>(problem);
}

}  // namespace brigade::kernels::cuda
