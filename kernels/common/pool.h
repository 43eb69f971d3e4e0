// Device-independent parts of pooling: checks, sizes, windows.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/host_device.h>
#include <brigade/kernels/pool.h>

namespace brigade::kernels {

// [begin, end) along one dimension of the input or of the outputs.
template <class I>
struct PoolRange {
  I begin, end;
};

// One dimension; `I` is the type of coordinates.
template <class I>
struct PoolAxis {
  I in, out;
  I kernel, stride, padding, dilation;
  bool adaptive;
  bool count_padding;

  // The elements of window o that lie in the input: begin, begin + dilation, ... before end.
  BRIGADE_HOST_DEVICE PoolRange<I> window(I o) const {
    if (adaptive) return {part(o, in, out), part_end(o + 1, in, out)};
    const I first = o * stride - padding;
    const I last = first + (kernel - 1) * dilation + 1;
    // The first step inside the input.
    const I begin = first >= 0 ? first : dilation == 1 ? 0 : first + (dilation - 1 - first) / dilation * dilation;
    return {begin, last < in ? last : in};
  }
  // The divisor of an average in this dimension. Padding counts if count_padding is set; elements that ceil_mode adds
  // beyond it do not.
  BRIGADE_HOST_DEVICE I counted(I o) const {
    if (count_padding && !adaptive) {
      const I begin = o * stride - padding;
      const I end = begin + kernel;
      return (end < in + padding ? end : in + padding) - begin;
    }
    const PoolRange<I> at = window(o);
    return at.end - at.begin;
  }
  // The outputs whose windows may contain element i.
  BRIGADE_HOST_DEVICE PoolRange<I> outputs_over(I i) const {
    if (adaptive) return {part(i, out, in), part_end(i + 1, out, in)};
    const I at = i + padding;
    const I reach = (kernel - 1) * dilation + 1;
    const I end = at / stride + 1;
    return {at < reach ? 0 : (at - reach) / stride + 1, end < out ? end : out};
  }

 private:
  // o * size / parts, rounded down and up.
  BRIGADE_HOST_DEVICE static I part(I o, I size, I parts) {
    return static_cast<I>(static_cast<int64_t>(o) * size / parts);
  }
  BRIGADE_HOST_DEVICE static I part_end(I o, I size, I parts) {
    return static_cast<I>((static_cast<int64_t>(o) * size + parts - 1) / parts);
  }
};

// One plane.
template <class I>
struct PoolPlane {
  PoolAxis<I> rows, columns;
  I divisor;  // 0: the number of elements

  BRIGADE_HOST_DEVICE I pixels() const { return rows.in * columns.in; }
  BRIGADE_HOST_DEVICE I outputs() const { return rows.out * columns.out; }

  // The position of a window's largest element in the plane at `image`: NaNs win, and the first among equals.
  template <class T>
  BRIGADE_HOST_DEVICE I largest_at(const T* image, I oh, I ow) const {
    using C = compute_type<T>;
    const PoolRange<I> down = rows.window(oh);
    const PoolRange<I> along = columns.window(ow);
    I best = down.begin * columns.in + along.begin;
    C champion = static_cast<C>(image[best]);
    for (I h = down.begin; h < down.end; h += rows.dilation) {
      for (I w = along.begin; w < along.end; w += columns.dilation) {
        const C candidate = static_cast<C>(image[h * columns.in + w]);
        if (candidate > champion || candidate != candidate) {
          champion = candidate;
          best = h * columns.in + w;
        }
      }
    }
    return best;
  }
  // The divisor of the sum of a window.
  BRIGADE_HOST_DEVICE I count(I oh, I ow) const {
    return divisor != 0 ? divisor : rows.counted(oh) * columns.counted(ow);
  }
};

struct PoolPlan {
  int64_t planes;
  PoolPlane<int64_t> plane;
  Shape out_sizes;
};
enum class PoolKind : uint8_t { Max, Average };
// Throws ShapeError, ValueError.
PoolPlan plan_pool(const Shape& x, const Pool2dParams& params, PoolKind kind);
// The same for a backward. Throws ShapeError also when `grad` does not have the shape of the
// outputs.
PoolPlan plan_pool_backward(const Tensor& grad, const Shape& x, const Pool2dParams& params, PoolKind kind);
// Allocates the result of max_pool2d_gather. Throws ShapeError, DTypeError.
Tensor prepare_max_pool_gather(const Tensor& x, const Tensor& indices);

}  // namespace brigade::kernels
