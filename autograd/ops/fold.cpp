// The nodes of unfold and fold; pixel_shuffle and its inverse are a reshape and a permute.
#include <brigade/autograd/ops/conv.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/conv.h>

namespace brigade {
namespace {

using namespace autograd;
using autograd::detail::located;
using kernels::FoldParams;

// Each is the derivative of the other. Images and columns are batches here.
Tensor unfold_batch(const Tensor& x, const FoldParams& params, SourceLocation where);
Tensor fold_batch(const Tensor& columns, const std::array<int64_t, 2>& size, const FoldParams& params,
                  SourceLocation where);

struct UnfoldNode final : autograd::Node {
  std::array<int64_t, 2> size;
  FoldParams params;
  void backward(BackwardContext& context) override {
    context.set(0, context.create_graph() ? fold_batch(context.grad(), size, params, where)
                                          : kernels::fold2d(context.grad(), size, params));
  }
};

struct FoldNode final : autograd::Node {
  FoldParams params;
  void backward(BackwardContext& context) override {
    context.set(0, context.create_graph() ? unfold_batch(context.grad(), params, where)
                                          : kernels::unfold2d(context.grad(), params));
  }
};

Tensor unfold_batch(const Tensor& x, const FoldParams& params, SourceLocation where) {
  Tensor columns = located(where, [&] { return kernels::unfold2d(x, params); });
  if (auto* node = record<UnfoldNode>({.op = "unfold", .where = where}, {x}, columns)) {
    node->size = {x.size(2), x.size(3)};
    node->params = params;
  }
  return columns;
}

Tensor fold_batch(const Tensor& columns, const std::array<int64_t, 2>& size, const FoldParams& params,
                  SourceLocation where) {
  Tensor x = located(where, [&] { return kernels::fold2d(columns, size, params); });
  if (auto* node = record<FoldNode>({.op = "fold", .where = where}, {columns}, x)) node->params = params;
  return x;
}

// `x` with its last three sizes replaced.
Shape with_last(const Tensor& x, std::initializer_list<int64_t> last) {
  Shape sizes;
  for (int d = 0; d < x.dim() - 3; ++d)
    sizes.push_back(x.sizes()[d]);
  for (const int64_t size : last)
    sizes.push_back(size);
  return sizes;
}

// The permutation that keeps the leading dimensions and puts the last `order.size()` ones in the given order.
Shape last_in_order(int dims, std::initializer_list<int> order) {
  Shape result;
  const int first = dims - static_cast<int>(order.size());
  for (int d = 0; d < first; ++d)
    result.push_back(d);
  for (const int d : order)
    result.push_back(first + d);
  return result;
}

void check_shuffle(const char* op, const char* factor_name, const Tensor& x, int64_t factor) {
  if (factor < 1) throw ValueError("{}: {} must be at least 1, got {}", op, factor_name, factor);
  if (x.dim() < 3) throw ShapeError("{}: expected [..., C, H, W], got {}", op, x.sizes());
}

}  // namespace

Tensor unfold(const Tensor& x, Size2 kernel_size, const FoldOptions& o, SourceLocation where) {
  const FoldParams params{kernel_size, o.dilation, o.padding, o.stride};
  if (x.dim() == 3) return unfold_batch(x.unsqueeze(0, where), params, where).squeeze(0, where);
  return unfold_batch(x, params, where);
}

Tensor fold(const Tensor& columns, Size2 output_size, Size2 kernel_size, const FoldOptions& o, SourceLocation where) {
  const FoldParams params{kernel_size, o.dilation, o.padding, o.stride};
  if (columns.dim() == 2) return fold_batch(columns.unsqueeze(0, where), output_size, params, where).squeeze(0, where);
  return fold_batch(columns, output_size, params, where);
}

Tensor pixel_shuffle(const Tensor& x, int64_t r, SourceLocation where) {
  located(where, [&] {
    check_shuffle("pixel_shuffle", "upscale_factor", x, r);
    if (x.size(-3) % (Size(r) * r).value() == 0) return;
    throw ShapeError("pixel_shuffle: the channels of {} are no multiple of upscale_factor {} squared", x.sizes(), r);
  });
  if (r == 1) return x.clone(where);  // never a view
  const int64_t channels = x.size(-3) / (r * r), height = x.size(-2), width = x.size(-1);
  const Tensor parts = x.reshape(with_last(x, {channels, r, r, height, width}), where);
  return parts.permute(last_in_order(parts.dim(), {0, 3, 1, 4, 2}), where)
      .reshape(with_last(x, {channels, (Size(height) * r).value(), (Size(width) * r).value()}), where);
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r, SourceLocation where) {
  located(where, [&] {
    check_shuffle("pixel_unshuffle", "downscale_factor", x, r);
    if (x.size(-2) % r == 0 && x.size(-1) % r == 0) return;
    throw ShapeError("pixel_unshuffle: height and width of {} are no multiples of downscale_factor {}", x.sizes(), r);
  });
  if (r == 1) return x.clone(where);
  const int64_t channels = x.size(-3), height = x.size(-2) / r, width = x.size(-1) / r;
  const Tensor parts = x.reshape(with_last(x, {channels, height, r, width, r}), where);
  return parts.permute(last_in_order(parts.dim(), {0, 2, 4, 1, 3}), where)
      .reshape(with_last(x, {(Size(channels) * r * r).value(), height, width}), where);
}

}  // namespace brigade
