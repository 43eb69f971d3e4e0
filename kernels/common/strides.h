// Tensors by their strides: several under one shape, and a reversed view.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/core/view.h>

#include <array>

namespace brigade::kernels {

// --- Several tensors with different strides under one shape: broadcasts them, then merges adjacent dimensions.

// N operands broadcast to one shape. Strides in elements; 0 where an operand is broadcast.
template <int N>
struct StridedLayout {
  Shape sizes;
  std::array<Shape, N> strides;

  // Every operand must broadcast to `shape`.
  StridedLayout(const Shape& shape, const std::array<const Tensor*, N>& operands) {
    const int dims = shape.size();
    sizes = shape;
    for (int k = 0; k < N; ++k) {
      strides[k] = Shape::filled(dims, 0);
      const Tensor& operand = *operands[k];
      const int added = dims - operand.dim();
      for (int d = 0; d < operand.dim(); ++d) {
        if (operand.sizes()[d] != 1) strides[k][d + added] = operand.strides()[d];
      }
    }
    merge();
  }

 private:
  // Two adjacent dimensions merge when, in every operand, the end of the inner one is the next step of the outer one.
  void merge() {
    int kept = 0;
    for (int d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) continue;
      bool fits = kept > 0;
      for (int k = 0; k < N && fits; ++k)
        fits = strides[k][kept - 1] == sizes[d] * strides[k][d];
      if (fits) {
        sizes[kept - 1] *= sizes[d];
        for (int k = 0; k < N; ++k)
          strides[k][kept - 1] = strides[k][d];
      } else {
        sizes[kept] = sizes[d];
        for (int k = 0; k < N; ++k)
          strides[k][kept] = strides[k][d];
        ++kept;
      }
    }
    while (sizes.size() > kept) {
      sizes.pop_back();
      for (int k = 0; k < N; ++k)
        strides[k].pop_back();
    }
  }
};

// --- A view that reverses a dimension with a negative stride.

inline Tensor reversed(const Tensor& x, int dim) {
  if (x.numel() == 0) return x;
  Shape strides = x.strides();
  const int64_t last = (x.sizes()[dim] - 1) * strides[dim];
  strides[dim] = -strides[dim];
  return view::as_strided(x, x.sizes(), strides, x.storage_offset() + last);
}

}  // namespace brigade::kernels
