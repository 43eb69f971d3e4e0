// Modules that compute nothing: another shape, or x itself.
#pragma once

#include <brigade/nn/module.h>

namespace brigade::nn {

// Joins the dimensions start_dim to end_dim; by default all but the batch.
struct FlattenImpl : Module {
  explicit FlattenImpl(int64_t start_dim_ = 1, int64_t end_dim_ = -1) : start_dim(start_dim_), end_dim(end_dim_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const CallScope scope(*this, where);
    return x.flatten(start_dim, end_dim, where);
  }
  int64_t start_dim, end_dim;

 protected:
  std::string extra() const override {
    return "start_dim=" + std::to_string(start_dim) + ", end_dim=" + std::to_string(end_dim);
  }
};
BRIGADE_MODULE(Flatten);

struct IdentityImpl : Module {
  Tensor forward(const Tensor& x) { return x; }
};
BRIGADE_MODULE(Identity);

}  // namespace brigade::nn
