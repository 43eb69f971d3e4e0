// TensorDataset: the rows of tensors as examples.
#pragma once

#include <brigade/data/dataset.h>

namespace brigade::data {

// Example i is data[i] and target[i]; both are views. A batch is one copy (index_rows), on the device of the tensors.
// If the target is omitted, the examples have none.
class TensorDataset : public Dataset<> {
 public:
  // data [n, ..], target [n, ..], of any dtypes. Throws ShapeError for different numbers of rows or a tensor without
  // dimensions, DeviceError for two devices, ValueError for a tensor that requires grad or is undefined.
  explicit TensorDataset(Tensor data, SourceLocation where = SourceLocation::current());
  TensorDataset(Tensor data, Tensor target, SourceLocation where = SourceLocation::current());

  int64_t size() const override { return data_.size(0); }
  // Throws IndexError.
  Example get(int64_t index) const override;
  // Throws IndexError that names the position and value.
  std::optional<Example> get_batch(std::span<const int64_t> indices) const override;

  const Tensor& data() const noexcept { return data_; }
  const Tensor& target() const noexcept { return target_; }

 private:
  Tensor data_, target_;
};

}  // namespace brigade::data
