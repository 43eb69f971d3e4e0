// Warns, once per kind, about legal but suspicious steps: no gradient, averaged twice, stale optimizer.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/tensor.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/errors/verdict.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace brigade::dist {

class Reducer;
struct WrapperLog;

// The parameters of all optimizers of this thread.
std::unordered_set<const TensorImpl*> held_by_optimizers();

class StepHabits {
 public:
  // `parameters`: returns those that the module has at the call.
  StepHabits(Reducer& reducer, WrapperLog& log, std::function<std::vector<NamedParameter>()> parameters);

  // Called before a step of an optimizer that holds a managed parameter. Warnings go to the log.
  void look_at(const autograd::Update& update);
  // Called before a step of an optimizer that holds none.
  void look_at_other(const autograd::Update& update) {
    note_first_step();
    look_for_gone_modules(update);
    look_for_unheld(update);
  }

 private:
  void note_first_step();
  void look_for_backward(const autograd::Update& update);
  void look_for_cleared(const autograd::Update& update);
  void look_for_unreached(const autograd::Update& update);
  void look_for_second_average(const autograd::Update& update);
  void look_for_gone(const autograd::Update& update);
  void look_for_gone_modules(const autograd::Update& update);
  void look_for_broken_ties(const autograd::Update& update);
  void look_for_unheld(const autograd::Update& update);
  // Parameters that are averaged and used, but not held by any optimizer of this thread.
  std::vector<NamedParameter> unheld(const autograd::Update& update) const;
  void warn(Verdict verdict);

  Reducer& reducer_;
  WrapperLog& log_;
  std::function<std::vector<NamedParameter>()> parameters_;
  std::unordered_map<const void*, uint64_t> backwards_at_;  // by optimizer: reduced backwards before its latest step
  // By optimizer: consecutive steps without any gradient of the wrapper although its forward ran before each.
  struct Unreached {
    uint64_t steps = 0;
    uint64_t forward = 0;  // Reducer::waiting_forward() at the latest step
    bool ever = false;     // it had a gradient before
  };
  std::unordered_map<const void*, Unreached> unreached_;
  uint64_t first_step_at_ = 0;         // backwards before the first step, plus one
  uint64_t writes_at_first_step_ = 0;  // autograd::writes_by_hand()
  // Of each managed parameter: how many module members held it when the reducer was constructed or last re-checked.
  std::vector<uint32_t> places_;
  bool looked_for_unheld_ = false;
  bool looked_for_gone_modules_ = false;
};

// --- How checks name a parameter of an optimizer that the wrapper does not manage.

// The name under which a module registered it; otherwise "parameter 1 of SGD#2 (made at train.cpp:5)": its position
// in the second SGD created on this thread, and the line that made it trainable.
std::string name_of_unmanaged(const autograd::Update& update, size_t position);

// --- Merges the warnings of single ranks, so that each is printed once for all ranks.

class Advisories;
class ProcessGroup;

// Takes this rank's undelivered warnings and those held by this process (core/warning.h). Rank 0 issues each with the
// ranks that have it, unless it has already issued that message. Collective.
void share_warnings(Advisories& advisories, ProcessGroup& group, SourceLocation where);

}  // namespace brigade::dist
