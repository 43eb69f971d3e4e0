// Cross entropy on the CPU. Logits [N, C] are processed by rows; for logits [N, C, d1...] a thread takes kColumns
// adjacent positions at a time, in adjacent vector lanes.
#include <brigade/kernels/loss.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/exponentials.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace brigade::kernels {
namespace {

constexpr int64_t kColumns = cpu::kStripColumns;

// The target class of each position, or -1 if it is ignored.
struct Targets {
  const int64_t* classes;
  int64_t ignore_index;
  int64_t at(int64_t position) const { return classes[position] == ignore_index ? -1 : classes[position]; }
};

// Calls body(first position, count, offset of the first position's logit of class 0) for groups of adjacent positions.
template <class Body>
void for_columns(const ClassSizes& sizes, Body body) {
  const int64_t groups = (sizes.spatial + kColumns - 1) / kColumns;
  cpu::parallel_for(
      sizes.rows * groups,
      [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
          const int64_t row = group / groups;
          const int64_t at = group % groups * kColumns;
          body(row * sizes.spatial + at, std::min(kColumns, sizes.spatial - at),
               row * sizes.classes * sizes.spatial + at);
        }
      },
      4 * kColumns * sizes.classes);
}

// --- the largest logit of each position, and the logarithm of the sum of exp(logit - largest)

void log_sums_of(const ClassSizes& sizes, const float* x, float* maxima, float* log_sums) {
  const int64_t n = sizes.classes;
  if (sizes.spatial == 1) {
    cpu::parallel_for(
        sizes.rows,
        [&](int64_t begin, int64_t end) {
          cpu::log_sum_rows(x + begin * n, end - begin, n, maxima + begin, log_sums + begin);
        },
        4 * n);
    return;
  }
  for_columns(sizes, [&](int64_t first, int64_t width, int64_t offset) {
    cpu::log_sum_columns(x + offset, n, sizes.spatial, width, maxima + first, log_sums + first);
  });
}
void log_sums_of(const ClassSizes& sizes, const double* x, double* maxima, double* log_sums) {
  for_columns(sizes, [&](int64_t first, int64_t width, int64_t offset) {
    for (int64_t j = 0; j < width; ++j) {
      const double* const column = x + offset + j;
      double max = -std::numeric_limits<double>::infinity();
      double sum = 0;
      for (int64_t c = 0; c < sizes.classes; ++c)
        max = column[c * sizes.spatial] > max ? column[c * sizes.spatial] : max;
      for (int64_t c = 0; c < sizes.classes; ++c)
        sum += std::exp(column[c * sizes.spatial] - max);
      maxima[first + j] = max;
      log_sums[first + j] = std::log(sum);
    }
  });
}

template <class C>
void losses_of(const ClassSizes& sizes, const Targets& targets, const ClassShares<C>& shares, const C* logits,
               const C* maxima, const C* log_sums, C* losses) {
  const int64_t step = sizes.spatial;
  cpu::parallel_for(
      sizes.rows * step,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t wanted = targets.at(i);
          if (wanted < 0) {
            losses[i] = C(0);
            continue;
          }
          const C* const x = logits + i / step * sizes.classes * step + i % step;
          const C max = maxima[i];
          const C distances = shares.share == C(0) ? C(0) : cpu::lane_sum<C>(0, sizes.classes, [&](int64_t c) {
            return shares.weight_of(c) * (x[c * step] - max);
          });
          losses[i] = shares.loss(wanted, log_sums[i], x[wanted * step] - max, distances);
        }
      },
      shares.share == C(0) ? 4 : sizes.classes);
}

// --- gradients of adjacent positions

// Per position: the factor of its softmax, and the gradient that the class shares are multiplied by. Zeros for ignored
// positions.
template <class C>
struct Pulls {
  C total[kColumns] = {}, slope[kColumns] = {};

  Pulls(const Targets& targets, const ClassShares<C>& shares, const C* slopes, int64_t first, int64_t width) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t wanted = targets.at(first + j);
      if (wanted < 0) continue;
      slope[j] = slopes[first + j];
      total[j] = slope[j] * shares.total(wanted);
    }
  }
};

// out[c, j] = total * softmax - slope * share of c, for `width` adjacent positions.
void pull(const ClassSizes& sizes, const ClassShares<float>& shares, const Pulls<float>& pulls, const float* x,
          const float* maxima, const float* log_sums, int64_t width, float* out) {
  if (sizes.spatial == 1) {
    const bool is_even = !shares.weight || shares.share == 0;
    cpu::exp_gradient_floats(x, maxima[0], log_sums[0], pulls.total[0], is_even ? shares.of_each(0, pulls.slope[0]) : 0,
                             out, sizes.classes);
    for (int64_t c = 0; c < sizes.classes && !is_even; ++c)
      out[c] -= shares.of_each(c, pulls.slope[0]);
    return;
  }
  float less[kColumns];
  for (int64_t c = 0; c < sizes.classes; ++c) {
    for (int64_t j = 0; j < width; ++j)
      less[j] = shares.of_each(c, pulls.slope[j]);
    const int64_t at = c * sizes.spatial;
    cpu::exp_gradient_columns(x + at, maxima, log_sums, pulls.total, less, out + at, width);
  }
}
void pull(const ClassSizes& sizes, const ClassShares<double>& shares, const Pulls<double>& pulls, const double* x,
          const double* maxima, const double* log_sums, int64_t width, double* out) {
  for (int64_t c = 0; c < sizes.classes; ++c) {
    for (int64_t j = 0; j < width; ++j) {
      const int64_t at = c * sizes.spatial + j;
      out[at] = pulls.total[j] * std::exp((x[at] - maxima[j]) - log_sums[j]) - shares.of_each(c, pulls.slope[j]);
    }
  }
}

// `slopes` holds the gradient of each position's loss.
template <class C>
void gradients_of(const ClassSizes& sizes, const Targets& targets, const ClassShares<C>& shares, const C* slopes,
                  const C* logits, const C* maxima, const C* log_sums, C* result) {
  const auto strip = [&](int64_t first, int64_t width, int64_t offset) {
    const Pulls<C> pulls(targets, shares, slopes, first, width);
    C* const out = result + offset;
    pull(sizes, shares, pulls, logits + offset, maxima + first, log_sums + first, width, out);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t wanted = targets.at(first + j);
      if (wanted >= 0) {
        out[wanted * sizes.spatial + j] -= pulls.slope[j] * shares.of_target(wanted);
      } else {  // ignored: 0 even for infinite or NaN logits
        for (int64_t c = 0; c < sizes.classes; ++c)
          out[c * sizes.spatial + j] = C(0);
      }
    }
  };
  if (sizes.spatial != 1) return for_columns(sizes, strip);  // also handles zero positions
  cpu::parallel_for(
      sizes.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          strip(row, 1, row * sizes.classes);
      },
      4 * sizes.classes);
}

// --- forward and backward

void check_targets(const IndexRole& role, const ClassLossPlan& plan, int64_t ignore_index) {
  const auto* const wanted = plan.target.data_ptr<int64_t>();
  for (int64_t i = 0; i < plan.target.numel(); ++i) {
    if (wanted[i] != ignore_index && (wanted[i] < 0 || wanted[i] >= plan.sizes.classes))
      throw index_error(role, wanted[i], i, plan.sizes.classes);
  }
}

// The reduced loss, and the divisor of Mean.
struct Reduced {
  Tensor loss, denominator;
};
Reduced reduce_losses(const Tensor& losses, const ClassLossPlan& plan, const ClassLossOptions& options, DType dtype) {
  if (options.reduction == Reduction::None) return {cast(losses, dtype), {}};
  const Tensor total = sum(losses, {});
  if (options.reduction == Reduction::Sum) return {cast(total, dtype), {}};
  const auto* const wanted = plan.target.data_ptr<int64_t>();
  double counted = 0;
  visit_floating(losses.dtype(), "cross_entropy", [&]<class C>() {
    const ClassShares<C> shares = class_shares<C>(plan, 0);
    for (int64_t i = 0; i < plan.target.numel(); ++i) {
      if (wanted[i] != options.ignore_index) counted += static_cast<double>(shares.weight_of(wanted[i]));
    }
  });
  return {cast(binary_scalar(total, counted, BinaryOp::Div, false), dtype), scalar_tensor<double>(counted)};
}

// The gradient of each position's loss.
Tensor position_slopes(const Tensor& grad, const Shape& positions, const Tensor& denominator, DType dtype) {
  const Tensor slopes = empty(positions, dtype);
  if (grad.numel() == 1) {
    fill(slopes, detail::element_as_double(grad, 0));
  } else {
    copy(slopes, grad);
  }
  if (denominator.defined()) scale_inplace(slopes, 1 / *denominator.data_ptr<double>());
  return slopes;
}

// Half types are computed in float32.
DType wide(DType dtype) { return is_half(dtype) ? kFloat32 : dtype; }
Tensor widened(const Tensor& x) { return contiguous(cast(x, wide(x.dtype()))); }

template <class Body>
void visit_wide(DType dtype, Body&& body) {
  if (dtype == kFloat64) return body.template operator()<double>();
  body.template operator()<float>();
}

CrossEntropy cross_entropy_cpu(const Tensor& logits, const Tensor& target, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("cross_entropy", logits.sizes(), logits.options(), target, options);
  check_targets(kTargetClass, plan, options.ignore_index);
  const Tensor source = widened(logits);
  const Tensor losses = empty(target.sizes(), source.dtype());
  const Tensor log_sums = empty_log_sums(target.sizes(), source.dtype());
  const Targets targets{plan.target.data_ptr<int64_t>(), options.ignore_index};
  visit_wide(source.dtype(), [&]<class C>() {
    const C* const x = source.data_ptr<C>();
    C* const maxima = log_sums.data_ptr<C>();
    C* const sums = maxima + target.numel();
    log_sums_of(plan.sizes, x, maxima, sums);
    losses_of<C>(plan.sizes, targets, class_shares<C>(plan, options.label_smoothing), x, maxima, sums,
                 losses.data_ptr<C>());
  });
  const Reduced result = reduce_losses(losses, plan, options, logits.dtype());
  return {result.loss, log_sums, result.denominator};
}

Tensor cross_entropy_backward_cpu(const Tensor& grad, const Tensor& logits, const Tensor& target,
                                  const Tensor& log_sums, const Tensor& denominator, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("cross_entropy", logits.sizes(), logits.options(), target, options);
  check_loss_gradient(grad, target.sizes(), "cross_entropy");
  check_log_sums(log_sums, logits, target);
  const Tensor source = widened(logits);
  const Tensor result = empty(logits.sizes(), source.dtype());
  const Tensor slopes = position_slopes(grad, target.sizes(), denominator, log_sums.dtype());
  const Targets targets{plan.target.data_ptr<int64_t>(), options.ignore_index};
  visit_wide(source.dtype(), [&]<class C>() {
    const C* const maxima = log_sums.data_ptr<C>();
    gradients_of<C>(plan.sizes, targets, class_shares<C>(plan, options.label_smoothing), slopes.data_ptr<C>(),
                    source.data_ptr<C>(), maxima, maxima + target.numel(), result.data_ptr<C>());
  });
  return cast(result, logits.dtype());
}

// Calls f(position, offset of the target's element, its weight) for each position that is not ignored.
template <class C, class F>
void for_targets(const ClassLossPlan& plan, int64_t ignore_index, F f) {
  const auto* const wanted = plan.target.data_ptr<int64_t>();
  const ClassShares<C> shares = class_shares<C>(plan, 0);
  const ClassSizes& sizes = plan.sizes;
  for (int64_t i = 0; i < plan.target.numel(); ++i) {
    if (wanted[i] == ignore_index) continue;
    const int64_t row = i / sizes.spatial;
    f(i, (row * sizes.classes + wanted[i]) * sizes.spatial + i % sizes.spatial, shares.weight_of(wanted[i]));
  }
}

NllLoss nll_loss_cpu(const Tensor& log_probs, const Tensor& target, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("nll_loss", log_probs.sizes(), log_probs.options(), target, options);
  check_targets(kNllTargetClass, plan, options.ignore_index);
  const Tensor source = widened(log_probs);
  const Tensor losses = empty(target.sizes(), source.dtype());
  fill(losses, 0);
  visit_wide(source.dtype(), [&]<class C>() {
    const C* const x = source.data_ptr<C>();
    C* const out = losses.data_ptr<C>();
    for_targets<C>(plan, options.ignore_index, [&](int64_t i, int64_t at, C weight) { out[i] = -weight * x[at]; });
  });
  const Reduced result = reduce_losses(losses, plan, options, log_probs.dtype());
  return {result.loss, result.denominator};
}

Tensor nll_loss_backward_cpu(const Tensor& grad, const Shape& sizes, const Tensor& target, const Tensor& denominator,
                             const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("nll_loss", sizes, grad.options(), target, options);
  check_loss_gradient(grad, target.sizes(), "nll_loss");
  const Tensor result = empty(sizes, grad.options());
  fill(result, 0);
  const Tensor slopes = position_slopes(grad, target.sizes(), denominator, wide(grad.dtype()));
  visit_floating(grad.dtype(), "nll_loss backward", [&]<class T>() {
    using C = compute_type<T>;
    const C* const slope = slopes.data_ptr<C>();
    T* const out = result.data_ptr<T>();
    for_targets<C>(plan, options.ignore_index,
                   [&](int64_t i, int64_t at, C weight) { out[at] = static_cast<T>(-weight * slope[i]); });
  });
  return result;
}

}  // namespace

constinit Kernel<CrossEntropy(const Tensor&, const Tensor&, const ClassLossOptions&)> cross_entropy("cross_entropy",
                                                                                                    &cross_entropy_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const ClassLossOptions&)>
    cross_entropy_backward("cross_entropy_backward", &cross_entropy_backward_cpu);
constinit Kernel<NllLoss(const Tensor&, const Tensor&, const ClassLossOptions&)> nll_loss("nll_loss", &nll_loss_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, const Tensor&, const Tensor&, const ClassLossOptions&)>
    nll_loss_backward("nll_loss_backward", &nll_loss_backward_cpu);

}  // namespace brigade::kernels
