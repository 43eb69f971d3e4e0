// Sums over dense arrays, and normalization: float32 is compiled for each instruction set, float64 uses scalar loops.
// Blocks are summed in the type of the elements, their total in double, so that long arrays do not lose digits; the
// order depends on the length alone.
#pragma once

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

}  // namespace brigade::kernels::cpu
