// Frees chains of nodes in a loop, and checks on unpacking that a saved tensor was not written to.
#include <brigade/autograd/node.h>

#include <brigade/autograd/detail/packed_tensor.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>

#include <cctype>
#include <utility>

namespace brigade::autograd {
namespace {
// While this thread frees a node: the head of the list of nodes that die during that.
BRIGADE_INITIAL_EXEC constinit thread_local const Node** dying = nullptr;
}  // namespace

void Node::destroy() const noexcept {
  // Deleting this node drops its edges and saved tensors, which may be the last owners of more
  // nodes, and so on along a chain of any length. The outermost call deletes them one after another
  // instead of inside each other.
  if (dying) {
    next_dying_ = std::exchange(*dying, this);
    return;
  }
  const Node* first = this;
  dying = &first;
  while (first) {
    const Node* const node = std::exchange(first, first->next_dying_);
    if (node->retained_by_ != 0) [[unlikely]]
      note_freed(*node);
    delete node;
  }
  dying = nullptr;
}

std::string Node::name() const {
  std::string result;
  bool upper = true;
  for (const char* c = op; *c; ++c) {
    if (*c == '_') {
      upper = true;
    } else {
      result += static_cast<char>(upper ? std::toupper(static_cast<unsigned char>(*c)) : *c);
      upper = false;
    }
  }
  return result + "Backward";
}

size_t Node::saved_bytes() const noexcept {
  size_t bytes = 0;
  for_each_saved([&](const Tensor& tensor) {
    if (!tensor.is_leaf() || !tensor.requires_grad()) bytes += tensor.nbytes();
  });
  return bytes;
}

void Node::release_saved(SourceLocation freed_by) noexcept {
  if (!saved_) return;
  mark_freed(freed_by);
  for (SavedTensor* saved = saved_; saved; saved = saved->next_) {
    saved->tensor_ = Tensor();
    saved->packed_.reset();
  }
}

void detail::DropPacked::operator()(PackedTensor* packed) const noexcept { delete packed; }

void SavedTensor::keep(Node& owner, const Tensor& tensor) {
  tensor_ = tensor;
  version_ = tensor.version();
  was_saved_ = true;
  next_ = owner.saved_;
  owner.saved_ = this;
}

void SavedTensor::save_input(Node& owner, const Tensor& tensor) {
  if (!tensor.defined()) return;
  keep(owner, tensor);
  if (detail::saved_tensor_hooks) [[unlikely]] {
    packed_ = detail::pack_tensor(tensor);
    tensor_ = Tensor();
  }
}

void SavedTensor::save_output(Node& owner, const Tensor& tensor, uint32_t output) {
  if (!tensor.defined()) return;
  keep(owner, view::alias(tensor));
  is_output_ = true;
  output_ = output;
  if (detail::saved_tensor_hooks) [[unlikely]] {
    packed_ = detail::pack_tensor(tensor_);
    tensor_ = Tensor();
  }
}

Tensor SavedTensor::unpack(Node& owner) const {
  if (!was_saved_) return Tensor();
  if (packed_) {
    const Tensor restored = packed_->unpack(owner);
    if (!is_output_ || !GradMode::is_enabled()) return restored;
    return detail::with_history(restored, {NodePtr(&owner), {}, output_});
  }
  if (tensor_.version() != version_) {
    const std::string output = ", which is output " + std::to_string(output_) + " of " + owner.name() + ",";
    const std::string place = to_string(owner.where);
    throw AutogradError(
        owner.where,
        "one of the variables needed for gradient computation has been modified by an inplace operation: [{}]{} is at "
        "version {}; expected version {} instead. It was saved for the backward of '{}'{}{}; write out of place, or "
        "clone() before the in-place operation",
        describe(tensor_), is_output_ ? output : "", tensor_.version(), version_, owner.op,
        place.empty() ? "" : " recorded at ", place);
  }
  if (is_output_ && GradMode::is_enabled()) {
    // A second derivative goes through this node again: lend the tensor its history.
    return detail::with_history(tensor_, {NodePtr(&owner), {}, output_});
  }
  return tensor_;
}

}  // namespace brigade::autograd
