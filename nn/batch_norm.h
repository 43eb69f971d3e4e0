// Batch normalization layers (Ioffe and Szegedy, arXiv 1502.03167).
#pragma once

#include <brigade/nn/module.h>

#include <functional>
#include <optional>
#include <utility>

namespace brigade::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  // Weight of the new batch in the running statistics; if not set, they are the mean over all batches so far.
  std::optional<double> momentum = 0.1;
  bool affine = true;               // weight (1) and bias (0), [num_features]
  bool track_running_stats = true;  // buffers running_mean (0), running_var (1), num_batches_tracked (int64)
  DType dtype = DType::Float32;     // of all of these except num_batches_tracked
};

// In training it normalizes by the batch's statistics (biased variance) and updates the running ones (unbiased
// variance); in evaluation it normalizes by the running ones, or by the batch's if none are tracked. Throws ValueError
// for num_features < 1; forward throws ValueError "Expected more than 1 value per channel when training".
struct BatchNormImpl : Module {
  using Options = BatchNormOptions;
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  // Replaces normalization by the batch in training, for batch norm over several ranks. The function gets x and the
  // momentum, and updates the running statistics itself. An empty function restores the default.
  using TrainingForward = std::function<Tensor(const Tensor& x, double momentum, SourceLocation where)>;
  void set_training_forward(TrainingForward forward) { training_forward_ = std::move(forward); }

  int64_t num_features;
  BatchNormOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;  // undefined where switched off

 protected:
  BatchNormImpl(int64_t num_features, const BatchNormOptions& options);
  // Throws ShapeError unless the layer takes tensors of these dimensions.
  virtual void check_input(const Tensor& x, SourceLocation where) const = 0;
  std::string extra() const override;

 private:
  TrainingForward training_forward_;
};

// [N, C] or [N, C, L]
struct BatchNorm1dImpl : BatchNormImpl {
  explicit BatchNorm1dImpl(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormImpl(num_features, options) {}

 protected:
  void check_input(const Tensor& x, SourceLocation where) const override;
};
// [N, C, H, W]
struct BatchNorm2dImpl : BatchNormImpl {
  explicit BatchNorm2dImpl(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormImpl(num_features, options) {}

 protected:
  void check_input(const Tensor& x, SourceLocation where) const override;
};

// [N, C, D, H, W]
struct BatchNorm3dImpl : BatchNormImpl {
  explicit BatchNorm3dImpl(int64_t num_features, const BatchNormOptions& options = {})
      : BatchNormImpl(num_features, options) {}

 protected:
  void check_input(const Tensor& x, SourceLocation where) const override;
};

//   nn::BatchNorm2d norm(64, {.momentum = 0.01});
BRIGADE_MODULE(BatchNorm1d);
BRIGADE_MODULE(BatchNorm2d);
BRIGADE_MODULE(BatchNorm3d);

}  // namespace brigade::nn
