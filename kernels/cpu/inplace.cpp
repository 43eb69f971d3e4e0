// The kernels of elementwise.h that write into a given tensor: copies with casts, fills, sums and scalings.
#include <brigade/kernels/cpu/detail/strided.h>
#include <brigade/kernels/detail/elementwise_checks.h>
#include <brigade/kernels/detail/scalar.h>

#include <cstring>

namespace brigade::kernels {

namespace {

using cpu::parallel_for;
using cpu::StridedLoop;

// out = f(out, x) for each element, x broadcast.
template <class To, class From, class F>
void update(const Tensor& out, const Tensor& x, F f) {
  To* target = static_cast<To*>(out.raw_data());
  const From* source = static_cast<const From*>(x.raw_data());
  if (out.is_contiguous() && x.is_contiguous() && x.numel() == out.numel()) {
    parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        f(target[i], source[i]);
    });
    return;
  }
  StridedLoop<2>(out.sizes(), {&out, &x}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    To* t = target + offsets[0];
    const From* s = source + offsets[1];
    if (steps[0] == 1 && steps[1] == 1) {
      for (int64_t i = 0; i < length; ++i)
        f(t[i], s[i]);
    } else {
      for (int64_t i = 0; i < length; ++i)
        f(t[i * steps[0]], s[i * steps[1]]);
    }
  });
}

void copy_cpu(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "copy");
  if (out.device() != x.device()) return copy_between_devices(out, x);
  if (out.dtype() == x.dtype() && out.is_contiguous() && x.is_contiguous() && out.numel() == x.numel()) {
    auto* to = static_cast<char*>(out.raw_data());
    const auto* from = static_cast<const char*>(x.raw_data());
    if (to == from) return;
    parallel_for(static_cast<int64_t>(out.nbytes()), [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  visit_dtype(out.dtype(), [&]<class To>() {
    visit_dtype(x.dtype(), [&]<class From>() {
      update<To, From>(out, x, [](To& t, From s) { t = static_cast<To>(static_cast<compute_type<From>>(s)); });
    });
  });
}

void fill_cpu(const Tensor& out, double value) {
  visit_dtype(out.dtype(), [&]<class T>() {
    const T element = static_cast<T>(scalar_as<compute_type<T>>(value));
    T* target = static_cast<T*>(out.raw_data());
    if (out.is_contiguous()) {
      parallel_for(out.numel(), [&](int64_t begin, int64_t end) { std::fill(target + begin, target + end, element); });
      return;
    }
    StridedLoop<1>(out.sizes(), {&out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
      for (int64_t i = 0; i < length; ++i)
        target[offsets[0] + i * steps[0]] = element;
    });
  });
}

void add_inplace_cpu(const Tensor& out, const Tensor& x, double alpha) {
  check_fits(out, x, "add_");
  const Tensor same = cast(x, out.dtype());
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    if (alpha == 1.0) {
      update<T, T>(out, same,
                   [](T& t, T s) { t = static_cast<T>(static_cast<C>(static_cast<C>(t) + static_cast<C>(s))); });
    } else {
      const C factor = scalar_as<C>(alpha);
      update<T, T>(out, same, [factor](T& t, T s) {
        t = static_cast<T>(static_cast<C>(static_cast<C>(t) + factor * static_cast<C>(s)));
      });
    }
  });
}

void mul_inplace_cpu(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "mul_");
  const Tensor same = cast(x, out.dtype());
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    update<T, T>(out, same,
                 [](T& t, T s) { t = static_cast<T>(static_cast<C>(static_cast<C>(t) * static_cast<C>(s))); });
  });
}

void scale_inplace_cpu(const Tensor& out, double factor) {
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    const C f = scalar_as<C>(factor);
    update<T, T>(out, out, [f](T& t, T s) { t = static_cast<T>(static_cast<C>(static_cast<C>(s) * f)); });
  });
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&)> copy("copy", &copy_cpu);
constinit Kernel<void(const Tensor&, double)> fill("fill", &fill_cpu);
constinit Kernel<void(const Tensor&, const Tensor&, double)> add_inplace("add_inplace", &add_inplace_cpu);
constinit Kernel<void(const Tensor&, const Tensor&)> mul_inplace("mul_inplace", &mul_inplace_cpu);
constinit Kernel<void(const Tensor&, double)> scale_inplace("scale_inplace", &scale_inplace_cpu);

}  // namespace brigade::kernels
