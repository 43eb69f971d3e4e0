// Sums over dense arrays, and normalization: float32 is compiled for each instruction set, float64 uses scalar loops.
// Blocks are summed in the type of the elements, their total in double, so that long arrays do not lose digits; the
// order depends on the length alone.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/half.h>

#include <cstdint>

namespace brigade::kernels::cpu {

double sum(const float* x, int64_t n);
// Halves are read in registers and summed in float32, as above.
double sum(const float16* x, int64_t n);
double sum(const bfloat16* x, int64_t n);
// Sums 256 squares at a time in float32, the total in double.
double sum_of_squares(const float* x, int64_t n);
// Sums of x - center, of their squares, and of a * (x - center).
double sum_distances(const float* x, float center, int64_t n);
double sum_distances(const float16* x, float center, int64_t n);
double sum_distances(const bfloat16* x, float center, int64_t n);
double sum_squares(const float* x, float center, int64_t n);
// Both sum_distances and the sum of squares in one pass.
struct DistanceSums {
  double distances = 0, squares = 0;
};
DistanceSums sum_distances_and_squares(const float* x, float center, int64_t n);
DistanceSums sum_distances_and_squares(const float16* x, float center, int64_t n);
DistanceSums sum_distances_and_squares(const bfloat16* x, float center, int64_t n);
// distances += x - centers, element by element; the second also: squares += (x - centers)^2
void add_distances(const float* x, const float* centers, float* distances, int64_t n);
void add_distances(const float16* x, const float* centers, float* distances, int64_t n);
void add_distances(const bfloat16* x, const float* centers, float* distances, int64_t n);
void add_distances(const float* x, const float* centers, float* distances, float* squares, int64_t n);
void add_distances(const float16* x, const float* centers, float* distances, float* squares, int64_t n);
void add_distances(const bfloat16* x, const float* centers, float* distances, float* squares, int64_t n);
double dot_distances(const float* a, const float* x, float center, int64_t n);
// y = (x - center) * scale + shift. y may be x.
void normalize(const float* x, float center, float scale, float shift, float* y, int64_t n);
// out = scale * (a * factor - less - (x - center) * pull)
void norm_gradient(const float* a, const float* x, float center, float scale, float factor, float less, float pull,
                   float* out, int64_t n);
// sums += x
void add(const float* x, float* sums, int64_t n);
void add(const float16* x, float* sums, int64_t n);
void add(const bfloat16* x, float* sums, int64_t n);

double sum(const double* x, int64_t n);
double sum_distances(const double* x, double center, int64_t n);
double sum_squares(const double* x, double center, int64_t n);
DistanceSums sum_distances_and_squares(const double* x, double center, int64_t n);
double dot_distances(const double* a, const double* x, double center, int64_t n);
// The sums of a * b and of a * b * (x - center).
double dot(const double* a, const double* b, int64_t n);
double dot_products(const double* a, const double* b, const double* x, double center, int64_t n);
void normalize(const double* x, double center, double scale, double shift, double* y, int64_t n);
// y = (x - center) * scale * gains + shifts
void normalize(const double* x, double center, double scale, const double* gains, const double* shifts, double* y,
               int64_t n);
void norm_gradient(const double* a, const double* x, double center, double scale, double factor, double less,
                   double pull, double* out, int64_t n);
// out = scale * (a * factors - less - (x - center) * pull)
void norm_gradient(const double* a, const double* x, double center, double scale, const double* factors, double less,
                   double pull, double* out, int64_t n);
void add(const double* x, double* sums, int64_t n);
void add_distances(const double* x, const double* centers, double* distances, int64_t n);
void add_distances(const double* x, const double* centers, double* distances, double* squares, int64_t n);
// sums += a * ((x - center) * scale)
void add_products(const double* a, const double* x, double center, double scale, double* sums, int64_t n);

// --- Reductions of dense arrays of float32, float16 or bfloat16 to one number, and of several rows, element by
// element, to a row of numbers, compiled for each instruction set. They compute in float32; the order depends on the
// length alone.

// The largest and the smallest element (NaNs propagate), the product, the number of nonzero elements, the sum of
// absolute values and of squares, the largest and the smallest absolute value.
enum class Fold : uint8_t { Largest, Smallest, Product, Nonzeros, Sizes, Squares, LargestSize, SmallestSize };

// Folds n elements of dtype at `x`. Sums accumulate blocks in float32, the total in double.
float fold_row(Fold fold, DType dtype, const void* x, int64_t n);
// Folds element i into values[i].
void fold_into(Fold fold, DType dtype, const void* x, float* values, int64_t n);
// The index of the first element equal to `value`, or of the first NaN if `value` is NaN; n if there is none.
int64_t first_place(DType dtype, const void* x, float value, int64_t n);

// --- Max pooling of a plane with 2 x 2 windows, the common case, compiled for each instruction set.

inline constexpr int64_t kPoolLanes = 8;

// Non-overlapping windows over an image [2 * rows or more, width], `out` >= kPoolLanes windows per row, 2 * out <=
// width. values and places: [rows, out]; places are positions in the image. NaNs win, and the first among equals. The
// image has fewer than 2^31 elements.
void max_pool_two_by_two(const float* image, int64_t width, int64_t rows, int64_t out, float* values, int64_t* places);

}  // namespace brigade::kernels::cpu
