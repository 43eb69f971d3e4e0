#include <brigade/kernels/pool.h>

#include <brigade/kernels/detail/pool.h>

#include <string>

namespace brigade::kernels {

namespace {

int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
  const int64_t span = in + 2 * padding - kernel + (ceil_mode ? stride - 1 : 0);
  int64_t out = span < 0 ? 0 : span / stride + 1;
  // The last window must start inside the input or its left padding.
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  return out;
}

}  // namespace

PoolPlan plan_pool(const Shape& x, const Pool2dParams& p, const char* what) {
  if (x.size() != 3 && x.size() != 4)
    throw ShapeError(std::string(what) + ": expected [N, C, H, W] or [C, H, W], got " + to_string(x));
  for (size_t d = 0; d < 2; ++d) {
    if (p.kernel_size[d] < 1 || p.stride[d] < 1)
      throw ValueError(std::string(what) + ": kernel_size and stride must be at least 1");
    if (p.padding[d] < 0 || p.padding[d] > p.kernel_size[d] / 2) {
      throw ValueError(std::string(what) + ": padding must be between 0 and half of kernel_size, got " +
                       std::to_string(p.padding[d]) + " for kernel_size " + std::to_string(p.kernel_size[d]));
    }
  }
  const int dims = x.size();
  const int64_t height = x[dims - 2];
  const int64_t width = x[dims - 1];
  const int64_t out_height = out_size(height, p.kernel_size[0], p.stride[0], p.padding[0], p.ceil_mode);
  const int64_t out_width = out_size(width, p.kernel_size[1], p.stride[1], p.padding[1], p.ceil_mode);
  if (height < 1 || width < 1 || out_height < 1 || out_width < 1) {
    throw ShapeError(std::string(what) + ": input " + to_string(x) + " is too small for kernel_size [" +
                     std::to_string(p.kernel_size[0]) + ", " + std::to_string(p.kernel_size[1]) + "]");
  }
  PoolPlan plan{1,
                {height,
                 width,
                 out_height,
                 out_width,
                 {p.kernel_size[0], p.kernel_size[1]},
                 {p.stride[0], p.stride[1]},
                 {p.padding[0], p.padding[1]},
                 p.count_include_pad},
                x};
  for (int d = 0; d < dims - 2; ++d)
    plan.planes *= x[d];
  plan.out_sizes[dims - 2] = out_height;
  plan.out_sizes[dims - 1] = out_width;
  return plan;
}

PoolPlan plan_pool_backward(const Tensor& grad, const Shape& x, const Pool2dParams& params, const char* what) {
  PoolPlan plan = plan_pool(x, params, what);
  if (grad.sizes() == plan.out_sizes) return plan;
  throw ShapeError(std::string(what) + " backward: expected a gradient " + to_string(plan.out_sizes) + ", got " +
                   describe(grad));
}

}  // namespace brigade::kernels
