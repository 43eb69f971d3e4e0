#include <brigade/autograd/ops/embedding.h>

#include <brigade/autograd/detail/located.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/embedding.h>

namespace brigade {

namespace {

struct EmbeddingNode final : autograd::Node {
  autograd::SavedTensor indices;
  int64_t rows = 0, padding_idx = -1;
  void backward(autograd::BackwardContext& context) override {
    const auto destination = context.destination(0);
    const Tensor result = kernels::embedding_backward(
        context.grad(), indices.unpack(*this),
        {.rows = rows, .padding_idx = padding_idx, .out = destination.out, .accumulate = destination.accumulate});
    if (destination.out.defined()) {
      context.set_written(0);
    } else {
      context.set(0, result);
    }
  }
};

}  // namespace

Tensor embedding(const Tensor& indices, const Tensor& weight, int64_t padding_idx, SourceLocation where) {
  Tensor y = autograd::detail::located(where, [&] { return kernels::embedding(weight, indices); });
  if (padding_idx < -1 || padding_idx >= weight.size(0)) {
    throw ValueError("embedding: expected a padding_idx of -1 (none) or 0.." + std::to_string(weight.size(0) - 1) +
                         ", got " + std::to_string(padding_idx) + " (called at " + to_string(where) + ")",
                     where);
  }
  if (auto* node = autograd::record<EmbeddingNode>({.op = "embedding", .where = where}, {weight}, y)) {
    node->indices.save_input(*node, indices);
    node->rows = weight.size(0);
    node->padding_idx = padding_idx;
  }
  return y;
}

}  // namespace brigade
