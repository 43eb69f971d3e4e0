// The node of a custom function: its saved tensors, and checks of what its backward returns.
#include <brigade/autograd/function.h>

#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/ops/reduce.h>
#include <brigade/autograd/tape.h>
#include <brigade/autograd/views.h>
#include <brigade/core/view.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>

namespace brigade::autograd {
namespace {

bool contains(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& each) { return each.is_same(tensor); });
}

// The dtype of the input behind the edge.
DType input_dtype(const Edge& edge) { return edge.node ? edge.node->outputs[edge.output].dtype : edge.leaf->dtype; }

// Whether a tensor of these sizes could have been broadcast to those.
bool expands_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  for (int d = 1; d <= from.size(); ++d) {
    const int64_t size = from[from.size() - d];
    if (size != 1 && size != to[to.size() - d]) return false;
  }
  return true;
}

}  // namespace

Tensor detail::cast_argument(const Tensor& argument, DType dtype) {
  if (!may_be_cast(argument)) return argument;
  // Cast only where autocast is on for the tensor's device type.
  const AutocastState* const state = autocast_state;
  return state && state->on(argument.device().type).enabled ? argument.to(dtype, {}) : argument;
}

std::string custom_function_name(const std::type_info& type) {
  char* const readable = abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr);
  std::string name = readable ? readable : type.name();
  std::free(readable);
  const size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

std::vector<Tensor> AutogradContext::get_saved_variables() const {
  if (!node_ || !running_) throw AutogradError("get_saved_variables() is for backward; forward has its arguments");
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < node_->saved_count_; ++i)
    tensors.push_back(node_->saved_tensors_[i].unpack(*node_));
  return tensors;
}

bool AutogradContext::needs_input_grad(size_t i) const {
  if (!node_ || !running_) throw AutogradError("needs_input_grad() is for backward");
  if (i >= node_->edge_of_argument_.size()) {
    throw AutogradError("needs_input_grad({}): forward has {} arguments", i, node_->edge_of_argument_.size());
  }
  const int edge = node_->edge_of_argument_[i];
  return edge >= 0 && running_->needs_input_grad(static_cast<uint32_t>(edge));
}

void CustomNode::backward(BackwardContext& context) {
  std::vector<Tensor> grads;
  for (uint32_t i = 0; i < outputs.size(); ++i)
    grads.push_back(ctx.materialize_grads_ ? context.grad_or_zeros(i) : context.grad(i));
  struct Running {
    AutogradContext& ctx;
    ~Running() { ctx.running_ = nullptr; }
  } running{ctx};
  ctx.running_ = &context;
  std::vector<Tensor> results = call_backward(grads);
  // As in PyTorch, further results are fine when they are undefined.
  while (results.size() > edge_of_argument_.size() && !results.back().defined())
    results.pop_back();
  if (results.size() != edge_of_argument_.size()) {
    throw AutogradError(where,
                        "function {} returned an incorrect number of gradients (expected {}, got {}); return one for "
                        "each argument of forward",
                        name(), edge_of_argument_.size(), results.size());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (edge_of_argument_[i] >= 0) {
      const auto edge = static_cast<uint32_t>(edge_of_argument_[i]);
      // Under autocast forward or backward may compute in another dtype than the argument's.
      if (results[i].defined() && edges[edge].defined()) {
        // Sum the gradient of an argument that forward broadcast; the engine rejects any other shape.
        const Shape& sizes = context.input_sizes(edge);
        if (results[i].sizes() != sizes && expands_to(sizes, results[i].sizes()))
          results[i] = sum_to(results[i], sizes, {});
        results[i] = results[i].to(input_dtype(edges[edge]), {});
      }
      context.set(edge, std::move(results[i]));
    } else if (results[i].defined()) {
      throw AutogradError(where,
                          "function {} returned a gradient different from None at position {}, but the corresponding "
                          "forward input was not a Variable",
                          name(), i + 1);
    }
  }
}

CustomCall::CustomCall(CustomNode* node, std::string name, SourceLocation where)
    : owner_(node), node_(node), name_(std::move(name)), where_(where) {
  node_->ctx.node_ = node_;
}

void CustomCall::add_argument(const Tensor& tensor) {
  node_->edge_of_argument_.push_back(static_cast<int>(inputs_.size()));
  inputs_.push_back(tensor);
}

void CustomCall::finish(std::vector<Tensor>& outputs) {
  AutogradContext& ctx = node_->ctx;
  std::vector<const Tensor*> in, out;
  for (const Tensor& input : inputs_)
    in.push_back(&input);
  for (Tensor& output : outputs) {
    if (!output.defined())
      throw AutogradError(where_, "forward returned an undefined tensor ({} called at {})", name_, to_string(where_));
    // An input returned as a result (and not marked dirty) becomes a new tensor.
    if (contains(inputs_, output) && !contains(ctx.dirty_, output)) output = view::alias(output);
    out.push_back(&output);
  }
  const bool recording = GradMode::is_enabled() && detail::any_requires_grad(in);
  for (const Tensor& dirty : ctx.dirty_) {
    if (!contains(outputs, dirty)) {
      throw AutogradError(where_,
                          "an input was marked dirty and is not among the results; return it as well ({} called at {})",
                          name_, to_string(where_));
    }
    if (!contains(inputs_, dirty)) {
      throw AutogradError(where_, "mark_dirty got a tensor that is no argument of forward ({} called at {})", name_,
                          to_string(where_));
    }
    if (recording && dirty.impl()->view_base && outputs.size() > 1) {
      throw AutogradError(where_,
                          "a view was changed in place by a custom function with {} results, and may be by one with a "
                          "single result; clone() it first ({} called at {})",
                          outputs.size(), name_, to_string(where_));
    }
    check_inplace(dirty, recording, where_);
    dirty.bump_version();
  }
  const char* const op = intern(name_)->c_str();
  if (detail::input_collector) detail::collect({.op = op, .where = where_}, in);
  if (recording) {
    detail::attach(NodePtr(owner_).detach(), {.op = op, .where = where_}, in, out);
    for (const Tensor& output : outputs) {
      if (!contains(ctx.non_differentiable_, output)) continue;
      output.impl()->grad_fn = {};
      output.impl()->requires_grad = false;
    }
    node_->saved_count_ = ctx.to_save_.size();
    node_->saved_tensors_ = std::make_unique<SavedTensor[]>(ctx.to_save_.size());
    for (size_t i = 0; i < ctx.to_save_.size(); ++i) {
      const Tensor& tensor = ctx.to_save_[i];
      if (!tensor.defined()) continue;  // it comes back undefined
      const auto same =
          std::find_if(outputs.begin(), outputs.end(), [&](const Tensor& each) { return each.is_same(tensor); });
      if (same != outputs.end() && grad_fn(*same) == node_) {
        node_->saved_tensors_[i].save_output(*node_, tensor, static_cast<uint32_t>(same - outputs.begin()));
      } else {
        node_->saved_tensors_[i].save_input(*node_, tensor);
      }
    }
  }
  if (Tape::current()) detail::note({.op = op, .where = where_}, in, out);
  for (const Tensor& dirty : ctx.dirty_) {
    if (!recording || contains(ctx.non_differentiable_, dirty)) continue;
    const auto input =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const Tensor& each) { return each.is_same(dirty); });
    rebase_history(dirty, *node_, static_cast<uint32_t>(input - inputs_.begin()));
  }
  ctx.to_save_.clear();
  ctx.dirty_.clear();
  ctx.non_differentiable_.clear();
}

}  // namespace brigade::autograd
