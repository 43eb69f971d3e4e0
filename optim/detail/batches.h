// Groups tensors into batches, each for one call of a foreach kernel.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/kernels/elementwise.h>

#include <span>
#include <vector>

namespace brigade::optim::detail {

// Members of a list, in its order, with one device, one dtype and one key (given by the caller).
struct Batch {
  Device device;
  DType dtype;
  int64_t key;
  std::vector<size_t> members;

  std::vector<Tensor> of(std::span<const Tensor> tensors) const {
    std::vector<Tensor> result;
    result.reserve(members.size());
    for (const size_t i : members)
      result.push_back(tensors[i]);
    return result;
  }
  // The same for kernels that need dense memory: a tensor that is not contiguous is replaced by a copy...
  std::vector<Tensor> dense(std::span<const Tensor> tensors) const {
    std::vector<Tensor> result = of(tensors);
    for (Tensor& tensor : result) {
      if (!tensor.is_contiguous()) tensor = kernels::contiguous(tensor);
    }
    return result;
  }
  // ... which is copied back here.
  void write_back(std::span<const Tensor> tensors, std::span<const Tensor> moved) const {
    for (size_t k = 0; k < members.size(); ++k) {
      const Tensor& tensor = tensors[members[k]];
      if (!tensor.is_contiguous()) kernels::copy(tensor, moved[k]);
    }
  }
};

// Undefined tensors are in no batch. `key_of(i)` is called for the others.
template <class KeyOf>
std::vector<Batch> batches(std::span<const Tensor> tensors, KeyOf&& key_of) {
  std::vector<Batch> result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    if (!tensor.defined()) continue;
    const int64_t key = key_of(i);
    Batch* batch = nullptr;
    for (Batch& known : result) {
      if (known.device == tensor.device() && known.dtype == tensor.dtype() && known.key == key) batch = &known;
    }
    if (!batch) {
      batch = &result.emplace_back(Batch{tensor.device(), tensor.dtype(), key, {}});
      batch->members.reserve(tensors.size() - i);
    }
    batch->members.push_back(i);
  }
  return result;
}

}  // namespace brigade::optim::detail
