// The steps of the engine: seed, run, deliver, and complete a leaf when all its contributions have arrived.
#include <brigade/autograd/engine.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/backward.h>
#include <brigade/autograd/detail/plan.h>
#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/tape.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace brigade::autograd {
namespace {

// The number of backwards started on this thread.
thread_local uint64_t backwards_started = 0;

void check_gradient(const Node& from, uint32_t input, const Tensor& gradient, const Shape& sizes, DType dtype) {
  if (gradient.sizes() == sizes && gradient.dtype() == dtype) return;
  throw AutogradError(from.where,
                      "Function {} returned an invalid gradient at index {} - got {} but expected shape compatible "
                      "with {} {} (operation recorded at {})",
                      from.name(), input, describe(gradient), name(dtype), sizes, to_string(from.where));
}

}  // namespace

uint64_t Engine::next_number() noexcept {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Engine::Engine(std::span<const Tensor> roots, std::span<const Tensor> gradients, const GraphUse& use,
               SourceLocation where)
    : roots_(roots),
      given_(gradients),
      gradients_(gradients.begin(), gradients.end()),
      retain_graph_(use.retain_graph || use.create_graph),
      create_graph_(use.create_graph),
      where_(where),
      graph_(next_number(), where) {
  gradients_.resize(roots.size());
}

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

void Engine::add_observing_listeners() {
  for (const Tensor& leaf : graph_.leaves()) {
    for (const AutogradMeta::Observer& observer : meta(leaf)->observers) {
      if (std::find(listeners_.begin(), listeners_.end(), observer.listener) == listeners_.end())
        listeners_.push_back(observer.listener);
    }
  }
}

void Engine::seed() {
  buffers_.resize(graph_.buffers());
  for (size_t i = 0; i < roots_.size(); ++i) {
    const Edge& edge = graph_.root_edges()[i];
    if (edge.node) {
      if (!graph_.holds(*edge.node)) continue;  // no captured input lies behind it
      add_to(buffers_[graph_.buffer(edge)], gradients_[i]);
    } else {
      PlannedLeaf& planned = graph_.planned_leaf(*edge.leaf);
      add_to(planned.buffer, gradients_[i]);
      planned.received = true;
    }
  }
  gradients_.clear();
  for (uint32_t i = 0; i < graph_.planned_leaves().size(); ++i) {
    if (graph_.planned_leaves()[i].last_sequence == GatheredGraph::kBeforeAllNodes) complete_leaf(i);
  }
}

void Engine::deliver(const Node& from, uint32_t input, Tensor gradient) {
  const Edge& edge = from.edges[input];
  if (edge.node) {
    if (!graph_.holds(*edge.node)) return;  // no captured input lies behind it
    const OutputInfo& info = edge.node->outputs[edge.output];
    check_gradient(from, input, gradient, info.sizes, info.dtype);
    add_to(buffers_[graph_.buffer(edge)], std::move(gradient));
    return;
  }
  AutogradMeta& leaf_meta = *static_cast<AutogradMeta*>(edge.leaf->autograd.get());
  check_gradient(from, input, gradient, edge.leaf->sizes, edge.leaf->dtype);
  PlannedLeaf& planned = graph_.planned_leaf(*edge.leaf);
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
  PlannedLeaf& planned = graph_.planned_leaves()[index];
  const Tensor& leaf = graph_.leaves()[index];
  if (planned.meta->hooks.empty()) return;
  // A hook may remove hooks: run over a copy.
  const auto hooks = planned.meta->hooks;
  for (const auto& hook : hooks) {
    for (const auto& observer : observers_)
      observer->on_leaf_hook(planned.buffer);
    const uint32_t version = planned.buffer.storage()->version();
    Tensor replaced = hook.call(planned.buffer);
    const bool replaces = replaced.defined() && !replaced.is_same(planned.buffer);
    if (replaces || planned.buffer.storage()->version() != version) {
      planned.meta->note_changing_hook(hook.handle);
      for (const auto& observer : observers_)
        observer->on_changing_hook(leaf, hook.where, replaces ? replaced : planned.buffer);
    }
    if (!replaced.defined()) continue;
    if (replaced.sizes() != leaf.sizes() || replaced.dtype() != leaf.dtype()) {
      throw AutogradError(where_, "a hook on a leaf returned {}, expected a gradient like the leaf: {}",
                          describe(replaced), describe(leaf));
    }
    planned.buffer = std::move(replaced);
  }
}

void Engine::complete_leaf(uint32_t index) {
  PlannedLeaf& planned = graph_.planned_leaves()[index];
  const Tensor& leaf = graph_.leaves()[index];
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
    for (const auto& observer : observers_)
      observer->on_accumulated(leaf, index);
  }
  if (planned.received && !leaf_meta.post_accumulate_hooks.empty()) {
    const auto hooks = leaf_meta.post_accumulate_hooks;
    for (const auto& hook : hooks)
      hook.call(leaf);
  }
  if (!graph_.is_outermost()) return;
  for (const AutogradMeta::Observer& observer : leaf_meta.observers) {
    observer.listener->on_grad_ready(observer.tag, planned.received);
  }
}

void Engine::note_stopped(const Node& node, uint32_t input) const {
  const Edge& edge = node.edges[input];
  if (edge.node && !graph_.holds(*edge.node)) return;
  // A gradient written directly to its destination is not handed over.
  if (edge.leaf && graph_.planned_leaf(*edge.leaf).received) return;
  for (const auto& observer : observers_)
    observer->on_stopped(node, input);
}

void Engine::call_output_hooks(const Node& node, Tensor* grads) {
  const auto hooks = *node.output_hooks;  // a hook may remove hooks
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

void Engine::run_node(PlannedNode& planned) {
  Node& node = *planned.node;
  Tensor* grads = buffers_.data() + planned.first_buffer;
  bool any = false;
  for (uint32_t i = 0; i < node.outputs.size(); ++i)
    any = any || grads[i].defined();
  if (any && node.output_hooks) call_output_hooks(node, grads);
  for (const CapturedOutput& captured : captured_outputs_) {
    if (captured.node == &node) captured_[captured.input] = grads[captured.output];
  }
  if (planned.only_read) return;  // the graph behind it stays for another backward
  if (any) {
    if (results_.size() < node.edges.size()) results_.resize(node.edges.size());  // all of them undefined
    BackwardContext context(*this, node, grads, results_);
    if (create_graph_) detail::running_where = node.where;
    node.backward(context);
    for (const auto& observer : observers_)
      observer->on_node_run(node, {grads, node.outputs.size()}, results_);
    for (uint32_t i = 0; i < node.outputs.size(); ++i)
      grads[i] = Tensor();
    for (uint32_t i = 0; i < node.edges.size(); ++i) {
      Tensor result = std::move(results_[i]);
      if (!node.edges[i].defined()) continue;
      if (result.defined()) {
        deliver(node, i, std::move(result));
      } else if (!observers_.empty()) {
        note_stopped(node, i);
      }
    }
  }
  for (const Edge& edge : node.edges) {
    if (!edge.leaf) continue;
    const uint32_t leaf = graph_.position(*edge.leaf);
    if (graph_.planned_leaves()[leaf].last_sequence == node.sequence) complete_leaf(leaf);
  }
  if (!retain_graph_) node.release_saved(where_);
}

void Engine::run_nodes() {
  const AutoGradMode recording(create_graph_, where_);
  // The operations of a backward with create_graph belong on the tape; those of any other backward do not.
  std::optional<Tape::Pause> pause;
  if (!create_graph_) pause.emplace();
  seed();
  struct Restore {
    SourceLocation outer = detail::running_where;
    ~Restore() { detail::running_where = outer; }
  } restore;
  for (PlannedNode& node : graph_.nodes())
    run_node(node);
}

void Engine::run() {
  const detail::BackwardUnderWay under_way;
  const OutsideAutocast as_recorded;
  const bool outermost = graph_.is_outermost();
  std::vector<std::shared_ptr<Listener>> registered;  // kept alive while they are called
  if (outermost) {
    ++backwards_started;
    registered = detail::registered_listeners();
    for (const auto& listener : registered)
      listeners_.push_back(listener.get());
  }
  attach_observers(observers_, {.is_nested = !outermost,
                                .retains_graph = retain_graph_ && outermost,
                                .given = given_,
                                .where = where_,
                                .number = backwards_started});
  Plan plan;
  bool planned = false;
  try {
    check_roots();
    graph_.gather(roots_, true, observers_);
    add_observing_listeners();
    plan.leaves_ = graph_.leaves();
    plan.roots_ = roots_;
    plan.nodes_ = graph_.nodes().size();
    plan.graph_ = &graph_;
    plan.where_ = where_;
    plan.number_ = backwards_started;
    plan.keeps_graph_ = retain_graph_;
    planned = true;
    for (const auto& observer : observers_)
      observer->on_gathered(graph_);
    if (outermost) {
      for (Listener* listener : listeners_)
        listener->on_plan(plan);
      attach_search(observers_, listeners_);
    }
    run_nodes();
    if (outermost) {
      for (const auto& observer : observers_)
        observer->on_ended(graph_);
    }
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (outermost) {
      if (!planned) {
        add_observing_listeners();
        for (Listener* listener : listeners_)
          listener->on_refused();
      }
      for (Listener* listener : listeners_)
        listener->on_error(planned ? &plan : nullptr, error);
    }
    throw;
  }
  // The graph is free again before listeners run: they may take long, and may throw.
  graph_.unmark();
  if (!outermost) listeners_.clear();
  std::exception_ptr first_error;
  for (Listener* listener : listeners_) {
    try {
      listener->on_finish(plan);
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (Tape* tape = outermost ? Tape::current() : nullptr) tape->finish_backward(plan.number(), where_, roots_);
  if (!first_error) first_error = failure_;
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace brigade::autograd
