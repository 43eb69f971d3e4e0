#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/strided_map.h>
#include <brigade/kernels/cpu/detail/wide_math.h>
#include <brigade/kernels/detail/binary_functors.h>
#include <brigade/kernels/detail/functors.h>

namespace brigade::kernels {

namespace {

// Dense elements, or one value for all.
template <class T>
struct Side {
  const T* data;
  compute_type<T> number;
};

// out = f(a, b) for a function with a short way for most numbers of float32 (cpu/detail/wide_math.h): the short way
// over a stretch, then the rest of it again where there is any.
template <class T, class F>
void map_mostly(Side<T> a, Side<T> b, const Tensor& out, F f) {
  using C = compute_type<T>;
  T* const to = static_cast<T*>(out.raw_data());
  // One loop for each kind of side, which the compiler vectorises.
  const auto run = [&](auto left, auto right) {
    cpu::parallel_for(
        out.numel(),
        [&](int64_t begin, int64_t end) {
          if constexpr (std::is_same_v<C, double>) {
            for (int64_t i = begin; i < end; ++i)
              to[i] = F::exact(left(i), right(i));
          } else {
            constexpr int64_t kStretch = 1024;
            for (int64_t first = begin; first < end; first += kStretch) {
              const int64_t last = std::min(end, first + kStretch);
              int32_t rest = 0;
              for (int64_t i = first; i < last; ++i) {
                rest += F::is_short(left(i), right(i)) ? 0 : 1;
                to[i] = static_cast<T>(f(left(i), right(i)));
              }
              if (rest == 0) continue;
              for (int64_t i = first; i < last; ++i) {
                if (!F::is_short(left(i), right(i))) to[i] = static_cast<T>(F::exact(left(i), right(i)));
              }
            }
          }
        },
        16);
  };
  const auto moving = [](const T* from) { return [from](int64_t i) { return static_cast<C>(from[i]); }; };
  const auto fixed = [](C number) { return [number](int64_t) { return number; }; };
  if (a.data && b.data) {
    run(moving(a.data), moving(b.data));
  } else if (a.data) {
    run(moving(a.data), fixed(b.number));
  } else {
    run(fixed(a.number), moving(b.data));
  }
}

// The operands under the result's shape, dense.
template <class T>
Side<T> side_of(const Tensor& dense) {
  return {static_cast<const T*>(dense.raw_data()), {}};
}

template <class T>
void compute(Side<T> a, Side<T> b, const Tensor& out, BinaryFunction f) {
  switch (f) {
    case BinaryFunction::Pow: return map_mostly<T>(a, b, out, cpu::Pow{});
    case BinaryFunction::Remainder: return map_mostly<T>(a, b, out, cpu::Remainder{});
    case BinaryFunction::Fmod: return map_mostly<T>(a, b, out, cpu::Fmod{});
    case BinaryFunction::Atan2: return map_mostly<T>(a, b, out, cpu::Atan2{});
  }
}

Tensor binary_function_cpu(const Tensor& a, const Tensor& b, BinaryFunction f) {
  const Operands o = prepare_binary_function(a, b, f);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    if constexpr (is_floating_point(dtype_of<T>)) {
      const Tensor x = contiguous(view::expand(o.x, o.out.sizes()));
      const Tensor y = contiguous(view::expand(o.y, o.out.sizes()));
      compute<T>(side_of<T>(x), side_of<T>(y), o.out, f);
    } else {
      cpu::map2<T, T>(o.x, o.y, o.out, AnyBinaryFunction{f});
    }
  });
  return o.out;
}

Tensor binary_function_scalar_cpu(const Tensor& a, double number, BinaryFunction f, bool reversed) {
  const Operands o = prepare_binary_function_scalar(a, number, f);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    if constexpr (is_floating_point(dtype_of<T>)) {
      const Tensor x = contiguous(o.x);
      const Side<T> constant{nullptr, static_cast<C>(number)};
      compute<T>(reversed ? constant : side_of<T>(x), reversed ? side_of<T>(x) : constant, o.out, f);
    } else if constexpr (!std::is_same_v<T, bool>) {
      cpu::map1<T, T>(o.x, o.out,
                      WithNumber<AnyBinaryFunction, C>{AnyBinaryFunction{f}, static_cast<C>(number), reversed});
    }
  });
  return o.out;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, BinaryFunction)> binary_function("binary_function",
                                                                                       &binary_function_cpu);
constinit Kernel<Tensor(const Tensor&, double, BinaryFunction, bool)> binary_function_scalar(
    "binary_function_scalar", &binary_function_scalar_cpu);

}  // namespace brigade::kernels
