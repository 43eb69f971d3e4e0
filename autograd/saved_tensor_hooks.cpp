// Runs the hooks when a tensor is saved and unpacked; SaveOnCpu is a pair of such hooks.
#include <brigade/autograd/saved_tensor_hooks.h>

#include <brigade/autograd/detail/packed_tensor.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>

namespace brigade::autograd {

namespace detail {

std::unique_ptr<PackedTensor, DropPacked> pack_tensor(const Tensor& tensor) {
  const std::shared_ptr<const HookPair> hooks = saved_tensor_hooks->back();
  std::unique_ptr<PackedTensor, DropPacked> packed(new PackedTensor);
  packed->hooks = hooks;
  packed->sizes = tensor.sizes();
  packed->dtype = tensor.dtype();
  packed->requires_grad = tensor.requires_grad();
  packed->bytes = tensor.nbytes();
  if (packed->requires_grad) packed->history = gradient_edge(tensor);
  const NoGradGuard no_grad;
  // Under no_grad, the hook's own operations save nothing; otherwise they would call the hook again.
  packed->value = hooks->pack(view::alias(tensor));
  return packed;
}

Tensor PackedTensor::unpack(const Node& owner) const {
  Tensor tensor;
  {
    const NoGradGuard no_grad;
    tensor = hooks->unpack(value);
  }
  if (!tensor.defined() || tensor.sizes() != sizes || tensor.dtype() != dtype) {
    throw AutogradError(owner.where,
                        "a saved tensor of '{}' recorded at {} was unpacked as {}, expected {} {}; unpack must restore "
                        "what pack was given",
                        owner.op, to_string(owner.where), describe(tensor), name(dtype), sizes);
  }
  if (!requires_grad || !GradMode::is_enabled()) return tensor;
  if (history.leaf && tensor.impl() == history.leaf.get()) return tensor;
  // For a second derivative, the restored tensor gets the history of the saved one.
  return with_history(tensor, history);
}

}  // namespace detail

SavedTensorHooks::SavedTensorHooks(Pack pack, Unpack unpack) {
  if (!pack || !unpack) throw ValueError("SavedTensorHooks: pack and unpack must be callable");
  if (!detail::saved_tensor_hooks) detail::saved_tensor_hooks = new detail::HookStack;
  detail::saved_tensor_hooks->push_back(
      std::make_shared<const detail::HookPair>(detail::HookPair{std::move(pack), std::move(unpack)}));
}

SavedTensorHooks::~SavedTensorHooks() {
  detail::saved_tensor_hooks->pop_back();
  if (!detail::saved_tensor_hooks->empty()) return;
  delete detail::saved_tensor_hooks;
  detail::saved_tensor_hooks = nullptr;
}

namespace {
struct OnHost {
  Tensor tensor;
  Device device;
};
}  // namespace

SaveOnCpu::SaveOnCpu()
    : hooks_(
          [](const Tensor& tensor) -> std::any {
            return OnHost{tensor.cpu(), tensor.device()};
          },
          [](const std::any& packed) {
            const auto& kept = std::any_cast<const OnHost&>(packed);
            return kept.tensor.to(kept.device);
          }) {}

}  // namespace brigade::autograd
