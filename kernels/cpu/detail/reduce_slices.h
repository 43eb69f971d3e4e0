// One loop for every reduction (kernels/common/reducers.h) over [outer, reduced, inner].
#pragma once

#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/folds.h>
#include <brigade/kernels/cpu/vector/half.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace brigade::kernels::cpu {

inline constexpr int kLanes = 64;                // running values of a row: what hides the time of an addition
inline constexpr int64_t kSliceBlock = 1024;     // elements that lanes add up before blocks are joined pairwise
inline constexpr int64_t kSlicePiece = 1 << 16;  // elements of a long row that a thread takes at once
template <class T>
inline constexpr int64_t kStrip = sizeof(T) == 2 ? 512 : 256;  // columns at a time
inline constexpr int64_t kWorthFolding = 16;                   // elements of a row from which on vectors are faster
inline constexpr int64_t kGroup = 64;  // rows of a strip that are added up before groups are joined

// A row of n elements, pairwise above blocks, so that the error of a sum grows with log(n).
template <class T, class R>
typename R::Value reduce_row(const T* x, int64_t n, const R& reducer) {
  using Value = typename R::Value;
  if constexpr (is_half(dtype_of<T>)) {
    if (n >= kLanes && n <= kSliceBlock) {
      float wide[kSliceBlock];
      return reduce_row(in_compute_type(x, wide, n), n, reducer);
    }
  }
  if (n > kSliceBlock) {
    const int64_t half = (n / 2 + kSliceBlock - 1) / kSliceBlock * kSliceBlock;
    return reducer.join(reduce_row(x, half, reducer), reduce_row(x + half, n - half, reducer));
  }
  const auto element = [x](int64_t i) { return static_cast<Value>(static_cast<compute_type<T>>(x[i])); };
  Value result = reducer.nothing();
  int64_t i = 0;
  if (n >= kLanes) {
    Value lanes[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      lanes[lane] = reducer.add(reducer.nothing(), element(lane));
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane)
        lanes[lane] = reducer.add(lanes[lane], element(i + lane));
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int lane = 0; lane < width; ++lane)
        lanes[lane] = reducer.join(lanes[lane], lanes[lane + width]);
    }
    result = lanes[0];
  }
  for (; i < n; ++i)
    result = reducer.add(result, element(i));
  return result;
}

// Additions of elements as they are.
template <class Acc>
struct SumOf {
  using Value = Acc;
  Value nothing() const { return 0; }
  Value add(Value sum, Acc x) const { return sum + x; }
  Value join(Value a, Value b) const { return a + b; }
};

// Calls row(x, n) -> Value for each row, or for fixed pieces of one long row, so that the result
// does not depend on how many threads there are; then store(i, Value).
template <class Value, class T, class Row, class Join, class Store>
void for_rows(const ReductionPlan& r, const T* x, Row row, Join join, Store store) {
  if (r.outer == 1 && r.reduced > 2 * kSlicePiece) {
    const int64_t pieces = (r.reduced + kSlicePiece - 1) / kSlicePiece;
    std::vector<Value> parts(static_cast<size_t>(pieces));
    parallel_for(
        pieces,
        [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p)
            parts[static_cast<size_t>(p)] =
                row(x + p * kSlicePiece, std::min(kSlicePiece, r.reduced - p * kSlicePiece));
        },
        kSlicePiece);
    for (int64_t width = 1; width < pieces; width *= 2) {
      for (int64_t p = 0; p + width < pieces; p += 2 * width)
        parts[static_cast<size_t>(p)] = join(parts[static_cast<size_t>(p)], parts[static_cast<size_t>(p + width)]);
    }
    store(0, parts[0]);
    return;
  }
  parallel_for(
      r.outer,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          store(i, row(x + i * r.reduced, r.reduced));
      },
      r.reduced);
}

// Calls strip(first element, width, first result) for strips of columns.
template <class T, class Strip>
void for_strips(const ReductionPlan& r, const T* x, Strip strip) {
  const int64_t strips = (r.inner + kStrip<T> - 1) / kStrip<T>;
  parallel_for(
      r.outer * strips,
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t o = task / strips;
          const int64_t column = task % strips * kStrip<T>;
          strip(x + o * r.reduced * r.inner + column, std::min(kStrip<T>, r.inner - column), o * r.inner + column);
        }
      },
      r.reduced * std::min(r.inner, kStrip<T>));
}

// Groups of rows of a strip are taken into `group` by into(first element of a row, group, width), and
// the groups are joined.
template <class T, class R, class Into>
void reduce_strips(const ReductionPlan& r, const R& reducer, Into into) {
  using Value = typename R::Value;
  for_strips(r, static_cast<const T*>(r.x.raw_data()), [&](const T* first, int64_t width, int64_t result) {
    Value total[kStrip<T>];
    Value group[kStrip<T>];
    std::fill(total, total + width, reducer.nothing());
    for (int64_t row = 0; row < r.reduced; row += kGroup) {
      std::fill(group, group + width, reducer.nothing());
      for (int64_t k = row; k < std::min(r.reduced, row + kGroup); ++k)
        into(first + k * r.inner, group, width);
      for (int64_t j = 0; j < width; ++j)
        total[j] = reducer.join(total[j], group[j]);
    }
    for (int64_t j = 0; j < width; ++j)
      reducer.store(result + j, total[j]);
  });
}

template <class T, class R, class Row>
void reduce_rows(const ReductionPlan& r, const R& reducer, Row row) {
  using Value = typename R::Value;
  for_rows<Value>(
      r, static_cast<const T*>(r.x.raw_data()), row, [&](const Value& a, const Value& b) { return reducer.join(a, b); },
      [&](int64_t i, const Value& value) { reducer.store(i, value); });
}

template <class T, class R>
void reduce_slices(const ReductionPlan& r, const R& reducer) {
  using Value = typename R::Value;
  if (r.inner == 1) {
    reduce_rows<T>(r, reducer, [&](const T* row, int64_t n) { return reduce_row(row, n, reducer); });
    return;
  }
  reduce_strips<T>(r, reducer, [&](const T* row, Value* group, int64_t width) {
    compute_type<T> wide[kStrip<T>];
    const auto* const source = in_compute_type(row, wide, width);
    for (int64_t j = 0; j < width; ++j)
      group[j] = reducer.add(group[j], static_cast<Value>(source[j]));
  });
}

// The same, where `fold` is what the reducer does: by vectors in the types that are computed in float32.
template <class T, class R>
void reduce_slices(const ReductionPlan& r, const R& reducer, Fold fold) {
  if constexpr (!std::is_same_v<typename R::Value, float>) {
    reduce_slices<T>(r, reducer);
  } else if (r.inner > 1) {
    reduce_strips<T>(r, reducer, [fold](const T* row, float* group, int64_t width) {
      fold_into(fold, dtype_of<T>, row, group, width);
    });
  } else if (r.reduced < kWorthFolding) {
    reduce_slices<T>(r, reducer);
  } else {
    reduce_rows<T>(r, reducer, [fold](const T* row, int64_t n) { return fold_row(fold, dtype_of<T>, row, n); });
  }
}

}  // namespace brigade::kernels::cpu
