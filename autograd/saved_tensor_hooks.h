// Saved-tensor hooks: what forward keeps for backward is packed when it is saved and unpacked when
// it is needed (PyTorch: torch.autograd.graph.saved_tensors_hooks): to keep it in a smaller dtype,
// on another device, or on disk.
#pragma once

#include <brigade/core/tensor.h>

#include <any>
#include <functional>

namespace brigade::autograd {

// While it lives, tensors that operations of this thread save go through `pack`; the node keeps
// what it returns. Backward calls `unpack` with that, once for each use, and expects a tensor of
// the same shape and dtype. Both run under no_grad. With guards inside each other the innermost
// counts. The tensor must not be changed in place by `pack`.
class SavedTensorHooks {
 public:
  using Pack = std::function<std::any(const Tensor& tensor)>;
  using Unpack = std::function<Tensor(const std::any& packed)>;

  SavedTensorHooks(Pack pack, Unpack unpack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;
};

// Keeps what is saved in the memory of the host (PyTorch: torch.autograd.graph.save_on_cpu).
class SaveOnCpu {
 public:
  SaveOnCpu();

 private:
  SavedTensorHooks hooks_;
};

}  // namespace brigade::autograd
