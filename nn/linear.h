// Fully connected layer.
#pragma once

#include <brigade/nn/module.h>

namespace brigade::nn {

struct LinearOptions {
  int64_t in_features = 0;
  int64_t out_features = 0;
  bool bias = true;
  DType dtype = DType::Float32;
};

// [..., in_features] -> [..., out_features]. Weight [out, in] and bias [out] start uniform within 1 / sqrt(in), as in
// PyTorch. Throws ValueError for a feature count below 1, and for one that differs from that in the options.
struct LinearImpl : Module {
  using Options = LinearOptions;
  LinearImpl(int64_t in_features, int64_t out_features, bool bias = true)
      : LinearImpl(LinearOptions{in_features, out_features, bias}) {}
  LinearImpl(int64_t in_features, int64_t out_features, const LinearOptions& options);
  explicit LinearImpl(const LinearOptions& options);
  // Throws ShapeError unless the last dimension of x is in_features, DTypeError unless x has the
  // dtype of the weight.
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  LinearOptions options;
  Tensor weight, bias;  // bias is undefined without one

 protected:
  std::string extra() const override;
};

//   nn::Linear fc(64, 10);
//   nn::Linear fc(64, 10, {.bias = false});
//   nn::Linear fc({.in_features = 64, .out_features = 10, .bias = false});
BRIGADE_MODULE(Linear);

}  // namespace brigade::nn
