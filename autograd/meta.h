// Autograd's state of one tensor.
#pragma once

#include <brigade/autograd/gradient_scale.h>
#include <brigade/autograd/node.h>
#include <brigade/autograd/views.h>
#include <brigade/autograd/write_log.h>

#include <string>

namespace brigade::autograd {

class Listener;

// Where the gradient of a leaf comes from. Kept up to date by backward and by the functions that replace the gradient;
// layers above check it before the gradient moves a weight.
struct GradStamp {
  uint32_t backwards = 0;       // backwards that have added to it since it was cleared
  uint32_t uses = 0;            // optimizer steps that have used it since it was cleared
  uint32_t backwards_used = 0;  // `backwards` at the latest of these steps
  bool by_hand = false;         // put there by set_grad()
  bool is_mean = false;         // mean over ranks: no backward ran since it was averaged
  uint64_t last_backward = 0;   // Plan::number of the latest backward that added to it
  uint64_t writes_at_use = 0;   // writes_so_far() after the latest of these steps,
  uint64_t writes_at_next = 0;  // and when the next backward after it first added to the gradient
  SourceLocation last_backward_at;
  SourceLocation set_at;   // of the latest set_grad()
  SourceLocation used_at;  // of the latest step
  ScaleStamp scale;

  void on_backward(uint64_t number, SourceLocation where) noexcept {
    if (uses > 0 && backwards == backwards_used) writes_at_next = writes_so_far();
    ++backwards;
    is_mean = false;
    last_backward = number;
    last_backward_at = where;
  }
  // The gradient was filled with zeros.
  void on_zeros() noexcept { *this = {}; }
  void on_step(SourceLocation where) noexcept {
    ++uses;
    backwards_used = backwards;
    used_at = where;
    writes_at_use = writes_so_far();
  }
  // The gradient is now the mean over ranks. A gradient that only peers contributed to counts as one from this rank's
  // own backward.
  void on_reduction(uint64_t number, SourceLocation where) noexcept {
    by_hand = false;
    if (backwards == 0) on_backward(number, where);
    is_mean = true;
  }
};

struct AutogradMeta final : AutogradMetaBase {
  // Where retain_grad() keeps the gradient of a result.
  std::shared_ptr<Tensor> retained;
  uint64_t retained_by = 0;  // the handle of the hook

  // The gradient of a leaf.
  Tensor grad;
  // Memory in which the gradient is to live (a view of a DDP bucket). When it is set, `grad` is
  // either undefined or, after the first contribution, this very tensor.
  Tensor grad_target;
  GradStamp stamp;

  // --- Changes of a leaf's gradient.

  // Adds to the gradient, in its target if it has one. `create_graph`: the addition is recorded, at `where`. Warns when
  // a target has to drop the history.
  void accumulate(Tensor gradient, bool create_graph, SourceLocation where);
  // Moves a gradient that lies elsewhere into the target, which must be set. Returns whether there is a gradient.
  bool adopt_target();
  // Makes the target's content the gradient: it was written there directly.
  void take_target();
  // Replaces the gradient's tensor and keeps its stamp.
  void hold(Tensor gradient) { grad = std::move(gradient); }
  // Notes that this hook has changed a gradient.
  void note_changing_hook(uint64_t handle) noexcept {
    for (Hook& hook : hooks)
      hook.has_changed = hook.has_changed || hook.handle == handle;
  }
  // Sets the gradient on behalf of the user.
  void set_by_hand(const Tensor& gradient, SourceLocation where);
  void clear() {
    grad = Tensor();
    stamp = {};
  }

  // The line that last switched requires_grad, and the line that registered it as a parameter of a
  // module.
  SourceLocation requires_grad_set_at;
  SourceLocation registered_at;
  std::string registered_as;     // its name there
  uint32_t held_by_modules = 0;  // number of places in living modules that hold it
  struct Hook {
    uint64_t handle;
    std::function<Tensor(const Tensor&)> call;
    SourceLocation where;      // of its registration
    bool has_changed = false;  // it has changed a gradient, not only read it
  };
  std::vector<Hook> hooks;
  struct PostAccumulateHook {
    uint64_t handle;
    std::function<void(const Tensor&)> call;
    SourceLocation where;
  };
  std::vector<PostAccumulateHook> post_accumulate_hooks;
  // Listeners to notify when this leaf's gradient is complete; the tag is the listener's own name for the leaf.
  struct Observer {
    Listener* listener;
    uint32_t tag;
  };
  std::vector<Observer> observers;

  // Place of this leaf in the backward that is running (0: none).
  uint64_t task = 0;
  uint32_t task_index = 0;
};

// No other tensor can see this memory, so it may be kept or written to.
inline bool is_exclusive(const Tensor& tensor) noexcept {
  return tensor.use_count() == 1 && tensor.storage()->use_count() == 1 && tensor.is_contiguous() &&
         tensor.storage()->home() == nullptr;
}

// The meta of a tensor, nullptr when it has none.
inline AutogradMeta* meta(const Tensor& tensor) noexcept {
  return static_cast<AutogradMeta*>(tensor.impl()->autograd.get());
}
// The node that made a tensor, nullptr for a leaf. A view whose base has been written to takes over
// the new history.
inline Node* grad_fn(const Tensor& tensor) {
  if (tensor.impl()->has_stale_history()) refresh_view(tensor);
  return static_cast<Node*>(tensor.impl()->grad_fn.get());
}
// Creates the meta if it is missing.
AutogradMeta& ensure_meta(const Tensor& tensor);

}  // namespace brigade::autograd
