// Modules without arithmetic: they reshape x or return it.
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

// Splits one dimension into several; one of `unflattened_size` may be -1. Throws ShapeError if the sizes do not
// multiply to that of the dimension.
struct UnflattenImpl : Module {
  UnflattenImpl(int64_t dim_, const Shape& unflattened_size_) : dim(dim_), unflattened_size(unflattened_size_) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());
  int64_t dim;
  Shape unflattened_size;

 protected:
  std::string extra() const override {
    return "dim=" + std::to_string(dim) + ", unflattened_size=" + to_string(unflattened_size);
  }
};
BRIGADE_MODULE(Unflatten);

struct IdentityImpl : Module {
  Tensor forward(const Tensor& x) { return x; }
};
BRIGADE_MODULE(Identity);

}  // namespace brigade::nn
