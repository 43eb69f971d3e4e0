// A thread takes whole rows: a group of a sample. Backward needs two sums per plane (a channel of a sample), of grad
// and of grad * normalised x: the gradients of x come from those of its group, those of the parameters from all
// samples.
#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/data_or_null.h>
#include <brigade/kernels/detail/group_norm.h>
#include <brigade/kernels/detail/layer_norm.h>

#include <cmath>

namespace brigade::kernels {

namespace {

template <class T, class W>
void normalise_groups(const GroupNormPlan& plan, double eps) {
  using C = compute_type<T>;
  const GroupNormLayout& layout = plan.layout;
  const int64_t n = layout.length();
  const W* const weight = data_or_null<W>(plan.weight);
  const W* const bias = data_or_null<W>(plan.bias);
  C* const means = plan.result.mean.data_ptr<C>();
  C* const rstds = plan.result.rstd.data_ptr<C>();
  cpu::parallel_for(
      layout.rows(),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const x = plan.x.data_ptr<T>() + row * n;
          T* const y = plan.result.y.data_ptr<T>() + row * n;
          const auto value = [=](int64_t i) { return static_cast<C>(x[i]); };
          // From the distances to the first element: nothing is lost where a group lies far from zero.
          const C start = n > 0 ? value(0) : C(0);
          const double distances = cpu::long_sum<C>(0, n, [=](int64_t i) { return value(i) - start; });
          const C center = static_cast<C>(static_cast<double>(start) + distances / static_cast<double>(n));
          const double squares = cpu::long_sum<C>(0, n, [=](int64_t i) {
            const C distance = value(i) - center;
            return distance * distance;
          });
          const C rstd = static_cast<C>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
          means[row] = center;
          rstds[row] = rstd;
          const int64_t first = row % layout.groups * layout.channels;
          for (int64_t c = 0; c < layout.channels; ++c) {
            const C gain = rstd * (weight ? static_cast<C>(weight[first + c]) : C(1));
            const C shift = bias ? static_cast<C>(bias[first + c]) : C(0);
            for (int64_t i = c * layout.area; i < (c + 1) * layout.area; ++i)
              y[i] = static_cast<T>((value(i) - center) * gain + shift);
          }
        }
      },
      4 * n);
}

// [N, C]: of grad * normalised x, and of grad.
struct PlaneSums {
  Tensor dots, slopes;
};

template <class T>
PlaneSums plane_sums(const GroupNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd) {
  using C = compute_type<T>;
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
            const T* const x = plan.x.data_ptr<T>() + plane * layout.area;
            const T* const grad = plan.grad.data_ptr<T>() + plane * layout.area;
            const double dot = cpu::long_sum<C>(
                0, layout.area, [=](int64_t i) { return static_cast<C>(grad[i]) * (static_cast<C>(x[i]) - center); });
            dots[plane] = static_cast<C>(dot) * rstds[row];
            slopes[plane] =
                static_cast<C>(cpu::long_sum<C>(0, layout.area, [=](int64_t i) { return static_cast<C>(grad[i]); }));
          }
        }
      },
      4 * layout.length());
  return sums;
}

// With h = (x - mean) * rstd and s = grad * weight: dx = rstd * (s - mean(s) - h * mean(s * h)), means over a group.
template <class T, class W>
void input_gradient(const GroupNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd, const PlaneSums& sums) {
  using C = compute_type<T>;
  const GroupNormLayout& layout = plan.layout;
  const int64_t n = layout.length();
  const W* const weight = data_or_null<W>(plan.weight);
  const C* const means = mean.data_ptr<C>();
  const C* const rstds = rstd.data_ptr<C>();
  cpu::parallel_for(
      layout.rows(),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = row % layout.groups * layout.channels;
          const C* const dots = sums.dots.data_ptr<C>() + row * layout.channels;
          const C* const slopes = sums.slopes.data_ptr<C>() + row * layout.channels;
          const auto gain = [=](int64_t c) { return weight ? static_cast<C>(weight[first + c]) : C(1); };
          const auto count = static_cast<double>(n);
          const C mean_slope = static_cast<C>(
              cpu::long_sum<C>(0, layout.channels, [=](int64_t c) { return gain(c) * slopes[c]; }) / count);
          const C mean_dot = static_cast<C>(
              cpu::long_sum<C>(0, layout.channels, [=](int64_t c) { return gain(c) * dots[c]; }) / count);
          const C center = means[row];
          const C scale = rstds[row];
          const C pull = mean_dot * scale;
          const T* const x = plan.x.data_ptr<T>() + row * n;
          const T* const grad = plan.grad.data_ptr<T>() + row * n;
          T* const out = plan.result.data_ptr<T>() + row * n;
          for (int64_t c = 0; c < layout.channels; ++c) {
            const C factor = gain(c);
            for (int64_t i = c * layout.area; i < (c + 1) * layout.area; ++i) {
              out[i] = static_cast<T>(
                  scale * (static_cast<C>(grad[i]) * factor - mean_slope - (static_cast<C>(x[i]) - center) * pull));
            }
          }
        }
      },
      4 * n);
}

GroupNorm group_norm_cpu(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const GroupNormPlan plan = prepare_group_norm(x, groups, weight, bias);
  visit_layer_norm("group_norm", x.dtype(), plan.parameter_dtype,
                   [&]<class T, class W>() { normalise_groups<T, W>(plan, eps); });
  return plan.result;
}

GroupNormGrads group_norm_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                       const Tensor& rstd, const GroupNormBackwardOptions& options) {
  const GroupNormGradientPlan plan = prepare_group_norm_gradient(grad, x, weight, mean, rstd, options);
  GroupNormGrads result{plan.result, {}, {}};
  visit_layer_norm("group_norm backward", x.dtype(), plan.parameter_dtype, [&]<class T, class W>() {
    const PlaneSums sums = plane_sums<T>(plan, mean, rstd);
    if (options.input) input_gradient<T, W>(plan, mean, rstd, sums);
    const Shape channels{sums.dots.sizes()[1]};
    result.weight = sum_parts(sums.dots, options.weight, channels);
    result.bias = sum_parts(sums.slopes, options.bias, channels);
  });
  return result;
}

}  // namespace

constinit Kernel<GroupNorm(const Tensor&, int64_t, const Tensor&, const Tensor&, double)> group_norm("group_norm",
                                                                                                     &group_norm_cpu);
constinit Kernel<GroupNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                                const GroupNormBackwardOptions&)>
    group_norm_backward("group_norm_backward", &group_norm_backward_cpu);

}  // namespace brigade::kernels
