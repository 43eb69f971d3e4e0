// Reduces the elements of all ranks block by block; half types are widened to float32 and rounded once.
#include <brigade/dist/groups/arithmetic.h>

#include <brigade/kernels/cpu/vector/elementwise.h>

#include <algorithm>
#include <type_traits>

namespace brigade::dist {
namespace {

template <class C>
struct Add {
  C operator()(C a, C b) const {
    if constexpr (std::is_same_v<C, bool>) {
      return a || b;
    } else {
      return static_cast<C>(a + b);
    }
  }
};
template <class C>
struct Larger {
  C operator()(C a, C b) const { return a > b ? a : b; }
};
template <class C>
struct Smaller {
  C operator()(C a, C b) const { return a < b ? a : b; }
};

// Convert elements to the compute type and back; half types in vectorized batches.
template <class T, class C>
void load(const T* from, C* to, int64_t n) {
  if constexpr (std::is_same_v<T, C>) {
    std::copy_n(from, n, to);
  } else {
    kernels::cpu::widen(from, to, n);
  }
}
template <class T, class C>
void store(const C* from, T* to, int64_t n) {
  if constexpr (std::is_same_v<T, C>) {
    std::copy_n(from, n, to);
  } else {
    kernels::cpu::narrow(from, to, n);
  }
}

template <class T, class F>
void reduce_typed(std::span<void* const> inputs, std::span<void* const> outputs, F f, double factor, int64_t begin,
                  int64_t end) {
  using C = compute_type<T>;
  const C scale = static_cast<C>(factor);
  const bool scaled = factor != 1.0;
  if constexpr (std::is_same_v<T, float> && std::is_same_v<F, Add<C>>) {
    if (inputs.size() == 2 && outputs.size() == 2) {
      const auto at = [&](void* elements) { return static_cast<float*>(elements) + begin; };
      return kernels::cpu::add_pair(at(inputs[0]), at(inputs[1]), scale, at(outputs[0]), at(outputs[1]), end - begin);
    }
  }
  // Blocks stay in the first-level cache between the passes over the ranks.
  constexpr int64_t kBlock = 2048;
  C sum[kBlock], room[kBlock];
  for (int64_t start = begin; start < end; start += kBlock) {
    const int64_t n = std::min(kBlock, end - start);
    if (std::is_same_v<T, C> && inputs.size() == 2 && outputs.size() == 2) {
      // Fast path: two ranks in one pass.
      const T* a = static_cast<const T*>(inputs[0]) + start;
      const T* b = static_cast<const T*>(inputs[1]) + start;
      T* x = static_cast<T*>(outputs[0]) + start;
      T* y = static_cast<T*>(outputs[1]) + start;
      if (scaled) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i)
          x[i] = y[i] = static_cast<T>(static_cast<C>(f(static_cast<C>(a[i]), static_cast<C>(b[i])) * scale));
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i)
          x[i] = y[i] = static_cast<T>(f(static_cast<C>(a[i]), static_cast<C>(b[i])));
      }
      continue;
    }
    const T* first = static_cast<const T*>(inputs[0]) + start;
    load(first, sum, n);
    for (size_t r = 1; r < inputs.size(); ++r) {
      const T* next = static_cast<const T*>(inputs[r]) + start;
      const C* values = room;
      if constexpr (std::is_same_v<T, C>) {
        values = next;
      } else {
        load(next, room, n);
      }
      for (int64_t i = 0; i < n; ++i)
        sum[i] = f(sum[i], values[i]);
    }
    if (scaled) {
      for (int64_t i = 0; i < n; ++i)
        sum[i] = static_cast<C>(sum[i] * scale);
    }
    for (void* output : outputs) {
      store(sum, static_cast<T*>(output) + start, n);
    }
  }
}

}  // namespace

void reduce_elements(std::span<void* const> inputs, std::span<void* const> outputs, DType dtype, ReduceOp op,
                     int64_t begin, int64_t end) {
  const double factor = op == ReduceOp::Avg ? 1.0 / static_cast<double>(inputs.size()) : 1.0;
  visit_dtype(dtype, [&]<class T>() {
    using C = compute_type<T>;
    switch (op) {
      case ReduceOp::Sum:
      case ReduceOp::Avg: reduce_typed<T>(inputs, outputs, Add<C>(), factor, begin, end); break;
      case ReduceOp::Max: reduce_typed<T>(inputs, outputs, Larger<C>(), 1.0, begin, end); break;
      case ReduceOp::Min: reduce_typed<T>(inputs, outputs, Smaller<C>(), 1.0, begin, end); break;
    }
  });
}

void scale_elements(void* x, DType dtype, double factor, int64_t n) {
  visit_dtype(dtype, [&]<class T>() {
    using C = compute_type<T>;
    T* values = static_cast<T*>(x);
    const C scale = static_cast<C>(factor);
    constexpr int64_t kBlock = 2048;
    C room[kBlock];
    for (int64_t start = 0; start < n; start += kBlock) {
      const int64_t count = std::min(kBlock, n - start);
      load(values + start, room, count);
      for (int64_t i = 0; i < count; ++i)
        room[i] = static_cast<C>(room[i] * scale);
      store(room, values + start, count);
    }
  });
}

}  // namespace brigade::dist
