// Checks of tables, indices and gradients, and allocation of results that the caller did not provide.
#include <brigade/kernels/embedding.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/embedding.h>

#include <string>

namespace brigade::kernels {

namespace {

void check_index_tensor(const Tensor& table, const Tensor& indices, const char* what) {
  if (indices.dtype() != kInt64) throw DTypeError("{}: expected int64 indices, got {}", what, name(indices.dtype()));
  if (indices.device() == table.device()) return;
  throw DeviceError("{}: both tensors must be on one device, got {} and indices on {}", what, table.device(),
                    indices.device());
}

}  // namespace

Tensor prepare_embedding(const Tensor& weight, const Tensor& indices) {
  if (weight.dim() != 2) throw ShapeError("embedding: expected a weight [rows, width], got {}", weight.sizes());
  check_index_tensor(weight, indices, "embedding");
  Shape sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  return empty(sizes, weight.options());
}

Tensor prepare_index_rows(const Tensor& x, const Tensor& indices) {
  if (x.dim() == 0) throw ShapeError("index_select: a tensor without dimensions has no rows");
  check_index_tensor(x, indices, "index_select");
  if (indices.dim() != 1) throw ShapeError("index_select: expected indices [n], got {}", indices.sizes());
  Shape sizes = x.sizes();
  sizes[0] = indices.numel();
  return empty(sizes, x.options());
}

Tensor prepare_embedding_backward(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options) {
  check_index_tensor(grad, indices, "embedding_backward");
  Shape expected = indices.sizes();
  const int64_t width = grad.dim() > 0 ? grad.sizes().back() : 0;
  expected.push_back(width);
  if (grad.sizes() != expected) {
    throw ShapeError("embedding_backward: expected a gradient {} x width, got {}", indices.sizes(), describe(grad));
  }
  const Shape sizes{options.rows, width};
  if (!options.out.defined()) return empty(sizes, grad.options());
  if (options.out.sizes() != sizes || options.out.dtype() != grad.dtype() || !options.out.is_contiguous()) {
    throw ShapeError("embedding_backward: out must be a contiguous {} {}, got {}", name(grad.dtype()), sizes,
                     describe(options.out));
  }
  return options.out;
}

}  // namespace brigade::kernels
