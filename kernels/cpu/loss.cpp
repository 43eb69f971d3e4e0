// Pair losses on the CPU. A reduced loss is summed in blocks of fixed length as it is computed, so that no buffer of
// losses is needed and the result does not depend on the number of threads.
#include <brigade/kernels/loss.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cpu/detail/lane_sum.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace brigade::kernels {
namespace {

constexpr int64_t kBlock = 4096;  // losses that are summed in the compute type

struct CpuMath {
  template <class C>
  static C exp(C x) {
    return cpu::exp(x);
  }
  template <class C>
  static C log(C x) {
    return cpu::log(x);
  }
  template <class C>
  static C log1p(C x) {
    return cpu::log1p(x);
  }
  template <class C>
  static C log1p_unit(C x) {
    return cpu::log1p_unit(x);
  }
};

// Calls body with the kind as a constant, so that each kind has its own loop.
template <class Body>
void with_kind(PairLossKind kind, Body&& body) {
  using enum PairLossKind;
  switch (kind) {
    case Squared: return body(std::integral_constant<PairLossKind, Squared>{});
    case Absolute: return body(std::integral_constant<PairLossKind, Absolute>{});
    case SmoothL1: return body(std::integral_constant<PairLossKind, SmoothL1>{});
    case Huber: return body(std::integral_constant<PairLossKind, Huber>{});
    case BinaryCrossEntropy: return body(std::integral_constant<PairLossKind, BinaryCrossEntropy>{});
    case BceWithLogits: return body(std::integral_constant<PairLossKind, BceWithLogits>{});
    case KlDivergence: return body(std::integral_constant<PairLossKind, KlDivergence>{});
    case KlDivergenceLog: return body(std::integral_constant<PairLossKind, KlDivergenceLog>{});
  }
}

template <class T>
void check_probabilities(const T* x, int64_t count) {
  using C = compute_type<T>;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    bool good = true;
    for (int64_t i = begin; i < end; ++i)
      good &= static_cast<C>(x[i]) >= C(0) && static_cast<C>(x[i]) <= C(1);
    for (int64_t i = begin; i < end && !good; ++i) {
      const C value = static_cast<C>(x[i]);
      if (value >= C(0) && value <= C(1)) continue;
      throw ValueError(
          "binary_cross_entropy: all elements of input should be between 0 and 1, got {} at position {}; apply sigmoid "
          "first, or take binary_cross_entropy_with_logits",
          value, i);
    }
  }
}

template <class C, class F>
double blocked_sum(int64_t count, F f) {
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<C> sums(static_cast<size_t>(blocks));
  cpu::parallel_for(
      blocks,
      [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block)
          sums[static_cast<size_t>(block)] = cpu::lane_sum<C>(block * kBlock, std::min(count, (block + 1) * kBlock), f);
      },
      kBlock);
  double total = 0;
  for (const C sum : sums)
    total += static_cast<double>(sum);
  return total;
}

Tensor pair_loss_cpu(const Tensor& x, const Tensor& target, const PairLoss& loss, Reduction reduction) {
  check_pair(x, target, name(loss.kind));
  const Tensor a = contiguous(x);
  const Tensor b = contiguous(target);
  const int64_t count = x.numel();
  const Tensor result = empty(reduction == Reduction::None ? x.sizes() : Shape{}, x.options());
  visit_floating(x.dtype(), name(loss.kind), [&]<class T>() {
    using C = compute_type<T>;
    const T* const p = static_cast<const T*>(a.raw_data());
    const T* const q = static_cast<const T*>(b.raw_data());
    T* const out = static_cast<T*>(result.raw_data());
    const C parameter = static_cast<C>(loss.parameter);
    if (loss.kind == PairLossKind::BinaryCrossEntropy) check_probabilities(p, count);
    with_kind(loss.kind, [&](auto kind) {
      const auto value = [=](int64_t i) {
        return pair_loss_value<CpuMath>(decltype(kind)::value, static_cast<C>(p[i]), static_cast<C>(q[i]), parameter);
      };
      if (reduction != Reduction::None) {
        const double sum = blocked_sum<C>(count, value);
        *out = static_cast<T>(static_cast<C>(reduction == Reduction::Mean ? sum / static_cast<double>(count) : sum));
        return;
      }
      cpu::parallel_for(
          count,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
              out[i] = static_cast<T>(value(i));
          },
          4);
    });
  });
  return result;
}

Tensor pair_loss_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& target, const PairLoss& loss,
                              PairSide side, Reduction reduction) {
  check_pair(x, target, name(loss.kind));
  check_loss_gradient(grad, x.sizes(), name(loss.kind));
  const Tensor g = contiguous(cast(grad, x.dtype()));
  const Tensor a = contiguous(x);
  const Tensor b = contiguous(target);
  const int64_t count = x.numel();
  const Tensor result = empty(x.sizes(), x.options());
  if (count == 0) return result;
  visit_floating(x.dtype(), name(loss.kind), [&]<class T>() {
    using C = compute_type<T>;
    const T* const p = static_cast<const T*>(a.raw_data());
    const T* const q = static_cast<const T*>(b.raw_data());
    const T* const slopes = static_cast<const T*>(g.raw_data());
    T* const out = static_cast<T*>(result.raw_data());
    const C parameter = static_cast<C>(loss.parameter);
    const C scale = reduction == Reduction::Mean ? static_cast<C>(1.0 / static_cast<double>(count)) : C(1);
    with_kind(loss.kind, [&](auto kind) {
      const auto times = [&](auto factor) {
        cpu::parallel_for(
            count,
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const C v = static_cast<C>(p[i]);
                const C z = static_cast<C>(q[i]);
                const C slope = side == PairSide::Input
                                    ? pair_loss_input_slope<CpuMath>(decltype(kind)::value, v, z, parameter)
                                    : pair_loss_target_slope<CpuMath>(decltype(kind)::value, v, z, parameter);
                out[i] = static_cast<T>(factor(i) * slope);
              }
            },
            4);
      };
      if (g.numel() == 1) {
        times([factor = static_cast<C>(slopes[0]) * scale](int64_t) { return factor; });
      } else {
        times([=](int64_t i) { return static_cast<C>(slopes[i]); });  // one gradient per loss: no reduction
      }
    });
  });
  return result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, const PairLoss&, Reduction)> pair_loss("pair_loss",
                                                                                             &pair_loss_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const PairLoss&, PairSide, Reduction)>
    pair_loss_backward("pair_loss_backward", &pair_loss_backward_cpu);

}  // namespace brigade::kernels
