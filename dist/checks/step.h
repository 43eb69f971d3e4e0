// StepCheck: what an optimizer is about to do, checked before it moves a weight.
//
// Each rank looks at the stamps of the gradients (where do they come from?), without any
// communication. Then the ranks agree: one all-reduce of 24 bytes says whether they are in the same
// step, with the same hyperparameters, the same set of gradients, edited by hand in the same way.
// Only if they are not, more is exchanged, and all ranks throw the same ConsistencyError; nothing
// has moved then.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/reducer/reducer.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace brigade::dist {

struct StepCheckOptions {
  // Every K-th step of an optimizer: compare parameters, gradients and (where they are not
  // broadcast) buffers by hash. 0: never.
  uint64_t verify_every = 0;
  bool verify_buffers = false;
};

class StepCheck {
 public:
  using Tensors = std::function<std::vector<NamedParameter>()>;
  // `parameters`, `buffers`: those of the module as they are now. `ignored`: tensors that the user
  // excluded.
  StepCheck(Reducer& reducer, ProcessGroup& group, StepCheckOptions options, Tensors parameters, Tensors buffers,
            std::unordered_set<const TensorImpl*> ignored);

  // Throws ConsistencyError.
  void operator()(const autograd::Update& update);
  // In a join nothing is checked. The ranks may have taken different numbers of steps there: those
  // of an optimizer that keeps no state are counted from its end.
  void rest() noexcept { rests_ = true; }
  void resume_after_join() noexcept;

 private:
  // How many steps the optimizer had taken when the latest join ended, and which step this is
  // since.
  struct Count {
    uint64_t in_join, since;
  };
  Count count_of(const autograd::Update& update) const;
  void count(const autograd::Update& update);
  // What this rank alone can see.
  std::vector<Verdict> audit(const autograd::Update& update);
  bool is_managed_elsewhere(const Tensor& parameter) const;
  Verdict unmanaged(const autograd::Update& update, size_t position, const std::vector<NamedParameter>& current) const;
  std::optional<Verdict> look_at(uint32_t managed, const autograd::GradStamp& stamp, SourceLocation step_at) const;
  // Everything in which the ranks have to agree.
  StepOnRank own_step(const autograd::Update& update) const;
  uint64_t digest(const autograd::Update& update) const;
  // The ranks' digests differ: in what?
  std::vector<Verdict> compare(const autograd::Update& update, std::string_view about) const;
  void verify(const autograd::Update& update);
  void warn_of_retained_graphs(const autograd::Update& update);
  [[noreturn]] void raise(const autograd::Update& update, std::vector<Verdict> verdicts) const;

  Reducer& reducer_;
  ProcessGroup& group_;
  StepCheckOptions options_;
  Tensors parameters_;
  Tensors buffers_;
  std::unordered_set<const TensorImpl*> ignored_;
  bool rests_ = false;
  struct Steps {
    uint64_t latest = 0;
    uint64_t in_join = 0;  // up to the end of the latest join
  };
  std::unordered_map<const void*, Steps> steps_;  // by the identity of the optimizer
};

}  // namespace brigade::dist
