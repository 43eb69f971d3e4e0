// The node of embedding: backward adds gradients up by row, and leaves out padding_idx.
#include <brigade/autograd/ops/indexing.h>

#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/indexing.h>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;

struct EmbeddingNode final : autograd::Node {
  autograd::SavedTensor indices;
  int64_t rows = 0, padding_idx = -1;
  bool scale_grad_by_freq = false;

  // The weight of each position's gradient, [positions, 1].
  Tensor weights(const Tensor& positions, DType dtype) const {
    Tensor result = kernels::cast(
        kernels::compare_scalar(positions, static_cast<double>(padding_idx), kernels::CompareOp::NotEqual), dtype);
    if (scale_grad_by_freq) {
      const Tensor ones = ones_like(positions);
      const Tensor counts =
          kernels::scatter(zeros({rows}, positions.options()), 0, positions, {.source = ones, .add = true});
      result = result / kernels::gather(counts, 0, positions).to(dtype, {});
    }
    return result.unsqueeze(1, {});
  }

  void backward(autograd::BackwardContext& context) override {
    if (context.create_graph()) {
      const Tensor& grad = context.grad();
      const int64_t width = grad.sizes().back();
      const Tensor positions = indices.unpack(*this).flatten(0, -1, {});
      Tensor slopes = grad.reshape({positions.numel(), width}, {});
      if (padding_idx >= 0 || scale_grad_by_freq) slopes = slopes * weights(positions, grad.dtype());
      context.set(0, index_add(zeros({rows, width}, grad.options()), 0, positions, slopes, 1, {}));
      return;
    }
    context.write(0, [&](const Tensor& out, bool accumulate) {
      return kernels::embedding_backward(context.grad(), indices.unpack(*this),
                                         {.rows = rows,
                                          .padding_idx = padding_idx,
                                          .out = out,
                                          .accumulate = accumulate,
                                          .mean_over_positions = scale_grad_by_freq});
    });
  }
};

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx, SourceLocation where) {
  return embedding(indices, weight, padding_idx, false, where);
}

Tensor embedding(const Tensor& given, const Tensor& weight, int64_t padding_idx, bool scale_grad_by_freq,
                 SourceLocation where) {
  const Tensor indices = autograd::detail::as_indices(given);
  Tensor y = autograd::detail::located(where, [&] { return kernels::embedding(weight, indices); });
  if (padding_idx < -1 || padding_idx >= weight.size(0)) {
    throw ValueError(where, "embedding: expected a padding_idx of -1 (none) or 0..{}, got {}", weight.size(0) - 1,
                     padding_idx);
  }
  if (auto* node = autograd::record<EmbeddingNode>({.op = "embedding", .where = where}, {weight}, y)) {
    node->indices.save_input(*node, indices);
    node->rows = weight.size(0);
    node->padding_idx = padding_idx;
    node->scale_grad_by_freq = scale_grad_by_freq;
  }
  return y;
}

}  // namespace brigade
