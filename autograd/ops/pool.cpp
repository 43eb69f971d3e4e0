// The nodes of max and average pooling and of their backwards; 1-d pooling runs as 2-d.
#include <brigade/autograd/ops/pool.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/arguments.h>

namespace brigade {
namespace {

using namespace autograd;
using autograd::detail::located;
using kernels::Pool2dParams;

// --- max: selects elements; its derivative scatters gradients back to them, and the derivative of that selects again

Tensor put_back(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, const Pool2dParams& params,
                SourceLocation where);

// The caller may write to the indices, so they are saved like other tensors.
struct MaxPool2dNode final : autograd::Node {
  autograd::SavedTensor indices;
  Shape x_sizes;
  Pool2dParams params;
  void backward(BackwardContext& context) override {
    const Tensor chosen = indices.unpack(*this);
    context.set(0, context.create_graph() ? put_back(context.grad(), chosen, x_sizes, params, where)
                                          : kernels::max_pool2d_backward(context.grad(), chosen, x_sizes, params));
  }
};

struct MaxPool2dBackwardNode final : autograd::Node {
  autograd::SavedTensor indices;
  Shape x_sizes;
  Pool2dParams params;
  void backward(BackwardContext& context) override {
    const Tensor chosen = indices.unpack(*this);
    const Tensor slope = kernels::max_pool2d_gather(context.grad(), chosen);
    if (context.create_graph()) {
      if (auto* node = record<MaxPool2dNode>({.op = "max_pool2d", .where = where}, {context.grad()}, slope)) {
        node->indices.save_input(*node, chosen);
        node->x_sizes = x_sizes;
        node->params = params;
      }
    }
    context.set(0, slope);
  }
};

Tensor put_back(const Tensor& grad, const Tensor& indices, const Shape& x_sizes, const Pool2dParams& params,
                SourceLocation where) {
  Tensor result = kernels::max_pool2d_backward(grad, indices, x_sizes, params);
  if (auto* node = record<MaxPool2dBackwardNode>({.op = "max_pool2d_backward", .where = where}, {grad}, result)) {
    node->indices.save_input(*node, indices);
    node->x_sizes = x_sizes;
    node->params = params;
  }
  return result;
}

MaxPoolResult max_pool(const OpInfo& info, const Tensor& x, const Pool2dParams& params) {
  MaxPoolResult result = located(info.where, [&] {
    kernels::check_floating(x.dtype(), info.op);  // max_pool2d() would name itself
    return kernels::max_pool2d(x, params);
  });
  if (auto* node = record<MaxPool2dNode>(info, {x}, result.values)) {
    node->indices.save_input(*node, result.indices);
    node->x_sizes = x.sizes();
    node->params = params;
  }
  return result;
}

// --- average: linear

Tensor avg_pool(const OpInfo& info, const Tensor& x, const Pool2dParams& params);

struct AvgPool2dBackwardNode final : autograd::Node {
  Pool2dParams params;
  void backward(BackwardContext& context) override {
    context.set(0, context.create_graph() ? avg_pool({.op = "avg_pool2d", .where = where}, context.grad(), params)
                                          : kernels::avg_pool2d(context.grad(), params));
  }
};

struct AvgPool2dNode final : autograd::Node {
  Shape x_sizes;
  Pool2dParams params;
  void backward(BackwardContext& context) override {
    Tensor result = kernels::avg_pool2d_backward(context.grad(), x_sizes, params);
    if (context.create_graph()) {
      if (auto* node =
              record<AvgPool2dBackwardNode>({.op = "avg_pool2d_backward", .where = where}, {context.grad()}, result)) {
        node->params = params;
      }
    }
    context.set(0, result);
  }
};

Tensor avg_pool(const OpInfo& info, const Tensor& x, const Pool2dParams& params) {
  Tensor y = located(info.where, [&] {
    kernels::check_floating(x.dtype(), info.op);
    return kernels::avg_pool2d(x, params);
  });
  if (auto* node = record<AvgPool2dNode>(info, {x}, y)) {
    node->x_sizes = x.sizes();
    node->params = params;
  }
  return y;
}

// --- the user's options as 2-d parameters; 1-d pooling uses the second entries

template <class Stride>
Stride stride_of(const OpInfo& info, const std::optional<Stride>& stride, const Stride& kernel_size) {
  if (stride && *stride == Stride(0)) throw ValueError(info.where, "{}: stride must be at least 1, got 0", info.op);
  return stride.value_or(kernel_size);
}

Pool2dParams in_two(const OpInfo& info, Size2 kernel_size, const MaxPool2dOptions& o) {
  return {.kernel_size = kernel_size,
          .stride = stride_of(info, o.stride, kernel_size),
          .padding = o.padding,
          .ceil_mode = o.ceil_mode,
          .dilation = o.dilation};
}
Pool2dParams in_two(const OpInfo& info, Size2 kernel_size, const AvgPool2dOptions& o) {
  return {.kernel_size = kernel_size,
          .stride = stride_of(info, o.stride, kernel_size),
          .padding = o.padding,
          .ceil_mode = o.ceil_mode,
          .count_include_pad = o.count_include_pad,
          .divisor_override = o.divisor_override};
}
Pool2dParams in_two(const OpInfo& info, int64_t kernel_size, const MaxPool1dOptions& o) {
  return {.kernel_size = {1, kernel_size},
          .stride = {1, stride_of(info, o.stride, kernel_size)},
          .padding = {0, o.padding},
          .ceil_mode = o.ceil_mode,
          .dilation = {1, o.dilation},
          .is_1d = true};
}
Pool2dParams in_two(const OpInfo& info, int64_t kernel_size, const AvgPool1dOptions& o) {
  return {.kernel_size = {1, kernel_size},
          .stride = {1, stride_of(info, o.stride, kernel_size)},
          .padding = {0, o.padding},
          .ceil_mode = o.ceil_mode,
          .count_include_pad = o.count_include_pad,
          .is_1d = true};
}

// Calls pool() on the sequence as an image and turns its result back into a sequence.
template <class Pool>
Tensor on_sequence(const char* op, const Tensor& x, SourceLocation where, Pool&& pool) {
  located(where, [&] {
    if (x.dim() != 2 && x.dim() != 3) throw ShapeError("{}: expected [N, C, L] or [C, L], got {}", op, x.sizes());
  });
  return pool(x.unsqueeze(-2, where)).squeeze(-2, where);
}
template <class Pool>
MaxPoolResult on_sequence_with_indices(const char* op, const Tensor& x, SourceLocation where, Pool&& pool) {
  Tensor indices;
  Tensor values = on_sequence(op, x, where, [&](const Tensor& image) {
    const MaxPoolResult result = pool(image);
    indices = view::squeeze(result.indices, -2);
    return result.values;
  });
  return {std::move(values), std::move(indices)};
}

// --- adaptive

// `is_1d`: x was given as a sequence.
Pool2dParams dividing(const char* op, const Tensor& x, const PoolOutputSize& output_size, bool is_1d,
                      SourceLocation where) {
  return located(where, [&] {
    if (x.dim() != 3 && x.dim() != 4) throw ShapeError("{}: expected [N, C, H, W] or [C, H, W], got {}", op, x.sizes());
    Pool2dParams params{.is_1d = is_1d};
    for (size_t d = 0; d < 2; ++d) {
      params.output_size[d] = output_size.values[d].value_or(x.size(static_cast<int64_t>(d) - 2));
      if (params.output_size[d] < 1) {
        throw ValueError("{}: output_size must be at least 1, got {}", op, params.output_size[d]);
      }
    }
    return params;
  });
}

}  // namespace

MaxPoolResult max_pool2d_with_indices(const Tensor& x, Size2 kernel_size, const MaxPool2dOptions& options,
                                      SourceLocation where) {
  const OpInfo info{.op = "max_pool2d", .where = where};
  return max_pool(info, x, in_two(info, kernel_size, options));
}
Tensor max_pool2d(const Tensor& x, Size2 kernel_size, const MaxPool2dOptions& options, SourceLocation where) {
  return max_pool2d_with_indices(x, kernel_size, options, where).values;
}

MaxPoolResult max_pool1d_with_indices(const Tensor& x, int64_t kernel_size, const MaxPool1dOptions& options,
                                      SourceLocation where) {
  const OpInfo info{.op = "max_pool1d", .where = where};
  return on_sequence_with_indices(info.op, x, where, [&](const Tensor& image) {
    return max_pool(info, image, in_two(info, kernel_size, options));
  });
}
Tensor max_pool1d(const Tensor& x, int64_t kernel_size, const MaxPool1dOptions& options, SourceLocation where) {
  return max_pool1d_with_indices(x, kernel_size, options, where).values;
}

Tensor avg_pool2d(const Tensor& x, Size2 kernel_size, const AvgPool2dOptions& options, SourceLocation where) {
  const OpInfo info{.op = "avg_pool2d", .where = where};
  return avg_pool(info, x, in_two(info, kernel_size, options));
}
Tensor avg_pool1d(const Tensor& x, int64_t kernel_size, const AvgPool1dOptions& options, SourceLocation where) {
  const OpInfo info{.op = "avg_pool1d", .where = where};
  return on_sequence(info.op, x, where,
                     [&](const Tensor& image) { return avg_pool(info, image, in_two(info, kernel_size, options)); });
}

Tensor adaptive_avg_pool2d(const Tensor& x, const PoolOutputSize& output_size, SourceLocation where) {
  const OpInfo info{.op = "adaptive_avg_pool2d", .where = where};
  return avg_pool(info, x, dividing(info.op, x, output_size, false, where));
}
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t output_size, SourceLocation where) {
  const OpInfo info{.op = "adaptive_avg_pool1d", .where = where};
  return on_sequence(info.op, x, where, [&](const Tensor& image) {
    return avg_pool(info, image, dividing(info.op, image, {1, output_size}, true, where));
  });
}

MaxPoolResult adaptive_max_pool2d_with_indices(const Tensor& x, const PoolOutputSize& output_size,
                                               SourceLocation where) {
  const OpInfo info{.op = "adaptive_max_pool2d", .where = where};
  return max_pool(info, x, dividing(info.op, x, output_size, false, where));
}
Tensor adaptive_max_pool2d(const Tensor& x, const PoolOutputSize& output_size, SourceLocation where) {
  return adaptive_max_pool2d_with_indices(x, output_size, where).values;
}

MaxPoolResult adaptive_max_pool1d_with_indices(const Tensor& x, int64_t output_size, SourceLocation where) {
  const OpInfo info{.op = "adaptive_max_pool1d", .where = where};
  return on_sequence_with_indices(info.op, x, where, [&](const Tensor& image) {
    return max_pool(info, image, dividing(info.op, image, {1, output_size}, true, where));
  });
}
Tensor adaptive_max_pool1d(const Tensor& x, int64_t output_size, SourceLocation where) {
  return adaptive_max_pool1d_with_indices(x, output_size, where).values;
}

}  // namespace brigade
