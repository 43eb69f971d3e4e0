// Gives a node its edges and outputs, collects leaves for checkpoints, and tells the tape.
#include <brigade/autograd/record.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/tape.h>

#include <algorithm>

namespace brigade::autograd {

namespace {
BRIGADE_INITIAL_EXEC constinit thread_local LeafCollector* leaf_collector = nullptr;
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

void attach(Node* made, const OpInfo& info, TensorRefs inputs, TensorRefs outputs) {
  NodePtr node = NodePtr::adopt(made);
  node->op = info.op;
  node->where = info.where.line() != 0 ? info.where : running_where;
  node->scope = current_call;
  for (const Tensor* input : inputs) {
    Edge& edge = node->edges.emplace_back();
    if (input->requires_grad()) set_gradient_edge(edge, *input);
  }
  node->sequence = next_sequence++;  // after that of a view's new history
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = *outputs[i];
    OutputInfo& expected = node->outputs.emplace_back();
    expected.sizes = output.sizes();
    expected.dtype = output.dtype();
    expected.device = output.device();
  }
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = *outputs[i];
    if (!is_floating_point(output.dtype())) continue;  // indices and the like have no derivative
    TensorImpl& to = *output.impl();
    to.output_nr = i;
    to.requires_grad = true;
    if (i + 1 == outputs.size()) {
      to.grad_fn = std::move(node);
    } else {
      to.grad_fn = node;
    }
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
  uint64_t sequence = 0;
  for (const Tensor* output : outputs) {
    if (const GradFnBase* made_by = output->impl()->grad_fn.get())
      sequence = static_cast<const Node*>(made_by)->sequence;
  }
  Tape::current()->append(info.op, info.where, inputs, outputs, cut, cut_at, sequence);
}

}  // namespace detail

void record_without_node(const OpInfo& info, std::initializer_list<std::reference_wrapper<const Tensor>> inputs,
                         const Tensor& output) {
  if (!Tape::current()) return;
  std::vector<const Tensor*> in;
  for (const Tensor& input : inputs)
    in.push_back(&input);
  const Tensor* out[] = {&output};
  detail::note(info, in, TensorRefs(out, 1));
}

}  // namespace brigade::autograd
