// Views and in-place writes: how they affect histories.
//
// A view shares the memory of its base, so a recorded write through either changes the values of both. As in PyTorch,
// the base then gets a new history: a node that passes the written part of the base's gradient through the write's
// derivative, and the rest to the base's past. Every view derives its history from the base again when it is next
// requested. The strides determine which part of the base a view is.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd {

// Where the gradient of `tensor`, which requires grad, goes.
Edge gradient_edge(const Tensor& tensor);
// The same, written into an empty edge.
void set_gradient_edge(Edge& edge, const Tensor& tensor);

// Marks `result` as a differentiable view of `base` (of base's own base when that is a view).
void mark_view(const Tensor& result, const Tensor& base);
// Gives a view the history that follows from its base's.
void refresh_view(const Tensor& view);

// Whether the values written to one memory location of an expanded tensor may differ.
enum class Repeats : uint8_t { Differ, AreAlike };
// Checks before an in-place write to `self`; `value_requires_grad` says whether the written value has a history. Throws
// AutogradError "a leaf Variable that requires grad is being used in an in-place operation.", "a view of a leaf
// Variable that requires grad is being used in an in-place operation.", "A view was created in no_grad mode and is
// being modified inplace with grad mode enabled."; ValueError "unsupported operation: more than one element of the
// written-to tensor refers to a single memory location." (an expanded tensor, unless all of it gets one value).
void check_inplace(const Tensor& self, bool value_requires_grad, SourceLocation where,
                   Repeats repeats = Repeats::Differ);
// Call after the write: `node`, made for the write with `self` as its input `edge` and as its result (the only one if
// self is a view), becomes the history of the memory.
void rebase_history(const Tensor& self, Node& node, uint32_t edge = 0);
// Gives `copy`, which has the current values of `original`, the history of `original`.
Tensor with_history_of(const Tensor& original, Tensor copy);

namespace detail {
// A tensor over the same elements whose gradient goes to `edge`.
Tensor with_history(const Tensor& values, const Edge& edge);
}  // namespace detail

// --- Parts of a tensor given by strides, which can express every kind of view. Dimensions of stride 0 repeat;
// otherwise no element may appear twice. Any dtype with a derivative; results are dense.

// The elements of a base that form a part. Strides and offset refer to the layout of the base and count from its first
// element.
struct StridedPart {
  Shape base_sizes, base_strides;
  Shape sizes, strides;
  int64_t offset = 0;

  // The part that `view` is of `base`; both share their storage.
  static StridedPart of(const TensorImpl& view, const TensorImpl& base);
};

// Extracts the part from a tensor with the shape of the base.
Tensor as_strided(const Tensor& x, const StridedPart& part, SourceLocation where);
// The transpose: zeros with the shape of the base, to which the elements of `x`, which has the shape of the part, are
// added.
Tensor as_strided_backward(const Tensor& x, const StridedPart& part, SourceLocation where);
// `x` with the part replaced by `source`. Not for parts with repeated elements.
Tensor as_strided_scatter(const Tensor& x, const Tensor& source, const StridedPart& part, SourceLocation where);

// Takes a part of its input.
struct AsStridedNode final : Node {
  StridedPart part;
  void backward(BackwardContext& context) override;
};

}  // namespace brigade::autograd
