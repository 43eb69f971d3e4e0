// Rows are raw views and batches come from a kernel: nothing is recorded, neither in the graph nor on the tape.
#include <brigade/data/dataset.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/indexing.h>

namespace brigade::data {
namespace {

const Tensor& checked(const Tensor& tensor, const char* what, SourceLocation where) {
  if (!tensor.defined()) throw ValueError(where, "TensorDataset: {} is undefined", what);
  if (tensor.dim() == 0) {
    throw ShapeError(where, "TensorDataset: expected {} of shape [n, ..], one row per example; got {}", what,
                     describe(tensor));
  }
  if (tensor.requires_grad()) {
    throw ValueError(where, "TensorDataset: {} requires grad, which no batch would pass on; give its detach()", what);
  }
  return tensor;
}

}  // namespace

TensorDataset::TensorDataset(Tensor data, SourceLocation where) : data_(checked(data, "data", where)) {}

TensorDataset::TensorDataset(Tensor data, Tensor target, SourceLocation where)
    : data_(checked(data, "data", where)), target_(checked(target, "target", where)) {
  if (data.size(0) != target.size(0)) {
    throw ShapeError(where, "TensorDataset: size mismatch between tensors: data has {} rows, target has {}",
                     data.size(0), target.size(0));
  }
  if (data.device() != target.device()) {
    throw DeviceError(where, "TensorDataset: data is {}, target is {}; put both on one device", describe(data),
                      describe(target));
  }
}

Example TensorDataset::get(int64_t index) const {
  if (index < 0 || index >= size()) {
    throw IndexError("TensorDataset: index {} is out of range; there are {} examples", index, size());
  }
  return {view::select(data_, 0, index), target_.defined() ? view::select(target_, 0, index) : Tensor()};
}

std::optional<Example> TensorDataset::get_batch(std::span<const int64_t> indices) const {
  const Tensor chosen = from_values(indices, {static_cast<int64_t>(indices.size())}).to(data_.device());
  return Example{kernels::index_rows(data_, chosen),
                 target_.defined() ? kernels::index_rows(target_, chosen) : Tensor()};
}

}  // namespace brigade::data
