// Parameters, forward and printed options of Linear and Embedding.
#include <brigade/nn/linear.h>

#include <brigade/autograd/ops/indexing.h>
#include <brigade/autograd/ops/matmul.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/nn/detail/options.h>
#include <brigade/nn/init.h>

namespace brigade::nn {

// --- Parameters, forward and printed options of Linear.

LinearImpl::LinearImpl(const LinearOptions& o) : options(o) {
  if (o.in_features < 0 || o.out_features < 0) {
    throw ValueError("Linear: in_features and out_features must be at least 0, got " + std::to_string(o.in_features) +
                     " and " + std::to_string(o.out_features));
  }
  weight = register_parameter("weight", empty({o.out_features, o.in_features}, o.dtype));
  if (o.bias) bias = register_parameter("bias", empty({o.out_features}, o.dtype));
  init::reset_parameters(weight, bias);
}

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, const LinearOptions& o)
    : LinearImpl(detail::with_sizes<LinearOptions>(o, "Linear",
                                                   {{"in_features", &LinearOptions::in_features, in_features},
                                                    {"out_features", &LinearOptions::out_features, out_features}})) {}

Tensor LinearImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  return brigade::linear(x, weight, bias, where);
}

std::string LinearImpl::extra() const {
  return "in_features=" + std::to_string(options.in_features) +
         ", out_features=" + std::to_string(options.out_features) + ", bias=" + detail::text_of(options.bias);
}

// --- Initializes the table, normal except for zeros in the row of padding_idx, and looks up rows.

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
