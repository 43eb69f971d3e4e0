#include <brigade/autograd/record.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/tape.h>

#include <algorithm>

namespace brigade::autograd {

namespace {
thread_local LeafCollector* leaf_collector = nullptr;
}  // namespace

LeafCollector::LeafCollector() noexcept : outer_(std::exchange(leaf_collector, this)) {}
LeafCollector::~LeafCollector() { leaf_collector = outer_; }

namespace detail {

bool any_requires_grad(TensorRefs inputs) noexcept {
  for (const Tensor* input : inputs) {
    if (input->requires_grad()) return true;
  }
  return false;
}

void attach(const NodePtr& node, const OpInfo& info, TensorRefs inputs, TensorRefs outputs) {
  node->op = info.op;
  node->where = info.where.line() != 0 ? info.where : running_where;
  node->scope = current_call;
  node->sequence = next_sequence++;
  for (const Tensor* input : inputs) {
    Edge edge;
    if (input->requires_grad()) {
      AutogradMeta& from = ensure_meta(*input);
      if (from.grad_fn) {
        edge.node = from.grad_fn;
        edge.output = from.output;
      } else {
        edge.leaf = TensorImplPtr(input->impl());
      }
    }
    node->edges.push_back(std::move(edge));
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = *outputs[i];
    node->outputs.push_back({output.sizes(), output.dtype(), output.device()});
    if (!is_floating_point(output.dtype())) continue;  // indices and the like have no derivative
    AutogradMeta& to = ensure_meta(output);
    to.grad_fn = node;
    to.output = i;
    output.impl()->requires_grad = true;
  }
}

void collect_leaves(TensorRefs inputs) {
  LeafCollector* const collector = leaf_collector;
  if (!collector) [[likely]]
    return;
  for (const Tensor* input : inputs) {
    if (!input->requires_grad() || !input->is_leaf()) continue;
    const auto same = [&](const Tensor& known) { return known.is_same(*input); };
    if (std::none_of(collector->leaves_.begin(), collector->leaves_.end(), same)) collector->leaves_.push_back(*input);
  }
}

bool tape_is_on() noexcept { return Tape::current() != nullptr; }

void note(const OpInfo& info, TensorRefs inputs, TensorRefs outputs) {
  Cut cut = Cut::None;
  SourceLocation cut_at;
  const bool carries = [&] {
    for (const Tensor* output : outputs) {
      if (output->requires_grad()) return true;
    }
    return false;
  }();
  if (!carries && any_requires_grad(inputs)) {
    if (!GradMode::is_enabled()) {
      cut = Cut::NoGrad;
      cut_at = GradMode::disabled_at();
    } else {
      cut = Cut::NotDifferentiable;
      cut_at = info.where;
    }
  }
  Tape::current()->append(info.op, info.where, inputs, outputs, cut, cut_at);
}

}  // namespace detail

void record_without_node(const OpInfo& info, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
                         const Tensor& output) {
  if (!detail::tape_is_on()) return;
  std::vector<const Tensor*> in;
  for (const Tensor& input : inputs)
    in.push_back(&input);
  const Tensor* out[] = {&output};
  detail::note(info, in, TensorRefs(out, 1));
}

void mark_view(const Tensor& result, const Tensor& base) noexcept {
  result.impl()->is_view = true;
  result.impl()->is_view_of_leaf = base.is_leaf() ? base.requires_grad() : base.impl()->is_view_of_leaf;
}

void check_inplace(const Tensor& self, bool value_requires_grad, SourceLocation where) {
  if (!GradMode::is_enabled()) return;
  if (self.requires_grad() && self.is_leaf()) {
    throw AutogradError(
        "a leaf Variable that requires grad is being used in an in-place operation. Expected a tensor without gradient "
        "history, got the leaf " +
            describe(self) + "; write out of place, or put the update under NoGradGuard (" + to_string(where) + ")",
        where);
  }
  if (!self.impl()->is_view) return;
  if (self.impl()->is_view_of_leaf) {
    throw AutogradError(
        "a view of a leaf Variable that requires grad is being used in an in-place operation. Got a view " +
            describe(self) + "; write out of place, or put the update under NoGradGuard (" + to_string(where) + ")",
        where);
  }
  if (self.requires_grad() || value_requires_grad) {
    throw AutogradError("an in-place write through a view cannot be differentiated: got a view " + describe(self) +
                            "; write out of place, or clone() the view first (" + to_string(where) + ")",
                        where);
  }
}

}  // namespace brigade::autograd
