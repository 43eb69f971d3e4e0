#include <brigade/kernels/logsumexp.h>

#include <brigade/kernels/cpu/detail/exponentials.h>
#include <brigade/kernels/detail/reducers.h>

namespace brigade::kernels {

namespace {

// What was seen of a row: its largest element, and the sum of exp(x - largest).
template <class C>
struct Exponentials {
  C largest, sum;
};
// Of an infinite largest element the sum is not asked for.
template <class C>
Exponentials<C> join(const Exponentials<C>& a, const Exponentials<C>& b) {
  const C largest = ExtremeOf<true, C>{nullptr}.join(a.largest, b.largest);
  if (std::isinf(largest)) return {largest, C(0)};
  return {largest, a.sum * std::exp(a.largest - largest) + b.sum * std::exp(b.largest - largest)};
}
template <class T, class C>
Exponentials<C> exponentials_of_row(const T* x, int64_t n) {
  const C largest = cpu::reduce_row(x, n, ExtremeOf<true, C>{nullptr});
  return {largest, std::isinf(largest) ? C(0) : cpu::reduce_row(x, n, cpu::SumOfExp<C>{largest})};
}

template <class T>
void logsumexp_into(const Reduction& r) {
  using C = compute_type<T>;
  const T* x = static_cast<const T*>(r.x.raw_data());
  T* out = static_cast<T*>(r.out.raw_data());
  const auto store = [&](int64_t i, const Exponentials<C>& seen) {
    out[i] = static_cast<T>(std::isinf(seen.largest) ? seen.largest : seen.largest + std::log(seen.sum));
  };
  if (r.inner == 1) {
    cpu::for_rows<Exponentials<C>>(r, x, &exponentials_of_row<T, C>, &join<C>, store);
    return;
  }
  cpu::for_strips(r, x, [&](const T* first, int64_t width, int64_t result) {
    const ExtremeOf<true, C> larger{nullptr};
    C largest[cpu::kStrip], sum[cpu::kStrip];
    std::fill(largest, largest + width, larger.nothing());
    std::fill(sum, sum + width, C(0));
    const auto for_elements = [&](auto body) {
      for (int64_t k = 0; k < r.reduced; ++k) {
        for (int64_t j = 0; j < width; ++j)
          body(j, static_cast<C>(first[k * r.inner + j]));
      }
    };
    for_elements([&](int64_t j, C value) { largest[j] = larger.add(largest[j], value); });
    for_elements([&](int64_t j, C value) { sum[j] += cpu::exp_nonpositive(value - largest[j]); });
    for (int64_t j = 0; j < width; ++j)
      store(result + j, {largest[j], sum[j]});
  });
}

Tensor logsumexp_cpu(const Tensor& x, const Shape& dims, bool keepdim) {
  check_floating(x, "logsumexp");
  const Reduction r = prepare_reduction(x, dims, keepdim, x.dtype());
  visit_floating(x.dtype(), "logsumexp", [&]<class T>() { logsumexp_into<T>(r); });
  return r.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Shape&, bool)> logsumexp("logsumexp", &logsumexp_cpu);

}  // namespace brigade::kernels
