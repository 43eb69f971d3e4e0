// How the layers above follow a backward: the plan before it starts, each gradient as it becomes
// complete, and the end.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade::autograd {

class Engine;
class Listener;
struct ScaleFault;

// Where this thread is in what it records: the number of its next node.
uint64_t recorded_nodes() noexcept;

// What a backward is going to do, known before its first kernel runs.
class Plan {
 public:
  // Leaves that will receive a gradient, in no particular order.
  std::span<const Tensor> leaves() const noexcept { return leaves_; }
  // The tensors backward starts from.
  std::span<const Tensor> roots() const noexcept { return roots_; }
  size_t nodes() const noexcept { return nodes_; }
  // Whether a node is among them that the thread of two readings of recorded_nodes() recorded between them.
  bool holds_recorded(uint64_t from, uint64_t to) const noexcept;
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
  const Engine* engine_ = nullptr;
  size_t nodes_ = 0;
  SourceLocation where_;
  uint64_t number_ = 0;
};

// What a loss scaler knows of an optimizer's step. Listeners that ask other ranks set what these know.
struct ScaledStep {
  double loss_scale;       // now
  double grad_factor = 1;  // other than 1: what is to be multiplied into each gradient as it is read
  // A gradient is not finite: nothing will move.
  bool found_inf = false;
  // So was one of another optimizer of the scaler, of whom no other rank has heard yet.
  bool found_elsewhere = false;
  bool is_agreed = false;  // the other ranks were asked
  // What only the device knows, of float32 with one element there: a further factor of the gradients, and whether
  // one of them is not finite. Then found_inf stays false, and the step itself leaves everything as it is. Undefined:
  // the host knows.
  Tensor device_factor = {}, device_found_inf = {};
};

// What an optimizer keeps for one of its parameters, of what ranks that train one model have alike.
struct KeptState {
  size_t position;  // of the parameter
  std::vector<Tensor> tensors;
  int64_t step = 0;  // how often it has moved, where a step reads that; else 0
};

// An optimizer is about to move leaves by their gradients.
struct Update {
  const void* optimizer;  // its identity, while it lives
  std::string name;       // "AdamW"
  uint64_t number;        // of its steps, from 1
  std::span<const Tensor> parameters;
  std::vector<size_t> groups;  // how many of them are in each group of options, in their order
  std::string options;         // its hyperparameters, one group per line: "group 0: lr 0.1, momentum 0.9"
  SourceLocation where;
  bool keeps_state;     // the step depends on earlier ones
  uint64_t serial = 0;  // of the optimizer: no other one of this process has had it
  SourceLocation made_at = {};
  // The line that has loaded its state since the step before; 0: none has.
  SourceLocation state_loaded_at = {};
  bool state_is_shared = false;  // its tensors were handed out, and may be written to
  std::function<std::vector<KeptState>()> state = nullptr;
  // Null for a step without a loss scaler.
  ScaledStep* scaled = nullptr;
  // false: no step follows; only `scaled` is asked for.
  bool moves = true;
  // What the optimizer has found itself: it throws that when the listeners have been told, so that other ranks do
  // not step without this one. Null: nothing.
  const ScaleFault* scale_fault = nullptr;
};

// Hears every backward of the threads on which it is registered, and every backward of any thread
// that reaches a leaf it observes. Calls come on the thread that runs backward. Only outermost
// backwards are reported; what a nested one (inside a node) adds to a leaf belongs to the outer
// one.
class Listener {
 public:
  virtual ~Listener() = default;
  // May throw: then backward ends with that error (and on_error) before any kernel has run.
  virtual void on_plan(const Plan& plan) = 0;
  // The gradient of the observed leaf is complete. `defined` is false when no gradient arrived in
  // the end.
  virtual void on_grad_ready(uint32_t tag, bool defined) = 0;
  // All nodes have run. May throw: backward ends with that error, after all listeners were called.
  virtual void on_finish(const Plan& plan) = 0;
  // The roots are unusable: on_error without a plan follows, when all listeners have heard this. Must not throw.
  virtual void on_refused() noexcept {}
  // Backward failed, before on_plan (`plan` null: the roots were unusable) or after it. Must not
  // throw; backward rethrows.
  virtual void on_error(const Plan* plan, std::exception_ptr error) noexcept = 0;
  // Asked after on_plan: shall this backward look for the operation in which gradients stop being
  // finite? Then on_non_finite is called once, for the first whose own gradients are finite and
  // whose results are not. Costs a pass over every gradient.
  virtual bool looks_for_non_finite() const { return false; }
  // `dtype`: of the result, which may have left the range of a half type.
  virtual void on_non_finite(const char* op, SourceLocation where, DType dtype) {
    static_cast<void>(op);
    static_cast<void>(where);
    static_cast<void>(dtype);
  }
  // An optimizer of a thread on which the listener is registered, or one that holds a leaf it
  // observes, is about to step. May throw: then nothing moves.
  virtual void on_update(const Update& update) { static_cast<void>(update); }
  // That step has ended, or thrown.
  virtual void on_update_end() noexcept {}
  // Gradients of these leaves, some of which it observes, are about to be read as those of a
  // finished backward: by an optimizer (then on_update follows), or by clipping. May throw: then
  // nothing is read.
  virtual void on_gradients_wanted(std::span<const Tensor> leaves) { static_cast<void>(leaves); }
};

// Tells those who observe one of the leaves.
void announce_reading(std::span<const Tensor> leaves);
// Tells the listeners of an optimizer's step: that it begins, and, when this object dies, that it
// has ended. `parameters` outlive it. `describe` makes the update; it is called only when someone
// listens.
class AnnouncedUpdate {
 public:
  AnnouncedUpdate(std::span<const Tensor> parameters, const std::function<Update()>& describe);
  ~AnnouncedUpdate();
  AnnouncedUpdate(const AnnouncedUpdate&) = delete;
  AnnouncedUpdate& operator=(const AnnouncedUpdate&) = delete;

 private:
  std::vector<Listener*> listeners() const;

  std::span<const Tensor> parameters_;
  bool is_silent_;
  std::vector<std::shared_ptr<Listener>> registered_;  // kept alive while they are called
};
// While it lives, steps on this thread are not announced: for an optimizer inside another one.
class SilentUpdates {
 public:
  SilentUpdates() noexcept;
  ~SilentUpdates();
  SilentUpdates(const SilentUpdates&) = delete;
  SilentUpdates& operator=(const SilentUpdates&) = delete;
};

// For the calling thread, until the listener dies. Listeners are called in the order in which they
// were added.
void add_listener(const std::shared_ptr<Listener>& listener);

// Asks for on_grad_ready(tag) of this leaf. Throws AutogradError when it is not a leaf.
void observe(const Tensor& leaf, Listener& listener, uint32_t tag);
void stop_observing(const Tensor& leaf, Listener& listener) noexcept;

// Memory in which the leaf's gradient is to be accumulated (undefined: nowhere in particular).
// Shape and dtype as the leaf.
void set_grad_target(const Tensor& leaf, const Tensor& target);
Tensor grad_target(const Tensor& leaf);

}  // namespace brigade::autograd

#include <brigade/autograd/detail/plan.h>
