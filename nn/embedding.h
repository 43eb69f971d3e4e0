// A table of vectors, one per index.
#pragma once

#include <brigade/nn/module.h>

#include <optional>

namespace brigade::nn {

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
