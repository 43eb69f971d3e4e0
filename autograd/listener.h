// Lets higher layers follow a backward: the plan before it starts, each gradient as it completes, and the end.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace brigade::autograd {

class Engine;
class GatheredGraph;
class Listener;
struct ScaleFault;

// This thread's position in its recording: the number of its next node.
uint64_t recorded_nodes() noexcept;

// The work of a backward, known before its first kernel runs.
class Plan {
 public:
  // Leaves that will receive a gradient, in no particular order.
  std::span<const Tensor> leaves() const noexcept { return leaves_; }
  // The tensors backward starts from.
  std::span<const Tensor> roots() const noexcept { return roots_; }
  size_t nodes() const noexcept { return nodes_; }
  // Whether the plan has a node that a thread recorded between two of its readings of recorded_nodes(), `from` and
  // `to`.
  bool holds_recorded(uint64_t from, uint64_t to) const noexcept;
  // The call of backward, and its number on this thread (from 1).
  SourceLocation where() const noexcept { return where_; }
  uint64_t number() const noexcept { return number_; }
  // Whether another backward may follow on the same graph (retain_graph).
  bool keeps_graph() const noexcept { return keeps_graph_; }

  // Calls f(tag) for each planned leaf that `listener` observes.
  template <class F>
  void for_each_observed(const Listener* listener, F&& f) const;

 private:
  friend class Engine;
  std::span<const Tensor> leaves_;
  std::span<const Tensor> roots_;
  const GatheredGraph* graph_ = nullptr;
  size_t nodes_ = 0;
  SourceLocation where_;
  uint64_t number_ = 0;
  bool keeps_graph_ = false;
};

// A loss scaler's knowledge of an optimizer's step. Listeners that ask other ranks update it.
struct ScaledStep {
  double loss_scale;       // current value
  double grad_factor = 1;  // other than 1: the factor to multiply into each gradient as it is read
  // A gradient is not finite: no parameter will move.
  bool found_inf = false;
  // Another optimizer of the scaler has a non-finite gradient, and the other ranks do not know of it yet.
  bool found_elsewhere = false;
  bool is_agreed = false;  // the other ranks were asked
  // Values that only the device knows, float32 with one element there: a further factor of the gradients, and whether
  // one of them is not finite. In that case found_inf stays false, and the step itself leaves everything unchanged.
  // Undefined: the host knows.
  Tensor device_factor = {}, device_found_inf = {};
};

// An optimizer's state for one of its parameters, limited to what is equal on all ranks that train one model.
struct KeptState {
  size_t position;  // of the parameter
  std::vector<Tensor> tensors;
  int64_t step = 0;  // how often it has moved, if a step reads that; otherwise 0
};

// Announces that an optimizer is about to move leaves by their gradients.
struct Update {
  const void* optimizer;  // its identity, while it lives
  std::string name;       // "AdamW"
  uint64_t number;        // of its steps, from 1
  std::span<const Tensor> parameters;
  std::vector<size_t> groups;  // the number of parameters in each group of options, in their order
  // Composes its hyperparameters, one group per line: "group 0: lr 0.1, momentum 0.9".
  std::function<std::string()> options;
  SourceLocation where;
  bool keeps_state;     // the step depends on earlier ones
  uint64_t serial = 0;  // unique to this optimizer in the process
  SourceLocation made_at = {};
  // The line that has loaded its state since the previous step; 0: none has.
  SourceLocation state_loaded_at = {};
  bool state_is_shared = false;  // its tensors were handed out, and may be written to
  std::function<std::vector<KeptState>()> state = nullptr;
  // Null for a step without a loss scaler.
  ScaledStep* scaled = nullptr;
  // false: no step follows; this call only asks about `scaled`.
  bool moves = true;
  // A fault that the optimizer has found itself. It throws after the listeners have been notified, so that other ranks
  // do not step without this one. Null: none.
  const ScaleFault* scale_fault = nullptr;
};

// Is notified of every backward on the threads on which it is registered, and of every backward on any thread that
// reaches a leaf it observes. Calls come on the thread that runs backward. Only outermost backwards are reported; the
// gradients that a nested backward (inside a node) adds to a leaf belong to the outer one.
class Listener {
 public:
  virtual ~Listener() = default;
  // May throw: then backward ends with that error (and calls on_error) before any kernel has run.
  virtual void on_plan(const Plan& plan) = 0;
  // The gradient of the observed leaf is complete. `defined` is false when no gradient arrived in
  // the end.
  virtual void on_grad_ready(uint32_t tag, bool defined) = 0;
  // All nodes have run. May throw: backward ends with that error, after all listeners were called.
  virtual void on_finish(const Plan& plan) = 0;
  // The roots are unusable. on_error without a plan follows after all listeners were called. Must not throw.
  virtual void on_refused() noexcept {}
  // Backward failed, before on_plan (`plan` null: the roots were unusable) or after it. Must not
  // throw; backward rethrows.
  virtual void on_error(const Plan* plan, std::exception_ptr error) noexcept = 0;
  // Called after on_plan: whether this backward should look for the operation in which gradients stop being finite. If
  // so, on_non_finite is called once, for the first operation whose incoming gradients are finite and whose results are
  // not. Costs a pass over every gradient.
  virtual bool looks_for_non_finite() const { return false; }
  // `dtype` is that of the result, which may have overflowed a half type.
  virtual void on_non_finite(const char* op, SourceLocation where, DType dtype) {
    static_cast<void>(op);
    static_cast<void>(where);
    static_cast<void>(dtype);
  }
  // An optimizer of a thread on which the listener is registered, or one that holds a leaf that the listener observes,
  // is about to step. May throw: then no parameter moves.
  virtual void on_update(const Update& update) { static_cast<void>(update); }
  // That step has ended or thrown.
  virtual void on_update_end() noexcept {}
  // Gradients of these leaves, some of which the listener observes, are about to be read as those of a finished
  // backward: by an optimizer (then on_update follows) or by clipping. May throw: then nothing is read.
  virtual void on_gradients_wanted(std::span<const Tensor> leaves) { static_cast<void>(leaves); }
};

// Notifies the listeners that observe one of the leaves.
void announce_reading(std::span<const Tensor> leaves);
// RAII: notifies listeners that an optimizer's step begins and, on destruction, that it has ended. `parameters` must
// outlive it. `describe` makes the update; it is called only if there are listeners.
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
// RAII: steps on this thread are not announced. For an optimizer inside another one.
class SilentUpdates {
 public:
  SilentUpdates() noexcept;
  ~SilentUpdates();
  SilentUpdates(const SilentUpdates&) = delete;
  SilentUpdates& operator=(const SilentUpdates&) = delete;
};

// Registers a listener for the calling thread until the listener dies. Listeners are called in the order in which they
// were added.
void add_listener(const std::shared_ptr<Listener>& listener);

// Requests on_grad_ready(tag) for this leaf. Throws AutogradError when it is not a leaf.
void observe(const Tensor& leaf, Listener& listener, uint32_t tag);
void stop_observing(const Tensor& leaf, Listener& listener) noexcept;

// Memory in which the leaf's gradient is to be accumulated (undefined: no fixed place). Its shape and dtype are those
// of the leaf.
void set_grad_target(const Tensor& leaf, const Tensor& target);
Tensor grad_target(const Tensor& leaf);

}  // namespace brigade::autograd

#include <brigade/autograd/detail/plan.h>
