#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/batch_norm.h>

#include <cmath>

namespace brigade::kernels {

namespace {

// Element c of a per-channel tensor of any floating dtype; `otherwise` when it is undefined.
double channel(const Tensor& tensor, int64_t c, double otherwise) {
  return tensor.defined() ? detail::element_as_double(tensor, c) : otherwise;
}

void store(const Tensor& tensor, int64_t c, double value) {
  visit_floating(tensor.dtype(), "batch_norm", [&]<class T>() {
    static_cast<T*>(tensor.raw_data())[c] = static_cast<T>(static_cast<compute_type<T>>(value));
  });
}

template <class Body>
void for_each_channel(const BatchNormLayout& layout, Body&& body) {
  cpu::parallel_for(
      layout.channels,
      [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c)
          body(c);
      },
      layout.count());
}

// Sum over the batch and the area of channel c of f(element position), one partial sum per plane.
template <class F>
double channel_sum(const BatchNormLayout& layout, int64_t c, F&& f) {
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
Moments moments_of(const BatchNormLayout& layout, int64_t c, const T* in) {
  using C = compute_type<T>;
  const auto count = static_cast<double>(layout.count());
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
void normalise(const BatchNormLayout& layout, int64_t c, const T* in, const Tensor& weight, const Tensor& bias,
               double mean, double variance, double eps, const BatchNorm& result) {
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

BatchNorm batch_norm_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, bool training, double momentum, double eps) {
  const BatchNormPlan plan = prepare_batch_norm(x, weight, bias, running_mean, running_var);
  check_batch_norm_mode(plan, running_mean, running_var, training);
  const auto count = static_cast<double>(plan.layout.count());
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    const T* in = static_cast<const T*>(plan.x.raw_data());
    for_each_channel(plan.layout, [&](int64_t c) {
      double mean = channel(running_mean, c, 0);
      double variance = channel(running_var, c, 1);
      if (training) {
        const Moments batch = moments_of(plan.layout, c, in);
        mean = batch.mean;
        variance = batch.squares / count;
        move_running(running_mean, running_var, c, batch, count, momentum);
      }
      normalise(plan.layout, c, in, weight, bias, mean, variance, eps, plan.result);
    });
  });
  return plan.result;
}

Tensor batch_norm_moments_cpu(const Tensor& x) {
  const BatchNormPlan plan = prepare_batch_norm_moments(x);
  const BatchNormLayout& layout = plan.layout;
  const Tensor result = empty({2, layout.channels}, kFloat64);
  auto* const means = result.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      const Moments batch = moments_of(layout, c, static_cast<const T*>(plan.x.raw_data()));
      means[c] = batch.mean;
      means[layout.channels + c] = batch.squares;
    });
  });
  return result;
}

BatchNorm batch_norm_apply_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& moments, int64_t count, double momentum,
                               double eps) {
  const BatchNormPlan plan = prepare_batch_norm(x, weight, bias, running_mean, running_var);
  check_batch_norm_pairs(moments, x, "moments");
  const auto* const means = moments.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    for_each_channel(plan.layout, [&](int64_t c) {
      const Moments batch{means[c], means[plan.layout.channels + c]};
      move_running(running_mean, running_var, c, batch, static_cast<double>(count), momentum);
      normalise(plan.layout, c, static_cast<const T*>(plan.x.raw_data()), weight, bias, batch.mean,
                batch.squares / static_cast<double>(count), eps, plan.result);
    });
  });
  return plan.result;
}

// Sums of the gradient, and of the gradient times the normalised x.
struct GradientSums {
  double sum = 0, dot = 0;
};

template <class T>
GradientSums gradient_sums(const BatchNormLayout& layout, int64_t c, const T* slope, const T* in, double center,
                           double scale) {
  using C = compute_type<T>;
  return {channel_sum(layout, c, [&](int64_t i) { return static_cast<double>(static_cast<C>(slope[i])); }),
          channel_sum(layout, c, [&](int64_t i) {
            return static_cast<double>(static_cast<C>(slope[i])) *
                   (static_cast<double>(static_cast<C>(in[i])) - center) * scale;
          })};
}

// dx = w * invstd * (g - mean(g) - xhat * mean(g * xhat)), the means over `count` values.
template <class T>
void input_gradient(const BatchNormLayout& layout, int64_t c, const T* slope, const T* in, T* out, double weight,
                    double center, double scale, const GradientSums& sums, double count) {
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
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, weight, mean, invstd);
  const BatchNormLayout& layout = plan.layout;
  BatchNormGrads result{empty(x.sizes(), x.options()), empty({layout.channels}, plan.parameter_dtype),
                        empty({layout.channels}, plan.parameter_dtype)};
  const auto count = static_cast<double>(layout.count());
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    const T* in = static_cast<const T*>(plan.x.raw_data());
    const T* slope = static_cast<const T*>(plan.grad.raw_data());
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
  return result;
}

Tensor batch_norm_gradient_sums_cpu(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& invstd) {
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, Tensor(), mean, invstd);
  const BatchNormLayout& layout = plan.layout;
  const Tensor result = empty({2, layout.channels}, kFloat64);
  auto* const out = result.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      const GradientSums sums =
          gradient_sums(layout, c, static_cast<const T*>(plan.grad.raw_data()),
                        static_cast<const T*>(plan.x.raw_data()), channel(mean, c, 0), channel(invstd, c, 1));
      out[c] = sums.sum;
      out[layout.channels + c] = sums.dot;
    });
  });
  return result;
}

Tensor batch_norm_input_gradient_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                     const Tensor& invstd, const Tensor& sums, int64_t count) {
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, weight, mean, invstd);
  const BatchNormLayout& layout = plan.layout;
  check_batch_norm_pairs(sums, x, "sums of gradients");
  const Tensor result = empty(x.sizes(), x.options());
  const auto* const of_channel = sums.data_ptr<double>();
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    for_each_channel(layout, [&](int64_t c) {
      input_gradient(layout, c, static_cast<const T*>(plan.grad.raw_data()), static_cast<const T*>(plan.x.raw_data()),
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
