// One loop for every reduction (kernels/common/reducers.h) over [outer, reduced, inner].
#pragma once

#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/sums.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace brigade::kernels::cpu {

inline constexpr int kLanes = 64;                // running values of a row, to hide the latency of additions
inline constexpr int64_t kSliceBlock = 1024;     // elements that the lanes reduce before blocks are combined pairwise
inline constexpr int64_t kSlicePiece = 1 << 16;  // elements of a long row per task
template <class T>
inline constexpr int64_t kStrip = sizeof(T) == 2 ? 512 : 256;  // columns at a time
inline constexpr int64_t kWorthFolding = 16;                   // row length from which vectors are faster
inline constexpr int64_t kGroup = 64;        // rows of a strip that are reduced before groups are combined
inline constexpr int64_t kManyStrips = 128;  // enough work for any number of threads

// Reduces a row of n elements; blocks are combined pairwise, so that the error of a sum grows with log(n).
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

// A reducer that adds up elements unchanged.
template <class Acc>
struct SumOf {
  using Value = Acc;
  Value nothing() const { return 0; }
  Value add(Value sum, Acc x) const { return sum + x; }
  Value join(Value a, Value b) const { return a + b; }
};

// Calls row(x, n) -> Value for each row, or for fixed pieces of one long row, so that the result does not depend on the
// number of threads; then store(i, Value).
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

// Rows of adjacent columns: `width` elements per row, rows `step` elements apart.
template <class T>
struct ColumnRows {
  const T* first;
  int64_t rows, step, width;
};

// Calls part(ColumnRows, Value* totals), which reduces each column to one Value, for strips of columns and fixed pieces
// of their rows; joins the pieces in pairs; then calls store(i, Value). Several narrow rows are processed as one row,
// to fill vectors, and their columns are joined at the end. The order depends on the shape alone, not on the number of
// threads.
template <class Value, class T, class Part, class Join, class Store>
void for_columns(const ReductionPlan& r, const T* x, Part part, Join join, Store store) {
  if (r.outer * r.inner == 0) return;
  if (r.reduced == 0) {
    parallel_for(r.outer * r.inner, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Value nothing[1];
        part(ColumnRows<T>{x, 0, r.inner, 1}, nothing);
        store(i, nothing[0]);
      }
    });
    return;
  }
  constexpr int64_t kWide = kStrip<T>;
  const int64_t together = std::clamp<int64_t>(kWide / r.inner, 1, r.reduced);
  const int64_t row = together * r.inner;  // elements
  const int64_t rows = r.reduced / together;
  const int64_t strips = (row + kWide - 1) / kWide;
  // If the strips alone are enough work for all threads, the pieces only limit the error.
  const int64_t least = r.outer * strips >= kManyStrips ? kGroup * kGroup : kSlicePiece / std::min(row, kWide);
  const int64_t piece = std::max(kGroup, least);
  const int64_t pieces = (rows + piece - 1) / piece;

  // Reduces `width` columns of a strip in one piece.
  const auto total_of = [&](const T* slice, int64_t p, int64_t column, int64_t width, Value* totals) {
    part(ColumnRows<T>{slice + p * piece * row + column, std::min(piece, rows - p * piece), row, width}, totals);
    if (together == 1) return;
    for (int64_t left = together; left > 1;) {
      const int64_t half = (left + 1) / 2;
      for (int64_t j = 0; j < (left - half) * r.inner; ++j)
        totals[j] = join(totals[j], totals[half * r.inner + j]);
      left = half;
    }
    if (const int64_t rest = r.reduced - rows * together; rest > 0 && p == pieces - 1) {
      Value last[kWide];
      part(ColumnRows<T>{slice + rows * row, rest, r.inner, r.inner}, last);
      for (int64_t j = 0; j < r.inner; ++j)
        totals[j] = join(totals[j], last[j]);
    }
  };

  std::vector<Value> parts(static_cast<size_t>(pieces > 1 ? r.outer * pieces * r.inner : 0));
  parallel_for(
      r.outer * pieces * strips,
      [&](int64_t begin, int64_t end) {
        Value totals[kWide];
        for (int64_t task = begin; task < end; ++task) {
          const int64_t column = task % strips * kWide;
          const int64_t p = task / strips % pieces;
          const int64_t o = task / strips / pieces;
          const int64_t width = std::min(kWide, row - column);
          const int64_t columns = together == 1 ? width : r.inner;
          total_of(x + o * r.reduced * r.inner, p, column, width, totals);
          if (pieces > 1) {
            std::copy_n(totals, columns, parts.begin() + (o * pieces + p) * r.inner + column);
          } else {
            for (int64_t j = 0; j < columns; ++j)
              store(o * r.inner + column + j, totals[j]);
          }
        }
      },
      std::min(piece, rows) * std::min(row, kWide));
  if (pieces == 1) return;
  parallel_for(
      r.outer * r.inner,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Value* const of = parts.data() + i / r.inner * pieces * r.inner + i % r.inner;
          for (int64_t apart = 1; apart < pieces; apart *= 2) {
            for (int64_t p = 0; p + apart < pieces; p += 2 * apart)
              of[p * r.inner] = join(of[p * r.inner], of[(p + apart) * r.inner]);
          }
          store(i, of[0]);
        }
      },
      pieces);
}

// into(first element of a row, group, width) adds a row to `group`; groups of rows are then joined.
template <class T, class R, class Into>
void reduce_columns(const ReductionPlan& r, const R& reducer, Into into) {
  using Value = typename R::Value;
  for_columns<Value>(
      r, static_cast<const T*>(r.x.raw_data()),
      [&](const ColumnRows<T>& of, Value* totals) {
        Value group[kStrip<T>];
        std::fill(totals, totals + of.width, reducer.nothing());
        for (int64_t row = 0; row < of.rows; row += kGroup) {
          std::fill(group, group + of.width, reducer.nothing());
          for (int64_t k = row; k < std::min(of.rows, row + kGroup); ++k)
            into(of.first + k * of.step, group, of.width);
          for (int64_t j = 0; j < of.width; ++j)
            totals[j] = reducer.join(totals[j], group[j]);
        }
      },
      [&](const Value& a, const Value& b) { return reducer.join(a, b); },
      [&](int64_t i, const Value& value) { reducer.store(i, value); });
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
  reduce_columns<T>(r, reducer, [&](const T* row, Value* group, int64_t width) {
    compute_type<T> wide[kStrip<T>];
    const auto* const source = in_compute_type(row, wide, width);
    for (int64_t j = 0; j < width; ++j)
      group[j] = reducer.add(group[j], static_cast<Value>(source[j]));
  });
}

// Reduces slices; `fold` is the vectorized equivalent of the reducer, for types that are computed in float32.
template <class T, class R>
void reduce_slices(const ReductionPlan& r, const R& reducer, Fold fold) {
  if constexpr (!std::is_same_v<typename R::Value, float>) {
    reduce_slices<T>(r, reducer);
  } else if (r.inner > 1) {
    reduce_columns<T>(r, reducer, [fold](const T* row, float* group, int64_t width) {
      fold_into(fold, dtype_of<T>, row, group, width);
    });
  } else if (r.reduced < kWorthFolding) {
    reduce_slices<T>(r, reducer);
  } else {
    reduce_rows<T>(r, reducer, [fold](const T* row, int64_t n) { return fold_row(fold, dtype_of<T>, row, n); });
  }
}

}  // namespace brigade::kernels::cpu
