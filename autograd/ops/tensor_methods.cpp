// Methods of Tensor that forward to free functions.
#include <brigade/autograd/ops/activation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/elementwise.h>
#include <brigade/autograd/ops/indexing.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/ops/shape.h>

namespace brigade {

Tensor Tensor::sum(SourceLocation where) const { return brigade::sum(*this, {}, false, where); }
Tensor Tensor::sum(const Dims& dims, bool keepdim, SourceLocation where) const {
  return brigade::sum(*this, dims, keepdim, where);
}
Tensor Tensor::mean(SourceLocation where) const { return brigade::mean(*this, {}, false, where); }
Tensor Tensor::mean(const Dims& dims, bool keepdim, SourceLocation where) const {
  return brigade::mean(*this, dims, keepdim, where);
}

Tensor Tensor::abs(SourceLocation where) const { return brigade::abs(*this, where); }
Tensor Tensor::neg(SourceLocation where) const { return brigade::neg(*this, where); }
Tensor Tensor::exp(SourceLocation where) const { return brigade::exp(*this, where); }
Tensor Tensor::log(SourceLocation where) const { return brigade::log(*this, where); }
Tensor Tensor::sqrt(SourceLocation where) const { return brigade::sqrt(*this, where); }
Tensor Tensor::square(SourceLocation where) const { return brigade::square(*this, where); }
Tensor Tensor::pow(Scalar exponent, SourceLocation where) const { return brigade::pow(*this, exponent, where); }
Tensor Tensor::relu(SourceLocation where) const { return brigade::relu(*this, where); }
Tensor Tensor::sigmoid(SourceLocation where) const { return brigade::sigmoid(*this, where); }
Tensor Tensor::tanh(SourceLocation where) const { return brigade::tanh(*this, where); }
Tensor Tensor::clamp(Scalar min, Scalar max, SourceLocation where) const {
  return brigade::clamp(*this, min, max, where);
}
Tensor Tensor::clamp_min(Scalar min, SourceLocation where) const { return brigade::clamp_min(*this, min, where); }
Tensor Tensor::clamp_max(Scalar max, SourceLocation where) const { return brigade::clamp_max(*this, max, where); }
Tensor Tensor::softmax(int64_t dim, SourceLocation where) const { return brigade::softmax(*this, dim, where); }
Tensor Tensor::log_softmax(int64_t dim, SourceLocation where) const { return brigade::log_softmax(*this, dim, where); }
Tensor Tensor::matmul(const Tensor& other, SourceLocation where) const { return brigade::matmul(*this, other, where); }
Tensor Tensor::mm(const Tensor& other, SourceLocation where) const { return brigade::mm(*this, other, where); }
Tensor Tensor::bmm(const Tensor& other, SourceLocation where) const { return brigade::bmm(*this, other, where); }
Tensor Tensor::max(SourceLocation where) const { return brigade::max(*this, where); }
Tensor Tensor::min(SourceLocation where) const { return brigade::min(*this, where); }
MinMax Tensor::max(int64_t dim, bool keepdim, SourceLocation where) const {
  return brigade::max(*this, dim, keepdim, where);
}
MinMax Tensor::min(int64_t dim, bool keepdim, SourceLocation where) const {
  return brigade::min(*this, dim, keepdim, where);
}
Tensor Tensor::argmax(SourceLocation where) const { return brigade::argmax(*this, where); }
Tensor Tensor::argmax(int64_t dim, bool keepdim, SourceLocation where) const {
  return brigade::argmax(*this, dim, keepdim, where);
}
Tensor Tensor::argmin(SourceLocation where) const { return brigade::argmin(*this, where); }
Tensor Tensor::argmin(int64_t dim, bool keepdim, SourceLocation where) const {
  return brigade::argmin(*this, dim, keepdim, where);
}
Tensor Tensor::norm(double p, SourceLocation where) const { return brigade::norm(*this, p, {}, false, where); }
Tensor Tensor::norm(double p, const Dims& dims, bool keepdim, SourceLocation where) const {
  return brigade::norm(*this, p, dims, keepdim, where);
}
Tensor Tensor::std(SourceLocation where) const { return brigade::std(*this, {}, 1, false, where); }
Tensor Tensor::std(const Dims& dims, double correction, bool keepdim, SourceLocation where) const {
  return brigade::std(*this, dims, correction, keepdim, where);
}
Tensor Tensor::var(SourceLocation where) const { return brigade::var(*this, {}, 1, false, where); }
Tensor Tensor::var(const Dims& dims, double correction, bool keepdim, SourceLocation where) const {
  return brigade::var(*this, dims, correction, keepdim, where);
}
Tensor Tensor::prod(SourceLocation where) const { return brigade::prod(*this, {}, false, where); }
Tensor Tensor::any(SourceLocation where) const { return brigade::any(*this, {}, false, where); }
Tensor Tensor::all(SourceLocation where) const { return brigade::all(*this, {}, false, where); }
Tensor Tensor::cumsum(int64_t dim, SourceLocation where) const { return brigade::cumsum(*this, dim, where); }
SortResult Tensor::sort(int64_t dim, bool descending, SourceLocation where) const {
  return brigade::sort(*this, dim, descending, false, where);
}
SortResult Tensor::topk(int64_t k, int64_t dim, SourceLocation where) const {
  return brigade::topk(*this, k, dim, true, true, where);
}
Tensor Tensor::gather(int64_t dim, const Tensor& index, SourceLocation where) const {
  return brigade::gather(*this, dim, index, where);
}
Tensor Tensor::index_select(int64_t dim, const Tensor& indices, SourceLocation where) const {
  return brigade::index_select(*this, dim, indices, where);
}
Tensor Tensor::masked_fill(const Tensor& mask, Scalar value, SourceLocation where) const {
  return brigade::masked_fill(*this, mask, value, where);
}
Tensor Tensor::repeat(const Shape& repeats, SourceLocation where) const {
  return brigade::repeat(*this, repeats, where);
}
std::vector<Tensor> Tensor::chunk(int64_t count, int64_t dim, SourceLocation where) const {
  return brigade::chunk(*this, count, dim, where);
}
std::vector<Tensor> Tensor::split(int64_t size, int64_t dim, SourceLocation where) const {
  return brigade::split(*this, size, dim, where);
}

}  // namespace brigade
