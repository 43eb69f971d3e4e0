#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/data_or_null.h>
#include <brigade/kernels/detail/layer_norm.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace brigade::kernels {

namespace {

constexpr int64_t kPart = 32;  // rows whose parameter gradients are added up in the type of x

// A parameter in the type that is computed in; `otherwise` everywhere where there is none.
template <class W, class C>
const C* computed(const Tensor& parameter, int64_t n, C otherwise, std::vector<C>& room) {
  if constexpr (std::is_same_v<W, C>) {
    if (parameter.defined()) return parameter.data_ptr<C>();
  }
  room.assign(static_cast<size_t>(n), otherwise);
  if (parameter.defined()) {
    const W* const from = parameter.data_ptr<W>();
    for (int64_t i = 0; i < n; ++i)
      room[static_cast<size_t>(i)] = static_cast<C>(from[i]);
  }
  return room.data();
}

// RMS norm is layer norm around 0.
template <bool centered, class T, class W>
void normalise_rows(const LayerNormPlan& plan, double eps) {
  using C = compute_type<T>;
  const int64_t n = plan.length;
  std::vector<C> gains, shifts;
  const C* const gain = computed<W>(plan.weight, n, C(1), gains);
  const C* const shift = computed<W>(plan.bias, n, C(0), shifts);
  C* const means = data_or_null<C>(plan.mean);
  C* const rstds = data_or_null<C>(plan.rstd);
  cpu::parallel_for(
      plan.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const x = static_cast<const T*>(plan.x.raw_data()) + row * n;
          T* const y = static_cast<T*>(plan.y.raw_data()) + row * n;
          const auto value = [=](int64_t i) { return static_cast<C>(x[i]); };
          C center = C(0);
          if constexpr (centered) {
            // Of the distances from the first element: nothing is lost where a row lies far from zero.
            const C first = n > 0 ? value(0) : C(0);
            const double distances = cpu::long_sum<C>(0, n, [=](int64_t i) { return value(i) - first; });
            center = static_cast<C>(static_cast<double>(first) + distances / static_cast<double>(n));
          }
          const double squares = cpu::long_sum<C>(0, n, [=](int64_t i) {
            const C distance = value(i) - center;
            return distance * distance;
          });
          const C rstd = static_cast<C>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
          if (centered) means[row] = center;
          rstds[row] = rstd;
          for (int64_t i = 0; i < n; ++i)
            y[i] = static_cast<T>((value(i) - center) * rstd * gain[i] + shift[i]);
        }
      },
      4 * n);
}

// A row of the gradient of x. With h = (x - mean) * rstd and s = grad * weight: dx = rstd * (s - mean(s) - h * mean(s *
// h)); without the first mean for RMS norm.
template <bool centered, class T, class C>
void input_gradient(int64_t n, const T* grad, const T* x, const C* gain, C center, C rstd, T* out) {
  const auto slope = [=](int64_t i) { return static_cast<C>(grad[i]) * gain[i]; };
  const auto distance = [=](int64_t i) { return static_cast<C>(x[i]) - center; };
  const auto count = static_cast<double>(n);
  const C mean_slope = centered ? static_cast<C>(cpu::long_sum<C>(0, n, slope) / count) : C(0);
  const C mean_dot =
      static_cast<C>(cpu::long_sum<C>(0, n, [=](int64_t i) { return slope(i) * distance(i); }) / count) * rstd;
  const C pull = mean_dot * rstd;
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(rstd * (slope(i) - mean_slope - distance(i) * pull));
}

// Everything of a row is computed while it is near: the gradient of x, and sums over kPart rows each of grad * h (dots)
// and grad (slopes), where those tensors are defined.
template <bool centered, class T, class W>
void row_gradients(const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, const Tensor& dots,
                   const Tensor& slopes) {
  using C = compute_type<T>;
  const int64_t n = plan.length;
  std::vector<C> gains;
  const C* const gain = computed<W>(plan.weight, n, C(1), gains);
  const C* const means = data_or_null<C>(mean);
  const C* const rstds = data_or_null<C>(rstd);
  cpu::parallel_for((plan.rows + kPart - 1) / kPart,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t part = begin; part < end; ++part) {
                        C* const dot = dots.defined() ? dots.data_ptr<C>() + part * n : nullptr;
                        C* const sum = slopes.defined() ? slopes.data_ptr<C>() + part * n : nullptr;
                        if (dot) std::fill(dot, dot + n, C(0));
                        if (sum) std::fill(sum, sum + n, C(0));
                        for (int64_t row = part * kPart; row < std::min(plan.rows, (part + 1) * kPart); ++row) {
                          const T* const x = static_cast<const T*>(plan.x.raw_data()) + row * n;
                          const T* const grad = static_cast<const T*>(plan.grad.raw_data()) + row * n;
                          const C center = centered ? means[row] : C(0);
                          const C scale = rstds[row];
                          if (plan.result.defined())
                            input_gradient<centered>(n, grad, x, gain, center, scale,
                                                     plan.result.data_ptr<T>() + row * n);
                          for (int64_t i = 0; i < n && dot; ++i)
                            dot[i] += static_cast<C>(grad[i]) * ((static_cast<C>(x[i]) - center) * scale);
                          for (int64_t i = 0; i < n && sum; ++i)
                            sum[i] += static_cast<C>(grad[i]);
                        }
                      }
                    },
                    8 * kPart * n);
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
    const auto room = [&](const ParameterGrad& to) {
      const Shape sizes{(plan.rows + kPart - 1) / kPart, plan.length};
      return to.wanted ? empty(sizes, dtype_of<compute_type<T>>) : Tensor();
    };
    const Tensor weight_parts = room(options.weight);
    const Tensor bias_parts = room(options.bias);
    row_gradients<centered, T, W>(plan, mean, rstd, weight_parts, bias_parts);
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
