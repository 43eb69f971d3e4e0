// Layer norm and RMS norm on the CPU; a row's gradients are all computed while it is in the cache.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/data_or_null.h>
#include <brigade/kernels/common/layer_norm.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/half.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace brigade::kernels {

namespace {

constexpr int64_t kPart = 32;  // rows whose parameter gradients are added up in the type that is computed in

// A parameter; `otherwise` everywhere where there is none.
template <class C>
const C* values_of(const Tensor& parameter, int64_t n, C otherwise, std::vector<C>& room) {
  if (parameter.defined()) return parameter.data_ptr<C>();
  room.assign(static_cast<size_t>(n), otherwise);
  return room.data();
}

// Rows of storage type S in the type that is computed in: half rows by way of a buffer, so that they
// are widened and rounded while they are in the cache.
template <class S, class C>
class RowBuffer {
 public:
  explicit RowBuffer(int64_t n) : n_(n), values_(kIsWidened ? static_cast<size_t>(n) : 0) {}
  const C* read(const S* row) { return cpu::in_compute_type(row, values_.data(), n_); }
  // Where a row is to be computed; write() then puts it into its place.
  C* room(S* row) {
    if constexpr (kIsWidened) {
      return values_.data();
    } else {
      return row;
    }
  }
  void write(S* row) const {
    if constexpr (kIsWidened) cpu::narrow(values_.data(), row, n_);
  }

 private:
  static constexpr bool kIsWidened = !std::is_same_v<S, C>;
  int64_t n_;
  std::vector<C> values_;
};

// RMS norm is layer norm around 0.
template <bool centered, class S, class C>
void normalise_rows(const LayerNormPlan& plan, double eps) {
  const int64_t n = plan.length;
  std::vector<C> gains, shifts;
  const C* const gain = values_of<C>(plan.weight, n, C(1), gains);
  const C* const shift = values_of<C>(plan.bias, n, C(0), shifts);
  C* const means = data_or_null<C>(plan.mean);
  C* const rstds = data_or_null<C>(plan.rstd);
  cpu::parallel_for(
      plan.rows,
      [&](int64_t begin, int64_t end) {
        RowBuffer<S, C> wide_x(n), wide_y(n);
        for (int64_t row = begin; row < end; ++row) {
          const C* const x = wide_x.read(static_cast<const S*>(plan.x.raw_data()) + row * n);
          S* const y = static_cast<S*>(plan.y.raw_data()) + row * n;
          C center = C(0);
          if constexpr (centered) {
            // Of the distances from the first element: nothing is lost where a row lies far from
            // zero.
            const C first = n > 0 ? x[0] : C(0);
            const double distances = cpu::sum_distances(x, first, n);
            center = static_cast<C>(static_cast<double>(first) + distances / static_cast<double>(n));
          }
          const double squares = cpu::sum_squares(x, center, n);
          const C rstd = static_cast<C>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
          if (centered) means[row] = center;
          rstds[row] = rstd;
          cpu::normalize(x, center, rstd, gain, shift, wide_y.room(y), n);
          wide_y.write(y);
        }
      },
      4 * n);
}

// A row of the gradient of x. With h = (x - mean) * rstd and s = grad * weight: dx = rstd * (s -
// mean(s) - h * mean(s * h)); without the first mean for RMS norm.
template <bool centered, class C>
void input_gradient(int64_t n, const C* grad, const C* x, const C* gain, C center, C rstd, C* out) {
  const auto count = static_cast<double>(n);
  const C mean_slope = centered ? static_cast<C>(cpu::dot(grad, gain, n) / count) : C(0);
  const C mean_dot = static_cast<C>(cpu::dot_products(grad, gain, x, center, n) / count) * rstd;
  cpu::norm_gradient(grad, x, center, rstd, gain, mean_slope, mean_dot * rstd, out, n);
}

// Everything of a row is computed while it is near: the gradient of x, and sums over kPart rows
// each of grad * h (dots) and grad (slopes), where those tensors are defined.
template <bool centered, class S, class C>
void row_gradients(const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, const Tensor& dots,
                   const Tensor& slopes) {
  const int64_t n = plan.length;
  std::vector<C> gains;
  const C* const gain = values_of<C>(plan.weight, n, C(1), gains);
  const C* const means = data_or_null<C>(mean);
  const C* const rstds = data_or_null<C>(rstd);
  cpu::parallel_for((plan.rows + kPart - 1) / kPart,
                    [&](int64_t begin, int64_t end) {
                      RowBuffer<S, C> wide_x(n), wide_grad(n), wide_result(n);
                      for (int64_t part = begin; part < end; ++part) {
                        C* const dot = dots.defined() ? dots.data_ptr<C>() + part * n : nullptr;
                        C* const sum = slopes.defined() ? slopes.data_ptr<C>() + part * n : nullptr;
                        if (dot) std::fill(dot, dot + n, C(0));
                        if (sum) std::fill(sum, sum + n, C(0));
                        for (int64_t row = part * kPart; row < std::min(plan.rows, (part + 1) * kPart); ++row) {
                          const C* const x = wide_x.read(static_cast<const S*>(plan.x.raw_data()) + row * n);
                          const C* const grad = wide_grad.read(static_cast<const S*>(plan.grad.raw_data()) + row * n);
                          const C center = centered ? means[row] : C(0);
                          if (plan.result.defined()) {
                            S* const result = static_cast<S*>(plan.result.raw_data()) + row * n;
                            input_gradient<centered>(n, grad, x, gain, center, rstds[row], wide_result.room(result));
                            wide_result.write(result);
                          }
                          if (dot) cpu::add_products(grad, x, center, rstds[row], dot, n);
                          if (sum) cpu::add(grad, sum, n);
                        }
                      }
                    },
                    8 * kPart * n);
}

// Parameters of a half type are computed in float32.
Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? cast(x, kFloat32) : x; }

template <bool centered>
LayerNormPlan forward(const char* what, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                      const Tensor& bias, double eps) {
  LayerNormPlan plan = prepare_layer_norm(what, x, normalized_shape, weight, bias, centered);
  plan.weight = widened(plan.weight);
  plan.bias = widened(plan.bias);
  visit_floating(x.dtype(), what, [&]<class S>() { normalise_rows<centered, S, compute_type<S>>(plan, eps); });
  return plan;
}

template <bool centered>
LayerNormGrads backward(const char* what, const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, const LayerNormBackwardOptions& options) {
  LayerNormGradientPlan plan = prepare_layer_norm_gradient(what, grad, x, weight, mean, rstd, options, centered);
  plan.weight = widened(plan.weight);
  const auto room = [&](const ParameterGrad& to) {
    const Shape sizes{(plan.rows + kPart - 1) / kPart, plan.length};
    return to.wanted ? empty(sizes, rstd.dtype()) : Tensor();
  };
  const Tensor weight_parts = room(options.weight);
  const Tensor bias_parts = room(options.bias);
  visit_floating(x.dtype(), what, [&]<class S>() {
    row_gradients<centered, S, compute_type<S>>(plan, mean, rstd, weight_parts, bias_parts);
  });
  return {plan.result, sum_parts(weight_parts, options.weight, options.normalized_shape),
          sum_parts(bias_parts, options.bias, options.normalized_shape)};
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
