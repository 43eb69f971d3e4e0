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

// Mean and sum of squared distances from it.
struct Moments {
  double mean = 0, squares = 0;
};

template <class T>
Moments moments_of(const Layout& layout, int64_t c, const T* in) {
  using C = compute_type<T>;
  const auto count = static_cast<double>(layout.batch * layout.area);
  if (count == 0) return {};
  Moments result;
  result.mean = channel_sum(layout, c, [&](int64_t i) { return static_cast<double>(static_cast<C>(in[i])); }) / count;
  result.squares = channel_sum(layout, c, [&](int64_t i) {
    const double d = static_cast<double>(static_cast<C>(in[i])) - result.mean;
    return d * d;
  });
  return result;
}

// Moves the running statistics by those of a batch of `count` values.
void move_running(const Tensor& running_mean, const Tensor& running_var, int64_t c, const Moments& batch, double count,
                  double momentum) {
  if (running_mean.defined())
    store(running_mean, c, (1 - momentum) * channel(running_mean, c, 0) + momentum * batch.mean);
  if (running_var.defined()) {
    const double unbiased = batch.squares / count * count / (count - 1);
    store(running_var, c, (1 - momentum) * channel(running_var, c, 1) + momentum * unbiased);
  }
}

// The mean and the variance of a channel, and what becomes of it.
template <class T>
void normalise(const Layout& layout, int64_t c, const T* in, const Tensor& weight, const Tensor& bias, double mean,
               double variance, double eps, const BatchNorm& result) {
  using C = compute_type<T>;
  T* const out = static_cast<T*>(result.y.raw_data());
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
}

Layout checked_layout(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                      const Tensor& running_var) {
  const Layout layout = layout_of(x);
  check_channels(weight, layout.channels, "weight");
  check_channels(bias, layout.channels, "bias");
  check_channels(running_mean, layout.channels, "running_mean");
  check_channels(running_var, layout.channels, "running_var");
  return layout;
}

BatchNorm empty_result(const Tensor& x, const Layout& layout) {
  const TensorOptions options{statistics_dtype(x), x.device()};
  return {empty(x.sizes(), x.options()), empty({layout.channels}, options), empty({layout.channels}, options)};
}

BatchNorm batch_norm_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, bool training, double momentum, double eps) {
  const Layout layout = checked_layout(x, weight, bias, running_mean, running_var);
  const int64_t count = layout.batch * layout.area;
  if (training && count <= 1) {
    throw ValueError("Expected more than 1 value per channel when training, got input size " + to_string(x.sizes()));
  }
  if (!training && (!running_mean.defined() || !running_var.defined())) {
    throw ValueError(
        "batch_norm: evaluation needs running_mean and running_var; call train() or track running statistics");
  }
  const Tensor source = contiguous(x);
  const BatchNorm result = empty_result(x, layout);
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    for_each_channel(layout, [&](int64_t c) {
      double mean = channel(running_mean, c, 0);
      double variance = channel(running_var, c, 1);
      if (training) {
        const Moments batch = moments_of(layout, c, in);
        mean = batch.mean;
        variance = batch.squares / static_cast<double>(count);
        move_running(running_mean, running_var, c, batch, static_cast<double>(count), momentum);
      }
      normalise(layout, c, in, weight, bias, mean, variance, eps, result);
    });
  });
  return result;
}

Tensor batch_norm_moments_cpu(const Tensor& x) {
  const Layout layout = layout_of(x);
  const Tensor source = contiguous(x);
  const Tensor result = empty({2, layout.channels}, kFloat64);
  auto* const means = result.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      const Moments batch = moments_of(layout, c, static_cast<const T*>(source.raw_data()));
      means[c] = batch.mean;
      means[layout.channels + c] = batch.squares;
    });
  });
  return result;
}

void check_pairs(const Tensor& pairs, int64_t channels, const char* what) {
  if (pairs.dtype() == kFloat64 && pairs.sizes() == Shape{2, channels} && pairs.is_contiguous()) return;
  throw ShapeError(std::string("batch_norm: ") + what + " must be float64 " + to_string(Shape{2, channels}) + ", got " +
                   describe(pairs));
}

BatchNorm batch_norm_apply_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& moments, int64_t count, double momentum,
                               double eps) {
  const Layout layout = checked_layout(x, weight, bias, running_mean, running_var);
  check_pairs(moments, layout.channels, "moments");
  const Tensor source = contiguous(x);
  const BatchNorm result = empty_result(x, layout);
  const auto* const means = moments.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      const Moments batch{means[c], means[layout.channels + c]};
      move_running(running_mean, running_var, c, batch, static_cast<double>(count), momentum);
      normalise(layout, c, static_cast<const T*>(source.raw_data()), weight, bias, batch.mean,
                batch.squares / static_cast<double>(count), eps, result);
    });
  });
  return result;
}

// Sums of the gradient, and of the gradient times the normalised x.
struct GradientSums {
  double sum = 0, dot = 0;
};

template <class T>
GradientSums gradient_sums(const Layout& layout, int64_t c, const T* slope, const T* in, double center, double scale) {
  using C = compute_type<T>;
  return {channel_sum(layout, c, [&](int64_t i) { return static_cast<double>(static_cast<C>(slope[i])); }),
          channel_sum(layout, c, [&](int64_t i) {
            return static_cast<double>(static_cast<C>(slope[i])) *
                   (static_cast<double>(static_cast<C>(in[i])) - center) * scale;
          })};
}

// dx = w * invstd * (g - mean(g) - xhat * mean(g * xhat)), the means over `count` values.
template <class T>
void input_gradient(const Layout& layout, int64_t c, const T* slope, const T* in, T* out, double weight, double center,
                    double scale, const GradientSums& sums, double count) {
  using C = compute_type<T>;
  const C gain = static_cast<C>(weight * scale);
  const C mean_slope = static_cast<C>(sums.sum / count);
  const C mean_dot = static_cast<C>(sums.dot / count * scale);
  const C middle = static_cast<C>(center);
  for (int64_t n = 0; n < layout.batch; ++n) {
    const int64_t plane = (n * layout.channels + c) * layout.area;
    for (int64_t i = plane; i < plane + layout.area; ++i) {
      out[i] =
          static_cast<T>(gain * (static_cast<C>(slope[i]) - mean_slope - (static_cast<C>(in[i]) - middle) * mean_dot));
    }
  }
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
    const T* in = static_cast<const T*>(source.raw_data());
    const T* slope = static_cast<const T*>(g.raw_data());
    for_each_channel(layout, [&](int64_t c) {
      const double center = channel(mean, c, 0);
      const double scale = channel(invstd, c, 1);
      const GradientSums sums = gradient_sums(layout, c, slope, in, center, scale);
      store(result.weight, c, sums.dot);
      store(result.bias, c, sums.sum);
      // With fixed statistics only the first term.
      input_gradient(layout, c, slope, in, static_cast<T*>(result.x.raw_data()), channel(weight, c, 1), center, scale,
                     training ? sums : GradientSums{}, count);
    });
  });
  if (weight.defined() && weight.dtype() != options.dtype) {
    result.weight = cast(result.weight, weight.dtype());
    result.bias = cast(result.bias, weight.dtype());
  }
  return result;
}

Tensor batch_norm_gradient_sums_cpu(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& invstd) {
  const Layout layout = layout_of(x);
  const Tensor source = contiguous(x);
  const Tensor g = contiguous(grad);
  const Tensor result = empty({2, layout.channels}, kFloat64);
  auto* const out = result.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      const GradientSums sums =
          gradient_sums(layout, c, static_cast<const T*>(g.raw_data()), static_cast<const T*>(source.raw_data()),
                        channel(mean, c, 0), channel(invstd, c, 1));
      out[c] = sums.sum;
      out[layout.channels + c] = sums.dot;
    });
  });
  return result;
}

Tensor batch_norm_input_gradient_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                     const Tensor& invstd, const Tensor& sums, int64_t count) {
  const Layout layout = layout_of(x);
  check_pairs(sums, layout.channels, "sums of gradients");
  const Tensor source = contiguous(x);
  const Tensor g = contiguous(grad);
  const Tensor result = empty(x.sizes(), x.options());
  const auto* const of_channel = sums.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      input_gradient(layout, c, static_cast<const T*>(g.raw_data()), static_cast<const T*>(source.raw_data()),
                     static_cast<T*>(result.raw_data()), channel(weight, c, 1), channel(mean, c, 0),
                     channel(invstd, c, 1), {of_channel[c], of_channel[layout.channels + c]},
                     static_cast<double>(count));
    });
  });
  return result;
}

}  // namespace

constinit Kernel<BatchNorm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool, double,
                           double)>
    batch_norm("batch_norm", &batch_norm_cpu);
constinit Kernel<BatchNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>
    batch_norm_backward("batch_norm_backward", &batch_norm_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> batch_norm_moments("batch_norm_moments", &batch_norm_moments_cpu);
constinit Kernel<BatchNorm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                           int64_t, double, double)>
    batch_norm_apply("batch_norm_apply", &batch_norm_apply_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)> batch_norm_gradient_sums(
    "batch_norm_gradient_sums", &batch_norm_gradient_sums_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        int64_t)>
    batch_norm_input_gradient("batch_norm_input_gradient", &batch_norm_input_gradient_cpu);

}  // namespace brigade::kernels
