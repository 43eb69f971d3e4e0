// Products of matrices so small that a library's preparations take longer than the arithmetic: the rows of op(b) are
// vectors, and a block of rows of c stays in registers until it is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace brigade::kernels::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
class SmallGemm {
 public:
  // Whether multiply() is the quicker way, and has room.
  static bool suits(int64_t m, int64_t n, int64_t k) noexcept {
    return m * n * k <= (n % kLanes == 0 ? 32 * 32 * 32 : 16 * 16 * 16) && k * padded(n) <= kRoom;
  }

  // As gemm().
  static void multiply(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                       const T* b, int64_t ldb, bool accumulate, T* c, int64_t ldc) {
    const Problem problem{m, n, k, a, transpose_a ? 1 : lda, transpose_a ? lda : 1, c, ldc, accumulate};
    if (transpose_b || n % kLanes != 0) {
      multiply_copy(problem, transpose_b, b, ldb);
    } else {
      multiply_rows(problem, b, ldb);
    }
  }

 private:
  using Vector [[gnu::vector_size(kVectorBytes)]] = T;
  static constexpr int64_t kLanes = kVectorBytes / sizeof(T);
  // Of a block, in rows and vectors: as many sums under way at once as hide how long one takes.
  static constexpr int kRows = 8;
  static constexpr int kColumns = 2;
  static constexpr int64_t kRoom = 4096;  // elements of a copy of op(b)

  // But for b. The element in row i and column j of op(a) is a[i * a_row + j * a_step].
  struct Problem {
    int64_t m, n, k;
    const T* a;
    int64_t a_row, a_step;
    T* c;
    int64_t ldc;
    bool accumulate;
  };
  // The part of it that computes `columns` columns of a few rows.
  struct Block {
    const Problem& of;
    const T* a;
    const T* b;
    int64_t ldb;
    T* c;
    int64_t columns;
  };

  static int64_t padded(int64_t n) noexcept { return (n + kLanes - 1) / kLanes * kLanes; }

  static Vector load(const T* from) noexcept {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
  }

  // By a copy of op(b) whose rows are whole vectors.
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

  // op(b), its rows filled up with zeros to whole vectors.
  static void copy_rows(bool transpose, int64_t n, int64_t k, const T* b, int64_t ldb, T* to) {
    const int64_t width = padded(n);
    if (transpose) transpose_rows(n, k, b, ldb, to, width);
    for (int64_t p = 0; p < k; ++p) {
      if (!transpose) std::copy_n(b + p * ldb, n, to + p * width);
      std::fill(to + p * width + n, to + (p + 1) * width, T(0));
    }
  }

  // Squares of four by four, then what is left at the edges.
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
    using Order [[gnu::vector_size(4 * sizeof(T))]] = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    Four row[4];
    for (int i = 0; i < 4; ++i)
      std::memcpy(&row[i], from + i * from_row, sizeof row[i]);
    const Order low{0, 4, 1, 5}, high{2, 6, 3, 7}, first{0, 1, 4, 5}, second{2, 3, 6, 7};
    const Four top[2] = {__builtin_shuffle(row[0], row[1], low), __builtin_shuffle(row[0], row[1], high)};
    const Four bottom[2] = {__builtin_shuffle(row[2], row[3], low), __builtin_shuffle(row[2], row[3], high)};
    for (int i = 0; i < 4; ++i) {
      const Four column = __builtin_shuffle(top[i / 2], bottom[i / 2], i % 2 == 0 ? first : second);
      std::memcpy(to + i * to_row, &column, sizeof column);
    }
  }

  // A block of c of 1 to Rows rows.
  template <int Rows, int Columns>
  static void run(const Block& block, int rows) {
    if constexpr (Rows > 1) {
      if (rows < Rows) return run<Rows - 1, Columns>(block, rows);
    }
    multiply_block<Rows, Columns>(block);
  }

  template <int Rows, int Columns>
  [[gnu::noinline]] static void multiply_block(const Block& block) {
    Vector sums[Rows][Columns] = {};
    const T* left = block.a;
    const T* right = block.b;
    for (int64_t p = 0; p < block.of.k; ++p) {
      Vector row[Columns];
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
    // Held here, since a store could change them for all that the compiler knows.
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
          const Vector sum = accumulate ? sums[i][j] + load(part) : sums[i][j];
          std::memcpy(part, &sum, sizeof sum);
        } else {
          store_part(sums[i][j], columns - j * kLanes, accumulate, part);
        }
      }
      to += ldc;
    }
  }

  [[gnu::noinline]] static void store_part(Vector sum, int64_t columns, bool accumulate, T* to) {
    T values[kLanes];
    std::memcpy(values, &sum, sizeof values);
    for (int j = 0; j < kLanes; ++j) {
      if (j < columns) to[j] = accumulate ? to[j] + values[j] : values[j];
    }
  }
};

}  // namespace brigade::kernels::cpu
