// What pooling shares on every device: checks, sizes, windows.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/host_device.h>
#include <brigade/kernels/pool.h>

namespace brigade::kernels {

// A window cut to the input: [h0, h1) x [w0, w1).
template <class I>
struct PoolWindow {
  I h0, h1, w0, w1;
};
// The outputs whose windows contain a row or a column of the input: [begin, end).
template <class I>
struct PoolRange {
  I begin, end;
};

// One plane, with `I` for its coordinates.
template <class I>
struct PoolPlane {
  I height, width, out_height, out_width;
  I kernel[2], stride[2], padding[2];
  bool count_include_pad;

  BRIGADE_HOST_DEVICE PoolWindow<I> window(I oh, I ow) const {
    const I h = oh * stride[0] - padding[0];
    const I w = ow * stride[1] - padding[1];
    return {most(h, 0), least(h + kernel[0], height), most(w, 0), least(w + kernel[1], width)};
  }
  // Where the largest element of a window stands in the plane at `image`: a NaN wins, the first of equals stays.
  template <class T>
  BRIGADE_HOST_DEVICE I largest_at(const T* image, I oh, I ow) const {
    using C = compute_type<T>;
    const PoolWindow<I> at = window(oh, ow);
    I best = at.h0 * width + at.w0;
    C champion = static_cast<C>(image[best]);
    for (I h = at.h0; h < at.h1; ++h) {
      for (I w = at.w0; w < at.w1; ++w) {
        const C candidate = static_cast<C>(image[h * width + w]);
        if (candidate > champion || candidate != candidate) {
          champion = candidate;
          best = h * width + w;
        }
      }
    }
    return best;
  }
  template <class T>
  BRIGADE_HOST_DEVICE compute_type<T> average(const T* image, I oh, I ow) const {
    using C = compute_type<T>;
    const PoolWindow<I> at = window(oh, ow);
    C sum = C(0);
    for (I h = at.h0; h < at.h1; ++h) {
      for (I w = at.w0; w < at.w1; ++w)
        sum += static_cast<C>(image[h * width + w]);
    }
    return sum / static_cast<C>(rows_counted(oh) * columns_counted(ow));
  }
  // What an average divides by is rows_counted * columns_counted: padding counts where count_include_pad says so, what
  // ceil_mode adds beyond it does not.
  BRIGADE_HOST_DEVICE I rows_counted(I oh) const { return counted(oh, 0, height); }
  BRIGADE_HOST_DEVICE I columns_counted(I ow) const { return counted(ow, 1, width); }
  BRIGADE_HOST_DEVICE PoolRange<I> rows_over(I h) const { return over(h + padding[0], 0, out_height); }
  BRIGADE_HOST_DEVICE PoolRange<I> columns_over(I w) const { return over(w + padding[1], 1, out_width); }

 private:
  BRIGADE_HOST_DEVICE static I least(I a, I b) { return a < b ? a : b; }
  BRIGADE_HOST_DEVICE static I most(I a, I b) { return a > b ? a : b; }
  BRIGADE_HOST_DEVICE I counted(I o, int d, I size) const {
    const I begin = o * stride[d] - padding[d];
    const I end = least(begin + kernel[d], size + padding[d]);
    return count_include_pad ? end - begin : least(end, size) - most(begin, 0);
  }
  // Outputs o with o * stride <= at < o * stride + kernel.
  BRIGADE_HOST_DEVICE PoolRange<I> over(I at, int d, I outputs) const {
    const I begin = at < kernel[d] ? 0 : (at - kernel[d]) / stride[d] + 1;
    return {begin, least(at / stride[d] + 1, outputs)};
  }
};

struct PoolPlan {
  int64_t planes;
  PoolPlane<int64_t> plane;
  Shape out_sizes;
};
// Throws ShapeError, ValueError.
PoolPlan plan_pool(const Shape& x, const Pool2dParams& params, const char* what);
// The same for a backward. Throws ShapeError also when `grad` does not have the shape of the outputs.
PoolPlan plan_pool_backward(const Tensor& grad, const Shape& x, const Pool2dParams& params, const char* what);

}  // namespace brigade::kernels
