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

// [..., in] -> [..., out]. Weight [out, in] and bias [out] start uniform within 1 / sqrt(in), as in PyTorch.
struct LinearImpl : Module {
  LinearImpl(int64_t in_features, int64_t out_features, bool bias = true)
      : LinearImpl(LinearOptions{in_features, out_features, bias}) {}
  explicit LinearImpl(const LinearOptions& options);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  LinearOptions options;
  Tensor weight, bias;

 protected:
  std::string extra() const override;
};
BRIGADE_MODULE(Linear);

}  // namespace brigade::nn
