#include <brigade/autograd/node.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/view.h>

#include <cctype>

namespace brigade::autograd {

void Node::destroy() const noexcept {
  // Deleting this node drops its edges and saved tensors, which may be the last owners of more nodes, and so on along a
  // chain of any length. The outermost call deletes them one after another instead of inside each other.
  thread_local std::vector<const Node*>* dying = nullptr;
  if (dying) {
    dying->push_back(this);
    return;
  }
  std::vector<const Node*> list{this};
  dying = &list;
  while (!list.empty()) {
    const Node* node = list.back();
    list.pop_back();
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
  for (SavedTensor* saved = saved_; saved; saved = saved->next_)
    saved->tensor_ = Tensor();
}

void SavedTensor::save_input(Node& owner, const Tensor& tensor) {
  if (!tensor.defined()) return;
  tensor_ = tensor;
  version_ = tensor.version();
  was_saved_ = true;
  next_ = owner.saved_;
  owner.saved_ = this;
}

void SavedTensor::save_output(Node& owner, const Tensor& tensor, uint32_t output) {
  if (!tensor.defined()) return;
  save_input(owner, view::alias(tensor));
  is_output_ = true;
  output_ = output;
}

Tensor SavedTensor::unpack(Node& owner) const {
  if (!was_saved_) return Tensor();
  if (tensor_.version() != version_) {
    std::string message =
        "one of the variables needed for gradient computation has been modified by an inplace operation: [" +
        describe(tensor_) + "]";
    if (is_output_) message += ", which is output " + std::to_string(output_) + " of " + owner.name() + ",";
    message += " is at version " + std::to_string(tensor_.version()) + "; expected version " +
               std::to_string(version_) + " instead. It was saved for the backward of '" + owner.op + "'";
    if (owner.where.line() != 0) message += " recorded at " + to_string(owner.where);
    throw AutogradError(message + "; write out of place, or clone() before the in-place operation", owner.where);
  }
  if (is_output_ && GradMode::is_enabled()) {
    // A second derivative goes through this node again: lend the tensor its history.
    Tensor result = view::alias(tensor_);
    result.impl()->grad_fn = NodePtr(&owner);
    result.impl()->output_nr = output_;
    result.impl()->requires_grad = true;
    return result;
  }
  return tensor_;
}

}  // namespace brigade::autograd
