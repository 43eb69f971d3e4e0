// Methods of Tensor that stand for free functions, and reading a number out of the graph.
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/tape.h>

namespace brigade {

Tensor Tensor::sum(SourceLocation where) const { return brigade::sum(*this, {}, false, where); }
Tensor Tensor::sum(const Shape& dims, bool keepdim, SourceLocation where) const {
  return brigade::sum(*this, dims, keepdim, where);
}
Tensor Tensor::mean(SourceLocation where) const { return brigade::mean(*this, {}, false, where); }
Tensor Tensor::mean(const Shape& dims, bool keepdim, SourceLocation where) const {
  return brigade::mean(*this, dims, keepdim, where);
}

namespace detail {

void note_item(const Tensor& tensor, SourceLocation where) {
  if (!tensor.defined() || tensor.numel() != 1) {
    throw ShapeError(where, "item(): expected a tensor with one element, got {}", describe(tensor));
  }
  if (autograd::Tape* tape = autograd::Tape::current()) {
    const Tensor* in[] = {&tensor};
    tape->append("item", where, in, {}, tensor.requires_grad() ? autograd::Cut::ReadAsNumber : autograd::Cut::None,
                 where);
  }
}

}  // namespace detail
}  // namespace brigade
