// Device-independent parts of triangle.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/core/host_device.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/triangle.h>

#include <algorithm>

namespace brigade::kernels {

struct TrianglePlan {
  int64_t rows = 0, columns = 0, diagonal = 0;
  bool upper = false;

  // The elements [first, last) of a row that are kept.
  BRIGADE_HOST_DEVICE int64_t first(int64_t row) const {
    const int64_t at = row + diagonal;
    return !upper || at < 0 ? 0 : at < columns ? at : columns;
  }
  BRIGADE_HOST_DEVICE int64_t last(int64_t row) const {
    const int64_t end = row + diagonal + 1;
    return upper || end > columns ? columns : end < 0 ? 0 : end;
  }
};

// Throws ShapeError.
inline TrianglePlan plan_triangle(const Tensor& x, Triangle part, int64_t diagonal) {
  if (x.dim() < 2) {
    throw ShapeError("{}: expected a matrix, or a batch of them, got {}", part == Triangle::Upper ? "triu" : "tril",
                     x.sizes());
  }
  TrianglePlan plan{x.size(-2), x.size(-1), diagonal, part == Triangle::Upper};
  plan.diagonal = std::clamp(diagonal, -plan.rows, plan.columns);  // values beyond the corners have no further effect
  return plan;
}

}  // namespace brigade::kernels
