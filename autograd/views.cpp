// Gives a base that was written to through a view its new history, and derives the history of views from the base.
#include <brigade/autograd/views.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/view.h>
#include <brigade/kernels/factory.h>

#include <algorithm>

namespace brigade::autograd {
namespace {

// The history of a base that was written to through a view.
struct CopySlicesNode final : Node {
  NodePtr write;
  uint32_t past_edge = 0;  // edge of `write` and of this node: the view's past, which is part of the base's
  StridedPart part;

  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    const Tensor written = as_strided(grad, part, {});
    std::vector<Tensor> results(write->edges.size());
    context.run_inside(*write, &written, results);
    if (context.needs_input_grad(past_edge)) {
      const Tensor& given = results[past_edge];
      const Tensor past = given.defined() ? given : zeros(part.sizes, grad.options());
      context.set(past_edge, as_strided_scatter(grad, past, part, {}));
    }
    for (uint32_t i = 0; i < edges.size(); ++i) {
      if (i != past_edge) context.set(i, std::move(results[i]));
    }
  }
  void release_saved(SourceLocation freed_by) noexcept override {
    write->release_saved(freed_by);
    if (write->is_freed()) mark_freed(freed_by);
  }
};

bool repeats_elements(const Tensor& tensor) {
  if (tensor.numel() == 0) return false;
  for (int d = 0; d < tensor.dim(); ++d) {
    if (tensor.strides()[d] == 0 && tensor.sizes()[d] > 1) return true;
  }
  return false;
}

void note(const char* op, SourceLocation where, const Tensor& from, const Tensor& to) {
  Tape* const tape = Tape::current();
  if (!tape) return;
  const Tensor* in[] = {&from};
  const Tensor* out[] = {&to};
  tape->append(op, where, in, out, Cut::None, {});
}

// retain_grad() from before the write stays in effect, for the gradient of the new value.
void move_retained_grad(const Tensor& self, Node* before, Node& now) {
  const AutogradMeta* known = meta(self);
  if (!known || !known->retained || !before || !before->output_hooks) return;
  std::vector<Node::OutputHook>& hooks = *before->output_hooks;
  const auto hook =
      std::find_if(hooks.begin(), hooks.end(), [&](const auto& each) { return each.handle == known->retained_by; });
  if (hook == hooks.end()) return;
  if (!now.output_hooks) now.output_hooks = std::make_unique<std::vector<Node::OutputHook>>();
  now.output_hooks->push_back({self.impl()->output_nr, hook->handle, std::move(hook->call)});
  hooks.erase(hook);
}

}  // namespace

void set_gradient_edge(Edge& edge, const Tensor& tensor) {
  if (Node* node = grad_fn(tensor)) {
    edge.node = NodePtr(node);
    edge.output = tensor.impl()->output_nr;
  } else {
    ensure_meta(tensor);  // backward marks the leaf there
    edge.leaf = TensorImplPtr(tensor.impl());
  }
}

Edge gradient_edge(const Tensor& tensor) {
  Edge edge;
  set_gradient_edge(edge, tensor);
  return edge;
}

void mark_view(const Tensor& result, const Tensor& base) {
  // Skip results that no recorded write can reach, such as gradients in the middle of backward: they stay free of their
  // base.
  if (!GradMode::is_enabled() && !base.requires_grad() && !base.impl()->view_base) return;
  TensorImpl& view = *result.impl();
  TensorImpl* const origin = base.impl();
  view.view_base = origin->view_base ? origin->view_base : TensorImplPtr(origin);
  view.history = origin->view_base ? origin->history : view.view_base->history;
  view.view_without_grad_mode = !GradMode::is_enabled();
}

void refresh_view(const Tensor& view) {
  TensorImpl& impl = *view.impl();
  const Tensor base(impl.view_base);
  impl.history = impl.view_base->history;
  if (!base.requires_grad()) return;
  const Edge edge = gradient_edge(base);
  const NodePtr before(static_cast<Node*>(impl.grad_fn.get()));
  auto* node = new AsStridedNode;  // for a view whose base has a new history
  impl.grad_fn = NodePtr(node);
  impl.output_nr = 0;
  impl.requires_grad = true;
  node->op = "as_strided";
  node->where = edge.node ? edge.node->where : SourceLocation();
  node->scope = detail::current_call;
  node->edges.push_back(edge);
  node->sequence = detail::take_sequence(*node);
  node->outputs.push_back({impl.sizes, impl.dtype, view.device()});
  node->part = StridedPart::of(impl, *impl.view_base);
  move_retained_grad(view, before.get(), *node);
  note("as_strided", node->where, base, view);
}

void check_inplace(const Tensor& self, bool value_requires_grad, SourceLocation where, Repeats repeats) {
  if (repeats_elements(self) && repeats == Repeats::Differ) {
    throw ValueError(
        where,
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Got "
        "the expanded tensor {} with strides {}; clone() it first",
        describe(self), self.strides());
  }
  if (!GradMode::is_enabled()) return;
  if (self.requires_grad() && self.is_leaf()) {
    throw AutogradError(
        where,
        "a leaf Variable that requires grad is being used in an in-place operation. Expected a tensor without gradient "
        "history, got the leaf {}; write out of place, or put the update under NoGradGuard",
        describe(self));
  }
  if (!self.impl()->view_base) return;
  const Tensor base(self.impl()->view_base);
  if (base.requires_grad() && base.is_leaf()) {
    throw AutogradError(
        where,
        "a view of a leaf Variable that requires grad is being used in an in-place operation. Got a view {}; write out "
        "of place, or put the update under NoGradGuard",
        describe(self));
  }
  if (self.impl()->view_without_grad_mode && (base.requires_grad() || value_requires_grad)) {
    throw AutogradError(
        where,
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Got a view {}; make "
        "the view and write to it either both inside of no_grad or both outside",
        describe(self));
  }
}

void rebase_history(const Tensor& self, Node& node, uint32_t edge) {
  TensorImpl& impl = *self.impl();
  if (!impl.view_base) {
    ++impl.history;  // its views lag behind now
    move_retained_grad(self, node.edges[edge].node.get(), node);
    return;
  }
  const Tensor base(impl.view_base);
  const NodePtr before = node.edges[edge].node;
  auto* slices = new CopySlicesNode;
  const NodePtr owner(slices);
  slices->op = node.op;
  slices->where = node.where;
  slices->scope = node.scope;
  slices->sequence = node.sequence;
  slices->past_edge = edge;
  for (uint32_t i = 0; i < node.edges.size(); ++i) {
    const Edge past = i == edge && base.requires_grad() ? gradient_edge(base) : Edge();
    slices->edges.push_back(i == edge ? past : node.edges[i]);
  }
  slices->outputs.push_back({base.sizes(), base.dtype(), base.device()});
  slices->part = StridedPart::of(impl, *impl.view_base);
  node.edges[edge] = slices->edges[edge];
  slices->write = NodePtr(&node);

  TensorImpl& to = *base.impl();
  to.grad_fn = owner;
  to.output_nr = 0;
  to.requires_grad = true;
  ++to.history;
  note(node.op, node.where, self, base);
  move_retained_grad(base, slices->edges[edge].node.get(), *slices);
  refresh_view(self);
  move_retained_grad(self, before.get(), *grad_fn(self));
}

Tensor with_history_of(const Tensor& original, Tensor copy) {
  if (!original.requires_grad()) return copy;
  if (original.is_leaf()) return detail::with_history(copy, gradient_edge(original));
  copy.impl()->grad_fn = NodePtr(grad_fn(original));
  copy.impl()->output_nr = original.impl()->output_nr;
  copy.impl()->requires_grad = true;
  return copy;
}

namespace {
// Stands for a leaf whose values were saved elsewhere.
struct SavedLeafNode final : Node {
  void backward(BackwardContext& context) override { context.set(0, context.grad()); }
};
}  // namespace

Tensor detail::with_history(const Tensor& values, const Edge& edge) {
  Tensor result = view::alias(values);
  TensorImpl& impl = *result.impl();
  impl.requires_grad = true;
  if (edge.node) {
    impl.grad_fn = edge.node;
    impl.output_nr = edge.output;
    return result;
  }
  auto* node = new SavedLeafNode;
  impl.grad_fn = NodePtr(node);
  node->op = "saved_leaf";
  node->sequence = take_sequence(*node);
  node->edges.push_back(edge);
  node->outputs.push_back({impl.sizes, impl.dtype, result.device()});
  return result;
}

}  // namespace brigade::autograd
