// CUDA kernels of norm. The kind of norm, one of six, is selected at run time, since the kernels are memory-bound.
#include <brigade/kernels/cuda/detail/reduce_slices.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {
namespace {

template <class T>
struct AnyNormOf {
  using Value = compute_type<T>;
  T* out;
  Value p;
  NormKind kind;

  // Calls f with the reducer of this kind.
  template <class F>
  __device__ auto as_kind(F f) const {
    switch (kind) {
      case NormKind::Zero: return f(NormOf<NormKind::Zero, T>{out, p});
      case NormKind::One: return f(NormOf<NormKind::One, T>{out, p});
      case NormKind::Two: return f(NormOf<NormKind::Two, T>{out, p});
      case NormKind::Largest: return f(NormOf<NormKind::Largest, T>{out, p});
      case NormKind::Smallest: return f(NormOf<NormKind::Smallest, T>{out, p});
      case NormKind::Any: break;
    }
    return f(NormOf<NormKind::Any, T>{out, p});
  }
  __device__ Value nothing() const {
    return as_kind([](auto reducer) { return reducer.nothing(); });
  }
  __device__ Value add(Value norm, Value x) const {
    return as_kind([=](auto reducer) { return reducer.add(norm, x); });
  }
  __device__ Value join(Value a, Value b) const {
    return as_kind([=](auto reducer) { return reducer.join(a, b); });
  }
  __device__ void store(int64_t i, Value norm) const {
    as_kind([=](auto reducer) { reducer.store(i, norm); });
  }
};

Tensor norm_cuda(const Tensor& x, double p, const Shape& dims, bool keepdim) {
  const ReductionPlan r = prepare_norm(x, p, dims, keepdim);
  visit_floating(x.dtype(), "norm", [&]<class T>() {
    cuda::reduce_slices<T>(
        "norm", r, AnyNormOf<T>{static_cast<T*>(r.out.raw_data()), static_cast<compute_type<T>>(p), norm_kind(p)});
  });
  return r.out;
}

const AddKernel add_norm(norm, kCUDA, &norm_cuda);

}  // namespace
}  // namespace brigade::kernels
