// Parts of a tensor given by strides, which can express every kind of view. Dimensions of stride 0 repeat; otherwise no
// element may appear twice. Any dtype with a derivative; results are dense.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd {

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
