// Layers that normalize each sample by itself: GroupNorm (Wu and He, arXiv 1803.08494) and InstanceNorm (Ulyanov,
// Vedaldi and Lempitsky, arXiv 1607.08022).
#pragma once

#include <brigade/nn/module.h>

#include <optional>

namespace brigade::nn {

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;            // weight (1) and bias (0), [num_channels]
  DType dtype = DType::Float32;  // of weight and bias
};

// [N, num_channels, ...] -> the same, normalized over num_groups groups of adjacent channels and all following
// dimensions. Throws ValueError unless num_groups divides num_channels.
struct GroupNormImpl : Module {
  using Options = GroupNormOptions;
  GroupNormImpl(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  int64_t num_groups, num_channels;
  GroupNormOptions options;
  Tensor weight, bias;  // undefined where switched off

 protected:
  std::string extra() const override;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // weight of the new batch in the running statistics; if not set, they stay
  bool affine = false;                   // weight (1) and bias (0), [num_features]
  bool track_running_stats = false;      // buffers running_mean (0), running_var (1), num_batches_tracked (int64)
  DType dtype = DType::Float32;          // of all of these except num_batches_tracked
};

// Normalizes each channel of each sample by its own statistics; in evaluation by the running ones, if they are tracked.
// Also takes a single sample without its first dimension. Throws ValueError for num_features < 1; forward throws
// ShapeError, and ValueError "Expected more than 1 spatial element when training".
struct InstanceNormImpl : Module {
  using Options = InstanceNormOptions;
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  int64_t num_features;
  InstanceNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;  // undefined where switched off

 protected:
  // `dims`: the number of dimensions of a batch.
  InstanceNormImpl(int64_t num_features, const InstanceNormOptions& options, int dims);
  std::string extra() const override;

 private:
  int dims_;
};

// [N, C, L] or [C, L]
struct InstanceNorm1dImpl : InstanceNormImpl {
  explicit InstanceNorm1dImpl(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormImpl(num_features, options, 3) {}
};
// [N, C, H, W] or [C, H, W]
struct InstanceNorm2dImpl : InstanceNormImpl {
  explicit InstanceNorm2dImpl(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormImpl(num_features, options, 4) {}
};
// [N, C, D, H, W] or [C, D, H, W]
struct InstanceNorm3dImpl : InstanceNormImpl {
  explicit InstanceNorm3dImpl(int64_t num_features, const InstanceNormOptions& options = {})
      : InstanceNormImpl(num_features, options, 5) {}
};

//   nn::GroupNorm norm(8, 64);
//   nn::InstanceNorm2d norm(64, {.affine = true});
BRIGADE_MODULE(GroupNorm);
BRIGADE_MODULE(InstanceNorm1d);
BRIGADE_MODULE(InstanceNorm2d);
BRIGADE_MODULE(InstanceNorm3d);

}  // namespace brigade::nn
