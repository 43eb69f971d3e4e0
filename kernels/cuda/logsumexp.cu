// CUDA kernels of logsumexp: maximum and sum in one pass (detail/row_reduce.h).
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/cuda/detail/reduce_slices.h>
#include <brigade/kernels/reduce.h>

namespace brigade::kernels {
namespace {

template <class T>
struct LogsumexpOf {
  using C = compute_type<T>;
  using Value = cuda::MaxAndSum<C>;
  T* out;

  __device__ Value nothing() const { return cuda::nothing_seen<C>(); }
  // Infinities are kept as they are: exp(inf - inf) would be NaN.
  __device__ Value add(const Value& seen, C x) const { return join(seen, {x, x == kLowest ? C(0) : C(1)}); }
  __device__ Value join(const Value& a, const Value& b) const {
    if (a.max == kHighest || b.max == kHighest) {
      const C sum = a.sum + b.sum;  // a NaN stays NaN
      return {kHighest, sum != sum ? sum : C(1)};
    }
    return cuda::MergeMaxAndSum{}(a, b);
  }
  __device__ void store(int64_t i, const Value& seen) const {
    out[i] = static_cast<T>(seen.sum == C(0) ? kLowest : seen.max + std::log(seen.sum));
  }

 private:
  static constexpr C kHighest = std::numeric_limits<C>::infinity();
  static constexpr C kLowest = -std::numeric_limits<C>::infinity();
};

Tensor logsumexp_cuda(const Tensor& x, const Shape& dims, bool keepdim) {
  check_floating(x.dtype(), "logsumexp");
  const ReductionPlan r = prepare_reduction(x, dims, keepdim, x.dtype());
  visit_floating(x.dtype(), "logsumexp", [&]<class T>() {
    cuda::reduce_slices<T>("logsumexp", r, LogsumexpOf<T>{static_cast<T*>(r.out.raw_data())});
  });
  return r.out;
}

const AddKernel add_logsumexp(logsumexp, kCUDA, &logsumexp_cuda);

}  // namespace
}  // namespace brigade::kernels
