// The im2col and col2im of one plane, shared by unfold and convolution with matrix products.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace brigade::kernels::cpu {

// A plane, its sliding windows, and the number of windows.
struct ColumnsOfPlane {
  int64_t height, width;
  int64_t out_h, out_w;
  std::array<int64_t, 2> kernel, stride, padding, dilation;

  int64_t pixels() const { return height * width; }
  // Elements of the matrix of one plane: kernel rows of windows.
  int64_t elements() const { return kernel[0] * kernel[1] * out_h * out_w; }
};

// Range of output positions whose input position o * stride + shift lies inside [0, size).
struct WindowRange {
  int64_t begin, end;
};
inline WindowRange windows_inside(int64_t size, int64_t outputs, int64_t stride, int64_t shift) {
  const int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t end = size - shift <= 0 ? 0 : std::min(outputs, (size - shift + stride - 1) / stride);
  return {std::min(begin, outputs), std::max(end, std::min(begin, outputs))};
}

// Calls row(offset in the matrix, offset in the plane, both for window (oh, 0); the windows inside) for each row of
// windows that overlaps the plane.
template <class Row>
void for_each_row(const ColumnsOfPlane& s, Row&& row) {
  for (int64_t i = 0; i < s.kernel[0]; ++i) {
    for (int64_t j = 0; j < s.kernel[1]; ++j) {
      const int64_t shift_h = i * s.dilation[0] - s.padding[0];
      const int64_t shift_w = j * s.dilation[1] - s.padding[1];
      const WindowRange rows = windows_inside(s.height, s.out_h, s.stride[0], shift_h);
      const WindowRange cols = windows_inside(s.width, s.out_w, s.stride[1], shift_w);
      const int64_t first_row = (i * s.kernel[1] + j) * s.out_h;
      for (int64_t oh = rows.begin; oh < rows.end; ++oh)
        row((first_row + oh) * s.out_w, (oh * s.stride[0] + shift_h) * s.width + shift_w, cols);
    }
  }
}

// columns[(i, j), (oh, ow)] = plane[oh * stride - padding + i * dilation, ...]; 0 outside.
template <class T>
void plane_to_columns(const ColumnsOfPlane& s, const T* plane, T* columns) {
  std::memset(static_cast<void*>(columns), 0, sizeof(T) * static_cast<size_t>(s.elements()));
  for_each_row(s, [&](int64_t to, int64_t from, WindowRange inside) {
    for (int64_t ow = inside.begin; ow < inside.end; ++ow)
      columns[to + ow] = plane[from + ow * s.stride[1]];
  });
}

// The transpose: adds the columns to the plane.
template <class T, class C>
void add_columns_to_plane(const ColumnsOfPlane& s, const T* columns, C* plane) {
  for_each_row(s, [&](int64_t from, int64_t to, WindowRange inside) {
    for (int64_t ow = inside.begin; ow < inside.end; ++ow)
      plane[to + ow * s.stride[1]] += static_cast<C>(columns[from + ow]);
  });
}

}  // namespace brigade::kernels::cpu
