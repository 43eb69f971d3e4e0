// Logits [N, C] are rows; of logits [N, C, d1...] a thread takes kColumns neighbouring positions at a time, so that the
// loops over them vectorise.
#include <brigade/kernels/cross_entropy.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/cross_entropy.h>
#include <brigade/kernels/detail/loss.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>
#include <limits>

namespace brigade::kernels {

namespace {

constexpr int kLanes = 32;  // running maxima of a row
constexpr int64_t kColumns = 64;

// --- rows

template <class T>
compute_type<T> row_max(const T* x, int64_t n) {
  using C = compute_type<T>;
  C lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<C>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const C value = static_cast<C>(x[i + lane]);
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  C best = -std::numeric_limits<C>::infinity();
  for (const C lane : lanes)
    best = lane > best ? lane : best;
  for (; i < n; ++i)
    best = static_cast<C>(x[i]) > best ? static_cast<C>(x[i]) : best;
  return best;
}

// Position by position: class of the target, or -1 for an ignored one.
struct Targets {
  const int64_t* classes;
  int64_t ignore_index;
  int64_t at(int64_t position) const { return classes[position] == ignore_index ? -1 : classes[position]; }
};

// Sum of weight * (logit - max).
template <class T, class C>
C weighted_distances(const ClassShares<C>& shares, const T* x, C max) {
  if (const C* const weight = shares.weight)
    return cpu::lane_sum<C>(0, shares.classes, [=](int64_t i) { return weight[i] * (static_cast<C>(x[i]) - max); });
  return cpu::lane_sum<C>(0, shares.classes, [=](int64_t i) { return static_cast<C>(x[i]) - max; });
}

template <class T, class C>
void row_losses(const ClassSizes& sizes, const Targets& targets, const ClassShares<C>& shares, const T* logits,
                C* maxima, C* log_sums, C* losses) {
  const int64_t n = sizes.classes;
  cpu::parallel_for(
      sizes.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const x = logits + row * n;
          const C max = row_max(x, n);
          const C log_sum =
              std::log(cpu::lane_sum<C>(0, n, [=](int64_t i) { return cpu::exp(static_cast<C>(x[i]) - max); }));
          maxima[row] = max;
          log_sums[row] = log_sum;
          const int64_t wanted = targets.at(row);
          if (wanted < 0) {
            losses[row] = C(0);
            continue;
          }
          const C distances = shares.share == C(0) ? C(0) : cpu::lane_sum<C>(0, n, [&](int64_t i) {
            return shares.weight_of(i) * (static_cast<C>(x[i]) - max);
          });
          losses[row] = shares.loss(wanted, log_sum, static_cast<C>(x[wanted]) - max, distances);
        }
      },
      4 * n);
}

// `slopes` holds the gradient of each position's loss.
template <class T, class C>
void row_gradients(const ClassSizes& sizes, const Targets& targets, const ClassShares<C>& shares, const C* slopes,
                   const T* logits, const C* maxima, const C* log_sums, T* result) {
  const int64_t n = sizes.classes;
  cpu::parallel_for(
      sizes.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* const x = logits + row * n;
          T* const out = result + row * n;
          const int64_t wanted = targets.at(row);
          if (wanted < 0) {
            std::fill(out, out + n, T(0.0F));
            continue;
          }
          const C max = maxima[row];
          const C log_sum = log_sums[row];
          const C slope = slopes[row];
          const C total = slope * shares.total(wanted);
          const auto pull = [=](int64_t i) { return total * cpu::exp((static_cast<C>(x[i]) - max) - log_sum); };
          if (!shares.weight || shares.share == C(0)) {
            const C each = slope * shares.share;
            for (int64_t i = 0; i < n; ++i)
              out[i] = static_cast<T>(pull(i) - each);
          } else {
            for (int64_t i = 0; i < n; ++i)
              out[i] = static_cast<T>(pull(i) - slope * shares.of_each(i));
          }
          out[wanted] = static_cast<T>(pull(wanted) - slope * (shares.of_target(wanted) + shares.of_each(wanted)));
        }
      },
      4 * n);
}

// --- columns

// Calls body(first position, how many, offset of the first one's logit of class 0) for groups of neighbours.
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

template <class T, class C>
void column_losses(const ClassSizes& sizes, const Targets& targets, const ClassShares<C>& shares, const T* logits,
                   C* maxima, C* log_sums, C* losses) {
  for_columns(sizes, [&](int64_t first, int64_t width, int64_t offset) {
    const T* const x = logits + offset;
    C max[kColumns], sums[kColumns] = {}, distances[kColumns] = {};
    std::fill_n(max, kColumns, -std::numeric_limits<C>::infinity());
    for (int64_t c = 0; c < sizes.classes; ++c) {
      for (int64_t j = 0; j < width; ++j) {
        const C value = static_cast<C>(x[c * sizes.spatial + j]);
        max[j] = value > max[j] ? value : max[j];
      }
    }
    for (int64_t c = 0; c < sizes.classes; ++c) {
      for (int64_t j = 0; j < width; ++j)
        sums[j] += cpu::exp(static_cast<C>(x[c * sizes.spatial + j]) - max[j]);
    }
    for (int64_t c = 0; c < sizes.classes && shares.share != C(0); ++c) {
      const C weight = shares.weight_of(c);
      for (int64_t j = 0; j < width; ++j)
        distances[j] += weight * (static_cast<C>(x[c * sizes.spatial + j]) - max[j]);
    }
    for (int64_t j = 0; j < width; ++j) {
      const C log_sum = std::log(sums[j]);
      maxima[first + j] = max[j];
      log_sums[first + j] = log_sum;
      const int64_t wanted = targets.at(first + j);
      losses[first + j] =
          wanted < 0
              ? C(0)
              : shares.loss(wanted, log_sum, static_cast<C>(x[wanted * sizes.spatial + j]) - max[j], distances[j]);
    }
  });
}

template <class T, class C>
void column_gradients(const ClassSizes& sizes, const Targets& targets, const ClassShares<C>& shares, const C* slopes,
                      const T* logits, const C* maxima, const C* log_sums, T* result) {
  for_columns(sizes, [&](int64_t first, int64_t width, int64_t offset) {
    C total[kColumns] = {}, slope[kColumns] = {}, shift[kColumns] = {}, log_sum[kColumns] = {};
    for (int64_t j = 0; j < width; ++j) {
      const int64_t wanted = targets.at(first + j);
      if (wanted < 0) continue;
      slope[j] = slopes[first + j];
      total[j] = slope[j] * shares.total(wanted);
      shift[j] = maxima[first + j];
      log_sum[j] = log_sums[first + j];
    }
    const auto gradient = [&](C value, C each, int64_t j) {
      return total[j] * cpu::exp((value - shift[j]) - log_sum[j]) - slope[j] * each;
    };
    for (int64_t c = 0; c < sizes.classes; ++c) {
      const T* const from = logits + offset + c * sizes.spatial;
      T* const out = result + offset + c * sizes.spatial;
      const C each = shares.of_each(c);
      for (int64_t j = 0; j < width; ++j)
        out[j] = static_cast<T>(gradient(static_cast<C>(from[j]), each, j));
    }
    for (int64_t j = 0; j < width; ++j) {
      const int64_t wanted = targets.at(first + j);
      if (wanted < 0) {  // 0, whatever its logits are
        for (int64_t c = 0; c < sizes.classes; ++c)
          result[offset + c * sizes.spatial + j] = T(0.0F);
        continue;
      }
      const int64_t at = offset + wanted * sizes.spatial + j;
      result[at] = static_cast<T>(gradient(static_cast<C>(logits[at]), shares.of_each(wanted), j) -
                                  slope[j] * shares.of_target(wanted));
    }
  });
}

// --- both

void check_targets(const IndexRole& role, const ClassLossPlan& plan, int64_t ignore_index) {
  const auto* const wanted = plan.target.data_ptr<int64_t>();
  for (int64_t i = 0; i < plan.target.numel(); ++i) {
    if (wanted[i] != ignore_index && (wanted[i] < 0 || wanted[i] >= plan.sizes.classes))
      throw IndexError(index_error_text(role, wanted[i], i, plan.sizes.classes));
  }
}

// The reduced loss from that of each position, and what Mean divides by.
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

DType wide(DType dtype) { return is_half(dtype) ? kFloat32 : dtype; }

CrossEntropy cross_entropy_cpu(const Tensor& logits, const Tensor& target, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("cross_entropy", logits.sizes(), logits.options(), target, options);
  check_targets(kTargetClass, plan, options.ignore_index);
  const Tensor source = contiguous(logits);
  const Tensor losses = empty(target.sizes(), wide(logits.dtype()));
  const Tensor log_sums = empty_log_sums(target.sizes(), losses.dtype());
  const Targets targets{plan.target.data_ptr<int64_t>(), options.ignore_index};
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using C = compute_type<T>;
    C* const maxima = log_sums.data_ptr<C>();
    (plan.sizes.spatial == 1 ? &row_losses<T, C> : &column_losses<T, C>)(plan.sizes, targets,
                                                                         class_shares<C>(plan, options.label_smoothing),
                                                                         source.data_ptr<T>(), maxima,
                                                                         maxima + target.numel(), losses.data_ptr<C>());
  });
  const Reduced result = reduce_losses(losses, plan, options, logits.dtype());
  return {result.loss, log_sums, result.denominator};
}

Tensor cross_entropy_backward_cpu(const Tensor& grad, const Tensor& logits, const Tensor& target,
                                  const Tensor& log_sums, const Tensor& denominator, const ClassLossOptions& options) {
  const ClassLossPlan plan = prepare_class_loss("cross_entropy", logits.sizes(), logits.options(), target, options);
  check_loss_gradient(grad, target.sizes(), "cross_entropy");
  check_log_sums(log_sums, logits, target);
  const Tensor source = contiguous(logits);
  const Tensor result = empty(logits.sizes(), logits.options());
  const Tensor slopes = position_slopes(grad, target.sizes(), denominator, log_sums.dtype());
  const Targets targets{plan.target.data_ptr<int64_t>(), options.ignore_index};
  visit_floating(logits.dtype(), "cross_entropy backward", [&]<class T>() {
    using C = compute_type<T>;
    const C* const maxima = log_sums.data_ptr<C>();
    (plan.sizes.spatial == 1 ? &row_gradients<T, C>
                             : &column_gradients<T, C>)(plan.sizes, targets,
                                                        class_shares<C>(plan, options.label_smoothing),
                                                        slopes.data_ptr<C>(), source.data_ptr<T>(), maxima,
                                                        maxima + target.numel(), result.data_ptr<T>());
  });
  return result;
}

// Calls f(position, offset of the target's element, its weight) for each position that counts.
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
  const Tensor source = contiguous(log_probs);
  const Tensor losses = empty(target.sizes(), wide(log_probs.dtype()));
  fill(losses, 0);
  visit_floating(log_probs.dtype(), "nll_loss", [&]<class T>() {
    using C = compute_type<T>;
    const T* const x = source.data_ptr<T>();
    C* const out = losses.data_ptr<C>();
    for_targets<C>(plan, options.ignore_index,
                   [&](int64_t i, int64_t at, C weight) { out[i] = -weight * static_cast<C>(x[at]); });
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
