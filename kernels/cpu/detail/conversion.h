// Tensors of other dtypes and strides: conversion of dense arrays, and loops row by row.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <array>
#include <cstdint>

namespace brigade::kernels::cpu {

// --- Conversion of dense arrays between dtypes, and copies of words between strided and dense arrays.

// to[i] = from[i] for n elements, as as_element (common/arguments.h) does through the compute_type of
// `from_dtype`. The arrays do not overlap.
void convert(DType from_dtype, const void* from, DType to_dtype, void* to, int64_t n);
// The address of element i of a dense tensor.
void* element(const Tensor& tensor, int64_t i);
// convert() for n elements of a dense tensor, from element `first` on.
void read_elements(const Tensor& from, int64_t first, DType to_dtype, void* to, int64_t n);
void write_elements(DType from_dtype, const void* from, const Tensor& to, int64_t first, int64_t n);

// Elements of `bytes` bytes (1, 2, 4 or 8), `step` elements apart.
void gather_words(const void* from, int64_t step, size_t bytes, void* to, int64_t n);
void scatter_words(const void* from, size_t bytes, void* to, int64_t step, int64_t n);

// --- Row-by-row loops over several tensors with different strides.

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
