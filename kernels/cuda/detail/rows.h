// Kernels over dense rows: a warp takes a short row, a block a long one. A row that fits is held in registers, so that
// memory is read once; a longer row is read again, mostly from cache. Uses 16-byte vectors if the rows are aligned to
// them.
#pragma once

#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/cuda/detail/vector.h>

namespace brigade::kernels::cuda {

inline constexpr int kRowThreads = 256;  // for a long row
inline constexpr int kShortRows = 4;     // per block

// Compile-time parameters of a kernel: whether the rows are short, elements per vector, and the vectors of a row that a
// thread holds (0: the row stays in memory).
template <bool is_short, int vector_length, int held_vectors>
struct RowVariant {
  static constexpr bool kShort = is_short;
  static constexpr int kLength = vector_length;
  static constexpr int kHeld = held_vectors;
  static constexpr int kStep = is_short ? kWarp : kRowThreads;  // threads of a row

  __device__ static int64_t row() {
    return is_short ? static_cast<int64_t>(blockIdx.x) * kShortRows + threadIdx.y : blockIdx.x;
  }
  // Reduces over the threads of a row; each gets the result.
  template <class V, class F>
  __device__ static V reduce(V value, F combine) {
    if constexpr (is_short) {
      return warp_reduce(value, combine);
    } else {
      BRIGADE_SHARED(V, partial, [kRowThreads / kWarp]);
      return block_reduce(value, combine, &partial[0]);
    }
  }
  // Calls f(slot, at) for each vector of this thread, with its slot among the held vectors and its offset in the row of
  // n elements.
  template <class F>
  __device__ static void for_vectors(int64_t n, F f) {
    if constexpr (held_vectors > 0) {
      const int end = static_cast<int>(n);
#pragma unroll
      for (int slot = 0; slot < held_vectors; ++slot) {
        const int at = (slot * kStep + static_cast<int>(threadIdx.x)) * vector_length;
        if (at < end) f(slot, at);
      }
    } else {
      for (int64_t at = static_cast<int64_t>(threadIdx.x) * vector_length; at < n; at += kStep * vector_length)
        f(0, at);
    }
  }
};

// A row that a kernel reads several times.
template <class Variant, class T>
class Row {
 public:
  __device__ Row(const T* row, int64_t n) : row_(row) {
    if constexpr (Variant::kHeld > 0)
      Variant::for_vectors(n, [&](int slot, int64_t at) { held_[slot] = load_vector<T, Variant::kLength>(row + at); });
  }
  __device__ Vector<T, Variant::kLength> get(int slot, int64_t at) const {
    if constexpr (Variant::kHeld > 0) {
      return held_[slot];
    } else {
      return load_vector<T, Variant::kLength>(row_ + at);
    }
  }

 private:
  const T* row_;
  Vector<T, Variant::kLength> held_[Variant::kHeld > 0 ? Variant::kHeld : 1];
};

// The maximum and sum of a row of n elements; every thread of the row gets them.
template <class Variant, class T>
__device__ MaxAndSum<compute_type<T>> max_and_sum(const Row<Variant, T>& row, int64_t n) {
  using C = compute_type<T>;
  auto seen = nothing_seen<C>();
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto vector = row.get(slot, at);
    C values[Variant::kLength];
#pragma unroll
    for (int k = 0; k < Variant::kLength; ++k)
      values[k] = static_cast<C>(vector.values[k]);
    seen = with_values(seen, values);
  });
  return Variant::reduce(seen, MergeMaxAndSum{});
}

// --- on the host

// Calls run(variant) with the variant for rows of n elements of type T, where a thread may hold `held` vectors.
template <class T, int held, class Run>
void with_row_variant(int64_t n, bool aligned, Run run) {
  constexpr int kLength = kVectorBytes / static_cast<int>(sizeof(T));
  if (aligned && n % kLength == 0) {
    if (n <= kWarp * kLength * held) {
      run(RowVariant<true, kLength, held>{});
    } else if (n <= kRowThreads * kLength * held) {
      run(RowVariant<false, kLength, held>{});
    } else {
      run(RowVariant<false, kLength, 0>{});
    }
  } else if (n <= kWarp * 2 * held) {
    run(RowVariant<true, 1, 2 * held>{});
  } else {
    run(RowVariant<false, 1, 0>{});
  }
}

template <class Variant>
Launch row_launch(const char* what, int64_t rows, std::source_location where = std::source_location::current()) {
  if (Variant::kShort) return {what, blocks_for(rows, kShortRows), dim3(kWarp, kShortRows), 0, where};
  return {what, blocks_for(rows, 1), kRowThreads, 0, where};
}

}  // namespace brigade::kernels::cuda
