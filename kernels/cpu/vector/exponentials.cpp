// The loops of softmax, log_softmax and their gradients, along rows and down strips of columns.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/exponentials.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/vector/exponentials.h>
#include <brigade/kernels/cpu/vector/short_math.inl.h>
#include <brigade/kernels/cpu/vector/sums.inl.h>

#include <cmath>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

using V = Vector;

HWY_INLINE V every(float x) { return hn::Set(Floats(), x); }

// exp(x) for x <= 0, with the precision of T.
template <class T>
HWY_INLINE V exp_nonpositive_of(V x) {
  if constexpr (sizeof(T) < sizeof(float)) return short_exp_nonpositive(x);
  return exp_nonpositive(x);
}

// The largest element of each column, and the sum of exp(x - largest).
template <class T>
HWY_INLINE void sum_columns(const T* x, int64_t n, int64_t stride, int64_t width, float* largest, float* sums) {
  for_vectors(width, [=](int64_t j, auto load, auto store) HWY_ATTR {
    V best = every(-std::numeric_limits<float>::infinity());
    for (int64_t k = 0; k < n; ++k) {
      const V v = load(x + k * stride + j);
      best = hn::IfThenElse(hn::Gt(v, best), v, best);
    }
    V sum = hn::Zero(Floats());
    for (int64_t k = 0; k < n; ++k)
      sum = sum + exp_nonpositive_of<T>(load(x + k * stride + j) - best);
    store(best, largest + j);
    store(sum, sums + j);
  });
}

}  // namespace

float largest_loop(const float* x, int64_t n) { return largest_of(x, n); }

float sum_exp_loop(const float* x, float shift, int64_t n) {
  const V from = every(shift);
  return static_cast<float>(sum_of(n, [=](int64_t i, auto load) HWY_ATTR {
    return apply([](V v) HWY_ATTR { return exp_nonpositive(v); }, load(x + i) - from);
  }));
}

float exp_loop(const float* x, float shift, float* y, int64_t n) {
  const V from = every(shift);
  for_vectors(n, [=](int64_t i, auto load, auto store) HWY_ATTR { store(exp_nonpositive(load(x + i) - from), y + i); });
  return static_cast<float>(sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(y + i); }));
}

void exp_gradient_loop(const float* x, float shift, float log_sum, float factor, float less, float* y, int64_t n) {
  const V from = every(shift);
  const V sum = every(log_sum);
  const V times = every(factor);
  const V minus = every(less);
  for_vectors(n, [=](int64_t i, auto load, auto store)
                     HWY_ATTR { store(hn::MulSub(times, exp_nonpositive((load(x + i) - from) - sum), minus), y + i); });
}

void log_sum_rows_loop(const float* x, int64_t rows, int64_t n, float* largest, float* log_sums) {
  for (int64_t row = 0; row < rows; ++row) {
    largest[row] = largest_loop(x + row * n, n);
    log_sums[row] = std::log(sum_exp_loop(x + row * n, largest[row], n));
  }
}

void softmax_rows_loop(bool logarithm, const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    const float shift = largest_loop(x, n);
    if (logarithm) {
      const V from = every(shift);
      const V log_sum = every(std::log(sum_exp_loop(x, shift, n)));
      for_vectors(n, [=](int64_t i, auto load, auto store) HWY_ATTR { store((load(x + i) - from) - log_sum, y + i); });
    } else {
      const V factor = every(1.0F / exp_loop(x, shift, y, n));
      for_vectors(n, [=](int64_t i, auto load, auto store) HWY_ATTR { store(load(y + i) * factor, y + i); });
    }
  }
}

namespace {

// Stores float32 rows between the passes, in the order in which load() or load_two() returned the halves.
HWY_INLINE void keep(V x, float* room) { store_vector(x, room); }
HWY_INLINE void keep(TwoVectors x, float* room) { store_vectors(x.a, x.b, room); }
// y = f(number) for n elements that keep() stored inside sum_of().
template <class T, class F>
HWY_INLINE void write_kept(const float* numbers, int64_t n, T* y, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  const auto two = [=](int64_t i) HWY_ATTR {
    store_two({f(load_vector(numbers + i)), f(load_vector(numbers + i + lanes))}, y + i);
  };
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    two(i);
    two(i + 2 * lanes);
  }
  for_vectors(n - i, [=](int64_t j, auto load, auto store) HWY_ATTR { store(f(load(numbers + i + j)), y + i + j); });
}

template <class T>
HWY_INLINE void log_softmax_of_halves(const T* x, T* y, int64_t n, float* room) {
  const V from = every_lane(largest_of(x, n));
  const double sum = sum_of(n, [=](int64_t i, auto load) HWY_ATTR {
    const auto distance = load(x + i) - from;
    keep(distance, room + i);
    return apply([](V v) HWY_ATTR { return short_exp_nonpositive(v); }, distance);
  });
  const V log_sum = every_lane(std::log(static_cast<float>(sum)));
  write_kept(room, n, y, [=](V distance) HWY_ATTR { return distance - log_sum; });
}

template <class T>
HWY_INLINE void softmax_of_halves(const T* x, T* y, int64_t n, float* room) {
  const V from = every_lane(largest_of(x, n));
  const double sum = sum_of(n, [=](int64_t i, auto load) HWY_ATTR {
    const auto e = apply([](V v) HWY_ATTR { return short_exp_nonpositive(v); }, load(x + i) - from);
    keep(e, room + i);
    return e;
  });
  const V factor = every_lane(static_cast<float>(1 / sum));
  write_kept(room, n, y, [=](V e) HWY_ATTR { return e * factor; });
}

template <class T>
void softmax_rows_of_halves(bool logarithm, const FloatArrays& arrays, int64_t rows, float* room) {
  const int64_t n = arrays.n / rows;
  const T* x = static_cast<const T*>(arrays.in[0]);
  T* y = static_cast<T*>(arrays.out);
  for (int64_t row = 0; row < rows; ++row, x += n, y += n) {
    if (logarithm) {
      log_softmax_of_halves(x, y, n, room);
    } else {
      softmax_of_halves(x, y, n, room);
    }
  }
}

}  // namespace

void softmax_half_rows_loop(bool logarithm, const FloatArrays& arrays, int64_t rows, float* room) {
  if (arrays.dtype == kFloat16) return softmax_rows_of_halves<float16>(logarithm, arrays, rows, room);
  softmax_rows_of_halves<bfloat16>(logarithm, arrays, rows, room);
}

namespace {

constexpr int64_t kShortRow = 2048;

// Softmax: y * (g - sum(g * y)). Log_softmax: g - exp(y) * sum(g).
template <class T>
HWY_INLINE void log_softmax_gradient_of(const T* grad, const T* y, T* out, int64_t n) {
  const V sum =
      every_lane(static_cast<float>(sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(grad + i); })));
  write_in_twos(n, out, [=](int64_t i, auto load) HWY_ATTR {
    return apply([=](V g, V logit) HWY_ATTR { return hn::NegMulAdd(exp_nonpositive_of<T>(logit), sum, g); },
                 load(grad + i), load(y + i));
  });
}
// For short float16 rows, buffering g * y (exact in float32) and y is faster than converting twice.
HWY_INLINE void short_softmax_gradient_of(const float16* grad, const float16* y, float16* out, int64_t n) {
  HWY_ALIGN float products[kShortRow + kRoomBeyond], results[kShortRow + kRoomBeyond];
  const V sum = every_lane(static_cast<float>(sum_of(n, [&](int64_t i, auto load) HWY_ATTR {
    const auto result = load(y + i);
    const auto product = load(grad + i) * result;
    keep(result, results + i);
    keep(product, products + i);
    return product;
  })));
  for_vectors(n, [&](int64_t i, auto load, auto store)
                     HWY_ATTR { store(hn::NegMulAdd(load(results + i), sum, load(products + i)), out + i); });
}
template <class T>
HWY_INLINE void softmax_gradient_of(const T* grad, const T* y, T* out, int64_t n) {
  if constexpr (std::is_same_v<T, float16>) {
    if (n <= kShortRow) return short_softmax_gradient_of(grad, y, out, n);
  }
  const V sum = every_lane(
      static_cast<float>(sum_of(n, [=](int64_t i, auto load) HWY_ATTR { return load(grad + i) * load(y + i); })));
  write_in_twos(n, out, [=](int64_t i, auto load) HWY_ATTR { return load(y + i) * (load(grad + i) - sum); });
}

template <class T>
void softmax_gradient_rows_of(bool logarithm, const FloatArrays& arrays, int64_t rows) {
  const int64_t n = arrays.n / rows;
  const T* grad = static_cast<const T*>(arrays.in[0]);
  const T* y = static_cast<const T*>(arrays.in[1]);
  T* out = static_cast<T*>(arrays.out);
  for (int64_t row = 0; row < rows; ++row, grad += n, y += n, out += n) {
    if (logarithm) {
      log_softmax_gradient_of(grad, y, out, n);
    } else {
      softmax_gradient_of(grad, y, out, n);
    }
  }
}

}  // namespace

void softmax_gradient_rows_loop(bool logarithm, const FloatArrays& arrays, int64_t rows) {
  visit_floats(arrays.dtype, [&]<class T>(T) HWY_ATTR { softmax_gradient_rows_of<T>(logarithm, arrays, rows); });
}

void log_sum_columns_loop(const float* x, int64_t n, int64_t stride, int64_t width, float* largest, float* log_sums) {
  sum_columns(x, n, stride, width, largest, log_sums);
  for_vectors(width, [=](int64_t j, auto load, auto store) HWY_ATTR { store(log(load(log_sums + j)), log_sums + j); });
}

namespace {

template <class T>
void softmax_columns_of(bool logarithm, const T* x, T* y, int64_t n, int64_t stride, int64_t width) {
  float largest[kStripColumns], sums[kStripColumns];
  sum_columns(x, n, stride, width, largest, sums);
  for_vectors(width, [=, &largest, &sums](int64_t j, auto load, auto store) HWY_ATTR {
    const V from = load(largest + j);
    const V sum = load(sums + j);
    const V number = logarithm ? log(sum) : every(1) / sum;
    for (int64_t at = j; at < n * stride; at += stride) {
      const V value = load(x + at) - from;
      store(logarithm ? value - number : exp_nonpositive_of<T>(value) * number, y + at);
    }
  });
}

template <class T>
void softmax_gradient_columns_of(bool logarithm, const T* grad, const T* y, T* out, int64_t n, int64_t stride,
                                 int64_t width) {
  for_vectors(width, [=](int64_t j, auto load, auto store) HWY_ATTR {
    V sum = hn::Zero(Floats());
    for (int64_t k = 0; k < n; ++k) {
      const V g = load(grad + k * stride + j);
      sum = logarithm ? sum + g : hn::MulAdd(g, load(y + k * stride + j), sum);
    }
    for (int64_t k = 0; k < n; ++k) {
      const V g = load(grad + k * stride + j);
      const V result = load(y + k * stride + j);
      store(logarithm ? hn::NegMulAdd(exp_nonpositive_of<T>(result), sum, g) : result * (g - sum),
            out + k * stride + j);
    }
  });
}

}  // namespace

void softmax_columns_loop(bool logarithm, const FloatColumns& columns) {
  visit_floats(columns.dtype, [&]<class T>(T) HWY_ATTR {
    softmax_columns_of(logarithm, static_cast<const T*>(columns.in[0]), static_cast<T*>(columns.out), columns.n,
                       columns.stride, columns.width);
  });
}
void softmax_gradient_columns_loop(bool logarithm, const FloatColumns& columns) {
  visit_floats(columns.dtype, [&]<class T>(T) HWY_ATTR {
    softmax_gradient_columns_of(logarithm, static_cast<const T*>(columns.in[0]), static_cast<const T*>(columns.in[1]),
                                static_cast<T*>(columns.out), columns.n, columns.stride, columns.width);
  });
}

void exp_gradient_columns_loop(const float* x, const float* shift, const float* log_sum, const float* factor,
                               const float* less, float* y, int64_t width) {
  for_vectors(width, [=](int64_t j, auto load, auto store) HWY_ATTR {
    const V e = exp_nonpositive((load(x + j) - load(shift + j)) - load(log_sum + j));
    store(hn::MulSub(load(factor + j), e, load(less + j)), y + j);
  });
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(largest_loop);
HWY_EXPORT(sum_exp_loop);
HWY_EXPORT(exp_loop);
HWY_EXPORT(exp_gradient_loop);
HWY_EXPORT(log_sum_rows_loop);
HWY_EXPORT(softmax_rows_loop);
HWY_EXPORT(softmax_half_rows_loop);
HWY_EXPORT(softmax_gradient_rows_loop);
HWY_EXPORT(log_sum_columns_loop);
HWY_EXPORT(softmax_columns_loop);
HWY_EXPORT(softmax_gradient_columns_loop);
HWY_EXPORT(exp_gradient_columns_loop);

float largest_float(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(largest_loop)(x, n); }
float sum_exp_floats(const float* x, float shift, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_exp_loop)(x, shift, n); }
float exp_floats(const float* x, float shift, float* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(exp_loop)(x, shift, y, n);
}
void exp_gradient_floats(const float* x, float shift, float log_sum, float factor, float less, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(exp_gradient_loop)(x, shift, log_sum, factor, less, y, n);
}
void log_sum_rows(const float* x, int64_t rows, int64_t n, float* largest, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(log_sum_rows_loop)(x, rows, n, largest, log_sums);
}
void softmax_rows(bool logarithm, const float* x, float* y, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(softmax_rows_loop)(logarithm, x, y, rows, n);
}
void softmax_half_rows(bool logarithm, const FloatArrays& arrays, int64_t rows, float* room) {
  HWY_DYNAMIC_DISPATCH(softmax_half_rows_loop)(logarithm, arrays, rows, room);
}
void softmax_gradient_rows(bool logarithm, const FloatArrays& arrays, int64_t rows) {
  HWY_DYNAMIC_DISPATCH(softmax_gradient_rows_loop)(logarithm, arrays, rows);
}
void log_sum_columns(const float* x, int64_t n, int64_t stride, int64_t width, float* largest, float* log_sums) {
  HWY_DYNAMIC_DISPATCH(log_sum_columns_loop)(x, n, stride, width, largest, log_sums);
}
void softmax_columns(bool logarithm, const FloatColumns& columns) {
  HWY_DYNAMIC_DISPATCH(softmax_columns_loop)(logarithm, columns);
}
void softmax_gradient_columns(bool logarithm, const FloatColumns& columns) {
  HWY_DYNAMIC_DISPATCH(softmax_gradient_columns_loop)(logarithm, columns);
}
void exp_gradient_columns(const float* x, const float* shift, const float* log_sum, const float* factor,
                          const float* less, float* y, int64_t width) {
  HWY_DYNAMIC_DISPATCH(exp_gradient_columns_loop)(x, shift, log_sum, factor, less, y, width);
}

}  // namespace brigade::kernels::cpu
#endif
