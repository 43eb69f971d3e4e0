// Group norm on the CPU. A thread takes whole rows (a group of a sample). Backward needs two sums per plane (a channel
// of a sample): of grad and of grad * normalized x. The gradient of x uses the sums of its group, the gradients of the
// parameters use the sums of all samples.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>

namespace brigade::kernels {
namespace {

// Half types are computed in float32.
Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? cast(x, kFloat32) : x; }

template <class C>
void normalise_groups(const GroupNormPlan& plan, double eps) {
  const GroupNormLayout& layout = plan.layout;
  const int64_t n = layout.length();
  const C* const weight = data_or_null<C>(plan.weight);
  const C* const bias = data_or_null<C>(plan.bias);
  C* const means = plan.result.mean.data_ptr<C>();
  C* const rstds = plan.result.rstd.data_ptr<C>();
  cpu::parallel_for(
      layout.rows(),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const C* const x = plan.x.data_ptr<C>() + row * n;
          C* const y = plan.result.y.data_ptr<C>() + row * n;
          // Sum the distances from the first element, so that no digits are lost in a group far from zero.
          const C start = n > 0 ? x[0] : C(0);
          const double distances = cpu::sum_distances(x, start, n);
          const C center = static_cast<C>(static_cast<double>(start) + distances / static_cast<double>(n));
          const double squares = cpu::sum_squares(x, center, n);
          const C rstd = static_cast<C>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
          means[row] = center;
          rstds[row] = rstd;
          const int64_t first = row % layout.groups * layout.channels;
          for (int64_t c = 0; c < layout.channels; ++c) {
            const C gain = rstd * (weight ? weight[first + c] : C(1));
            const C shift = bias ? bias[first + c] : C(0);
            cpu::normalize(x + c * layout.area, center, gain, shift, y + c * layout.area, layout.area);
          }
        }
      },
      4 * n);
}

// [N, C]: sums of grad * normalized x, and of grad.
struct PlaneSums {
  Tensor dots, slopes;
};

template <class C>
PlaneSums plane_sums(const GroupNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd) {
  const GroupNormLayout& layout = plan.layout;
  const Shape sizes{layout.batch, layout.groups * layout.channels};
  const PlaneSums sums{empty(sizes, dtype_of<C>), empty(sizes, dtype_of<C>)};
  const C* const means = mean.data_ptr<C>();
  const C* const rstds = rstd.data_ptr<C>();
  C* const dots = sums.dots.data_ptr<C>();
  C* const slopes = sums.slopes.data_ptr<C>();
  cpu::parallel_for(
      layout.rows(),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const C center = means[row];
          for (int64_t plane = row * layout.channels; plane < (row + 1) * layout.channels; ++plane) {
            const C* const x = plan.x.data_ptr<C>() + plane * layout.area;
            const C* const grad = plan.grad.data_ptr<C>() + plane * layout.area;
            dots[plane] = static_cast<C>(cpu::dot_distances(grad, x, center, layout.area)) * rstds[row];
            slopes[plane] = static_cast<C>(cpu::sum(grad, layout.area));
          }
        }
      },
      4 * layout.length());
  return sums;
}

// With h = (x - mean) * rstd and s = grad * weight: dx = rstd * (s - mean(s) - h * mean(s * h)),
// means over a group.
template <class C>
void input_gradient(const GroupNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, const PlaneSums& sums) {
  const GroupNormLayout& layout = plan.layout;
  const int64_t n = layout.length();
  const C* const weight = data_or_null<C>(plan.weight);
  const C* const means = mean.data_ptr<C>();
  const C* const rstds = rstd.data_ptr<C>();
  cpu::parallel_for(
      layout.rows(),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = row % layout.groups * layout.channels;
          const C* const dots = sums.dots.data_ptr<C>() + row * layout.channels;
          const C* const slopes = sums.slopes.data_ptr<C>() + row * layout.channels;
          const auto gain = [=](int64_t c) { return weight ? weight[first + c] : C(1); };
          const auto count = static_cast<double>(n);
          const C mean_slope = static_cast<C>(
              cpu::long_sum<C>(0, layout.channels, [=](int64_t c) { return gain(c) * slopes[c]; }) / count);
          const C mean_dot = static_cast<C>(
              cpu::long_sum<C>(0, layout.channels, [=](int64_t c) { return gain(c) * dots[c]; }) / count);
          const C center = means[row];
          const C scale = rstds[row];
          const C pull = mean_dot * scale;
          const C* const x = plan.x.data_ptr<C>() + row * n;
          const C* const grad = plan.grad.data_ptr<C>() + row * n;
          C* const out = plan.result.data_ptr<C>() + row * n;
          for (int64_t c = 0; c < layout.channels; ++c) {
            const int64_t at = c * layout.area;
            cpu::norm_gradient(grad + at, x + at, center, scale, gain(c), mean_slope, pull, out + at, layout.area);
          }
        }
      },
      4 * n);
}

GroupNorm group_norm_cpu(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const GroupNormPlan plan = prepare_group_norm(x, groups, weight, bias);
  if (is_half(x.dtype())) {
    GroupNorm wide = group_norm_cpu(widened(x), groups, widened(weight), widened(bias), eps);
    wide.y = cast(wide.y, x.dtype());
    return wide;
  }
  if (x.dtype() == kFloat64) {
    normalise_groups<double>(plan, eps);
  } else {
    normalise_groups<float>(plan, eps);
  }
  return plan.result;
}

template <class C>
PlaneSums gradients(const GroupNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, bool input) {
  const PlaneSums sums = plane_sums<C>(plan, mean, rstd);
  if (input) input_gradient<C>(plan, mean, rstd, sums);
  return sums;
}

GroupNormGrads group_norm_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const GroupNormBackwardOptions& options) {
  GroupNormGradientPlan plan = prepare_group_norm_gradient(grad, x, weight, mean, rstd, options);
  const Tensor wanted = plan.result;
  if (is_half(x.dtype())) {
    plan.x = widened(plan.x);
    plan.grad = widened(plan.grad);
    plan.weight = widened(plan.weight);
    if (options.input) plan.result = empty(wanted.sizes(), kFloat32);
  }
  const PlaneSums sums = plan.x.dtype() == kFloat64 ? gradients<double>(plan, mean, rstd, options.input)
                                                    : gradients<float>(plan, mean, rstd, options.input);
  if (options.input && is_half(x.dtype())) copy(wanted, plan.result);
  const Shape channels{sums.dots.sizes()[1]};
  return {wanted, sum_parts(sums.dots, options.weight, channels), sum_parts(sums.slopes, options.bias, channels)};
}

}  // namespace

constinit Kernel<GroupNorm(const Tensor&, int64_t, const Tensor&, const Tensor&, double)> group_norm("group_norm",
                                                                                                     &group_norm_cpu);
constinit Kernel<GroupNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                const GroupNormBackwardOptions&)>
    group_norm_backward("group_norm_backward", &group_norm_backward_cpu);

}  // namespace brigade::kernels
