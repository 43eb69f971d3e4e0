// Custom operations: a forward, and a backward that computes its derivative (PyTorch: torch::autograd::Function).
//
//   struct Cube : autograd::Function<Cube> {
//     static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x) {
//       ctx.save_for_backward({x});
//       return x * x * x;
//     }
//     static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
//       const Tensor x = ctx.get_saved_variables()[0];
//       return {grads[0] * x * x * 3.0};
//     }
//   };
//   Tensor y = Cube::apply(x);
//
// Forward runs unrecorded and returns a Tensor or a std::vector<Tensor>. Backward gets one gradient per result and
// returns one per argument of forward: an undefined Tensor for an argument that is not a tensor or needs no gradient. A
// gradient of a shape that the argument broadcasts to is summed to the argument's shape. With create_graph, backward is
// recorded, so second derivatives follow if it consists of differentiable operations.
//
// Under autocast (amp/autocast.h), forward is cast like any code, and backward is not. An additional base class changes
// this: BackwardUnderAutocast or CastInputsUnderAutocast.
#pragma once

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/record.h>

#include <any>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>

namespace brigade::autograd {

// Base class for a function whose backward runs under the autocast state of its forward (PyTorch: torch.amp.custom_fwd
// with custom_bwd). Meant for a backward made of matrix products.
struct BackwardUnderAutocast {};
// Base class for a function whose forward is correct in one dtype only. Where autocast is on, forward gets its tensors
// in this dtype (float64 and non-floating tensors unchanged), and forward and backward run with autocast off (PyTorch:
// torch.amp.custom_fwd(cast_inputs=...)). Elsewhere it has no effect.
template <DType dtype>
struct CastInputsUnderAutocast {
  static constexpr DType kCastInputs = dtype;
};

using variable_list = std::vector<Tensor>;

// The state that forward hands to backward.
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;
  AutogradContext& operator=(const AutogradContext&) = delete;

  // Saves the inputs and results that backward needs. Other tensors are allowed: intermediate values, saved without
  // history, and undefined tensors, which come back undefined.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  // In backward: the saved tensors. Throws AutogradError when one was modified in place since, or when the graph was
  // freed.
  std::vector<Tensor> get_saved_variables() const;
  // Any other state for backward.
  std::unordered_map<std::string, std::any> saved_data;

  // In forward: results without a derivative.
  void mark_non_differentiable(std::vector<Tensor> outputs) { non_differentiable_ = std::move(outputs); }
  // In forward: the inputs that it changed in place; they must be among the results. A changed view must be the only
  // result.
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }
  // Whether backward receives zeros in place of missing gradients (the default) or undefined tensors.
  void set_materialize_grads(bool value) { materialize_grads_ = value; }
  // In backward: whether argument i of forward needs a gradient.
  bool needs_input_grad(size_t i) const;

 private:
  friend class CustomNode;
  friend class CustomCall;

  std::vector<Tensor> to_save_, non_differentiable_, dirty_;
  bool materialize_grads_ = true;
  class CustomNode* node_ = nullptr;
  const BackwardContext* running_ = nullptr;
  std::unique_ptr<const AutocastState> autocast_;  // of forward, if backward needs it
};

class CustomNode : public Node {
 public:
  void backward(BackwardContext& context) final;
  bool is_custom() const noexcept final { return true; }
  AutogradContext ctx;

 protected:
  virtual std::vector<Tensor> call_backward(const std::vector<Tensor>& grads) = 0;
  // The autocast state of forward, kept by CustomCall::keep_autocast.
  const AutocastState& forward_autocast() const noexcept { return *ctx.autocast_; }

 private:
  friend class AutogradContext;
  friend class CustomCall;

  std::unique_ptr<SavedTensor[]> saved_tensors_;
  size_t saved_count_ = 0;
  std::vector<int> edge_of_argument_;  // -1 for an argument that is no tensor
};

// The part of apply() that does not depend on the types.
class CustomCall {
 public:
  CustomCall(CustomNode* node, std::string name, SourceLocation where);
  void add_argument(const Tensor& tensor);
  template <class T>
  void add_argument(const T&) {
    node_->edge_of_argument_.push_back(-1);
  }
  AutogradContext& context() noexcept { return node_->ctx; }
  void keep_autocast() { node_->ctx.autocast_ = std::make_unique<const AutocastState>(autocast_now()); }
  // Records the call; replaces results that are inputs by aliases.
  void finish(std::vector<Tensor>& outputs);

 private:
  NodePtr owner_;
  CustomNode* node_;
  std::string name_;
  SourceLocation where_;
  std::vector<Tensor> inputs_;
};

namespace detail {
// Casts an argument of a function with CastInputsUnderAutocast; returns anything but a tensor unchanged.
Tensor cast_argument(const Tensor& argument, DType dtype);
template <class T>
const T& cast_argument(const T& argument, DType) {
  return argument;
}
}  // namespace detail

// The name of a type, such as "Cube".
std::string custom_function_name(const std::type_info& type);

template <class Derived>
class Function {
 public:
  // Throws AutogradError when forward or backward break the rules above. The first argument is a tensor and carries the
  // line of the call; use apply_at if the first argument is something else.
  template <class... Rest>
  static auto apply(TensorArg first, const Rest&... rest) {
    return apply_at(first.where, first.tensor, rest...);
  }

  template <class... Arguments>
  static auto apply_at(SourceLocation where, const Arguments&... arguments) {
    struct Call final : CustomNode {
      std::vector<Tensor> call_backward(const std::vector<Tensor>& grads) override {
        if constexpr (std::is_base_of_v<BackwardUnderAutocast, Derived>) {
          const AutocastScope as_forward(forward_autocast());
          return Derived::backward(ctx, grads);
        } else {
          return Derived::backward(ctx, grads);
        }
      }
    };
    CustomCall call(new Call, custom_function_name(typeid(Derived)), where);
    (call.add_argument(arguments), ...);
    if constexpr (std::is_base_of_v<BackwardUnderAutocast, Derived>) call.keep_autocast();
    auto result = [&] {
      const NoGradGuard no_grad(where);
      const Tape::Pause pause;  // the call is one operation
      if constexpr (requires { Derived::kCastInputs; }) {
        if (autocast_is_on()) {
          const auto casted = std::make_tuple(detail::cast_argument(arguments, Derived::kCastInputs)...);
          const AutocastPause off;
          return std::apply([&](const auto&... each) { return Derived::forward(call.context(), each...); }, casted);
        }
      }
      return Derived::forward(call.context(), arguments...);
    }();
    if constexpr (std::is_same_v<decltype(result), Tensor>) {
      std::vector<Tensor> outputs{result};
      call.finish(outputs);
      return outputs[0];
    } else {
      static_assert(std::is_same_v<decltype(result), std::vector<Tensor>>,
                    "forward returns a Tensor or a std::vector<Tensor>");
      call.finish(result);
      return result;
    }
  }
};

}  // namespace brigade::autograd
