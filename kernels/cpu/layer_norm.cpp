// Layer norm and RMS norm on the CPU; all gradients of a row are computed while it is in the cache.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/norm_rows.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace brigade::kernels {
namespace {

constexpr int64_t kPart = 32;  // rows whose parameter gradients are summed in the compute type

// The values of a parameter, or `otherwise` for all elements if it is undefined.
template <class C>
const C* values_of(const Tensor& parameter, int64_t n, C otherwise, std::vector<C>& room) {
  if (parameter.defined()) return parameter.data_ptr<C>();
  room.assign(static_cast<size_t>(n), otherwise);
  return room.data();
}

// The same with canonical NaNs: rounding to a half type would drop the low bits of any other NaN.
const float* values_of_usual_nans(const Tensor& parameter, int64_t n, float otherwise, std::vector<float>& room) {
  const float* const values = values_of(parameter, n, otherwise, room);
  if (std::none_of(values, values + n, [](float value) { return std::isnan(value); })) return values;
  room.assign(values, values + n);
  for (float& value : room) {
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  }
  return room.data();
}

// RMS norm is layer norm around 0. Scalar loops for float64.
template <bool centered>
void normalize_row(const double* x, const double* gain, const double* shift, int64_t n, double eps, double* y,
                   double& mean, double& rstd) {
  mean = centered && n > 0 ? x[0] + cpu::sum_distances(x, x[0], n) / static_cast<double>(n) : 0.0;
  rstd = 1 / std::sqrt(cpu::sum_squares(x, mean, n) / static_cast<double>(n) + eps);
  cpu::normalize(x, mean, rstd, gain, shift, y, n);
}

template <bool centered>
void normalize_rows(const LayerNormPlan& plan, double eps) {
  const int64_t n = plan.length;
  std::vector<double> gains, shifts;
  const double* const gain = values_of<double>(plan.weight, n, 1, gains);
  const double* const shift = values_of<double>(plan.bias, n, 0, shifts);
  double* const means = data_or_null<double>(plan.mean);
  double* const rstds = plan.rstd.data_ptr<double>();
  cpu::parallel_for(
      plan.rows,
      [&](int64_t begin, int64_t end) {
        double unused = 0;
        for (int64_t row = begin; row < end; ++row)
          normalize_row<centered>(plan.x.data_ptr<double>() + row * n, gain, shift, n, eps,
                                  plan.y.data_ptr<double>() + row * n, centered ? means[row] : unused, rstds[row]);
      },
      4 * n);
}

// Rows that are computed in float32.
template <bool centered>
void normalize_float_rows(const LayerNormPlan& plan, double eps) {
  const int64_t n = plan.length;
  std::vector<float> gains, shifts;
  const float* const gain = values_of_usual_nans(plan.weight, n, 1, gains);
  const float* const shift = values_of_usual_nans(plan.bias, n, 0, shifts);
  float* const means = data_or_null<float>(plan.mean);
  float* const rstds = plan.rstd.data_ptr<float>();
  cpu::parallel_for(
      plan.rows,
      [&](int64_t begin, int64_t end) {
        cpu::normalize_rows({.dtype = plan.x.dtype(),
                             .rows = end - begin,
                             .n = n,
                             .x = cpu::element(plan.x, begin * n),
                             .gain = gain,
                             .shift = shift,
                             .eps = eps,
                             .y = cpu::element(plan.y, begin * n),
                             .means = centered ? means + begin : nullptr,
                             .rstds = rstds + begin});
      },
      4 * n);
}

// One row of the gradient of x. With h = (x - mean) * rstd and s = grad * weight: dx = rstd * (s - mean(s) - h * mean(s
// * h)); without the first mean for RMS norm.
template <bool centered>
void input_gradient(int64_t n, const double* grad, const double* x, const double* gain, double center, double rstd,
                    double* out) {
  const auto count = static_cast<double>(n);
  const double mean_slope = centered ? cpu::dot(grad, gain, n) / count : 0.0;
  const double mean_dot = cpu::dot_products(grad, gain, x, center, n) / count * rstd;
  cpu::norm_gradient(grad, x, center, rstd, gain, mean_slope, mean_dot * rstd, out, n);
}

// Sums over kPart rows each of grad * h (dots) and grad (slopes), where those tensors are defined.
template <class C>
struct Part {
  int64_t begin, end;  // rows
  C* dots;
  C* slopes;
};
template <class C, class Body>
void for_parts(const LayerNormGradientPlan& plan, const Tensor& dots, const Tensor& slopes, Body body) {
  const int64_t n = plan.length;
  const auto sums = [n](const Tensor& parts, int64_t part) {
    C* const own = parts.defined() ? parts.data_ptr<C>() + part * n : nullptr;
    if (own) std::fill(own, own + n, C(0));
    return own;
  };
  cpu::parallel_for(
      (plan.rows + kPart - 1) / kPart,
      [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part)
          body(Part<C>{part * kPart, std::min(plan.rows, (part + 1) * kPart), sums(dots, part), sums(slopes, part)});
      },
      8 * kPart * n);
}

// All of a row is computed while it is in the cache: the gradient of x, and the row's contribution to its part.
template <bool centered>
void row_gradients(const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, const Tensor& dots,
                   const Tensor& slopes) {
  const int64_t n = plan.length;
  std::vector<double> gains;
  const double* const gain = values_of<double>(plan.weight, n, 1, gains);
  const double* const means = data_or_null<double>(mean);
  const double* const rstds = rstd.data_ptr<double>();
  for_parts<double>(plan, dots, slopes, [&](const Part<double>& part) {
    for (int64_t row = part.begin; row < part.end; ++row) {
      const double* const x = plan.x.data_ptr<double>() + row * n;
      const double* const grad = plan.grad.data_ptr<double>() + row * n;
      const double center = centered ? means[row] : 0.0;
      if (plan.result.defined())
        input_gradient<centered>(n, grad, x, gain, center, rstds[row], plan.result.data_ptr<double>() + row * n);
      if (part.dots) cpu::add_products(grad, x, center, rstds[row], part.dots, n);
      if (part.slopes) cpu::add(grad, part.slopes, n);
    }
  });
}

template <bool centered>
void float_row_gradients(const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, const Tensor& dots,
                         const Tensor& slopes) {
  const int64_t n = plan.length;
  std::vector<float> gains;
  const float* const gain = values_of_usual_nans(plan.weight, n, 1, gains);
  const float* const means = data_or_null<float>(mean);
  const float* const rstds = rstd.data_ptr<float>();
  for_parts<float>(plan, dots, slopes, [&](const Part<float>& part) {
    cpu::norm_row_gradients({.dtype = plan.x.dtype(),
                             .rows = part.end - part.begin,
                             .n = n,
                             .grad = cpu::element(plan.grad, part.begin * n),
                             .x = cpu::element(plan.x, part.begin * n),
                             .gain = gain,
                             .means = centered ? means + part.begin : nullptr,
                             .rstds = rstds + part.begin,
                             .out = plan.result.defined() ? cpu::element(plan.result, part.begin * n) : nullptr,
                             .dots = part.dots,
                             .slopes = part.slopes});
  });
}

// Parameters of a half type are computed in float32.
Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? cast(x, kFloat32) : x; }

template <bool centered>
LayerNormPlan forward(const char* what, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                      const Tensor& bias, double eps) {
  LayerNormPlan plan = prepare_layer_norm(what, x, normalized_shape, weight, bias, centered);
  plan.weight = widened(plan.weight);
  plan.bias = widened(plan.bias);
  if (x.dtype() == kFloat64) {
    normalize_rows<centered>(plan, eps);
  } else {
    normalize_float_rows<centered>(plan, eps);
  }
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
  if (x.dtype() == kFloat64) {
    row_gradients<centered>(plan, mean, rstd, weight_parts, bias_parts);
  } else {
    float_row_gradients<centered>(plan, mean, rstd, weight_parts, bias_parts);
  }
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
