// Initializes the table, normal except for zeros in the row of padding_idx, and looks up rows.
#include <brigade/nn/embedding.h>

#include <brigade/autograd/ops/embedding.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/nn/detail/with_sizes.h>
#include <brigade/nn/init.h>

namespace brigade::nn {

EmbeddingImpl::EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& o)
    : EmbeddingImpl(
          detail::with_sizes<EmbeddingOptions>(o, "Embedding",
                                               {{"num_embeddings", &EmbeddingOptions::num_embeddings, num_embeddings},
                                                {"embedding_dim", &EmbeddingOptions::embedding_dim, embedding_dim}})) {}

EmbeddingImpl::EmbeddingImpl(const EmbeddingOptions& o) : options(o) {
  if (o.num_embeddings < 1 || o.embedding_dim < 1) {
    throw ValueError("Embedding: num_embeddings and embedding_dim must be at least 1, got " +
                     std::to_string(o.num_embeddings) + " and " + std::to_string(o.embedding_dim));
  }
  if (o.sparse) {
    throw ValueError(
        "Embedding: there are no sparse gradients; leave out `sparse`. The gradient is dense: it lives in a bucket of "
        "DDP and is reduced like any other");
  }
  weight = register_parameter("weight", empty({o.num_embeddings, o.embedding_dim}, o.dtype));
  init::normal_(weight);
  if (!o.padding_idx) return;
  const int64_t row = *o.padding_idx < 0 ? *o.padding_idx + o.num_embeddings : *o.padding_idx;
  if (row < 0 || row >= o.num_embeddings) {
    throw ValueError("Embedding: padding_idx " + std::to_string(*o.padding_idx) + " is no row of " +
                     std::to_string(o.num_embeddings));
  }
  options.padding_idx = row;
  init::zeros_(view::select(weight.detach(), 0, row));
}

Tensor EmbeddingImpl::forward(const Tensor& indices, SourceLocation where) {
  const CallScope scope(*this, where);
  return brigade::embedding(indices, weight, options.padding_idx.value_or(-1), options.scale_grad_by_freq, where);
}

std::string EmbeddingImpl::extra() const {
  return std::to_string(options.num_embeddings) + ", " + std::to_string(options.embedding_dim) +
         (options.padding_idx ? ", padding_idx=" + std::to_string(*options.padding_idx) : "") +
         (options.scale_grad_by_freq ? ", scale_grad_by_freq=True" : "");
}

}  // namespace brigade::nn
