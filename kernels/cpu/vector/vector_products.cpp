// Matrix-vector products: dot products with the rows of the matrix, or sums of its columns weighted by the vector's
// elements.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/vector_products.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/products.h>

#include <hwy/highway.h>

#include <algorithm>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kChain = 64;  // numbers added in sequence in a lane before the sum is added in double

template <class T>
class VectorProduct {
 public:
  // Adds the dot products of `rows` rows of n elements with x to totals.
  static void add_dots(const T* a, int64_t row_length, int64_t rows, const T* x, int64_t n, double* totals) {
    // A piece of x stays in the L1 cache for all rows.
    for (int64_t at = 0; at < n; at += kPiece) {
      const int64_t count = std::min(kPiece, n - at);
      for (int64_t r = 0; r < rows; ++r)
        totals[r] += dot(a + r * row_length + at, x + at, count);
    }
  }

  // Adds x[0] * (row 0 of a) + x[1] * (row 1) + ... to totals, for at most kColumnsOfBlock columns. `readable`: the
  // number of elements of the matrix from `a` on if its rows are dense, else 0.
  static void add_columns(const T* a, int64_t row_length, int64_t rows, int64_t columns, int64_t readable, const T* x,
                          double* totals) {
    const int64_t lanes = lanes_of_vector();
    if (columns <= lanes) return add_narrow<1>(a, row_length, rows, columns, readable, x, totals);
    if (columns <= 2 * lanes) return add_narrow<2>(a, row_length, rows, columns, readable, x, totals);
    if (columns <= 4 * lanes) return add_narrow<4>(a, row_length, rows, columns, readable, x, totals);
    add_wide(a, row_length, rows, columns, x, totals);
  }

 private:
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static int64_t lanes_of_vector() { return static_cast<int64_t>(hn::Lanes(D())); }
  static constexpr int64_t kPiece = kChain * 4 * static_cast<int64_t>(hn::MaxLanes(D()));

  static HWY_INLINE V load_first(const T* from, int64_t count) {
    HWY_ALIGN T room[hn::MaxLanes(D())] = {};
    std::copy_n(from, count, room);
    return hn::Load(D(), room);
  }

  static HWY_INLINE double dot(const T* a, const T* x, int64_t n) {
    const D d;
    const int64_t lanes = lanes_of_vector();
    V one = hn::Zero(d);
    V two = hn::Zero(d);
    V three = hn::Zero(d);
    V four = hn::Zero(d);
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      one = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, x + i), one);
      two = hn::MulAdd(hn::LoadU(d, a + i + lanes), hn::LoadU(d, x + i + lanes), two);
      three = hn::MulAdd(hn::LoadU(d, a + i + 2 * lanes), hn::LoadU(d, x + i + 2 * lanes), three);
      four = hn::MulAdd(hn::LoadU(d, a + i + 3 * lanes), hn::LoadU(d, x + i + 3 * lanes), four);
    }
    for (; i + lanes <= n; i += lanes)
      one = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, x + i), one);
    if (i < n) two = hn::MulAdd(load_first(a + i, n - i), load_first(x + i, n - i), two);
    const V all = hn::Add(hn::Add(one, two), hn::Add(three, four));
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
  }

  // Columns that fit into Vectors vectors, which stay in registers. Lanes beyond the last column hold elements of the
  // next row, and are not stored.
  template <int Vectors>
  static void add_narrow(const T* a, int64_t row_length, int64_t rows, int64_t columns, int64_t readable, const T* x,
                         double* totals) {
    const D d;
    constexpr int kAtOnce = 4 / Vectors;  // rows
    const int64_t lanes = lanes_of_vector();
    int64_t whole = columns == Vectors * lanes ? rows : 0;  // rows that can be read in whole vectors
    if (readable >= Vectors * lanes) whole = std::min(rows, (readable - Vectors * lanes) / row_length + 1);
    HWY_ALIGN T room[Vectors * hn::MaxLanes(d)];
    for (int64_t first = 0; first < rows; first += kChain * kAtOnce) {
      const int64_t end = std::min(rows, first + kChain * kAtOnce);
      V sums[kAtOnce][Vectors];
      for (auto& row : sums) {
        for (V& sum : row)
          sum = hn::Zero(d);
      }
      int64_t r = first;
      for (; r + kAtOnce <= std::min(end, whole); r += kAtOnce) {
#pragma GCC unroll 4
        for (int k = 0; k < kAtOnce; ++k) {
          const V factor = hn::Set(d, x[r + k]);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v)
            sums[k][v] = hn::MulAdd(factor, hn::LoadU(d, a + (r + k) * row_length + v * lanes), sums[k][v]);
        }
      }
      for (; r < end; ++r) {
        const V factor = hn::Set(d, x[r]);
        for (int v = 0; v < Vectors; ++v) {
          const int64_t count = std::min(lanes, columns - v * lanes);
          if (count > 0) sums[0][v] = hn::MulAdd(factor, load_first(a + r * row_length + v * lanes, count), sums[0][v]);
        }
      }
      for (int v = 0; v < Vectors; ++v) {
        V sum = sums[0][v];
        for (int k = 1; k < kAtOnce; ++k)
          sum = hn::Add(sum, sums[k][v]);
        hn::Store(sum, d, room + v * lanes);
      }
      for (int64_t j = 0; j < columns; ++j)
        totals[j] += static_cast<double>(room[j]);
    }
  }

  // Any number of columns, four rows at once, so that each row is read sequentially.
  static void add_wide(const T* a, int64_t row_length, int64_t rows, int64_t columns, const T* x, double* totals) {
    const D d;
    const int64_t lanes = lanes_of_vector();
    HWY_ALIGN T sums[kColumnsOfBlock];
    for (int64_t first = 0; first < rows; first += kChain) {
      const int64_t end = std::min(rows, first + kChain);
      std::fill_n(sums, columns, T(0));
      for (int64_t r = first; r < end; r += 4) {
        const T* row[4];
        V factor[4];
        for (int k = 0; k < 4; ++k) {
          const bool is_there = r + k < end;
          row[k] = a + (is_there ? r + k : r) * row_length;
          factor[k] = hn::Set(d, is_there ? x[r + k] : T(0));
        }
        const int present = static_cast<int>(std::min<int64_t>(4, end - r));
        int64_t j = 0;
        if (present == 4) {
          for (; j + lanes <= columns; j += lanes) {
            V sum = hn::LoadU(d, sums + j);
#pragma GCC unroll 4
            for (int k = 0; k < 4; ++k)
              sum = hn::MulAdd(factor[k], hn::LoadU(d, row[k] + j), sum);
            hn::StoreU(sum, d, sums + j);
          }
        }
        for (; j < columns; ++j) {
          for (int k = 0; k < present; ++k)
            sums[j] += x[r + k] * row[k][j];
        }
      }
      for (int64_t j = 0; j < columns; ++j)
        totals[j] += static_cast<double>(sums[j]);
    }
  }
};

}  // namespace

void add_dots_float_loop(const float* a, int64_t row_length, int64_t rows, const float* x, int64_t n, double* totals) {
  VectorProduct<float>::add_dots(a, row_length, rows, x, n, totals);
}
void add_dots_double_loop(const double* a, int64_t row_length, int64_t rows, const double* x, int64_t n,
                          double* totals) {
  VectorProduct<double>::add_dots(a, row_length, rows, x, n, totals);
}
void add_columns_float_loop(const float* a, int64_t row_length, int64_t rows, int64_t columns, int64_t readable,
                            const float* x, double* totals) {
  VectorProduct<float>::add_columns(a, row_length, rows, columns, readable, x, totals);
}
void add_columns_double_loop(const double* a, int64_t row_length, int64_t rows, int64_t columns, int64_t readable,
                             const double* x, double* totals) {
  VectorProduct<double>::add_columns(a, row_length, rows, columns, readable, x, totals);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(add_dots_float_loop);
HWY_EXPORT(add_dots_double_loop);
HWY_EXPORT(add_columns_float_loop);
HWY_EXPORT(add_columns_double_loop);

namespace {

void add_dots(const float* a, int64_t row_length, int64_t rows, const float* x, int64_t n, double* totals) {
  HWY_DYNAMIC_DISPATCH(add_dots_float_loop)(a, row_length, rows, x, n, totals);
}
void add_dots(const double* a, int64_t row_length, int64_t rows, const double* x, int64_t n, double* totals) {
  HWY_DYNAMIC_DISPATCH(add_dots_double_loop)(a, row_length, rows, x, n, totals);
}
void add_columns(const float* a, int64_t row_length, int64_t rows, int64_t columns, int64_t readable, const float* x,
                 double* totals) {
  HWY_DYNAMIC_DISPATCH(add_columns_float_loop)(a, row_length, rows, columns, readable, x, totals);
}
void add_columns(const double* a, int64_t row_length, int64_t rows, int64_t columns, int64_t readable, const double* x,
                 double* totals) {
  HWY_DYNAMIC_DISPATCH(add_columns_double_loop)(a, row_length, rows, columns, readable, x, totals);
}

constexpr int64_t kPart = 1 << 16;    // elements of the matrix per task
constexpr int64_t kManyBlocks = 128;  // enough blocks for any number of threads
constexpr int64_t kMostParts = 256;   // of the inner size
constexpr int64_t kRowsOfBlock = 16;  // of dot products
constexpr int64_t kShortDot = 32;

// y = a x, or with `by_columns` y = a^T x. Results are split into blocks; if there are few blocks, the inner dimension
// is split into parts.
template <class T>
struct Problem {
  bool by_columns;
  int64_t results, inner;
  const T* a;
  int64_t row_length;
  const T* x;
  T* y;
  int64_t y_step;
  bool accumulate;

  void solve() const {
    const int64_t block = by_columns ? kColumnsOfBlock : kRowsOfBlock;
    const int64_t blocks = (results + block - 1) / block;
    int64_t part = inner;
    if (blocks < kManyBlocks) {
      const int64_t share = kPart / std::min(results, block);
      part = std::min(inner, (std::max(share, inner / kMostParts) + 1023) / 1024 * 1024);
    }
    const int64_t parts = (inner + part - 1) / part;
    std::vector<double> sums_of_parts(static_cast<size_t>(parts > 1 ? parts * results : 0));
    parallel_for(
        blocks * parts,
        [&](int64_t begin, int64_t end) {
          double totals[kColumnsOfBlock];
          for (int64_t task = begin; task < end; ++task) {
            const int64_t first = task / parts * block;
            const int64_t count = std::min(block, results - first);
            const int64_t from = task % parts * part;
            std::fill_n(totals, count, 0.0);
            add(first, count, from, std::min(part, inner - from), totals);
            if (parts > 1) {
              std::copy_n(totals, count, sums_of_parts.begin() + task % parts * results + first);
            } else {
              for (int64_t i = 0; i < count; ++i)
                store(first + i, totals[i]);
            }
          }
        },
        std::max<int64_t>(std::min(results, block) * part / 4, 1));
    for (int64_t i = 0; parts > 1 && i < results; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < parts; ++p)
        sum += sums_of_parts[static_cast<size_t>(p * results + i)];
      store(i, sum);
    }
  }

 private:
  void store(int64_t i, double sum) const {
    T& result = y[i * y_step];
    result = accumulate ? result + static_cast<T>(sum) : static_cast<T>(sum);
  }
  void add(int64_t first, int64_t count, int64_t from, int64_t n, double* totals) const {
    if (by_columns) {
      const int64_t readable = row_length == results ? (inner - from) * row_length - first : 0;
      add_columns(a + from * row_length + first, row_length, n, count, readable, x + from, totals);
    } else {
      add_dots(a + first * row_length + from, row_length, count, x + from, n, totals);
    }
  }
};

template <class T>
bool multiply_any(const Factors<T>& of) {
  if ((of.m != 1 && of.n != 1) || of.k < 1) return false;
  // The vector is the factor that has one row or column.
  const bool right = of.n == 1;
  const T* const vector = right ? of.b : of.a;
  const int64_t step = right ? (of.transpose_b ? 1 : of.ldb) : (of.transpose_a ? of.lda : 1);
  Problem<T> problem{.by_columns = right ? of.transpose_a : !of.transpose_b,
                     .results = right ? of.m : of.n,
                     .inner = of.k,
                     .a = right ? of.a : of.b,
                     .row_length = right ? of.lda : of.ldb,
                     .x = vector,
                     .y = of.c,
                     .y_step = right ? of.ldc : 1,
                     .accumulate = of.accumulate};
  if (!problem.by_columns && of.k == 1 && problem.row_length == 1) {
    // A contiguous column is read as a row.
    problem.by_columns = true;
    problem.row_length = problem.results;
  }
  if (!problem.by_columns && of.k < kShortDot) return false;
  std::vector<T> dense;
  if (step != 1 && of.k > 1) {
    dense.resize(static_cast<size_t>(of.k));
    for (int64_t p = 0; p < of.k; ++p)
      dense[static_cast<size_t>(p)] = vector[p * step];
    problem.x = dense.data();
  }
  problem.solve();
  return true;
}

}  // namespace

bool multiply_by_vector(const Factors<float>& of) { return multiply_any(of); }
bool multiply_by_vector(const Factors<double>& of) { return multiply_any(of); }

}  // namespace brigade::kernels::cpu
#endif
