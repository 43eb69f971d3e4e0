// Device-independent parts of pooling and interpolation: checks, sizes, windows.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/dtype.h>
#include <brigade/kernels/pool.h>

#include <cmath>

namespace brigade::kernels {

// --- Pooling.

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

// --- Interpolation: checks, sizes, and the input elements of each output along an axis.
//
// Positions match PyTorch's, including rounding: output o is at o * scale (Nearest, in float32; the others with aligned
// corners), or at (o + 0.5) * scale - 0.5, clamped to at least 0 except for Bicubic.

// The input elements of one output, with their weights.
template <int count, class C>
struct Taps {
  int32_t index[count];
  C weight[count];

  BRIGADE_HOST_DEVICE C weight_of(int32_t i) const {
    C sum = C(0);
    for (int k = 0; k < count; ++k)
      sum += index[k] == i ? weight[k] : C(0);
    return sum;
  }
};
// Outputs [begin, end).
struct OutputRange {
  int32_t begin, end;
};

// The outputs at positions in (low, high), with a margin for rounding; position(o) = (o + shift) * scale - shift.
template <class C>
BRIGADE_HOST_DEVICE OutputRange outputs_between(C low, C high, C scale, C shift, int32_t outputs) {
  if (!(scale > C(0))) return {0, outputs};
  const C last = static_cast<C>(outputs);
  const C from = (low + shift) / scale - shift - C(1);
  const C to = (high + shift) / scale - shift + C(2);
  return {from > C(0) ? static_cast<int32_t>(from < last ? from : last) : 0,
          static_cast<int32_t>(to < last ? (to > C(0) ? to : C(0)) : last)};
}

template <class Compute>
struct NearestAxis {
  using C = Compute;
  static constexpr int kTaps = 1;
  int32_t in, out;
  float scale;  // input elements per output

  NearestAxis(int64_t in_size, int64_t out_size, double scale_factor, bool is_1d)
      : in(static_cast<int32_t>(in_size)),
        out(static_cast<int32_t>(out_size)),
        scale(scale_factor > 0 && (is_1d || (out != in && out != 2 * int64_t{in}))
                  ? static_cast<float>(1 / scale_factor)
                  : static_cast<float>(in_size) / static_cast<float>(out_size)) {}

  BRIGADE_HOST_DEVICE Taps<1, C> taps(int32_t o) const {
    const auto i = static_cast<int32_t>(std::floor(static_cast<float>(o) * scale));
    return {{i < in - 1 ? i : in - 1}, {C(1)}};
  }
  // Outputs that element i may contribute to.
  BRIGADE_HOST_DEVICE OutputRange outputs_of(int32_t i) const {
    return outputs_between(static_cast<float>(i), static_cast<float>(i + 1), scale, 0.0F, out);
  }
};

// Input elements per output, for the modes with weights.
template <class C>
C scale_of(int64_t in, int64_t out, double scale_factor, bool align_corners) {
  if (align_corners) return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : C(0);
  return scale_factor > 0 ? static_cast<C>(1 / scale_factor) : static_cast<C>(in) / static_cast<C>(out);
}

template <class Compute>
struct LinearAxis {
  using C = Compute;
  static constexpr int kTaps = 2;
  int32_t in, out;
  C scale;
  C shift;  // offset of pixel centers: 0.5, or 0 for aligned corners

  LinearAxis(int64_t in_size, int64_t out_size, double scale_factor, bool align_corners)
      : in(static_cast<int32_t>(in_size)),
        out(static_cast<int32_t>(out_size)),
        scale(scale_of<C>(in_size, out_size, scale_factor, align_corners)),
        shift(align_corners ? C(0) : C(0.5)) {}

  BRIGADE_HOST_DEVICE Taps<2, C> taps(int32_t o) const {
    if (out == in) return {{o, o}, {C(1), C(0)}};
    const C position = scale * (static_cast<C>(o) + shift) - shift;
    const C at = position > C(0) ? position : C(0);
    const auto floor = static_cast<int32_t>(at);
    const int32_t first = floor < in - 1 ? floor : in - 1;
    const C rest = at - static_cast<C>(first);
    const C second = rest < C(1) ? rest : C(1);
    return {{first, first < in - 1 ? first + 1 : first}, {C(1) - second, second}};
  }
  BRIGADE_HOST_DEVICE OutputRange outputs_of(int32_t i) const {
    if (out == in) return {i, i + 1};
    return outputs_between(static_cast<C>(i - 1), static_cast<C>(i + 1), scale, shift, out);
  }
};

template <class Compute>
struct CubicAxis {
  using C = Compute;
  static constexpr int kTaps = 4;
  int32_t in, out;
  C scale;
  C shift;

  CubicAxis(int64_t in_size, int64_t out_size, double scale_factor, bool align_corners)
      : in(static_cast<int32_t>(in_size)),
        out(static_cast<int32_t>(out_size)),
        scale(scale_of<C>(in_size, out_size, scale_factor, align_corners)),
        shift(align_corners ? C(0) : C(0.5)) {}

  // Positions outside the input take the border element.
  BRIGADE_HOST_DEVICE Taps<4, C> taps(int32_t o) const {
    const C position = scale * (static_cast<C>(o) + shift) - shift;
    const C floor = std::floor(position);
    const auto first = static_cast<int32_t>(floor) - 1;
    const C t = position - floor;
    return {{inside(first), inside(first + 1), inside(first + 2), inside(first + 3)},
            {far(t + C(1)), near(t), near(C(1) - t), far(C(2) - t)}};
  }
  BRIGADE_HOST_DEVICE OutputRange outputs_of(int32_t i) const {
    const int32_t low = i == 0 ? -3 : i - 2;
    const int32_t high = i == in - 1 ? in + 3 : i + 2;
    return outputs_between(static_cast<C>(low), static_cast<C>(high), scale, shift, out);
  }

 private:
  static constexpr double kA = -0.75;
  BRIGADE_HOST_DEVICE int32_t inside(int32_t i) const { return i < 0 ? 0 : i < in ? i : in - 1; }
  // The cubic kernel at distances up to 1 (near), and from 1 to 2 (far).
  BRIGADE_HOST_DEVICE static C near(C x) { return ((C(kA) + C(2)) * x - (C(kA) + C(3))) * x * x + C(1); }
  BRIGADE_HOST_DEVICE static C far(C x) { return ((C(kA) * x - C(5) * C(kA)) * x + C(8) * C(kA)) * x - C(4) * C(kA); }
};

// Calls body(rows, columns) with the axes of the mode; C: the type of the weights.
template <class C, class Body>
void with_axes(const Shape& x_sizes, const Interpolate2dParams& p, Body&& body) {
  const bool rule = p.mode == InterpolateMode::Nearest ? p.is_1d : p.align_corners;
  const auto run = [&]<class Axis>() {
    body(Axis(x_sizes[2], p.size[0], p.scale_factor[0], rule), Axis(x_sizes[3], p.size[1], p.scale_factor[1], rule));
  };
  switch (p.mode) {
    case InterpolateMode::Nearest: run.template operator()<NearestAxis<C>>(); break;
    case InterpolateMode::Linear:
    case InterpolateMode::Bilinear: run.template operator()<LinearAxis<C>>(); break;
    case InterpolateMode::Bicubic: run.template operator()<CubicAxis<C>>(); break;
  }
}

// The shape of the result. Throws ShapeError, ValueError.
Shape check_interpolate(const Shape& x_sizes, const Interpolate2dParams& params);
// Throws ShapeError also when `grad` does not have that shape.
void check_interpolate_backward(const Tensor& grad, const Shape& x_sizes, const Interpolate2dParams& params);

}  // namespace brigade::kernels
