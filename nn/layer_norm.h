// Layers that normalize over the last dimensions: LayerNorm (Ba, Kiros and Hinton, arXiv 1607.06450) and RMSNorm (Zhang
// and Sennrich, arXiv 1910.07467).
#pragma once

#include <brigade/nn/module.h>

#include <optional>

namespace brigade::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;  // weight (1) and bias (0), [normalized_shape]
  bool bias = true;                // false: only the weight
  DType dtype = DType::Float32;    // of weight and bias
};

// [..., normalized_shape...] -> the same. Throws ValueError for a normalized_shape that is empty or
// has a size below 1; forward throws ShapeError for an input that does not end in it.
struct LayerNormImpl : Module {
  using Size = Shape;
  using Options = LayerNormOptions;
  explicit LayerNormImpl(const Shape& normalized_shape, const LayerNormOptions& options = {});
  explicit LayerNormImpl(int64_t features, const LayerNormOptions& options = {})
      : LayerNormImpl(Shape{features}, options) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  Shape normalized_shape;
  LayerNormOptions options;
  Tensor weight, bias;  // undefined where switched off

 protected:
  std::string extra() const override;
};

struct RMSNormOptions {
  // If not set: the machine epsilon of the dtype of the computation (float32 for half types).
  std::optional<double> eps;
  bool elementwise_affine = true;  // weight (1), [normalized_shape]
  DType dtype = DType::Float32;    // of the weight
};

// Like LayerNorm, without a mean and without a bias.
struct RMSNormImpl : Module {
  using Size = Shape;
  using Options = RMSNormOptions;
  explicit RMSNormImpl(const Shape& normalized_shape, const RMSNormOptions& options = {});
  explicit RMSNormImpl(int64_t features, const RMSNormOptions& options = {}) : RMSNormImpl(Shape{features}, options) {}
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  Shape normalized_shape;
  RMSNormOptions options;
  Tensor weight;  // undefined where switched off

 protected:
  std::string extra() const override;
};

//   nn::LayerNorm norm(64);
//   nn::LayerNorm norm({8, 64}, {.eps = 1e-6});
class LayerNorm : public ModuleHolder<LayerNormImpl> {
 public:
  BRIGADE_HANDLE(LayerNorm, LayerNormImpl)
  // Takes {64} as a number, too.
  explicit LayerNorm(int64_t features, SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<LayerNormImpl>(features), where) {}
};
class RMSNorm : public ModuleHolder<RMSNormImpl> {
 public:
  BRIGADE_HANDLE(RMSNorm, RMSNormImpl)
  explicit RMSNorm(int64_t features, SourceLocation where = SourceLocation::current())
      : ModuleHolder(std::make_shared<RMSNormImpl>(features), where) {}
};

}  // namespace brigade::nn
