// Native matrix products: rows of op(b) are read as vectors, and a block of rows of c stays in registers until it is
// done.
#include <brigade/kernels/cpu/vector/targets.h>

#define HWY_TARGET_INCLUDE <brigade/kernels/cpu/vector/products.cpp>
#include <hwy/foreach_target.h>
// After foreach_target.h:
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/products.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::cpu::HWY_NAMESPACE {
namespace {

// The compiler's vector extension; 16 bytes, which every processor has, if Highway has no vectors.
constexpr size_t kVectorBytes = HWY_MAX_BYTES < 16 ? 16 : HWY_MAX_BYTES;

template <class T>
class Product {
 public:
  // Whether a product is so small that a library's setup takes longer than the arithmetic.
  static bool is_small(const Factors<T>& of) noexcept {
    return of.m * of.n * of.k <= (of.n % kLanes == 0 ? 32 * 32 * 32 : 16 * 16 * 16) && of.k * padded(of.n) <= kRoom;
  }

  static void multiply_small(const Factors<T>& of) {
    const Problem problem{of.m, of.n,   of.k,         of.a, of.transpose_a ? 1 : of.lda, of.transpose_a ? of.lda : 1,
                          of.c, of.ldc, of.accumulate};
    if (of.transpose_b || of.n % kLanes != 0) {
      multiply_copy(problem, of.transpose_b, of.b, of.ldb);
    } else {
      multiply_rows(problem, of.b, of.ldb);
    }
  }

  // Whether op(a) has few but long rows and b is transposed. A library would copy all of b to its own layout, which
  // does not pay off for so few rows. The rows must fill most of a vector to pay off here.
  static bool is_thin(const Factors<T>& of) noexcept {
    return !of.transpose_a && of.transpose_b && 4 * of.m >= 3 * kLanes && of.m <= 8 * kLanes && of.k >= 512 &&
           of.n >= 2 * kRows;
  }
  static int64_t depth(const Factors<T>& of) noexcept { return std::min(of.k, kThinRoom / padded(of.m)); }
  static int64_t thin_room(const Factors<T>& of) noexcept { return padded(of.m) * (depth(of) + of.n); }

  // The transposed product, b times a transposed, which reads b's rows in place. copy_thin transposes columns [p, p +
  // depth) of a.
  static void copy_thin(const Factors<T>& of, int64_t p, T* room) {
    copy_rows(true, of.m, std::min(of.k - p, depth(of)), of.a + p, of.lda, room);
  }
  // multiply_thin adds their share to columns [begin, end) of c, which are transposed back after the last share.
  static void multiply_thin(const Factors<T>& of, int64_t p, int64_t begin, int64_t end, T* room) {
    const int64_t width = padded(of.m);
    const int64_t k = std::min(of.k - p, depth(of));
    T* const sums = room + width * (depth(of) + begin);
    T* const c = of.c + begin;
    if (p == 0 && of.accumulate) copy_rows(true, of.m, end - begin, c, of.ldc, sums);
    const T* const b = of.b + begin * of.ldb + p;
    for (int64_t i = 0; i < end - begin; i += kRows) {
      const int64_t rows = std::min<int64_t>(end - begin - i, kRows);
      for (int64_t q = 0; q < k; q += kChain) {
        multiply_rows({rows, width, std::min(k - q, kChain), b + i * of.ldb + q, of.ldb, 1, sums + i * width, width,
                       of.accumulate || p + q > 0},
                      room + q * width, width);
      }
    }
    if (p + k == of.k) transpose_rows(end - begin, of.m, sums, width, c, of.ldc);
  }

  // Columns [begin, end) of a product of any size, in panels of op(b): as many of its rows at once as fill the room,
  // which stays in the L1 cache for all rows of op(a).
  static void multiply_columns(const Factors<T>& of, int64_t begin, int64_t end) {
    constexpr int64_t kWidth = kColumns * kLanes;
    constexpr int64_t kDepth = kRoom / kWidth;
    const int64_t a_row = of.transpose_a ? 1 : of.lda;
    const int64_t a_step = of.transpose_a ? of.lda : 1;
    for (int64_t j = begin; j < end; j += kWidth) {
      const int64_t n = std::min(kWidth, end - j);
      for (int64_t p = 0; p < of.k || p == 0; p += kDepth) {
        const int64_t k = std::min(kDepth, of.k - p);
        const T* const b = of.transpose_b ? of.b + j * of.ldb + p : of.b + p * of.ldb + j;
        multiply_copy({of.m, n, k, of.a + p * a_step, a_row, a_step, of.c + j, of.ldc, of.accumulate || p > 0},
                      of.transpose_b, b, of.ldb);
      }
    }
  }

 private:
  using Lanes [[gnu::vector_size(kVectorBytes)]] = T;
  static constexpr int64_t kLanes = kVectorBytes / sizeof(T);
  // The size of a block, in rows and vectors: enough sums in flight to hide the latency of an FMA. x86 has 32 registers
  // from AVX-512 on, 16 before; ARM has 32.
  static constexpr int kRows = HWY_ARCH_X86 && kVectorBytes < 64 ? 6 : 8;
  static constexpr int kColumns = 2;
  static constexpr int64_t kRoom = 4096;           // elements of a copy of op(b)
  static constexpr int64_t kChain = 384;           // numbers added in sequence: fewer are more accurate
  static constexpr int64_t kThinRoom = 64 * 1024;  // elements of a copy of a, which stays in the L2 cache

  // A product, without b. The element in row i and column j of op(a) is a[i * a_row + j * a_step].
  struct Problem {
    int64_t m, n, k;
    const T* a;
    int64_t a_row, a_step;
    T* c;
    int64_t ldc;
    bool accumulate;
  };
  // The part of a problem that computes `columns` columns of a few rows.
  struct Block {
    const Problem& of;
    const T* a;
    const T* b;
    int64_t ldb;
    T* c;
    int64_t columns;
  };

  static int64_t padded(int64_t n) noexcept { return (n + kLanes - 1) / kLanes * kLanes; }

  static Lanes load(const T* from) noexcept {
    Lanes vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
  }

  // Multiplies with a copy of op(b) whose rows are padded to whole vectors.
  [[gnu::noinline]] static void multiply_copy(const Problem& problem, bool transpose_b, const T* b, int64_t ldb) {
    alignas(kVectorBytes) T room[kRoom];
    copy_rows(transpose_b, problem.n, problem.k, b, ldb, room);
    multiply_rows(problem, room, padded(problem.n));
  }

  static void multiply_rows(const Problem& problem, const T* b, int64_t ldb) {
    for (int64_t i = 0; i < problem.m; i += kRows) {
      const auto rows = static_cast<int>(std::min<int64_t>(problem.m - i, kRows));
      for (int64_t j = 0; j < problem.n; j += kColumns * kLanes) {
        const Block block{problem, problem.a + i * problem.a_row,   b + j,
                          ldb,     problem.c + i * problem.ldc + j, std::min(problem.n - j, kColumns * kLanes)};
        if (block.columns > kLanes) {
          run<kRows, kColumns>(block, rows);
        } else {
          run<kRows, 1>(block, rows);
        }
      }
    }
  }

  // Copies op(b), with rows zero-padded to whole vectors.
  static void copy_rows(bool transpose, int64_t n, int64_t k, const T* b, int64_t ldb, T* to) {
    const int64_t width = padded(n);
    if (transpose) transpose_rows(n, k, b, ldb, to, width);
    for (int64_t p = 0; p < k; ++p) {
      if (!transpose) std::copy_n(b + p * ldb, n, to + p * width);
      std::fill(to + p * width + n, to + (p + 1) * width, T(0));
    }
  }

  // Transposes 4 x 4 squares, then the edges.
  static void transpose_rows(int64_t n, int64_t k, const T* b, int64_t ldb, T* to, int64_t width) {
    const int64_t whole_n = n / 4 * 4;
    const int64_t whole_k = k / 4 * 4;
    for (int64_t j = 0; j < whole_n; j += 4) {
      for (int64_t p = 0; p < whole_k; p += 4)
        transpose_square(b + j * ldb + p, ldb, to + p * width + j, width);
    }
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = p < whole_k ? whole_n : 0; j < n; ++j)
        to[p * width + j] = b[j * ldb + p];
    }
  }
  static void transpose_square(const T* from, int64_t from_row, T* to, int64_t to_row) {
    using Four [[gnu::vector_size(4 * sizeof(T))]] = T;
    Four row[4];
    for (int i = 0; i < 4; ++i)
      std::memcpy(&row[i], from + i * from_row, sizeof row[i]);
    const Four top[2] = {__builtin_shufflevector(row[0], row[1], 0, 4, 1, 5),
                         __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7)};
    const Four bottom[2] = {__builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
                            __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7)};
    for (int i = 0; i < 4; ++i) {
      const Four column = i % 2 == 0 ? __builtin_shufflevector(top[i / 2], bottom[i / 2], 0, 1, 4, 5)
                                     : __builtin_shufflevector(top[i / 2], bottom[i / 2], 2, 3, 6, 7);
      std::memcpy(to + i * to_row, &column, sizeof column);
    }
  }

  // Computes a block of c with 1 to Rows rows.
  template <int Rows, int Columns>
  static void run(const Block& block, int rows) {
    if constexpr (Rows > 1) {
      if (rows < Rows) return run<Rows - 1, Columns>(block, rows);
    }
    multiply_block<Rows, Columns>(block);
  }

  template <int Rows, int Columns>
  [[gnu::noinline]] static void multiply_block(const Block& block) {
    Lanes sums[Rows][Columns] = {};
    const T* left = block.a;
    const T* right = block.b;
    for (int64_t p = 0; p < block.of.k; ++p) {
      Lanes row[Columns];
#pragma GCC unroll 2
      for (int j = 0; j < Columns; ++j)
        row[j] = load(right + j * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < Rows; ++i) {
        const T factor = left[i * block.of.a_row];
#pragma GCC unroll 2
        for (int j = 0; j < Columns; ++j)
          sums[i][j] += factor * row[j];
      }
      left += block.of.a_step;
      right += block.ldb;
    }
    // Local copies, since the compiler must assume that stores change the members.
    T* to = block.c;
    const int64_t ldc = block.of.ldc;
    const int64_t columns = block.columns;
    const bool accumulate = block.of.accumulate;
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < Columns; ++j) {
        T* const part = to + j * kLanes;
        if (columns - j * kLanes >= kLanes) {
          const Lanes sum = accumulate ? sums[i][j] + load(part) : sums[i][j];
          std::memcpy(part, &sum, sizeof sum);
        } else {
          store_part(sums[i][j], columns - j * kLanes, accumulate, part);
        }
      }
      to += ldc;
    }
  }

  [[gnu::noinline]] static void store_part(const Lanes& sum, int64_t columns, bool accumulate, T* to) {
    T values[kLanes];
    std::memcpy(values, &sum, sizeof values);
    for (int j = 0; j < kLanes; ++j) {
      if (j < columns) to[j] = accumulate ? to[j] + values[j] : values[j];
    }
  }
};

}  // namespace

bool multiply_small_loop(const Factors<float>& of) {
  if (!Product<float>::is_small(of)) return false;
  Product<float>::multiply_small(of);
  return true;
}
bool multiply_small_doubles_loop(const Factors<double>& of) {
  if (!Product<double>::is_small(of)) return false;
  Product<double>::multiply_small(of);
  return true;
}
int64_t thin_room_loop(const Factors<float>& of) {
  return Product<float>::is_thin(of) ? Product<float>::thin_room(of) : 0;
}
int64_t copy_thin_loop(const Factors<float>& of, int64_t p, float* room) {
  Product<float>::copy_thin(of, p, room);
  return p + Product<float>::depth(of);
}
void multiply_thin_loop(const Factors<float>& of, int64_t p, int64_t begin, int64_t end, float* room) {
  Product<float>::multiply_thin(of, p, begin, end, room);
}
void multiply_columns_loop(const Factors<float>& of, int64_t begin, int64_t end) {
  Product<float>::multiply_columns(of, begin, end);
}
void multiply_columns_of_doubles_loop(const Factors<double>& of, int64_t begin, int64_t end) {
  Product<double>::multiply_columns(of, begin, end);
}

}  // namespace brigade::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels::cpu {

HWY_EXPORT(multiply_small_loop);
HWY_EXPORT(multiply_small_doubles_loop);
HWY_EXPORT(thin_room_loop);
HWY_EXPORT(copy_thin_loop);
HWY_EXPORT(multiply_thin_loop);
HWY_EXPORT(multiply_columns_loop);
HWY_EXPORT(multiply_columns_of_doubles_loop);

namespace {
// Threads take ranges of adjacent columns.
template <class T, class Columns>
void share_columns(const Factors<T>& of, Columns columns) {
  constexpr int64_t kWidth = 64;
  parallel_for((of.n + kWidth - 1) / kWidth,
               [&](int64_t begin, int64_t end) { columns(begin * kWidth, std::min(of.n, end * kWidth)); },
               std::max<int64_t>(kWidth * of.m * of.k / 16, 1));
}
}  // namespace

bool multiply_if_small(const Factors<float>& of) { return HWY_DYNAMIC_DISPATCH(multiply_small_loop)(of); }
bool multiply_if_small(const Factors<double>& of) { return HWY_DYNAMIC_DISPATCH(multiply_small_doubles_loop)(of); }
int64_t thin_room(const Factors<float>& of) { return HWY_DYNAMIC_DISPATCH(thin_room_loop)(of); }
void multiply_thin(const Factors<float>& of, float* room) {
  // Threads take ranges of adjacent rows of b.
  for (int64_t p = 0; p < of.k;) {
    const int64_t next = HWY_DYNAMIC_DISPATCH(copy_thin_loop)(of, p, room);
    parallel_for(
        of.n,
        [&](int64_t begin, int64_t end) {
          HWY_DYNAMIC_DISPATCH(multiply_thin_loop)
          (of, p, begin, end, room);
        },
        std::max<int64_t>(of.m * (next - p) / 16, 1));
    p = next;
  }
}
void multiply(const Factors<float>& of) {
  share_columns(of, [&](int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(multiply_columns_loop)(of, begin, end); });
}
void multiply(const Factors<double>& of) {
  share_columns(of, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(multiply_columns_of_doubles_loop)(of, begin, end);
  });
}

}  // namespace brigade::kernels::cpu
#endif
