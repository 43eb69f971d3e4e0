#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/data_or_null.h>
#include <brigade/kernels/detail/layer_norm.h>

#include <algorithm>
#include <cmath>

namespace brigade::kernels {

namespace {

constexpr int64_t kPart = 128;  // rows that are added up in the type of x

// Sum of f(i) over a row, in double with eight running sums: the loop vectorises.
template <class F>
double row_sum(int64_t n, F&& f) {
  double lanes[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane)
      lanes[lane] += static_cast<double>(f(i + lane));
  }
  for (; i < n; ++i)
    lanes[i % 8] += static_cast<double>(f(i));
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

// RMS norm is layer norm around 0.
template <bool centered, class T, class W>
void normalise_rows(const LayerNormPlan& plan, double eps) {
  using C = compute_type<T>;
  const int64_t n = plan.length;
  const W* const weight = data_or_null<W>(plan.weight);
  const W* const bias = data_or_null<W>(plan.bias);
  C* const means = data_or_null<C>(plan.mean);
  C* const rstds = data_or_null<C>(plan.rstd);
  cpu::parallel_for(
      plan.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const x = static_cast<const T*>(plan.x.raw_data()) + row * n;
          T* const y = static_cast<T*>(plan.y.raw_data()) + row * n;
          const auto value = [&](int64_t i) { return static_cast<C>(x[i]); };
          const double mean = centered ? row_sum(n, value) / static_cast<double>(n) : 0;
          const double squares = row_sum(n, [&](int64_t i) {
            const double distance = static_cast<double>(value(i)) - mean;
            return distance * distance;
          });
          const C center = static_cast<C>(mean);
          const C rstd = static_cast<C>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
          if (centered) means[row] = center;
          rstds[row] = rstd;
          for (int64_t i = 0; i < n; ++i) {
            const C normed = (value(i) - center) * rstd;
            y[i] = static_cast<T>(normed * (weight ? static_cast<C>(weight[i]) : C(1)) +
                                  (bias ? static_cast<C>(bias[i]) : C(0)));
          }
        }
      },
      8 * n);
}

// With h = (x - mean) * rstd and s = grad * weight: dx = rstd * (s - mean(s) - h * mean(s * h)); without the first mean
// for RMS norm.
template <bool centered, class T, class W>
void input_gradient(const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd) {
  using C = compute_type<T>;
  const int64_t n = plan.length;
  const W* const weight = data_or_null<W>(plan.weight);
  const C* const means = data_or_null<C>(mean);
  const C* const rstds = data_or_null<C>(rstd);
  cpu::parallel_for(
      plan.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const x = static_cast<const T*>(plan.x.raw_data()) + row * n;
          const T* const grad = static_cast<const T*>(plan.grad.raw_data()) + row * n;
          T* const out = static_cast<T*>(plan.result.raw_data()) + row * n;
          const C center = centered ? means[row] : C(0);
          const C scale = rstds[row];
          const auto slope = [&](int64_t i) {
            return static_cast<C>(grad[i]) * (weight ? static_cast<C>(weight[i]) : C(1));
          };
          const auto normed = [&](int64_t i) { return (static_cast<C>(x[i]) - center) * scale; };
          const auto count = static_cast<double>(n);
          const C mean_slope = centered ? static_cast<C>(row_sum(n, slope) / count) : C(0);
          const C mean_dot = static_cast<C>(row_sum(n, [&](int64_t i) { return slope(i) * normed(i); }) / count);
          for (int64_t i = 0; i < n; ++i)
            out[i] = static_cast<T>(scale * (slope(i) - mean_slope - normed(i) * mean_dot));
        }
      },
      8 * n);
}

// Sums of grad * h and of grad over kPart rows each.
template <bool centered, class T>
void parameter_sums(const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd,
                    const Tensor& weight_parts, const Tensor& bias_parts) {
  using C = compute_type<T>;
  const int64_t n = plan.length;
  const C* const means = data_or_null<C>(mean);
  const C* const rstds = data_or_null<C>(rstd);
  cpu::parallel_for(
      weight_parts.sizes()[0],
      [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) {
          C* const dots = static_cast<C*>(weight_parts.raw_data()) + part * n;
          C* const sums = static_cast<C*>(bias_parts.raw_data()) + part * n;
          std::fill(dots, dots + n, C(0));
          std::fill(sums, sums + n, C(0));
          for (int64_t row = part * kPart; row < std::min(plan.rows, (part + 1) * kPart); ++row) {
            const T* const x = static_cast<const T*>(plan.x.raw_data()) + row * n;
            const T* const grad = static_cast<const T*>(plan.grad.raw_data()) + row * n;
            const C center = centered ? means[row] : C(0);
            for (int64_t i = 0; i < n; ++i) {
              dots[i] += static_cast<C>(grad[i]) * ((static_cast<C>(x[i]) - center) * rstds[row]);
              sums[i] += static_cast<C>(grad[i]);
            }
          }
        }
      },
      4 * kPart * n);
}

template <bool centered>
LayerNormPlan forward(const char* what, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                      const Tensor& bias, double eps) {
  LayerNormPlan plan = prepare_layer_norm(what, x, normalized_shape, weight, bias, centered);
  visit_layer_norm(what, x.dtype(), plan.parameter_dtype,
                   [&]<class T, class W>() { normalise_rows<centered, T, W>(plan, eps); });
  return plan;
}

template <bool centered>
LayerNormGrads backward(const char* what, const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, const LayerNormBackwardOptions& options) {
  const LayerNormGradientPlan plan = prepare_layer_norm_gradient(what, grad, x, weight, mean, rstd, options, centered);
  LayerNormGrads result{plan.result, {}, {}};
  visit_layer_norm(what, x.dtype(), plan.parameter_dtype, [&]<class T, class W>() {
    if (options.input) input_gradient<centered, T, W>(plan, mean, rstd);
    if (!options.weight.wanted && !options.bias.wanted) return;
    const Shape sizes{(plan.rows + kPart - 1) / kPart, plan.length};
    const Tensor weight_parts = empty(sizes, dtype_of<compute_type<T>>);
    const Tensor bias_parts = empty(sizes, dtype_of<compute_type<T>>);
    parameter_sums<centered, T>(plan, mean, rstd, weight_parts, bias_parts);
    result.weight = sum_parts(weight_parts, options.weight, options.normalized_shape);
    result.bias = sum_parts(bias_parts, options.bias, options.normalized_shape);
  });
  return result;
}

LayerNorm layer_norm_cpu(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                         double eps) {
  const LayerNormPlan plan = forward<true>("layer_norm", x, normalized_shape, weight, bias, eps);
  return {plan.y, plan.mean, plan.rstd};
}
RmsNorm rms_norm_cpu(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double eps) {
  const LayerNormPlan plan = forward<false>("rms_norm", x, normalized_shape, weight, Tensor(), eps);
  return {plan.y, plan.rstd};
}
LayerNormGrads layer_norm_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const LayerNormBackwardOptions& options) {
  return backward<true>("layer_norm backward", grad, x, weight, mean, rstd, options);
}
LayerNormGrads rms_norm_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                     const LayerNormBackwardOptions& options) {
  return backward<false>("rms_norm backward", grad, x, weight, Tensor(), rstd, options);
}

}  // namespace

constinit Kernel<LayerNorm(const Tensor&, const Shape&, const Tensor&, const Tensor&, double)> layer_norm(
    "layer_norm", &layer_norm_cpu);
constinit Kernel<RmsNorm(const Tensor&, const Shape&, const Tensor&, double)> rms_norm("rms_norm", &rms_norm_cpu);
constinit Kernel<LayerNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                const LayerNormBackwardOptions&)>
    layer_norm_backward("layer_norm_backward", &layer_norm_backward_cpu);
constinit Kernel<LayerNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                const LayerNormBackwardOptions&)>
    rms_norm_backward("rms_norm_backward", &rms_norm_backward_cpu);

}  // namespace brigade::kernels
