#include <brigade/nn/activation.h>

#include <brigade/autograd/ops/dropout.h>
#include <brigade/autograd/ops/softmax.h>

namespace brigade::nn {

Tensor ReLUImpl::forward(const Tensor& x, SourceLocation where) { return relu(x, where); }
Tensor LeakyReLUImpl::forward(const Tensor& x, SourceLocation where) { return leaky_relu(x, negative_slope, where); }
Tensor GELUImpl::forward(const Tensor& x, SourceLocation where) { return gelu(x, approximate, where); }
Tensor TanhImpl::forward(const Tensor& x, SourceLocation where) { return brigade::tanh(x, where); }
Tensor SigmoidImpl::forward(const Tensor& x, SourceLocation where) { return sigmoid(x, where); }
Tensor SoftmaxImpl::forward(const Tensor& x, SourceLocation where) { return softmax(x, dim, where); }
Tensor LogSoftmaxImpl::forward(const Tensor& x, SourceLocation where) { return log_softmax(x, dim, where); }
Tensor FlattenImpl::forward(const Tensor& x, SourceLocation where) { return x.flatten(start_dim, end_dim, where); }

DropoutImpl::DropoutImpl(double p_) : p(p_) {
  if (!(p >= 0 && p <= 1))
    throw ValueError("dropout probability has to be between 0 and 1, but got " + std::to_string(p));
}
Tensor DropoutImpl::forward(const Tensor& x, SourceLocation where) { return dropout(x, p, is_training(), where); }

}  // namespace brigade::nn
