// Row-by-row loops over several tensors with different strides.
#pragma once

#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <array>

namespace brigade::kernels::cpu {

template <int N>
struct StridedLoop : StridedLayout<N> {
  using StridedLayout<N>::StridedLayout;
  using StridedLayout<N>::sizes;
  using StridedLayout<N>::strides;

  // Calls row(offsets, inner_strides, length) for runs along the last dimension; offsets in
  // elements, per operand.
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
};

}  // namespace brigade::kernels::cpu
