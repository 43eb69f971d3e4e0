// One node for sort and topk, which scatters the gradient back by the indices.
#include <brigade/autograd/ops/indexing.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

namespace brigade {
namespace {

using namespace autograd::detail;

// The gradient of a value goes back to its position; all positions are different.
struct SortNode final : autograd::Node {
  autograd::SavedTensor indices;
  Shape sizes;
  int dim = 0;
  void backward(autograd::BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const Tensor nothing = zeros(sizes, grad.options());
    const Tensor places = indices.unpack(*this);
    context.set(0, context.create_graph() ? scatter(nothing, dim, places, grad, {})
                                          : kernels::scatter(nothing, dim, places, {.source = grad, .distinct = true}));
  }
};

SortResult recorded(const char* op, const Tensor& x, int dim, const kernels::Sorted& found, SourceLocation where) {
  const Tensor* inputs[] = {&x};
  const Tensor* outputs[] = {&found.values, &found.indices};
  if (auto* node = autograd::record<SortNode>({.op = op, .where = where}, inputs, outputs)) {
    node->indices.save_input(*node, found.indices);
    node->sizes = x.sizes();
    node->dim = dim;
  }
  return {found.values, found.indices};
}

}  // namespace

SortResult sort(const Tensor& x, int64_t dim, bool descending, bool /*stable*/, SourceLocation where) {
  const int at = dimension_of("sort", dim, x.dim(), where);
  return recorded("sort", x, at, kernels::sort(x, at, descending), where);
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending, bool /*stable*/, SourceLocation where) {
  Tensor y = kernels::sort(x, dimension_of("argsort", dim, x.dim(), where), descending).indices;
  autograd::record_without_node({.op = "argsort", .where = where, .differentiable = false}, {x}, y);
  return y;
}

SortResult topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool /*sorted*/, SourceLocation where) {
  const int at = dimension_of("topk", dim, x.dim(), where);
  return recorded("topk", x, at, located("topk", where, [&] { return kernels::topk(x, k, at, largest); }), where);
}

}  // namespace brigade
