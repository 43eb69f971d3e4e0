// Loops over several tensors of different strides at once: broadcast, then merge neighbouring dimensions, then walk
// rows.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <array>

namespace brigade::kernels::cpu {

// N operands seen under one shape. Strides in elements; 0 where an operand is broadcast.
template <int N>
struct StridedLoop {
  Shape sizes;
  std::array<Shape, N> strides;

  // Every operand must broadcast to `shape`.
  StridedLoop(const Shape& shape, const std::array<const Tensor*, N>& operands) {
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

  // Calls row(offsets, inner_strides, length) for runs along the last dimension; offsets in elements, per operand.
  template <class Row>
  void for_each_row(Row&& row) const {
    const int64_t total = sizes.numel();
    if (total == 0) return;
    std::array<int64_t, N> inner{};
    const int last = sizes.size() - 1;
    if (last < 0) {
      row(std::array<int64_t, N>{}, inner, int64_t{1});
      return;
    }
    for (int k = 0; k < N; ++k)
      inner[k] = strides[k][last];
    const int64_t length = sizes[last];
    if (last == 0) {
      parallel_for(length, [&](int64_t begin, int64_t end) {
        std::array<int64_t, N> offsets;
        for (int k = 0; k < N; ++k)
          offsets[k] = begin * inner[k];
        row(offsets, inner, end - begin);
      });
      return;
    }
    parallel_for(
        total / length,
        [&](int64_t begin, int64_t end) {
          Shape index = Shape::filled(last, 0);
          std::array<int64_t, N> offsets{};
          int64_t rest = begin;
          for (int d = last - 1; d >= 0; --d) {
            index[d] = rest % sizes[d];
            rest /= sizes[d];
            for (int k = 0; k < N; ++k)
              offsets[k] += index[d] * strides[k][d];
          }
          for (int64_t i = begin; i < end; ++i) {
            row(offsets, inner, length);
            for (int d = last - 1; d >= 0; --d) {
              for (int k = 0; k < N; ++k)
                offsets[k] += strides[k][d];
              if (++index[d] < sizes[d]) break;
              for (int k = 0; k < N; ++k)
                offsets[k] -= sizes[d] * strides[k][d];
              index[d] = 0;
            }
          }
        },
        length);
  }

 private:
  // Two neighbouring dimensions are one when stepping over the inner one lands on the next of the outer one in every
  // operand.
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

}  // namespace brigade::kernels::cpu
