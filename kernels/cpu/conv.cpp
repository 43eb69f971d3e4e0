// Convolution with oneDNN where present (float32, and bfloat16 on processors with bfloat16 instructions), else with
// im2col and matrix products; other half types go through float32.
#include <brigade/kernels/conv.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/cpu/detail/columns.h>
#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>

namespace brigade::kernels {
namespace {

bool is_pointwise(const ConvShape& s) {
  const Conv2dParams& p = s.params;
  return s.kernel_h == 1 && s.kernel_w == 1 && p.stride == std::array<int64_t, 2>{1, 1} &&
         p.padding == std::array<int64_t, 2>{0, 0};
}
// Whether matrix products over whole planes beat oneDNN's convolution, which first reorders images into its own layout:
// the planes must fill vectors, and the matrices must not be too thin.
bool suits_products(const ConvShape& s) {
  constexpr int64_t kPixels = 512;
  return is_pointwise(s) && s.params.groups == 1 && s.height * s.width >= kPixels && s.channels >= 16 &&
         s.out_channels >= 16;
}
bool suits_onednn(const ConvShape& s, DType dtype) {
  return cpu::onednn_conv_takes(dtype) && (dtype != kFloat32 || !suits_products(s));
}

// The three passes for one dtype. Images are processed one by one, so that sums over the batch have a fixed order.
template <class T>
struct Im2col {
  const ConvShape& s;
  int64_t groups = s.params.groups;
  int64_t out_per_group = s.out_channels / groups;
  int64_t depth = s.channels / groups * s.kernel_h * s.kernel_w;
  int64_t area = s.out_h * s.out_w;
  int64_t group_pixels = s.channels / groups * s.height * s.width;
  // A plane is already its own column matrix: no im2col is needed.
  bool pointwise = is_pointwise(s);
  Tensor columns = pointwise ? Tensor() : empty({depth, area}, dtype_of<T>);
  T* scratch = pointwise ? nullptr : static_cast<T*>(columns.raw_data());
  cpu::ColumnsOfPlane plane{.height = s.height,
                            .width = s.width,
                            .out_h = s.out_h,
                            .out_w = s.out_w,
                            .kernel = {s.kernel_h, s.kernel_w},
                            .stride = s.params.stride,
                            .padding = s.params.padding,
                            .dilation = s.params.dilation};

  // Calls move(channel of the group, its columns).
  template <class Move>
  void for_each_channel(Move&& move) {
    cpu::parallel_for(
        s.channels / groups,
        [&](int64_t begin, int64_t end) {
          for (int64_t c = begin; c < end; ++c)
            move(c, scratch + c * plane.elements());
        },
        plane.elements());
  }
  // columns[(c, i, j), (oh, ow)] for the channels of one group of one image.
  const T* take_columns(const T* x) {
    if (pointwise) return x;
    for_each_channel([&](int64_t c, T* own) { cpu::plane_to_columns(plane, x + c * plane.pixels(), own); });
    return scratch;
  }
  void add_columns(T* x) {
    for_each_channel([&](int64_t c, const T* own) { cpu::add_columns_to_plane(plane, own, x + c * plane.pixels()); });
  }

  void forward(const T* x, const T* weight, T* y) {
    for (int64_t n = 0; n < s.batch * groups; ++n) {
      const int64_t g = n % groups;
      cpu::gemm(false, false, out_per_group, area, depth, weight + g * out_per_group * depth, depth,
                take_columns(x + n * group_pixels), area, T(0), y + n * out_per_group * area, area);
    }
  }
  void backward_input(const T* grad, const T* weight, T* dx) {
    if (!pointwise) std::memset(dx, 0, sizeof(T) * static_cast<size_t>(s.batch * groups * group_pixels));
    for (int64_t n = 0; n < s.batch * groups; ++n) {
      const int64_t g = n % groups;
      cpu::gemm(true, false, depth, area, out_per_group, weight + g * out_per_group * depth, depth,
                grad + n * out_per_group * area, area, T(0), pointwise ? dx + n * group_pixels : scratch, area);
      if (!pointwise) add_columns(dx + n * group_pixels);
    }
  }
  void backward_weight(const T* grad, const T* x, T* dweight, bool accumulate) {
    for (int64_t n = 0; n < s.batch * groups; ++n) {
      const int64_t g = n % groups;
      const T beta = accumulate || n >= groups ? T(1) : T(0);
      cpu::gemm(false, true, out_per_group, depth, area, grad + n * out_per_group * area, area,
                take_columns(x + n * group_pixels), area, beta, dweight + g * out_per_group * depth, depth);
    }
  }
};

Tensor conv2d_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params) {
  const ConvPlan plan = prepare_conv2d(x, weight, bias, params);
  if (plan.done) return plan.result;
  const Tensor& y = plan.result;
  const bool half = is_half(x.dtype());
  const Tensor shift = !bias.defined() ? bias : half ? cast(bias, kFloat32) : contiguous(bias);
  if (suits_onednn(plan.shape, x.dtype()) &&
      cpu::onednn_conv_forward(plan.shape, contiguous(x), contiguous(weight), shift, y))
    return y;
  if (half) {
    copy(y, conv2d_cpu(cast(x, kFloat32), cast(weight, kFloat32), shift, params));
    return y;
  }
  const Tensor input = contiguous(x);
  const Tensor filter = contiguous(weight);
  if (x.dtype() == kFloat64) {
    Im2col<double>{plan.shape}.forward(input.data_ptr<double>(), filter.data_ptr<double>(), y.data_ptr<double>());
  } else {
    Im2col<float>{plan.shape}.forward(input.data_ptr<float>(), filter.data_ptr<float>(), y.data_ptr<float>());
  }
  if (bias.defined()) add_channel_bias(y, bias);
  return y;
}

Tensor conv2d_backward_input_cpu(const Tensor& grad, const Tensor& weight, const Tensor& bias, const Shape& x_sizes,
                                 const Conv2dParams& params) {
  const ConvPlan plan = prepare_conv2d_backward_input(grad, weight, bias, x_sizes, params);
  if (plan.done) return plan.result;
  const bool half = is_half(grad.dtype());
  // Keep float32 if the bias is added before rounding.
  const Tensor dx = half && bias.defined() ? empty(x_sizes, kFloat32) : plan.result;
  const auto with_bias = [&] {
    if (bias.defined()) add_channel_bias(dx, bias);
    if (dx.dtype() != plan.result.dtype()) copy(plan.result, dx);
    return plan.result;
  };
  if (suits_onednn(plan.shape, grad.dtype()) &&
      cpu::onednn_conv_backward_input(plan.shape, contiguous(grad), contiguous(weight), dx))
    return with_bias();
  if (half) {
    copy(plan.result, conv2d_backward_input_cpu(cast(grad, kFloat32), cast(weight, kFloat32),
                                                bias.defined() ? cast(bias, kFloat32) : bias, x_sizes, params));
    return plan.result;
  }
  const Tensor g = contiguous(grad);
  const Tensor filter = contiguous(weight);
  if (grad.dtype() == kFloat64) {
    Im2col<double>{plan.shape}.backward_input(g.data_ptr<double>(), filter.data_ptr<double>(), dx.data_ptr<double>());
  } else {
    Im2col<float>{plan.shape}.backward_input(g.data_ptr<float>(), filter.data_ptr<float>(), dx.data_ptr<float>());
  }
  return with_bias();
}

Tensor conv2d_backward_weight_cpu(const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                  const Conv2dParams& params, const Tensor& out, bool accumulate) {
  const ConvPlan plan = prepare_conv2d_backward_weight(grad, x, weight_sizes, params, out, accumulate);
  if (plan.done) return plan.result;
  const Tensor& dweight = plan.result;
  if (is_half(grad.dtype())) {
    Tensor sum = empty(weight_sizes, kFloat32);
    if (!cpu::onednn_conv_takes(grad.dtype()) ||
        !cpu::onednn_conv_backward_weight(plan.shape, contiguous(grad), contiguous(x), sum, false))
      sum = conv2d_backward_weight_cpu(cast(grad, kFloat32), cast(x, kFloat32), weight_sizes, params, Tensor(), false);
    // Accumulate before rounding.
    if (plan.accumulate) add_inplace(sum, dweight, 1.0);
    copy(dweight, sum);
    return dweight;
  }
  const Tensor g = contiguous(grad);
  const Tensor input = contiguous(x);
  if (grad.dtype() == kFloat64) {
    Im2col<double>{plan.shape}.backward_weight(g.data_ptr<double>(), input.data_ptr<double>(),
                                               dweight.data_ptr<double>(), plan.accumulate);
  } else if (!cpu::onednn_conv_backward_weight(plan.shape, g, input, dweight, plan.accumulate)) {
    Im2col<float>{plan.shape}.backward_weight(g.data_ptr<float>(), input.data_ptr<float>(), dweight.data_ptr<float>(),
                                              plan.accumulate);
  }
  return dweight;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Conv2dParams&)> conv2d("conv2d",
                                                                                                  &conv2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Shape&, const Conv2dParams&)>
    conv2d_backward_input("conv2d_backward_input", &conv2d_backward_input_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&, const Conv2dParams&, const Tensor&, bool)>
    conv2d_backward_weight("conv2d_backward_weight", &conv2d_backward_weight_cpu);

}  // namespace brigade::kernels
