// Batch normalisation layers.
#pragma once

#include <brigade/nn/module.h>

namespace brigade::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;               // weight (1) and bias (0)
  bool track_running_stats = true;  // buffers running_mean (0), running_var (1), num_batches_tracked
};

// [N, C, H, W]; in training by the batch's statistics, in evaluation by the running ones.
struct BatchNorm2dImpl : Module {
  explicit BatchNorm2dImpl(int64_t num_features, const BatchNormOptions& options = {});
  // Throws ShapeError unless x has 4 dimensions.
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  BatchNormOptions options;
  int64_t num_features;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  std::string extra() const override { return std::to_string(num_features); }
};
BRIGADE_MODULE(BatchNorm2d);

}  // namespace brigade::nn
