#include <brigade/kernels/pool.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/pool.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {

namespace {

using Plane = PoolPlane<int64_t>;

template <class Body>
void for_each_plane(const PoolPlan& plan, Body&& body) {
  cpu::parallel_for(
      plan.planes,
      [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane)
          body(plane);
      },
      plan.plane.height * plan.plane.width);
}

// Zeros in the compute type, to be added up in and rounded once.
Tensor wide_zeros(const Shape& sizes, const Tensor& like) {
  Tensor result = empty(sizes, {is_half(like.dtype()) ? kFloat32 : like.dtype(), like.device()});
  fill(result, 0.0);
  return result;
}

MaxPool max_pool2d_cpu(const Tensor& x, const Pool2dParams& p) {
  const PoolPlan plan = plan_pool(x.sizes(), p, "max_pool2d");
  const Plane& plane_of = plan.plane;
  const Tensor source = contiguous(x);
  MaxPool result{empty(plan.out_sizes, x.options()), empty(plan.out_sizes, {kInt64, x.device()})};
  visit_floating(x.dtype(), "max_pool2d", [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    T* values = static_cast<T*>(result.values.raw_data());
    auto* indices = result.indices.template data_ptr<int64_t>();
    for_each_plane(plan, [&](int64_t plane) {
      const T* image = in + plane * plane_of.height * plane_of.width;
      int64_t o = plane * plane_of.out_height * plane_of.out_width;
      for (int64_t oh = 0; oh < plane_of.out_height; ++oh) {
        for (int64_t ow = 0; ow < plane_of.out_width; ++ow, ++o) {
          const int64_t best = plane_of.largest_at(image, oh, ow);
          values[o] = image[best];
          indices[o] = best;
        }
      }
    });
  });
  return result;
}

Tensor max_pool2d_backward_cpu(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, const Pool2dParams& p) {
  const PoolPlan plan = plan_pool_backward(grad, x_sizes, p, "max_pool2d");
  const Tensor g = contiguous(grad);
  const Tensor result = wide_zeros(x_sizes, grad);
  const int64_t pixels = plan.plane.height * plan.plane.width;
  const int64_t outputs = plan.plane.out_height * plan.plane.out_width;
  visit_floating(grad.dtype(), "max_pool2d backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* slope = static_cast<const T*>(g.raw_data());
    const auto* chosen = indices.template data_ptr<int64_t>();
    C* out = static_cast<C*>(result.raw_data());
    for_each_plane(plan, [&](int64_t plane) {
      for (int64_t o = plane * outputs; o < (plane + 1) * outputs; ++o)
        out[plane * pixels + chosen[o]] += static_cast<C>(slope[o]);
    });
  });
  return cast(result, grad.dtype());
}

Tensor avg_pool2d_cpu(const Tensor& x, const Pool2dParams& p) {
  const PoolPlan plan = plan_pool(x.sizes(), p, "avg_pool2d");
  const Plane& plane_of = plan.plane;
  const Tensor source = contiguous(x);
  Tensor result = empty(plan.out_sizes, x.options());
  visit_floating(x.dtype(), "avg_pool2d", [&]<class T>() {
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    for_each_plane(plan, [&](int64_t plane) {
      const T* image = in + plane * plane_of.height * plane_of.width;
      int64_t o = plane * plane_of.out_height * plane_of.out_width;
      for (int64_t oh = 0; oh < plane_of.out_height; ++oh) {
        for (int64_t ow = 0; ow < plane_of.out_width; ++ow, ++o) {
          out[o] = static_cast<T>(plane_of.average(image, oh, ow));
        }
      }
    });
  });
  return result;
}

Tensor avg_pool2d_backward_cpu(const Tensor& grad, const Shape& x_sizes, const Pool2dParams& p) {
  const PoolPlan plan = plan_pool_backward(grad, x_sizes, p, "avg_pool2d");
  const Plane& plane_of = plan.plane;
  const Tensor g = contiguous(grad);
  const Tensor result = wide_zeros(x_sizes, grad);
  visit_floating(grad.dtype(), "avg_pool2d backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* slope = static_cast<const T*>(g.raw_data());
    C* out = static_cast<C*>(result.raw_data());
    for_each_plane(plan, [&](int64_t plane) {
      C* image = out + plane * plane_of.height * plane_of.width;
      int64_t o = plane * plane_of.out_height * plane_of.out_width;
      for (int64_t oh = 0; oh < plane_of.out_height; ++oh) {
        for (int64_t ow = 0; ow < plane_of.out_width; ++ow, ++o) {
          const auto at = plane_of.window(oh, ow);
          const C share =
              static_cast<C>(slope[o]) / static_cast<C>(plane_of.rows_counted(oh) * plane_of.columns_counted(ow));
          for (int64_t h = at.h0; h < at.h1; ++h) {
            for (int64_t w = at.w0; w < at.w1; ++w)
              image[h * plane_of.width + w] += share;
          }
        }
      }
    });
  });
  return cast(result, grad.dtype());
}

}  // namespace

constinit Kernel<MaxPool(const Tensor&, const Pool2dParams&)> max_pool2d("max_pool2d", &max_pool2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&, const Pool2dParams&)> max_pool2d_backward(
    "max_pool2d_backward", &max_pool2d_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Pool2dParams&)> avg_pool2d("avg_pool2d", &avg_pool2d_cpu);
constinit Kernel<Tensor(const Tensor&, const Shape&, const Pool2dParams&)> avg_pool2d_backward(
    "avg_pool2d_backward", &avg_pool2d_backward_cpu);

}  // namespace brigade::kernels
