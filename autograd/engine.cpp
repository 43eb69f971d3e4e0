// The steps of the engine: gather, seed, run, deliver, and complete a leaf when all its contributions have arrived.
#include <brigade/autograd/engine.h>

#include <brigade/autograd/anomaly_mode.h>
#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/backward.h>
#include <brigade/autograd/detail/backward_under_way.h>
#include <brigade/autograd/detail/listeners.h>
#include <brigade/autograd/detail/sequence.h>
#include <brigade/autograd/detail/stopped_gradients.h>
#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/tape.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

namespace brigade::autograd {

namespace {

// The backwards running on this thread, innermost last, and the number of backwards started.
thread_local std::vector<uint64_t> running_tasks;
thread_local uint64_t backwards_started = 0;

constexpr uint64_t kBeforeAllNodes = ~uint64_t{0};

void check_gradient(const Node& from, uint32_t input, const Tensor& gradient, const Shape& sizes, DType dtype) {
  if (gradient.sizes() == sizes && gradient.dtype() == dtype) return;
  throw AutogradError(from.where,
                      "Function {} returned an invalid gradient at index {} - got {} but expected shape compatible "
                      "with {} {} (operation recorded at {})",
                      from.name(), input, describe(gradient), name(dtype), sizes, to_string(from.where));
}

}  // namespace

bool Plan::holds_recorded(uint64_t from, uint64_t to) const noexcept {
  // The nodes are sorted newest first.
  const auto& nodes = engine_->nodes_;
  const auto newest = std::partition_point(nodes.begin(), nodes.end(),
                                           [&](const Engine::PlannedNode& each) { return each.node->sequence >= to; });
  return std::any_of(newest, nodes.end(), [&](const Engine::PlannedNode& each) {
    return detail::is_recorded_since(each.node->sequence, from);
  });
}

uint64_t Engine::next_number() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Engine::Engine(std::span<const Tensor> roots, std::span<const Tensor> gradients, const GraphUse& use,
               SourceLocation where)
    : roots_(roots),
      gradients_(gradients.begin(), gradients.end()),
      retain_graph_(use.retain_graph || use.create_graph),
      create_graph_(use.create_graph),
      detects_anomaly_(AnomalyMode::is_enabled()),
      where_(where),
      task_(next_number()),
      given_(gradients) {
  gradients_.resize(roots.size());
}

Engine::~Engine() { unmark(); }

void Engine::add_to(Tensor& buffer, Tensor gradient) {
  if (!buffer.defined()) {
    buffer = std::move(gradient);
  } else if (create_graph_) {
    buffer = add(buffer, gradient, where_);
  } else if (is_exclusive(buffer)) {
    kernels::add_inplace(buffer, gradient, 1.0);
  } else {
    buffer = kernels::binary(buffer, gradient, kernels::BinaryOp::Add);
  }
}

void Engine::plan_node(Node& node) {
  if (node.task_ != 0 && std::find(running_tasks.begin(), running_tasks.end(), node.task_) == running_tasks.end()) {
    throw AutogradError(where_,
                        "backward over one graph from two threads at once: {} recorded at {} is part of a backward "
                        "on another thread",
                        node.name(), to_string(node.where));
  }
  nodes_.push_back({&node, 0, node.task_, node.task_index_, false});
  node.task_ = task_;
}

void Engine::end_at(std::span<const Tensor> results) {
  for (const Tensor& result : results) {
    Node* node = gradient_edge(result).node.get();
    if (!node || node->task_ == task_) continue;
    plan_node(*node);
    nodes_.back().only_read = true;
  }
}

void Engine::visit(const Edge& edge, uint64_t from_sequence) {
  if (Node* node = edge.node.get()) {
    if (node->task_ == task_) return;
    if (!capturing_) check_not_freed(*node);
    note_used_again(*node);
    plan_node(*node);
    stack_.push_back(node);
    return;
  }
  Tensor leaf(edge.leaf);
  AutogradMeta& leaf_meta = ensure_meta(leaf);
  if (leaf_meta.task != task_) {
    planned_leaves_.push_back({&leaf_meta, from_sequence, Tensor(), false, leaf_meta.task, leaf_meta.task_index});
    leaf_meta.task = task_;
    leaf_meta.task_index = static_cast<uint32_t>(leaves_.size());
    for (const AutogradMeta::Observer& observer : leaf_meta.observers) {
      if (std::find(listeners_.begin(), listeners_.end(), observer.listener) == listeners_.end()) {
        listeners_.push_back(observer.listener);
      }
    }
    leaves_.push_back(std::move(leaf));
  } else {
    uint64_t& last = planned_leaves_[leaf_meta.task_index].last_sequence;
    last = std::min(last, from_sequence);
  }
}

void Engine::gather() {
  for (const Tensor& root : roots_) {
    root_edges_.push_back(gradient_edge(root));  // a hook could replace the root's history during the run
    visit(root_edges_.back(), kBeforeAllNodes);
  }
  while (!stack_.empty()) {
    Node* node = stack_.back();
    stack_.pop_back();
    for (const Edge& edge : node->edges) {
      if (edge.defined()) visit(edge, node->sequence);
    }
  }
  const auto newest_first = [](const PlannedNode& a, const PlannedNode& b) {
    return a.node->sequence > b.node->sequence;
  };
  // A chain is already sorted.
  if (!std::is_sorted(nodes_.begin(), nodes_.end(), newest_first)) {
    std::sort(nodes_.begin(), nodes_.end(), newest_first);
  }
  number_nodes();
}

void Engine::number_nodes() {
  uint32_t buffers = 0;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].node->task_index_ = i;
    nodes_[i].first_buffer = buffers;
    buffers += nodes_[i].node->outputs.size();
  }
  buffers_.resize(buffers);
}

void Engine::seed() {
  for (size_t i = 0; i < roots_.size(); ++i) {
    const Edge& edge = root_edges_[i];
    if (edge.node) {
      if (edge.node->task_ != task_) continue;  // no captured input lies behind it
      add_to(buffers_[nodes_[edge.node->task_index_].first_buffer + edge.output], gradients_[i]);
    } else {
      PlannedLeaf& planned = planned_leaves_[static_cast<AutogradMeta*>(edge.leaf->autograd.get())->task_index];
      add_to(planned.buffer, gradients_[i]);
      planned.received = true;
    }
  }
  gradients_.clear();
  for (uint32_t i = 0; i < planned_leaves_.size(); ++i) {
    if (planned_leaves_[i].last_sequence == kBeforeAllNodes) complete_leaf(i);
  }
}

void Engine::deliver(const Node& from, uint32_t input, Tensor gradient) {
  const Edge& edge = from.edges[input];
  if (edge.node) {
    if (edge.node->task_ != task_) return;  // no captured input lies behind it
    const OutputInfo& info = edge.node->outputs[edge.output];
    check_gradient(from, input, gradient, info.sizes, info.dtype);
    add_to(buffers_[nodes_[edge.node->task_index_].first_buffer + edge.output], std::move(gradient));
    return;
  }
  AutogradMeta& leaf_meta = *static_cast<AutogradMeta*>(edge.leaf->autograd.get());
  check_gradient(from, input, gradient, edge.leaf->sizes, edge.leaf->dtype);
  PlannedLeaf& planned = planned_leaves_[leaf_meta.task_index];
  planned.received = true;
  if (capturing_ && planned.capture < 0) return;
  if (!edge.leaf->requires_grad) return;  // frozen since the operation was recorded
  // Without hooks, nothing needs the sum of this backward alone: accumulate directly into the gradient's memory.
  if (leaf_meta.grad_target.defined() && leaf_meta.hooks.empty() && !capturing_) {
    leaf_meta.accumulate(std::move(gradient), create_graph_, where_);
  } else {
    add_to(planned.buffer, std::move(gradient));
  }
}

void Engine::call_leaf_hooks(uint32_t index) {
  PlannedLeaf& planned = planned_leaves_[index];
  AutogradMeta& leaf_meta = *planned.meta;
  if (leaf_meta.hooks.empty()) return;
  // A hook may remove hooks: run over a copy.
  const auto hooks = leaf_meta.hooks;
  for (const auto& hook : hooks) {
    const uint32_t version = planned.buffer.storage()->version();
    const std::optional<double> held = is_diagnosed_ ? detail::first_number(planned.buffer) : std::nullopt;
    Tensor replaced = hook.call(planned.buffer);
    const bool replaces = replaced.defined() && !replaced.is_same(planned.buffer);
    if (replaces || planned.buffer.storage()->version() != version) {
      leaf_meta.note_changing_hook(hook.handle);
      if (held && std::isfinite(*held) && !detail::first_number(replaces ? replaced : planned.buffer))
        detail::stopped_gradients().emptied.push_back({leaves_[index].id(), hook.where});
    }
    if (!replaced.defined()) continue;
    if (replaced.sizes() != leaves_[index].sizes() || replaced.dtype() != leaves_[index].dtype()) {
      throw AutogradError(where_, "a hook on a leaf returned {}, expected a gradient like the leaf: {}",
                          describe(replaced), describe(leaves_[index]));
    }
    planned.buffer = std::move(replaced);
  }
}

void Engine::complete_leaf(uint32_t index) {
  PlannedLeaf& planned = planned_leaves_[index];
  planned.last_sequence = 0;  // complete only once
  AutogradMeta& leaf_meta = *planned.meta;
  if (capturing_) {
    if (planned.capture < 0 || !planned.buffer.defined()) return;
    call_leaf_hooks(index);
    captured_[static_cast<size_t>(planned.capture)] = std::move(planned.buffer);
    return;
  }
  if (planned.buffer.defined()) {
    call_leaf_hooks(index);
    leaf_meta.accumulate(std::move(planned.buffer), create_graph_, where_);
    planned.buffer = Tensor();
  }
  if (planned.received) {
    leaf_meta.stamp.on_backward(backwards_started, where_);
    if (!scale_labels_.empty()) [[unlikely]]
      note_scale(index);
  }
  if (planned.received && !leaf_meta.post_accumulate_hooks.empty()) {
    const auto hooks = leaf_meta.post_accumulate_hooks;
    for (const auto& hook : hooks)
      hook.call(leaves_[index]);
  }
  if (running_tasks.size() > 1) return;
  for (const AutogradMeta::Observer& observer : leaf_meta.observers) {
    observer.listener->on_grad_ready(observer.tag, planned.received);
  }
}

void Engine::note_stopped(const Node& node, uint32_t input) const {
  const Edge& edge = node.edges[input];
  if (edge.node && edge.node->task_ != task_) return;
  // A gradient written directly to its destination is not handed over.
  if (edge.leaf && planned_leaves_[static_cast<AutogradMeta*>(edge.leaf->autograd.get())->task_index].received) return;
  detail::stopped_gradients().note(node, input);
}

void Engine::run_node(PlannedNode& planned) {
  Node& node = *planned.node;
  Tensor* grads = buffers_.data() + planned.first_buffer;
  bool any = false;
  for (uint32_t i = 0; i < node.outputs.size(); ++i)
    any = any || grads[i].defined();
  if (any && node.output_hooks) {
    const auto hooks = *node.output_hooks;
    for (const Node::OutputHook& hook : hooks) {
      if (!grads[hook.output].defined()) continue;
      Tensor replaced = hook.call(grads[hook.output]);
      if (!replaced.defined()) continue;
      const OutputInfo& info = node.outputs[hook.output];
      if (replaced.sizes() != info.sizes || replaced.dtype() != info.dtype) {
        throw AutogradError(node.where, "a hook on a result of '{}' returned {}, expected a gradient of shape {}",
                            node.op, describe(replaced), info.sizes);
      }
      grads[hook.output] = std::move(replaced);
    }
  }
  for (const CapturedOutput& captured : captured_outputs_) {
    if (captured.node == &node) captured_[captured.input] = grads[captured.output];
  }
  if (planned.only_read) return;  // the graph behind it stays for another backward
  if (any) {
    if (results_.size() < node.edges.size()) results_.resize(node.edges.size());  // all of them undefined
    BackwardContext context(*this, node, grads, results_);
    if (create_graph_) detail::running_where = node.where;
    node.backward(context);
    if (!non_finite_listeners_.empty()) [[unlikely]]
      look_for_non_finite(node, grads);
    if (is_diagnosed_) look_at_unbounded(node, grads);
    if (detects_anomaly_) [[unlikely]]
      look_for_nan(node, grads);
    for (uint32_t i = 0; i < node.outputs.size(); ++i)
      grads[i] = Tensor();
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      Tensor result = std::move(results_[i]);
      if (!node.edges[i].defined()) continue;
      if (result.defined()) {
        deliver(node, i, std::move(result));
      } else {
        note_stopped(node, i);
      }
    }
  }
  for (const Edge& edge : node.edges) {
    if (!edge.leaf) continue;
    const uint32_t leaf = static_cast<AutogradMeta*>(edge.leaf->autograd.get())->task_index;
    if (planned_leaves_[leaf].last_sequence == node.sequence) complete_leaf(leaf);
  }
  if (!retain_graph_) node.release_saved(where_);
}

void Engine::unmark() noexcept {
  for (const PlannedNode& planned : nodes_) {
    planned.node->task_ = planned.outer_task;
    planned.node->task_index_ = planned.outer_index;
  }
  for (const PlannedLeaf& planned : planned_leaves_) {
    planned.meta->task = planned.outer_task;
    planned.meta->task_index = planned.outer_index;
  }
  nodes_.clear();
  planned_leaves_.clear();
}

// Finds the requested inputs in the gathered graph.
void Engine::mark_captured(std::span<const Tensor> inputs) {
  captured_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const Node* node = grad_fn(inputs[i])) {
      if (node->task_ == task_) captured_outputs_.push_back({node, inputs[i].impl()->output_nr, i});
    } else if (const AutogradMeta* known = meta(inputs[i]); known && known->task == task_) {
      planned_leaves_[known->task_index].capture = static_cast<int32_t>(i);
    }
  }
}

// Drops the nodes with no captured input behind them. Goes from the oldest to the newest: a node is needed when it is
// captured or feeds a needed one.
void Engine::prune() {
  const auto is_captured = [&](const Node& node) {
    return std::any_of(captured_outputs_.begin(), captured_outputs_.end(),
                       [&](const CapturedOutput& captured) { return captured.node == &node; });
  };
  for (size_t i = nodes_.size(); i-- > 0;) {
    PlannedNode& planned = nodes_[i];
    if (planned.only_read) continue;  // see end_at()
    bool needed = false;
    for (const Edge& edge : planned.node->edges) {
      if (edge.node) needed = needed || edge.node->task_ == task_;
      if (edge.leaf) {
        const AutogradMeta& leaf_meta = *static_cast<AutogradMeta*>(edge.leaf->autograd.get());
        needed = needed || planned_leaves_[leaf_meta.task_index].capture >= 0;
      }
    }
    planned.only_read = !needed;
    if (needed || is_captured(*planned.node)) continue;
    planned.node->task_ = planned.outer_task;
    planned.node->task_index_ = planned.outer_index;
    planned.node = nullptr;
  }
  std::erase_if(nodes_, [](const PlannedNode& planned) { return planned.node == nullptr; });
  for (const PlannedNode& planned : nodes_) {
    if (!planned.only_read) check_not_freed(*planned.node);
  }
  number_nodes();
}

std::vector<Tensor> Engine::run_captured(std::span<const Tensor> inputs, bool ends) {
  const OutsideAutocast as_recorded;  // a gradient has the dtype of its tensor
  running_tasks.push_back(task_);
  struct Pop {
    ~Pop() { running_tasks.pop_back(); }
  } pop;
  check_roots();
  capturing_ = true;
  if (ends) end_at(inputs);
  gather();
  mark_captured(inputs);
  prune();
  run_nodes();
  unmark();
  // A leaf that is requested twice is captured once.
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t j = 0; !captured_[i].defined() && j < inputs.size(); ++j) {
      if (inputs[j].is_same(inputs[i])) captured_[i] = captured_[j];
    }
  }
  return std::move(captured_);
}

void Engine::run_nodes() {
  const AutoGradMode recording(create_graph_, where_);
  is_diagnosed_ = Tape::is_kept();
  // The operations of a backward with create_graph belong on the tape; those of any other backward do not.
  std::optional<Tape::Pause> pause;
  if (!create_graph_) pause.emplace();
  seed();
  struct Restore {
    SourceLocation outer = detail::running_where;
    ~Restore() { detail::running_where = outer; }
  } restore;
  for (PlannedNode& node : nodes_)
    run_node(node);
}

void Engine::notify_refused() const noexcept {
  for (Listener* listener : listeners_)
    listener->on_refused();
}

void Engine::run() {
  const detail::BackwardUnderWay under_way;
  const OutsideAutocast as_recorded;
  running_tasks.push_back(task_);
  struct Pop {
    ~Pop() { running_tasks.pop_back(); }
  } pop;
  const bool outermost = running_tasks.size() == 1;
  if (outermost) {
    ++backwards_started;
    detail::stopped_gradients() = {.backward = backwards_started};
  }
  std::vector<std::shared_ptr<Listener>> registered;  // kept alive while they are called
  if (outermost) {
    registered = detail::registered_listeners();
    for (const auto& listener : registered)
      listeners_.push_back(listener.get());
  }
  Plan plan;
  bool planned = false;
  try {
    check_roots();
    gather();
    plan.leaves_ = leaves_;
    plan.roots_ = roots_;
    plan.nodes_ = nodes_.size();
    plan.engine_ = this;
    plan.where_ = where_;
    plan.number_ = backwards_started;
    planned = true;
    if (has_scalers()) label_scales(!outermost);
    if (outermost) {
      for (Listener* listener : listeners_)
        listener->on_plan(plan);
      for (Listener* listener : listeners_) {
        if (listener->looks_for_non_finite()) non_finite_listeners_.push_back(listener);
      }
    }
    run_nodes();
    if (retain_graph_ && outermost) note_retained();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (outermost) {
      if (!planned) notify_refused();
      for (Listener* listener : listeners_)
        listener->on_error(planned ? &plan : nullptr, error);
    }
    throw;
  }
  // The graph is free again before listeners run: they may take long, and may throw.
  unmark();
  if (!outermost) return;
  std::exception_ptr first_error;
  for (Listener* listener : listeners_) {
    try {
      listener->on_finish(plan);
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (Tape* tape = Tape::current()) tape->finish_backward(plan.number(), where_, roots_);
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace brigade::autograd
