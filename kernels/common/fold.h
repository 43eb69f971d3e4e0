// Device-independent parts of unfold and fold: checks, sizes, allocation of results.
#pragma once

#include <brigade/kernels/fold.h>

namespace brigade::kernels {

struct FoldPlan {
  int64_t planes;  // N * C
  int64_t height, width;
  int64_t out_h, out_w;  // windows
  FoldParams params;
  Tensor result;

  int64_t pixels() const { return height * width; }
  // Elements of the columns of one plane.
  int64_t elements() const { return params.kernel_size[0] * params.kernel_size[1] * out_h * out_w; }
};
// Throw ShapeError, ValueError.
FoldPlan prepare_unfold(const Tensor& x, const FoldParams& params);
FoldPlan prepare_fold(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& params);

}  // namespace brigade::kernels
