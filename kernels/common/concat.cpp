// Device-independent parts of cat, index_rows and one_hot.
#include <brigade/kernels/concat.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/concat.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/embedding.h>

#include <string>

namespace brigade::kernels {

bool adds_nothing(const Tensor& tensor) { return tensor.dim() == 1 && tensor.numel() == 0; }

const Tensor& leading_tensor(std::span<const Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (!adds_nothing(tensor)) return tensor;
  }
  return tensors.front();
}

Tensor prepare_cat(std::span<const Tensor> tensors, int dim) {
  if (tensors.empty()) throw ValueError("cat: expected a non-empty list of tensors");
  DType dtype = tensors[0].dtype();
  const Tensor& leading = leading_tensor(tensors);
  Shape sizes = leading.sizes();
  if (sizes.empty()) throw ShapeError("cat: tensors without dimensions cannot be concatenated; use stack");
  sizes[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape expected = sizes;
    if (tensors[i].dim() == sizes.size()) expected[dim] = tensors[i].sizes()[dim];
    if (tensors[i].sizes() != expected && !adds_nothing(tensors[i])) {
      throw ShapeError("cat: tensor {} has shape {}, which differs from tensor {} {} in more than dimension {}", i,
                       tensors[i].sizes(), &leading - tensors.data(), leading.sizes(), dim);
    }
    if (tensors[i].device() != tensors[0].device()) {
      throw DeviceError("cat: all tensors must be on one device, got {} and tensor {} on {}", tensors[0].device(), i,
                        tensors[i].device());
    }
    if (!adds_nothing(tensors[i])) sizes[dim] = (Size(sizes[dim]) + tensors[i].sizes()[dim]).value();
    dtype = promote_types(dtype, tensors[i].dtype());
  }
  return empty(sizes, {dtype, tensors[0].device()});
}

Tensor prepare_one_hot(const Tensor& indices, int64_t classes) {
  if (indices.dtype() != kInt64)
    throw DTypeError("one_hot: expected int64 indices, got {}; convert with .to(kInt64)", describe(indices));
  if (classes < 1) throw ValueError("one_hot: classes must be at least 1, got {}", classes);
  Shape sizes = indices.sizes();
  sizes.push_back(classes);
  Tensor result = empty(sizes, indices.options());
  fill(result, 0.0);
  return result;
}

Tensor index_rows_backward(const Tensor& grad, const Tensor& indices, const Shape& x_sizes) {
  Shape expected = x_sizes;
  expected[0] = indices.numel();
  if (grad.sizes() != expected) {
    throw ShapeError("index_select backward: expected a gradient {}, got {}", expected, describe(grad));
  }
  int64_t width = 1;
  for (int d = 1; d < x_sizes.size(); ++d)
    width *= x_sizes[d];
  // Seen as an embedding table of x_sizes[0] rows.
  const Shape flat{indices.numel(), width};
  const Tensor source = contiguous(grad);
  const Tensor result = embedding_backward(
      view::as_strided(source, flat, contiguous_strides(flat), source.storage_offset()), indices, {.rows = x_sizes[0]});
  return view::as_strided(result, x_sizes, contiguous_strides(x_sizes), 0);
}

}  // namespace brigade::kernels
