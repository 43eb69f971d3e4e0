// The node of tril and triu: the gradient's triangle is that of the result.
#include <brigade/autograd/ops/matmul.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>

namespace brigade {
namespace {

using kernels::Triangle;

struct TriangleNode final : autograd::Node {
  Triangle part = Triangle::Lower;
  int64_t diagonal = 0;
  void backward(autograd::BackwardContext& context) override {
    const Tensor& grad = context.grad();
    context.set(0, part == Triangle::Lower ? tril(grad, diagonal, {}) : triu(grad, diagonal, {}));
  }
};

Tensor apply(const char* op, const Tensor& x, Triangle part, int64_t diagonal, SourceLocation where) {
  Tensor y = autograd::detail::located(where, [&] { return kernels::triangle(x, part, diagonal); });
  if (auto* node = autograd::record<TriangleNode>({.op = op, .where = where}, {x}, y)) {
    node->part = part;
    node->diagonal = diagonal;
  }
  return y;
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal, SourceLocation where) {
  return apply("tril", x, Triangle::Lower, diagonal, where);
}
Tensor triu(const Tensor& x, int64_t diagonal, SourceLocation where) {
  return apply("triu", x, Triangle::Upper, diagonal, where);
}

}  // namespace brigade
