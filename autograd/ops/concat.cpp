// The nodes of cat, split and index_select; stack and chunk are made of these.
#include <brigade/autograd/ops/shape.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/indexing.h>
#include <brigade/autograd/record.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

namespace brigade {
namespace {

using namespace autograd;
using namespace autograd::detail;

struct CatNode final : Node {
  static constexpr int64_t kNothing = -1;  // the length of a tensor of shape [0] among others
  int dim = 0;
  std::vector<int64_t> lengths;
  std::vector<DType> dtypes;
  void backward(BackwardContext& context) override {
    int64_t at = 0;
    for (uint32_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == kNothing) {
        if (context.needs_input_grad(i)) context.set(i, zeros({0}, {dtypes[i], context.grad().device()}));
        continue;
      }
      if (context.needs_input_grad(i))
        context.set(i, context.grad().slice(dim, at, at + lengths[i], 1, {}).to(dtypes[i], {}));
      at += lengths[i];
    }
  }
};

// One node for all parts: their gradients are joined in one pass.
struct SplitNode final : Node {
  int dim = 0;
  void backward(BackwardContext& context) override {
    std::vector<Tensor> grads;
    for (uint32_t i = 0; i < outputs.size(); ++i)
      grads.push_back(context.grad_or_zeros(i));
    context.set(0, cat(grads, dim, {}));
  }
};

struct IndexRowsNode final : Node {
  SavedTensor indices;
  Shape sizes;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    if (context.create_graph()) {
      context.set(0, index_add(zeros(sizes, grad.options()), 0, indices.unpack(*this), grad, 1, {}));
      return;
    }
    context.set(0, kernels::index_rows_backward(grad, indices.unpack(*this), sizes));
  }
};

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int64_t dim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_list<"cat">(where, tensors)) return cat(in.tensors(), dim, where);
  }
  if (tensors.empty()) throw ValueError("cat: expected a non-empty list of tensors", where);
  const int at = dimension_of("cat", dim, kernels::leading_tensor(tensors).dim(), where);
  Tensor y = located("cat", where, [&] { return kernels::cat(std::span<const Tensor>(tensors), at); });
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors)
    inputs.push_back(&tensor);
  const Tensor* outputs[] = {&y};
  if (auto* node = record<CatNode>({.op = "cat", .where = where}, inputs, outputs)) {
    node->dim = at;
    for (const Tensor& tensor : tensors) {
      node->lengths.push_back(kernels::adds_nothing(tensor) ? CatNode::kNothing : tensor.sizes()[at]);
      node->dtypes.push_back(tensor.dtype());
    }
  }
  return y;
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t dim, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_list<"stack">(where, tensors)) return stack(in.tensors(), dim, where);
  }
  if (tensors.empty()) throw ValueError("stack: expected a non-empty list of tensors", where);
  const int at = dimension_of("stack", dim, tensors[0].dim() + 1, where);
  std::vector<Tensor> expanded;
  for (const Tensor& tensor : tensors) {
    if (tensor.sizes() != tensors[0].sizes()) {
      throw ShapeError(where, "stack: expected tensors of one shape, got {} and {}", tensors[0].sizes(),
                       tensor.sizes());
    }
    expanded.push_back(tensor.unsqueeze(at, where));
  }
  return cat(expanded, at, where);
}

namespace {

// `count` parts of `length` along dimension `at`, the last of them shorter where it must be.
std::vector<Tensor> parts_of(const Tensor& x, int64_t count, int64_t length, int at, SourceLocation where) {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(view::slice(x, at, i * length, (i + 1) * length));
  const Tensor* inputs[] = {&x};
  std::vector<const Tensor*> outputs;
  for (const Tensor& part : parts)
    outputs.push_back(&part);
  if (auto* node = record<SplitNode>({.op = "split", .where = where}, inputs, outputs)) node->dim = at;
  for (const Tensor& part : parts)
    autograd::mark_view(part, x);
  return parts;
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim, SourceLocation where) {
  if (size < 1) throw ValueError(where, "split: size must be at least 1, got {}", size);
  const int at = dimension_of("split", dim, x.dim(), where);
  const int64_t total = std::max<int64_t>(x.sizes()[at], 1);
  const int64_t length = std::min(size, total);
  return parts_of(x, (total + length - 1) / length, length, at, where);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t dim, SourceLocation where) {
  if (count < 1) throw ValueError(where, "chunk: count must be at least 1, got {}", count);
  const int at = dimension_of("chunk", dim, x.dim(), where);
  const int64_t size = x.sizes()[at];
  if (size == 0) return parts_of(x, count, 0, at, where);
  return split(x, size / count + (size % count > 0 ? 1 : 0), at, where);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& given, SourceLocation where) {
  const int at = dimension_of("index_select", dim, x.dim(), where);
  if (at != 0)
    return index_select(x.transpose(0, at, where), 0, given, where).transpose(0, at, where).contiguous(where);
  const Tensor positions = as_indices(given);
  const Tensor indices = positions.dim() == 0 ? view::unsqueeze(positions, 0) : positions;
  if (x.dim() == 0) {
    if (indices.numel() != 1) {
      throw ShapeError(where, "index_select: a tensor without dimensions has one element to choose, got indices {}",
                       given.sizes());
    }
    return index_select(x.reshape({1}, where), 0, indices, where).reshape({}, where);
  }
  Tensor y = located("index_select", where, [&] { return kernels::index_rows(x, indices); });
  if (auto* node = record<IndexRowsNode>({.op = "index_select", .where = where}, {x, indices}, y)) {
    node->indices.save_input(*node, indices);
    node->sizes = x.sizes();
  }
  return y;
}

Tensor one_hot(const Tensor& indices, int64_t classes, SourceLocation where) {
  Tensor y = located("one_hot", where, [&] { return kernels::one_hot(indices, classes); });
  autograd::record_without_node({.op = "one_hot", .where = where, .differentiable = false}, {indices}, y);
  return y;
}

}  // namespace brigade
