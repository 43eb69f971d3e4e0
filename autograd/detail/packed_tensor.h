// A saved tensor under saved-tensor hooks.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/autograd/saved_tensor_hooks.h>
#include <brigade/core/compiler.h>

#include <memory>
#include <vector>

namespace brigade::autograd::detail {

struct HookPair {
  SavedTensorHooks::Pack pack;
  SavedTensorHooks::Unpack unpack;
};
using HookStack = std::vector<std::shared_ptr<const HookPair>>;
// This thread's hooks; nullptr if there are none.
BRIGADE_INITIAL_EXEC inline constinit thread_local HookStack* saved_tensor_hooks = nullptr;

struct PackedTensor {
  std::shared_ptr<const HookPair> hooks;
  std::any value;
  Shape sizes;
  DType dtype = DType::Float32;
  bool requires_grad = false;
  size_t bytes = 0;  // before packing
  Edge history;

  Tensor unpack(const Node& owner) const;
};

std::unique_ptr<PackedTensor, DropPacked> pack_tensor(const Tensor& tensor);

}  // namespace brigade::autograd::detail
