// Convolution by oneDNN where it is there (float32), by im2col and matrix products otherwise.
#include <brigade/kernels/conv.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/conv_onednn.h>
#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/detail/conv_plan.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>

namespace brigade::kernels {

namespace {

// Range of output positions whose input position o * stride - padding + k * dilation lies inside [0, size).
struct Range {
  int64_t begin, end;
};
Range valid(int64_t size, int64_t outputs, int64_t stride, int64_t shift) {
  const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t end = size - shift <= 0 ? 0 : std::min(outputs, (size - shift + stride - 1) / stride);
  return {std::min(begin, outputs), std::max(end, std::min(begin, outputs))};
}

// columns[(c, i, j), (oh, ow)] = x[c, oh * stride - padding + i * dilation, ...] for the channels of one group of one
// image; 0 outside. kScatter: the reverse, adding columns into x.
template <bool kScatter, class T>
void move_columns(const ConvShape& s, std::conditional_t<kScatter, T*, const T*> x,
                  std::conditional_t<kScatter, const T*, T*> columns) {
  const int64_t channels = s.channels / s.params.groups;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < s.kernel_h; ++i) {
      for (int64_t j = 0; j < s.kernel_w; ++j) {
        auto* row = columns + ((c * s.kernel_h + i) * s.kernel_w + j) * s.out_h * s.out_w;
        const int64_t shift_h = i * s.params.dilation[0] - s.params.padding[0];
        const int64_t shift_w = j * s.params.dilation[1] - s.params.padding[1];
        const Range rows = valid(s.height, s.out_h, s.params.stride[0], shift_h);
        const Range cols = valid(s.width, s.out_w, s.params.stride[1], shift_w);
        if constexpr (!kScatter) std::memset(row, 0, sizeof(T) * static_cast<size_t>(s.out_h * s.out_w));
        for (int64_t oh = rows.begin; oh < rows.end; ++oh) {
          auto* line = x + (c * s.height + oh * s.params.stride[0] + shift_h) * s.width + shift_w;
          auto* target = row + oh * s.out_w;
          for (int64_t ow = cols.begin; ow < cols.end; ++ow) {
            if constexpr (kScatter) {
              line[ow * s.params.stride[1]] += target[ow];
            } else {
              target[ow] = line[ow * s.params.stride[1]];
            }
          }
        }
      }
    }
  }
}

// The three passes for one dtype. Images one after another: sums over the batch have one order.
template <class T>
struct Im2col {
  const ConvShape& s;
  int64_t groups = s.params.groups;
  int64_t out_per_group = s.out_channels / groups;
  int64_t depth = s.channels / groups * s.kernel_h * s.kernel_w;
  int64_t area = s.out_h * s.out_w;
  int64_t group_pixels = s.channels / groups * s.height * s.width;
  Tensor columns = empty({depth, area}, dtype_of<T>);
  T* scratch = static_cast<T*>(columns.raw_data());

  void forward(const T* x, const T* weight, T* y) {
    for (int64_t n = 0; n < s.batch * groups; ++n) {
      const int64_t g = n % groups;
      move_columns<false, T>(s, x + n * group_pixels, scratch);
      cpu::gemm(false, false, out_per_group, area, depth, weight + g * out_per_group * depth, depth, scratch, area,
                T(0), y + n * out_per_group * area, area);
    }
  }
  void backward_input(const T* grad, const T* weight, T* dx) {
    std::memset(dx, 0, sizeof(T) * static_cast<size_t>(s.batch * groups * group_pixels));
    for (int64_t n = 0; n < s.batch * groups; ++n) {
      const int64_t g = n % groups;
      cpu::gemm(true, false, depth, area, out_per_group, weight + g * out_per_group * depth, depth,
                grad + n * out_per_group * area, area, T(0), scratch, area);
      move_columns<true, T>(s, dx + n * group_pixels, scratch);
    }
  }
  void backward_weight(const T* grad, const T* x, T* dweight, bool accumulate) {
    for (int64_t n = 0; n < s.batch * groups; ++n) {
      const int64_t g = n % groups;
      move_columns<false, T>(s, x + n * group_pixels, scratch);
      const T beta = accumulate || n >= groups ? T(1) : T(0);
      cpu::gemm(false, true, out_per_group, depth, area, grad + n * out_per_group * area, area, scratch, area, beta,
                dweight + g * out_per_group * depth, depth);
    }
  }
};

Tensor conv2d_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params) {
  const ConvPlan plan = prepare_conv2d(x, weight, bias, params);
  if (plan.done) return plan.result;
  if (is_half(x.dtype())) {
    const Tensor bias32 = bias.defined() ? cast(bias, kFloat32) : Tensor();
    copy(plan.result, conv2d_cpu(cast(x, kFloat32), cast(weight, kFloat32), bias32, params));
    return plan.result;
  }
  const Tensor& y = plan.result;
  const Tensor input = contiguous(x);
  const Tensor filter = contiguous(weight);
  if (x.dtype() == kFloat64) {
    Im2col<double>{plan.shape}.forward(input.data_ptr<double>(), filter.data_ptr<double>(), y.data_ptr<double>());
  } else if (!cpu::onednn_conv_forward(plan.shape, input, filter, y)) {
    Im2col<float>{plan.shape}.forward(input.data_ptr<float>(), filter.data_ptr<float>(), y.data_ptr<float>());
  }
  if (bias.defined()) add_channel_bias(y, bias);
  return y;
}

Tensor conv2d_backward_input_cpu(const Tensor& grad, const Tensor& weight, const Shape& x_sizes,
                                 const Conv2dParams& params) {
  const ConvPlan plan = prepare_conv2d_backward_input(grad, weight, x_sizes, params);
  if (plan.done) return plan.result;
  const Tensor& dx = plan.result;
  if (is_half(grad.dtype())) {
    copy(dx, conv2d_backward_input_cpu(cast(grad, kFloat32), cast(weight, kFloat32), x_sizes, params));
    return dx;
  }
  const Tensor g = contiguous(grad);
  const Tensor filter = contiguous(weight);
  if (grad.dtype() == kFloat64) {
    Im2col<double>{plan.shape}.backward_input(g.data_ptr<double>(), filter.data_ptr<double>(), dx.data_ptr<double>());
  } else if (!cpu::onednn_conv_backward_input(plan.shape, g, filter, dx)) {
    Im2col<float>{plan.shape}.backward_input(g.data_ptr<float>(), filter.data_ptr<float>(), dx.data_ptr<float>());
  }
  return dx;
}

Tensor conv2d_backward_weight_cpu(const Tensor& grad, const Tensor& x, const Shape& weight_sizes,
                                  const Conv2dParams& params, const Tensor& out, bool accumulate) {
  const ConvPlan plan = prepare_conv2d_backward_weight(grad, x, weight_sizes, params, out, accumulate);
  if (plan.done) return plan.result;
  const Tensor& dweight = plan.result;
  if (is_half(grad.dtype())) {
    const Tensor result =
        conv2d_backward_weight_cpu(cast(grad, kFloat32), cast(x, kFloat32), weight_sizes, params, Tensor(), false);
    if (plan.accumulate) {
      add_inplace(dweight, result, 1.0);
    } else {
      copy(dweight, result);
    }
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
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&, const Conv2dParams&)> conv2d_backward_input(
    "conv2d_backward_input", &conv2d_backward_input_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&, const Conv2dParams&, const Tensor&, bool)>
    conv2d_backward_weight("conv2d_backward_weight", &conv2d_backward_weight_cpu);

}  // namespace brigade::kernels
