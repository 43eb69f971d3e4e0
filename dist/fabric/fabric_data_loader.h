// FabricDataLoader: a DataLoader set up by a Fabric: each rank gets its share of the examples, and batches arrive on
// the rank's device.
#pragma once

#include <brigade/data/data_loader.h>

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace brigade::dist {

// Moves a batch to a device; batches of other types stay where they are.
inline Tensor on_device(Tensor tensor, Device device) { return tensor.defined() ? tensor.to(device) : tensor; }
inline data::Example on_device(data::Example example, Device device) {
  return {on_device(std::move(example.data), device), on_device(std::move(example.target), device)};
}
inline std::vector<Tensor> on_device(std::vector<Tensor> tensors, Device device) {
  for (Tensor& each : tensors)
    each = on_device(std::move(each), device);
  return tensors;
}
template <class T>
T on_device(T batch, Device) {
  return batch;
}

// A handle: copies refer to the same loader. Iterates like a DataLoader: for (const auto& batch : loader).
template <class E, class Batch>
class FabricDataLoader {
 public:
  FabricDataLoader(std::shared_ptr<data::DataLoader<E, Batch>> loader, Device device) noexcept
      : loader_(std::move(loader)), device_(device) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    Iterator() noexcept = default;
    Iterator(typename data::DataLoader<E, Batch>::Iterator from, Device device)
        : from_(std::move(from)), device_(device) {
      move_to_device();
    }
    Batch& operator*() const noexcept { return *from_; }
    Batch* operator->() const noexcept { return &*from_; }
    Iterator& operator++() {
      ++from_;
      move_to_device();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.from_ == b.from_; }

   private:
    void move_to_device() {
      if (from_ != typename data::DataLoader<E, Batch>::Iterator()) *from_ = on_device(std::move(*from_), device_);
    }

    typename data::DataLoader<E, Batch>::Iterator from_;
    Device device_;
  };

  Iterator begin() { return Iterator(loader_->begin(), device_); }
  Iterator end() noexcept { return {}; }

  // The loader itself: set_epoch, size (batches of this rank), state_dict.
  data::DataLoader<E, Batch>* operator->() const noexcept { return loader_.get(); }
  data::DataLoader<E, Batch>& operator*() const noexcept { return *loader_; }

 private:
  std::shared_ptr<data::DataLoader<E, Batch>> loader_;
  Device device_;
};

}  // namespace brigade::dist
