// Saved-tensor hooks: tensors that forward saves for backward are packed when they are saved and unpacked when they are
// needed (PyTorch: torch.autograd.graph.saved_tensors_hooks), to keep them in a smaller dtype, on another device, or on
// disk.
#pragma once

#include <brigade/core/tensor.h>

#include <any>
#include <functional>

namespace brigade::autograd {

// RAII: tensors that operations of this thread save go through `pack`, and the node keeps its result. Backward calls
// `unpack` with that result, once for each use, and expects a tensor of the same shape and dtype. Both run under
// no_grad. If guards nest, the innermost one applies. `pack` must not change the tensor in place.
class SavedTensorHooks {
 public:
  using Pack = std::function<std::any(const Tensor& tensor)>;
  using Unpack = std::function<Tensor(const std::any& packed)>;

  SavedTensorHooks(Pack pack, Unpack unpack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;
};

// Keeps saved tensors in host memory (PyTorch: torch.autograd.graph.save_on_cpu).
class SaveOnCpu {
 public:
  SaveOnCpu();

 private:
  SavedTensorHooks hooks_;
};

}  // namespace brigade::autograd
