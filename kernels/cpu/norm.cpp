// Vector norms on the CPU: one reduction over slices for each kind of norm.
#include <brigade/kernels/reduce.h>

#include <brigade/kernels/common/reducers.h>
#include <brigade/kernels/cpu/detail/reduce_slices.h>

namespace brigade::kernels {
namespace {

constexpr cpu::Fold fold_of(NormKind kind) {
  switch (kind) {
    case NormKind::Zero: return cpu::Fold::Nonzeros;
    case NormKind::One: return cpu::Fold::Sizes;
    case NormKind::Two: return cpu::Fold::Squares;
    case NormKind::Largest: return cpu::Fold::LargestSize;
    default: return cpu::Fold::SmallestSize;
  }
}

template <NormKind kind>
void reduce(const ReductionPlan& r, double p) {
  visit_floating(r.x.dtype(), "norm", [&]<class T>() {
    const NormOf<kind, T> reducer{static_cast<T*>(r.out.raw_data()), static_cast<compute_type<T>>(p)};
    if constexpr (kind == NormKind::Any) {
      cpu::reduce_slices<T>(r, reducer);
    } else {
      cpu::reduce_slices<T>(r, reducer, fold_of(kind));
    }
  });
}

Tensor norm_cpu(const Tensor& x, double p, const Shape& dims, bool keepdim) {
  const ReductionPlan r = prepare_norm(x, p, dims, keepdim);
  switch (norm_kind(p)) {
    case NormKind::Zero: reduce<NormKind::Zero>(r, p); break;
    case NormKind::One: reduce<NormKind::One>(r, p); break;
    case NormKind::Two: reduce<NormKind::Two>(r, p); break;
    case NormKind::Any: reduce<NormKind::Any>(r, p); break;
    case NormKind::Largest: reduce<NormKind::Largest>(r, p); break;
    case NormKind::Smallest: reduce<NormKind::Smallest>(r, p); break;
  }
  return r.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, double, const Shape&, bool)> norm("norm", &norm_cpu);

}  // namespace brigade::kernels
