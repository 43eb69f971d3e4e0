#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {

namespace {

struct Planes {
  int64_t count, height, width, out_h, out_w;
  Shape out_sizes;
};

int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t span = in + 2 * padding - kernel + (ceil_mode ? stride - 1 : 0);
  int64_t out = span < 0 ? 0 : span / stride + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

Planes planes_of(const Shape& x, const Pool2dParams& p, const char* what) {
  if (x.size() != 3 && x.size() != 4)
    throw ShapeError(std::string(what) + ": expected [N, C, H, W] or [C, H, W], got " + to_string(x));
  for (int d = 0; d < 2; ++d) {
    if (p.kernel_size[d] < 1 || p.stride[d] < 1)
      throw ValueError(std::string(what) + ": kernel_size and stride must be at least 1");
    if (p.padding[d] < 0 || p.padding[d] > p.kernel_size[d] / 2) {
      throw ValueError(std::string(what) + ": padding must be between 0 and half of kernel_size, got " +
                       std::to_string(p.padding[d]) + " for kernel_size " + std::to_string(p.kernel_size[d]));
    }
  }
  const int dims = x.size();
  Planes planes{1, x[dims - 2], x[dims - 1], 0, 0, x};
  for (int d = 0; d < dims - 2; ++d)
    planes.count *= x[d];
  planes.out_h = out_size(planes.height, p.kernel_size[0], p.stride[0], p.padding[0], p.ceil_mode);
  planes.out_w = out_size(planes.width, p.kernel_size[1], p.stride[1], p.padding[1], p.ceil_mode);
  if (planes.out_h < 1 || planes.out_w < 1) {
    throw ShapeError(std::string(what) + ": input " + to_string(x) + " is too small for kernel_size [" +
                     std::to_string(p.kernel_size[0]) + ", " + std::to_string(p.kernel_size[1]) + "]");
  }
  planes.out_sizes[dims - 2] = planes.out_h;
  planes.out_sizes[dims - 1] = planes.out_w;
  return planes;
}

// A window cut to the input; `divisor` counts the padding but not what ceil_mode adds beyond it.
struct Window {
  int64_t h0, h1, w0, w1, divisor;
};
Window window(const Planes& planes, const Pool2dParams& p, int64_t oh, int64_t ow) {
  const int64_t h = oh * p.stride[0] - p.padding[0];
  const int64_t w = ow * p.stride[1] - p.padding[1];
  const int64_t h_end = std::min(h + p.kernel_size[0], planes.height + p.padding[0]);
  const int64_t w_end = std::min(w + p.kernel_size[1], planes.width + p.padding[1]);
  Window result{std::max<int64_t>(h, 0), std::min(h_end, planes.height), std::max<int64_t>(w, 0),
                std::min(w_end, planes.width), 0};
  result.divisor = p.count_include_pad ? (h_end - h) * (w_end - w) : (result.h1 - result.h0) * (result.w1 - result.w0);
  return result;
}

template <class Body>
void for_each_plane(const Planes& planes, Body&& body) {
  cpu::parallel_for(
      planes.count,
      [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane)
          body(plane);
      },
      planes.height * planes.width);
}

MaxPool max_pool2d_cpu(const Tensor& x, const Pool2dParams& p) {
  const Planes planes = planes_of(x.sizes(), p, "max_pool2d");
  const Tensor source = contiguous(x);
  MaxPool result{empty(planes.out_sizes, x.options()), empty(planes.out_sizes, {kInt64, x.device()})};
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* values = static_cast<T*>(result.values.raw_data());
    auto* indices = result.indices.template data_ptr<int64_t>();
    for_each_plane(planes, [&](int64_t plane) {
      const T* image = in + plane * planes.height * planes.width;
      int64_t o = plane * planes.out_h * planes.out_w;
      for (int64_t oh = 0; oh < planes.out_h; ++oh) {
        for (int64_t ow = 0; ow < planes.out_w; ++ow, ++o) {
          const Window at = window(planes, p, oh, ow);
          int64_t best = at.h0 * planes.width + at.w0;
          C champion = static_cast<C>(image[best]);
          for (int64_t h = at.h0; h < at.h1; ++h) {
            for (int64_t w = at.w0; w < at.w1; ++w) {
              const C candidate = static_cast<C>(image[h * planes.width + w]);
              if (candidate > champion || candidate != candidate) {
                champion = candidate;
                best = h * planes.width + w;
              }
            }
          }
          values[o] = image[best];
          indices[o] = best;
        }
      }
    });
  });
  return result;
}

Tensor max_pool2d_backward_cpu(const Tensor& grad, const Tensor& indices, const Shape& x_sizes) {
  Tensor result = empty(x_sizes, grad.options());
  fill(result, 0.0);
  const Tensor g = contiguous(grad);
  const int dims = x_sizes.size();
  const int64_t pixels = x_sizes[dims - 2] * x_sizes[dims - 1];
  const int64_t outputs = grad.sizes()[dims - 2] * grad.sizes()[dims - 1];
  visit_floating(grad.dtype(), "max_pool2d backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* slope = static_cast<const T*>(g.raw_data());
    const auto* chosen = indices.template data_ptr<int64_t>();
    T* out = static_cast<T*>(result.raw_data());
    cpu::parallel_for(
        pixels == 0 ? 0 : result.numel() / pixels,
        [&](int64_t begin, int64_t end) {
          for (int64_t plane = begin; plane < end; ++plane) {
            for (int64_t o = plane * outputs; o < (plane + 1) * outputs; ++o) {
              T& target = out[plane * pixels + chosen[o]];
              target = static_cast<T>(static_cast<C>(target) + static_cast<C>(slope[o]));
            }
          }
        },
        outputs);
  });
  return result;
}

Tensor avg_pool2d_cpu(const Tensor& x, const Pool2dParams& p) {
  const Planes planes = planes_of(x.sizes(), p, "avg_pool2d");
  const Tensor source = contiguous(x);
  Tensor result = empty(planes.out_sizes, x.options());
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    for_each_plane(planes, [&](int64_t plane) {
      const T* image = in + plane * planes.height * planes.width;
      int64_t o = plane * planes.out_h * planes.out_w;
      for (int64_t oh = 0; oh < planes.out_h; ++oh) {
        for (int64_t ow = 0; ow < planes.out_w; ++ow, ++o) {
          const Window at = window(planes, p, oh, ow);
          C sum = 0;
          for (int64_t h = at.h0; h < at.h1; ++h) {
            for (int64_t w = at.w0; w < at.w1; ++w)
              sum += static_cast<C>(image[h * planes.width + w]);
          }
          out[o] = static_cast<T>(sum / static_cast<C>(at.divisor));
        }
      }
    });
  });
  return result;
}

Tensor avg_pool2d_backward_cpu(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& p) {
  const Planes planes = planes_of(x_sizes, p, "avg_pool2d backward");
  const Tensor g = contiguous(grad);
  // Summed in the compute type and rounded once.
  const DType wide = is_half(grad.dtype()) ? kFloat32 : grad.dtype();
  Tensor result = empty(x_sizes, {wide, grad.device()});
  fill(result, 0.0);
  visit_floating(grad.dtype(), "avg_pool2d backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* slope = static_cast<const T*>(g.raw_data());
    C* out = static_cast<C*>(result.raw_data());
    for_each_plane(planes, [&](int64_t plane) {
      C* image = out + plane * planes.height * planes.width;
      int64_t o = plane * planes.out_h * planes.out_w;
      for (int64_t oh = 0; oh < planes.out_h; ++oh) {
        for (int64_t ow = 0; ow < planes.out_w; ++ow, ++o) {
          const Window at = window(planes, p, oh, ow);
          const C share = static_cast<C>(slope[o]) / static_cast<C>(at.divisor);
          for (int64_t h = at.h0; h < at.h1; ++h) {
            for (int64_t w = at.w0; w < at.w1; ++w)
              image[h * planes.width + w] += share;
          }
        }
      }
    });
  });
  return cast(result, grad.dtype());
}

}  // namespace

constinit Kernel<MaxPool(const Tensor&, const Pool2dParams&)> max_pool2d("max_pool2d", &max_pool2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&)> max_pool2d_backward("max_pool2d_backward",
                                                                                         &max_pool2d_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Pool2dParams&)> avg_pool2d("avg_pool2d", &avg_pool2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, const Pool2dParams&)> avg_pool2d_backward(
    "avg_pool2d_backward", &avg_pool2d_backward_cpu);

}  // namespace brigade::kernels
