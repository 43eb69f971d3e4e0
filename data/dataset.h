// Datasets: examples by index; and the rows of tensors as examples.
#pragma once

#include <brigade/core/tensor.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace brigade::data {

// --- Example: one input with its target, or a batch of them.

// `target` is undefined if the dataset has none.
struct Example {
  Tensor data;
  Tensor target;
};

// Stacks along a new first dimension: n tensors [..] of one shape and dtype make one [n, ..], on their device. No
// history is recorded. Throws a ShapeError, DTypeError or DeviceError that names the first tensor that differs;
// ValueError for an empty list, an undefined tensor, and one that requires grad.
Tensor default_collate(const std::vector<Tensor>& examples);
// The same for `data` and for `target`; either all examples have a target or none has.
Example default_collate(const std::vector<Example>& examples);

// --- Dataset: examples by index (PyTorch: a map-style dataset).
//
//   struct Squares : data::Dataset<> {
//     int64_t size() const override { return 100; }
//     data::Example get(int64_t index) const override {
//       const double x = static_cast<double>(index);
//       return {scalar_tensor(x), scalar_tensor(x * x)};
//     }
//   };
//
// An example may be of any type; a DataLoader of types other than Example and Tensor needs a collate function.

template <class E = Example>
class Dataset {
 public:
  using ExampleType = E;

  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // Example `index`, 0..size()-1. The workers of a DataLoader call it at the same time. Its draws from
  // default_generator() depend only on the loader's seed, the epoch and the index: an augmentation is the same for any
  // number of workers, ranks and batches.
  virtual E get(int64_t index) const = 0;
  // Returns these examples as the batch that default_collate would make, if that is faster than a get() for each;
  // otherwise nothing.
  virtual std::optional<E> get_batch(std::span<const int64_t> indices) const {
    static_cast<void>(indices);
    return std::nullopt;
  }
};

template <class D>
concept IsDataset = requires {
  typename std::remove_cvref_t<D>::ExampleType;
}
&&std::derived_from<std::remove_cvref_t<D>, Dataset<typename std::remove_cvref_t<D>::ExampleType>>;

template <class D, class E>
concept IsDatasetOf = IsDataset<D> && std::same_as<typename D::ExampleType, E>;

// --- TensorDataset: the rows of tensors as examples.

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
