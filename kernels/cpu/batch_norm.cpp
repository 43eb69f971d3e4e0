#include <brigade/kernels/batch_norm.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>

namespace brigade::kernels {

namespace {

struct Layout {
  int64_t batch, channels, area;
};

Layout layout_of(const Tensor& x) {
  if (x.dim() < 2) throw ShapeError("batch_norm: expected [N, C, ...], got " + to_string(x.sizes()));
  Layout layout{x.sizes()[0], x.sizes()[1], 1};
  for (int d = 2; d < x.dim(); ++d)
    layout.area *= x.sizes()[d];
  return layout;
}

void check_channels(const Tensor& tensor, int64_t channels, const char* what) {
  if (!tensor.defined() || (tensor.dim() == 1 && tensor.sizes()[0] == channels && tensor.is_contiguous())) return;
  throw ShapeError(std::string("batch_norm: ") + what + " must be [" + std::to_string(channels) + "], got " +
                   describe(tensor));
}

// Element c of a per-channel tensor of any floating dtype; `otherwise` when it is undefined.
double channel(const Tensor& tensor, int64_t c, double otherwise) {
  return tensor.defined() ? detail::element_as_double(tensor, c) : otherwise;
}

void store(const Tensor& tensor, int64_t c, double value) {
  visit_floating(tensor.dtype(), "batch_norm", [&]<class T>() {
    static_cast<T*>(tensor.raw_data())[c] = static_cast<T>(static_cast<compute_type<T>>(value));
  });
}

DType statistics_dtype(const Tensor& x) { return is_half(x.dtype()) ? kFloat32 : x.dtype(); }

template <class Body>
void for_each_channel(const Layout& layout, Body&& body) {
  cpu::parallel_for(
      layout.channels,
      [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c)
          body(c);
      },
      layout.batch * layout.area);
}

// Sum over the batch and the area of channel c of f(element position), one partial sum per plane.
template <class F>
double channel_sum(const Layout& layout, int64_t c, F&& f) {
  double total = 0;
  for (int64_t n = 0; n < layout.batch; ++n) {
    const int64_t plane = (n * layout.channels + c) * layout.area;
    double sum = 0;
    for (int64_t i = 0; i < layout.area; ++i)
      sum += f(plane + i);
    total += sum;
  }
  return total;
}

BatchNorm batch_norm_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, bool training, double momentum, double eps) {
  const Layout layout = layout_of(x);
  check_channels(weight, layout.channels, "weight");
  check_channels(bias, layout.channels, "bias");
  check_channels(running_mean, layout.channels, "running_mean");
  check_channels(running_var, layout.channels, "running_var");
  const int64_t count = layout.batch * layout.area;
  if (training && count <= 1) {
    throw ValueError("Expected more than 1 value per channel when training, got input size " + to_string(x.sizes()));
  }
  if (!training && (!running_mean.defined() || !running_var.defined())) {
    throw ValueError(
        "batch_norm: evaluation needs running_mean and running_var; call train() or track running statistics");
  }
  const Tensor source = contiguous(x);
  const TensorOptions options{statistics_dtype(x), x.device()};
  BatchNorm result{empty(x.sizes(), x.options()), empty({layout.channels}, options), empty({layout.channels}, options)};
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.y.raw_data());
    for_each_channel(layout, [&](int64_t c) {
      double mean = channel(running_mean, c, 0);
      double variance = channel(running_var, c, 1);
      if (training) {
        mean = channel_sum(layout, c, [&](int64_t i) { return static_cast<double>(static_cast<C>(in[i])); }) /
               static_cast<double>(count);
        variance = channel_sum(layout, c,
                               [&](int64_t i) {
                                 const double d = static_cast<double>(static_cast<C>(in[i])) - mean;
                                 return d * d;
                               }) /
                   static_cast<double>(count);
        if (running_mean.defined())
          store(running_mean, c, (1 - momentum) * channel(running_mean, c, 0) + momentum * mean);
        if (running_var.defined()) {
          const double unbiased = variance * static_cast<double>(count) / static_cast<double>(count - 1);
          store(running_var, c, (1 - momentum) * channel(running_var, c, 1) + momentum * unbiased);
        }
      }
      const double invstd = 1 / std::sqrt(variance + eps);
      store(result.mean, c, mean);
      store(result.invstd, c, invstd);
      const double gain = channel(weight, c, 1) * invstd;
      const C scale = static_cast<C>(gain);
      const C shift = static_cast<C>(channel(bias, c, 0));
      const C center = static_cast<C>(mean);
      for (int64_t n = 0; n < layout.batch; ++n) {
        const int64_t plane = (n * layout.channels + c) * layout.area;
        for (int64_t i = plane; i < plane + layout.area; ++i)
          out[i] = static_cast<T>((static_cast<C>(in[i]) - center) * scale + shift);
      }
    });
  });
  return result;
}

BatchNormGrads batch_norm_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                       const Tensor& invstd, bool training) {
  const Layout layout = layout_of(x);
  const Tensor source = contiguous(x);
  const Tensor g = contiguous(grad);
  const TensorOptions options{statistics_dtype(x), x.device()};
  BatchNormGrads result{empty(x.sizes(), x.options()), empty({layout.channels}, options),
                        empty({layout.channels}, options)};
  const auto count = static_cast<double>(layout.batch * layout.area);
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    const T* slope = static_cast<const T*>(g.raw_data());
    T* out = static_cast<T*>(result.x.raw_data());
    for_each_channel(layout, [&](int64_t c) {
      const double center = channel(mean, c, 0);
      const double scale = channel(invstd, c, 1);
      const double sum =
          channel_sum(layout, c, [&](int64_t i) { return static_cast<double>(static_cast<C>(slope[i])); });
      const double dot = channel_sum(layout, c, [&](int64_t i) {
        return static_cast<double>(static_cast<C>(slope[i])) * (static_cast<double>(static_cast<C>(in[i])) - center) *
               scale;
      });
      store(result.weight, c, dot);
      store(result.bias, c, sum);
      // dx = w * invstd * (g - mean(g) - xhat * mean(g * xhat)); with fixed statistics only the first term.
      const C gain = static_cast<C>(channel(weight, c, 1) * scale);
      const C mean_slope = static_cast<C>(training ? sum / count : 0);
      const C mean_dot = static_cast<C>(training ? dot / count * scale : 0);
      const C middle = static_cast<C>(center);
      for (int64_t n = 0; n < layout.batch; ++n) {
        const int64_t plane = (n * layout.channels + c) * layout.area;
        for (int64_t i = plane; i < plane + layout.area; ++i) {
          out[i] = static_cast<T>(
              gain * (static_cast<C>(slope[i]) - mean_slope - (static_cast<C>(in[i]) - middle) * mean_dot));
        }
      }
    });
  });
  if (weight.defined() && weight.dtype() != options.dtype) {
    result.weight = cast(result.weight, weight.dtype());
    result.bias = cast(result.bias, weight.dtype());
  }
  return result;
}

}  // namespace

constinit Kernel<BatchNorm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool, double,
                           double)>
    batch_norm("batch_norm", &batch_norm_cpu);
constinit Kernel<BatchNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>
    batch_norm_backward("batch_norm_backward", &batch_norm_backward_cpu);

}  // namespace brigade::kernels
