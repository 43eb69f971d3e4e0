// Gives a node its edges and outputs, collects leaves for checkpoints, and appends to the tape.
#include <brigade/autograd/record.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/tape.h>

#include <algorithm>
#include <atomic>

namespace brigade::autograd {

InputCollector::InputCollector() noexcept
    : began_(detail::peek_sequence()), outer_(std::exchange(detail::input_collector, this)) {}
InputCollector::~InputCollector() { detail::input_collector = outer_; }

namespace detail {

uint64_t first_sequence() noexcept {
  static std::atomic<uint64_t> threads{0};
  return kThreadsInSequence + threads.fetch_add(1, std::memory_order_relaxed) % kThreadsInSequence;
}

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
  node->sequence = take_sequence(*node);  // after the number of a view's new history
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

void collect(const OpInfo& info, TensorRefs inputs) {
  InputCollector* const collector = input_collector;
  for (InputCollector* each = info.op ? collector : nullptr; each; each = each->outer_) {
    if (each->operations_.size() < InputCollector::kMaxOperations) each->operations_.push_back(info);
  }
  for (const Tensor* input : inputs) {
    if (!input->requires_grad()) continue;
    const Node* made_by = grad_fn(*input);
    if (made_by && is_recorded_since(made_by->sequence, collector->began_)) continue;
    const auto same = [&](const Tensor& known) { return known.is_same(*input); };
    if (std::none_of(collector->inputs_.begin(), collector->inputs_.end(), same)) collector->inputs_.push_back(*input);
  }
}

void note(const OpInfo& info, TensorRefs inputs, TensorRefs outputs) {
  Tape& tape = *Tape::current();
  size_t live = 0;
  uint64_t sequence = 0;
  for (const Tensor* output : outputs) {
    live += output->requires_grad() ? 1 : 0;
    if (const GradFnBase* made_by = output->impl()->grad_fn.get())
      sequence = static_cast<const Node*>(made_by)->sequence;
  }
  if (live == outputs.size() || !any_requires_grad(inputs)) {
    tape.append(info.op, info.where, inputs, outputs, Cut::None, {}, sequence);
  } else if (live == 0) {
    const bool under_no_grad = !GradMode::is_enabled();
    tape.append(info.op, info.where, inputs, outputs, under_no_grad ? Cut::NoGrad : Cut::NotDifferentiable,
                under_no_grad ? GradMode::disabled_at() : info.where, sequence);
  } else {
    // Several results, such as values and their indices: each carries gradients or is a cut.
    std::vector<const Tensor*> carrying, others;
    for (const Tensor* output : outputs)
      (output->requires_grad() ? carrying : others).push_back(output);
    tape.append(info.op, info.where, inputs, carrying, Cut::None, {}, sequence);
    tape.append(info.op, info.where, inputs, others, Cut::NotDifferentiable, info.where);
  }
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
