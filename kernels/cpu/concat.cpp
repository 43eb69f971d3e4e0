#include <brigade/kernels/concat.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>

namespace brigade::kernels {

namespace {

Tensor cat_cpu(std::span<const Tensor> tensors, int dim) {
  if (tensors.empty()) throw ValueError("cat: expected a non-empty list of tensors");
  DType dtype = tensors[0].dtype();
  Shape sizes = tensors[0].sizes();
  if (sizes.empty()) throw ShapeError("cat: tensors without dimensions cannot be concatenated; use stack");
  for (size_t i = 1; i < tensors.size(); ++i) {
    Shape expected = sizes;
    if (tensors[i].dim() == sizes.size()) expected[dim] = tensors[i].sizes()[dim];
    if (tensors[i].sizes() != expected) {
      throw ShapeError("cat: tensor " + std::to_string(i) + " has shape " + to_string(tensors[i].sizes()) +
                       ", which differs from tensor 0 " + to_string(tensors[0].sizes()) + " in more than dimension " +
                       std::to_string(dim));
    }
    sizes[dim] += tensors[i].sizes()[dim];
    dtype = promote_types(dtype, tensors[i].dtype());
  }
  Tensor result = empty(sizes, {dtype, tensors[0].device()});
  int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    const int64_t length = tensor.sizes()[dim];
    copy(view::slice(result, dim, at, at + length), tensor);
    at += length;
  }
  return result;
}

void check_indices(const Tensor& indices, int64_t rows) {
  if (indices.dtype() != kInt64 || indices.dim() != 1) {
    throw DTypeError("index_select: expected int64 indices [n], got " + describe(indices));
  }
  const auto* values = indices.data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (values[i] < 0 || values[i] >= rows) {
      throw IndexError("index_select: index " + std::to_string(values[i]) + " at position " + std::to_string(i) +
                       " is not a row 0.." + std::to_string(rows - 1));
    }
  }
}

Tensor index_rows_cpu(const Tensor& x, const Tensor& indices) {
  if (x.dim() == 0) throw ShapeError("index_select: a tensor without dimensions has no rows");
  const Tensor positions = contiguous(indices);
  check_indices(positions, x.sizes()[0]);
  const Tensor source = contiguous(x);
  Shape sizes = x.sizes();
  sizes[0] = indices.numel();
  Tensor result = empty(sizes, x.options());
  if (result.numel() == 0) return result;
  const size_t row_bytes = result.nbytes() / static_cast<size_t>(sizes[0]);
  const auto* at = positions.data_ptr<int64_t>();
  const auto* from = static_cast<const char*>(source.raw_data());
  auto* to = static_cast<char*>(result.raw_data());
  cpu::parallel_for(
      sizes[0],
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::memcpy(to + static_cast<size_t>(i) * row_bytes, from + static_cast<size_t>(at[i]) * row_bytes,
                      row_bytes);
        }
      },
      static_cast<int64_t>(row_bytes / 4));
  return result;
}

Tensor index_rows_backward_cpu(const Tensor& grad, const Tensor& indices, const Shape& x_sizes) {
  const Tensor positions = contiguous(indices);
  check_indices(positions, x_sizes[0]);
  Tensor result = empty(x_sizes, grad.options());
  fill(result, 0.0);
  const auto* at = positions.data_ptr<int64_t>();
  for (int64_t i = 0; i < positions.numel(); ++i) {
    add_inplace(view::select(result, 0, at[i]), view::select(grad, 0, i), 1.0);
  }
  return result;
}

}  // namespace

constinit Kernel<Tensor(std::span<const Tensor>, int)> cat("cat", &cat_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> index_rows("index_rows", &index_rows_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Shape&)> index_rows_backward("index_rows_backward",
                                                                                         &index_rows_backward_cpu);

}  // namespace brigade::kernels
