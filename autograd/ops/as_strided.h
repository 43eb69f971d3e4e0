// Parts of a tensor by strides: what views of any kind come to. Dimensions of stride 0 repeat;
// otherwise no element may appear twice. Any dtype with a derivative; results are dense.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/core/tensor.h>

namespace brigade::autograd {

// Which elements of a base a part consists of. Strides and offset count in the layout of the base,
// from its first element.
struct StridedPart {
  Shape base_sizes, base_strides;
  Shape sizes, strides;
  int64_t offset = 0;

  // Of a view in its base, which share their storage.
  static StridedPart of(const TensorImpl& view, const TensorImpl& base);
};

// The part, from a tensor of the shape of the base.
Tensor as_strided(const Tensor& x, const StridedPart& part, SourceLocation where);
// Its transpose: zeros of the shape of the base, with what `x`, of the shape of the part, adds to
// each element.
Tensor as_strided_backward(const Tensor& x, const StridedPart& part, SourceLocation where);
// `x` with the part replaced by `source`. Not for parts with repeated elements.
Tensor as_strided_scatter(const Tensor& x, const Tensor& source, const StridedPart& part, SourceLocation where);

// Of a part of its input.
struct AsStridedNode final : Node {
  StridedPart part;
  void backward(BackwardContext& context) override;
};

}  // namespace brigade::autograd
