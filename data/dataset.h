// Dataset: examples by index (PyTorch: a map-style dataset).
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
#pragma once

#include <brigade/data/example.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace brigade::data {

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

}  // namespace brigade::data
