// Device-independent parts of attention: checks, memory layout of the operands, masking of scores, and dropout of
// probabilities.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/kernels/attention.h>

#include <limits>

namespace brigade::kernels {

inline constexpr int kMaxBatchDims = kMaxAttentionDims - 2;

// A batch entry is one score matrix: one head of one sample. Entries are numbered in row-major order.
struct AttentionShape {
  int64_t batches = 1, queries = 0, keys = 0;
  int width = 0, value_width = 0;
  bool is_causal = false;
  double scale = 1;
  int64_t batch_sizes[kMaxBatchDims] = {1, 1, 1, 1, 1, 1};  // leading dimensions, the last one last

  // Queries below `end` may attend only to keys below this.
  BRIGADE_HOST_DEVICE int64_t keys_for(int64_t end) const { return is_causal && end < keys ? end : keys; }
};

// Strides of the matrices of the batch entries, in elements.
struct MatrixStrides {
  int64_t row = 0, column = 0;
  int64_t batch[kMaxBatchDims] = {};
  int64_t group = 1;  // adjacent entries of the last leading dimension that share a matrix

  BRIGADE_HOST_DEVICE int64_t start(const AttentionShape& shape, int64_t entry) const {
    int64_t offset = 0;
    // The trip count is fixed, so that the arrays stay in the kernel's parameter space.
    for (int d = kMaxBatchDims - 1; d >= 0; --d) {
      if (shape.batch_sizes[d] == 1) continue;
      const int64_t index = entry % shape.batch_sizes[d];
      offset += (d == kMaxBatchDims - 1 && group > 1 ? index / group : index) * batch[d];
      entry /= shape.batch_sizes[d];
    }
    return offset;
  }
};

// Turns q k^T into scores; C: the compute type. At most one of the two masks is set.
template <class C>
struct Scores {
  const bool* allowed = nullptr;
  const C* bias = nullptr;
  MatrixStrides mask;
  int64_t queries = 0, keys = 0;
  bool is_causal = false;
  C scale = 1;

  // Moves the mask to one batch entry.
  BRIGADE_HOST_DEVICE void move_to(const AttentionShape& shape, int64_t entry) {
    if (allowed) allowed += mask.start(shape, entry);
    if (bias) bias += mask.start(shape, entry);
  }
  // -inf where query i does not see key j, and beyond the ends of the matrix.
  BRIGADE_HOST_DEVICE C operator()(C product, int64_t i, int64_t j) const {
    constexpr C kNothing = -std::numeric_limits<C>::infinity();
    if (i >= queries || j >= keys || (is_causal && j > i)) return kNothing;
    if (allowed && !allowed[i * mask.row + j * mask.column]) return kNothing;
    product *= scale;
    return bias ? product + bias[i * mask.row + j * mask.column] : product;
  }
};

// The value subtracted from the scores of a row before exp. A row that is fully masked so far must not give -inf + inf.
template <class C>
BRIGADE_HOST_DEVICE C softmax_shift(C largest) {
  return largest == -std::numeric_limits<C>::infinity() ? C(0) : largest;
}

// Entry (i, j) of batch entry n is element (n * queries + i) * keys + j of the stream.
struct KeptProbabilities {
  PhiloxState state;
  float threshold = 0;  // 0: all are kept
  double factor = 1;    // scales the kept ones

  BRIGADE_HOST_DEVICE bool all() const { return threshold == 0; }
};

// --- on the host

struct AttentionPlan {
  AttentionShape shape;
  Tensor q, k, v;  // rows dense
  Tensor mask;     // broadcast to [..., queries, keys], bool or of the compute dtype; may be undefined
  KeptProbabilities kept;
  DType compute_dtype = kFloat32;
  int64_t key_group = 1, value_group = 1;  // query heads per key head, per value head
};
// Throws ShapeError, DTypeError, DeviceError, ValueError.
AttentionPlan prepare_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options);
// Uninitialized tensors.
Attention empty_result(const AttentionPlan& plan);
// Uninitialized tensors for the wanted gradients: key and value have one matrix per query head, the mask has one
// element per score, in the compute dtype.
AttentionGradients empty_gradients(const AttentionPlan& plan, AttentionWanted wanted);
// Sums the gradients over the query heads that share a head, and over the dimensions that the mask was broadcast to.
void finish_gradients(const AttentionPlan& plan, const AttentionOptions& options, AttentionGradients& gradients);
// `grad` with dense rows. Throws ShapeError unless it has the shape and dtype of the result.
Tensor prepare_attention_gradient(const Tensor& grad, const Attention& result);
// `x` is at least 2-d.
MatrixStrides matrix_strides(const Tensor& x, int64_t group = 1);

template <class C>
Scores<C> scores_of(const AttentionPlan& plan) {
  Scores<C> scores;
  scores.queries = plan.shape.queries;
  scores.keys = plan.shape.keys;
  scores.is_causal = plan.shape.is_causal;
  scores.scale = static_cast<C>(plan.shape.scale);
  if (!plan.mask.defined()) return scores;
  scores.mask = matrix_strides(plan.mask);
  if (plan.mask.dtype() == kBool) {
    scores.allowed = static_cast<const bool*>(plan.mask.raw_data());
  } else {
    scores.bias = static_cast<const C*>(plan.mask.raw_data());
  }
  return scores;
}

}  // namespace brigade::kernels
