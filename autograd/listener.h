// How the layers above follow a backward: the plan before it starts, each gradient as it becomes complete, and the end.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>

namespace brigade::autograd {

class Listener;

// What a backward is going to do, known before its first kernel runs.
class Plan {
 public:
  // Leaves that will receive a gradient, in no particular order.
  std::span<const Tensor> leaves() const noexcept { return leaves_; }
  // The tensors backward starts from.
  std::span<const Tensor> roots() const noexcept { return roots_; }
  size_t nodes() const noexcept { return nodes_; }
  // The call of backward, and its number on this thread (from 1).
  SourceLocation where() const noexcept { return where_; }
  uint64_t number() const noexcept { return number_; }

  // Calls f(tag) for each planned leaf that `listener` observes.
  template <class F>
  void for_each_observed(const Listener* listener, F&& f) const;

 private:
  friend class Engine;
  std::span<const Tensor> leaves_;
  std::span<const Tensor> roots_;
  size_t nodes_ = 0;
  SourceLocation where_;
  uint64_t number_ = 0;
};

// Hears every backward of the threads on which it is registered, and every backward of any thread that reaches a leaf
// it observes. Calls come on the thread that runs backward. Only outermost backwards are reported; what a nested one
// (inside a node) adds to a leaf belongs to the outer one.
class Listener {
 public:
  virtual ~Listener() = default;
  // May throw: then backward ends with that error (and on_error) before any kernel has run.
  virtual void on_plan(const Plan& plan) = 0;
  // The gradient of the observed leaf is complete. `defined` is false when no gradient arrived in the end.
  virtual void on_grad_ready(uint32_t tag, bool defined) = 0;
  // All nodes have run. May throw: backward ends with that error, after all listeners were called.
  virtual void on_finish(const Plan& plan) = 0;
  // Backward failed, before on_plan (`plan` null: the roots were unusable) or after it. Must not throw; backward
  // rethrows.
  virtual void on_error(const Plan* plan, std::exception_ptr error) noexcept = 0;
};

// For the calling thread, until the listener dies. Listeners are called in the order in which they were added.
void add_listener(const std::shared_ptr<Listener>& listener);

// Asks for on_grad_ready(tag) of this leaf. Throws AutogradError when it is not a leaf.
void observe(const Tensor& leaf, Listener& listener, uint32_t tag);
void stop_observing(const Tensor& leaf, Listener& listener) noexcept;

// Memory in which the leaf's gradient is to be accumulated (undefined: nowhere in particular). Shape and dtype as the
// leaf.
void set_grad_target(const Tensor& leaf, const Tensor& target);
Tensor grad_target(const Tensor& leaf);

}  // namespace brigade::autograd

#include <brigade/autograd/detail/plan.h>
