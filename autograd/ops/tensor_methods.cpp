// Methods of Tensor that stand for free functions.
#include <brigade/autograd/ops/reduce.h>

namespace brigade {

Tensor Tensor::sum(SourceLocation where) const { return brigade::sum(*this, {}, false, where); }
Tensor Tensor::sum(const Shape& dims, bool keepdim, SourceLocation where) const {
  return brigade::sum(*this, dims, keepdim, where);
}
Tensor Tensor::mean(SourceLocation where) const { return brigade::mean(*this, {}, false, where); }
Tensor Tensor::mean(const Shape& dims, bool keepdim, SourceLocation where) const {
  return brigade::mean(*this, dims, keepdim, where);
}

}  // namespace brigade
