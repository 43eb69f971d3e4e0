// A constant border is a fill and a copy; its derivative removes the border, which is a negative pad. The other borders
// are made one dimension at a time, each as a copy of a range of the tensor (mirrored, expanded or unchanged), and
// backward adds the border's gradient to that range.
#include <brigade/autograd/ops/shape.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>

#include <algorithm>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using autograd::detail::located;

struct PadNode final : Node {
  std::vector<int64_t> back;
  void backward(BackwardContext& context) override {
    context.set(0, pad(context.grad(), back, PadMode::Constant, 0, {}));
  }
};

// A border of `length` elements along a dimension of size `size`, and the range that it is copied from.
struct Border {
  int64_t length;
  int64_t from, until;
};
Border left_border(PadMode mode, int64_t length, int64_t size) {
  if (mode == PadMode::Reflect) return {length, 1, 1 + length};
  if (mode == PadMode::Replicate) return {length, 0, 1};
  return {length, size - length, size};
}
Border right_border(PadMode mode, int64_t length, int64_t size) {
  if (mode == PadMode::Reflect) return {length, size - 1 - length, size - 1};
  if (mode == PadMode::Replicate) return {length, size - 1, size};
  return {length, 0, length};
}

struct BorderNode final : Node {
  PadMode mode = PadMode::Reflect;
  int dim = 0;
  int64_t left = 0, right = 0;

  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const int64_t size = grad.sizes()[dim] - left - right;
    const Border borders[] = {left_border(mode, left, size), right_border(mode, right, size)};
    const int64_t starts[] = {0, left + size};
    if (context.create_graph()) {
      Tensor result = grad.slice(dim, left, left + size, 1, {});
      for (int side = 0; side < 2; ++side) {
        const Border& border = borders[side];
        if (border.length == 0) continue;
        Tensor part = grad.slice(dim, starts[side], starts[side] + border.length, 1, {});
        if (mode == PadMode::Reflect) part = flip(part, {dim}, {});
        if (mode == PadMode::Replicate) part = sum_over(part, {dim});
        std::vector<int64_t> around(static_cast<size_t>(2 * (grad.dim() - dim)), 0);
        around[around.size() - 2] = border.from;
        around[around.size() - 1] = size - border.until;
        result = result + pad(part, around, PadMode::Constant, 0, {});
      }
      context.set(0, result);
      return;
    }
    const Tensor result = kernels::clone(view::slice(grad, dim, left, left + size));
    for (int side = 0; side < 2; ++side) {
      const Border& border = borders[side];
      if (border.length == 0) continue;
      Tensor part = view::slice(grad, dim, starts[side], starts[side] + border.length);
      if (mode == PadMode::Reflect) part = kernels::reversed(part, dim);
      if (mode == PadMode::Replicate) part = kernels::sum(part, {.dims = {dim}, .keepdim = true});
      kernels::add_inplace(view::slice(result, dim, border.from, border.until), part, 1.0);
    }
    context.set(0, result);
  }
};

Tensor with_border(const char* op, const Tensor& x, PadMode mode, int dim, int64_t left, int64_t right,
                   SourceLocation where) {
  const int64_t size = x.sizes()[dim];
  Shape sizes = x.sizes();
  sizes[dim] = located(where, [&] { return (Size(size) + left + right).value(); });
  Tensor y = located(where, [&] { return empty(sizes, x.options()); });
  kernels::copy(view::slice(y, dim, left, left + size), x);
  const auto fill_border = [&](int64_t start, const Border& border) {
    if (border.length == 0) return;
    Tensor part = view::slice(x, dim, border.from, border.until);
    if (mode == PadMode::Reflect) part = kernels::reversed(part, dim);
    kernels::copy(view::slice(y, dim, start, start + border.length), part);
  };
  fill_border(0, left_border(mode, left, size));
  fill_border(left + size, right_border(mode, right, size));
  if (auto* node = record<BorderNode>({.op = op, .where = where}, {x}, y)) {
    node->mode = mode;
    node->dim = dim;
    node->left = left;
    node->right = right;
  }
  return y;
}

std::string listed(const std::vector<int64_t>& pads) {
  std::string list;
  for (const int64_t length : pads)
    list += (list.empty() ? "" : ", ") + std::to_string(length);
  return "{" + list + "}";
}

[[noreturn]] void throw_too_short(const Tensor& x, const std::vector<int64_t>& pads, SourceLocation where) {
  throw ShapeError(where, "pad: more elements are taken away than there are, got {} for {}", listed(pads), x.sizes());
}

// The longest border that a dimension of this size has room for.
int64_t longest_border(PadMode mode, int64_t size) {
  if (mode == PadMode::Reflect) return size - 1;
  if (mode == PadMode::Replicate) return size > 0 ? INT64_MAX : 0;
  return size;
}

Tensor constant_pad(const Tensor& x, const std::vector<int64_t>& pads, Scalar value, SourceLocation where) {
  Shape sizes = x.sizes();
  Tensor from = x;  // without the elements that negative pads remove
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int dim = x.dim() - 1 - static_cast<int>(i);
    const int64_t size = x.sizes()[dim];
    if (pads[2 * i] < -size || pads[2 * i + 1] < -size) throw_too_short(x, pads, where);
    sizes[dim] = located(where, [&] { return (Size(size) + pads[2 * i] + pads[2 * i + 1]).value(); });
    const int64_t begin = std::max<int64_t>(-pads[2 * i], 0);
    const int64_t end = size - std::max<int64_t>(-pads[2 * i + 1], 0);
    if (begin > end || sizes[dim] < 0) throw_too_short(x, pads, where);
    from = view::slice(from, dim, begin, end);
  }
  Tensor y = located(where, [&] { return empty(sizes, x.options()); });
  Tensor to = y;
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int dim = x.dim() - 1 - static_cast<int>(i);
    const int64_t begin = std::max<int64_t>(pads[2 * i], 0);
    to = view::slice(to, dim, begin, begin + from.sizes()[dim]);
  }
  if (to.numel() < y.numel()) kernels::fill(y, value);
  if (to.numel() > 0) kernels::copy(to, from);
  if (auto* node = record<PadNode>({.op = "pad", .where = where}, {x}, y)) {
    for (const int64_t length : pads)
      node->back.push_back(-length);
  }
  return y;
}

}  // namespace

Tensor pad(const Tensor& x, const std::vector<int64_t>& pads, PadMode mode, Scalar value, SourceLocation where) {
  if (pads.size() % 2 != 0 || pads.size() > static_cast<size_t>(2 * x.dim())) {
    throw ShapeError(where, "pad: expected two numbers for each dimension that changes, got {} for {}", listed(pads),
                     x.sizes());
  }
  if (mode == PadMode::Constant) return constant_pad(x, pads, value, where);
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (mode == PadMode::Reflect && pads.size() <= 4) {  // PyTorch lists those of one and two dimensions
      if (const auto in = autograd::cast_inputs<"pad_reflect">(where, x)) return pad(in[0], pads, mode, value, where);
    } else if (mode == PadMode::Replicate) {
      if (const auto in = autograd::cast_inputs<"pad_replicate">(where, x)) return pad(in[0], pads, mode, value, where);
    }
  }
  Tensor y = x;
  if (std::any_of(pads.begin(), pads.end(), [](int64_t length) { return length < 0; })) {
    std::vector<int64_t> taken;
    for (const int64_t length : pads)
      taken.push_back(std::min<int64_t>(length, 0));
    y = constant_pad(x, taken, 0, where);
  }
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    const int dim = x.dim() - 1 - static_cast<int>(i);
    const int64_t left = std::max<int64_t>(pads[2 * i], 0);
    const int64_t right = std::max<int64_t>(pads[2 * i + 1], 0);
    if (left == 0 && right == 0) continue;
    const int64_t longest = longest_border(mode, y.sizes()[dim]);
    if (left > longest || right > longest) {
      throw ShapeError(where, "pad: expected borders of at most {} elements along dimension {}, got {} for {}", longest,
                       dim, listed(pads), x.sizes());
    }
    const char* const op = mode == PadMode::Reflect     ? "pad_reflect"
                           : mode == PadMode::Replicate ? "pad_replicate"
                                                        : "pad_circular";
    y = with_border(op, y, mode, dim, left, right, where);
  }
  return y.is_same(x) ? x.clone(where) : y;
}

}  // namespace brigade
