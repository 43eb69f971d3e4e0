// Fully connected layers, and tables of vectors.
#pragma once

#include <brigade/nn/module.h>

#include <optional>

namespace brigade::nn {

// --- Fully connected layer.

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

// --- A table of vectors, one per index.

struct EmbeddingOptions {
  int64_t num_embeddings = 0;
  int64_t embedding_dim = 0;
  // This row starts as zeros and gets no gradient; negative counts from the end.
  std::optional<int64_t> padding_idx = std::nullopt;
  // Divides the gradient of a row by the number of indices of the call that select it.
  bool scale_grad_by_freq = false;
  // Exists for compatibility: true is rejected. Gradients are dense, so that they can live in a bucket.
  bool sparse = false;
  DType dtype = DType::Float32;
};

// Indices int64 [...] -> [..., embedding_dim]. The weight [num_embeddings, embedding_dim] starts normal with
// variance 1. Throws ValueError for a size below 1, a padding_idx that is not a row, and `sparse`.
struct EmbeddingImpl : Module {
  using Options = EmbeddingOptions;
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  explicit EmbeddingImpl(const EmbeddingOptions& options);
  // Throws DTypeError unless the indices are int64, IndexError for one that is not a row.
  Tensor forward(const Tensor& indices, SourceLocation where = SourceLocation::current());

  EmbeddingOptions options;  // padding_idx counts from the start
  Tensor weight;

 protected:
  std::string extra() const override;
};

//   nn::Embedding words(50257, 768);
//   nn::Embedding words(100, 8, {.padding_idx = 0});
//   nn::Embedding words({.num_embeddings = 100, .embedding_dim = 8, .padding_idx = 0});
BRIGADE_MODULE(Embedding);

}  // namespace brigade::nn
