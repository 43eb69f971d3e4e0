// StepCheck: what an optimizer is about to do, checked before it moves a weight.
//
// Each rank looks at the stamps of the gradients (where do they come from?), without any
// communication. Then the ranks agree: one all-reduce of 64 bytes says whether they are in the same
// step, with the same hyperparameters, the same set of gradients, and whether those that were edited
// or put in place by hand have the same values. Only if they are not, more is exchanged, and where
// values differ all ranks throw the same ConsistencyError; nothing has moved then.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/checks/autocast_modes.h>
#include <brigade/dist/checks/gradient_values.h>
#include <brigade/dist/checks/layer_modes.h>
#include <brigade/dist/checks/local_steps.h>
#include <brigade/dist/checks/step_habits.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/reducer/reducer.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace brigade::dist {

struct StepCheckOptions {
  // Every K-th step of an optimizer: compare parameters, gradients and the ranks' own buffers by
  // hash. 0: never.
  uint64_t verify_every = 0;
  bool own_buffers = false;  // each rank keeps its own: they are not broadcast
};

// The group of options that a parameter of an optimizer is in; positions are asked for in ascending order.
class GroupAt {
 public:
  // `sizes`: of the groups; none for an optimizer that has one.
  explicit GroupAt(std::span<const size_t> sizes) noexcept : sizes_(sizes), end_(sizes.empty() ? 0 : sizes.front()) {}
  size_t operator()(size_t position) noexcept {
    while (position >= end_ && group_ + 1 < sizes_.size())
      end_ += sizes_[++group_];
    return group_;
  }

 private:
  std::span<const size_t> sizes_;
  size_t group_ = 0, end_;
};

class StepCheck {
 public:
  // The keys of advisories.
  static constexpr const char* kModesDiffer = "modes_differ";
  static constexpr const char* kAutocastDiffers = "autocast_differs";
  static constexpr const char* kHookResultsDiffer = "hook_result differs";
  using Tensors = std::function<std::vector<NamedParameter>()>;
  // `parameters`, `buffers`: those of the module as they are now. `ignored`: tensors that the user
  // excluded.
  StepCheck(Reducer& reducer, ProcessGroup& group, StepCheckOptions options, Tensors parameters, Tensors buffers,
            std::unordered_set<const TensorImpl*> ignored, const nn::Module& module);
  ~StepCheck();
  StepCheck(const StepCheck&) = delete;
  StepCheck& operator=(const StepCheck&) = delete;

  // Throws ConsistencyError.
  void operator()(const autograd::Update& update);
  // Before a forward of the wrapper that records.
  void look_at_modes() {
    modes_.look(reducer_.rounds());
    autocast_.look(reducer_.rounds());
  }
  // In a join nothing is checked. The ranks may have taken different numbers of steps there: those
  // of an optimizer that keeps no state are counted from its end. So it is in the join of another wrapper with which
  // this one shares parameters.
  void pause_for_join() noexcept { is_paused_ = true; }
  void resume_after_join() noexcept;
  // Collective, at the end of a join in which some ranks had less data: all learn which optimizers
  // have stepped less often on some of them, so that the next join refuses those that keep state as
  // a step outside does.
  void compare_steps_of_join(SourceLocation where);

 private:
  // Of a step by gradients that the communication hook has let stay local.
  void look_at_local(const autograd::Update& update);
  // On one step, with the other ranks.
  void agree(const autograd::Update& update);
  // What stops the step of a loss scaler counts in what another of its optimizers has found.
  enum Found : int64_t { kNothing, kElsewhere, kHere };
  // After it, on all ranks alike.
  void tell_scaler(const autograd::Update& update, Found found) const;
  // How many steps the optimizer had taken when the latest join ended, and which step this is
  // since.
  struct Count {
    uint64_t in_join, since;
    bool of_all;  // those in the join count: the step depends on them
  };
  Count count_of(const autograd::Update& update) const;
  void count(const autograd::Update& update);
  // Throws where the ranks have come out of an uneven join with other states of the optimizer.
  void refuse_after_uneven_join(const autograd::Update& update);
  // What this rank alone can see.
  std::vector<Verdict> audit(const autograd::Update& update);
  // What the optimizer has found itself.
  Verdict scale_fault(const autograd::Update& update) const;
  // The gradient of a managed parameter is averaged by another wrapper, which knows where it comes from.
  bool is_judged_elsewhere(int64_t managed) const {
    return reducer_.sharing(static_cast<uint32_t>(managed)) == Sharing::Elsewhere;
  }
  // By another wrapper; or that one leaves it alone because its user wants so.
  bool is_managed_elsewhere(const Tensor& parameter) const;
  // In that of another wrapper of this rank, which tells why it manages it not: it was frozen, or added later.
  bool is_in_other_module(const Tensor& parameter) const;
  Verdict unmanaged(const autograd::Update& update, size_t position, const std::vector<NamedParameter>& current) const;
  std::optional<Verdict> look_at(uint32_t managed, const autograd::GradStamp& stamp, SourceLocation step_at) const;
  // Everything in which the ranks have to agree.
  StepOnRank own_step(const autograd::Update& update) const;
  struct Agreement {
    uint64_t digest = 0;
    ValuesDigest values;  // of gradients that are not as they were reduced
  };
  Agreement agreement(const autograd::Update& update) const;
  // The optimizer's state, of what the reducer manages, in the order of its parameters.
  struct StateValues {
    std::vector<GradientValues> tensors;
    std::vector<size_t> positions;  // of each tensor: the optimizer's parameter
    std::vector<int64_t> steps;     // of each parameter, where the optimizer reads it; else 0
  };
  StateValues state_of(const autograd::Update& update) const;
  // Of the optimizer's, those that were written by hand since its latest step, by their positions there. What has
  // left no line (memory written through data_ptr(), and bump_version()) counts as well, without one.
  std::vector<std::pair<size_t, StepOnRank::Edit>> written_by_hand(const autograd::Update& update) const;
  // Tensors of the optimizer's state that were written by hand since its latest step, by their parameters.
  std::vector<StepOnRank::Edit> state_written(const autograd::Update& update) const;
  // Buffers that this rank has replaced since the optimizer's latest step.
  std::vector<StepOnRank::Edit> buffers_replaced(const autograd::Update& update) const;
  // Writes to a managed gradient since it was reduced.
  std::vector<autograd::Write> edits_of(uint32_t managed, const Tensor& grad) const;
  // Whether something that has left no line has written to it, or to what shares its bucket.
  bool may_be_edited_unseen(uint32_t managed, const Tensor& grad) const;
  // Of the named ones, those that have other values on some rank.
  enum class Compared : uint8_t { Gradients, Parameters };
  std::vector<GradientsApart> differing(const std::vector<NamedParameter>& parameters, Compared compared,
                                        const Topic& about, SourceLocation where) const;
  // Where the ranks hold other states of the optimizer since some have loaded one, or written to theirs.
  std::optional<Verdict> differing_state(const autograd::Update& update, std::span<const StepOnRank> steps,
                                         const Topic& about) const;
  // Those of which a tensor of the state is not alike on all ranks. `positions`: of the tensors' parameters.
  std::vector<NamedParameter> parameters_of(std::span<const std::vector<GradientValues>> states,
                                            std::span<const size_t> positions, const autograd::Update& update) const;
  // Where the communication hook has left other gradients on the ranks.
  std::vector<GradientsApart> left_apart_by_hook(std::span<const StepOnRank> steps, const Topic& about,
                                                 SourceLocation where) const;
  // The ranks' agreements differ: in what? Warnings are kept, the same on all ranks.
  std::vector<Verdict> compare(const autograd::Update& update, const Topic& about);
  // Where they differ, for the forwards that the gradients come from.
  void tell_of_modes(std::span<const StepOnRank> steps);
  void verify(const autograd::Update& update);
  void warn_of_retained_graphs(const autograd::Update& update);
  // What the ranks have found, on all of them; not where the optimizer throws what it has found itself.
  void raise_of_all(const autograd::Update& update, const std::vector<Verdict>& own, const Topic& about) const;
  [[noreturn]] void raise(const autograd::Update& update, std::vector<Verdict> verdicts) const;

  Reducer& reducer_;
  ProcessGroup& group_;
  StepCheckOptions options_;
  Tensors parameters_;
  Tensors buffers_;
  std::unordered_set<const TensorImpl*> ignored_;
  bool is_paused_ = false;
  uint64_t joins_ = 0;  // of other wrappers, that have ended
  struct Steps {
    uint64_t latest = 0;
    uint64_t in_join = 0;       // up to the end of the latest join
    bool loaded_since = false;  // a state, since that end
    uint64_t writes_seen = 0;   // autograd::writes_by_hand() at the latest
    // Versions of the parameters' memory before the latest, and whether it has moved them.
    std::vector<uint32_t> versions = {};
    bool has_moved = false;

    void compared(const autograd::Update& update, bool moves);
    // False: nothing but that step has written to it since.
    bool may_be_written(size_t position, const Tensor& parameter) const;
  };
  std::unordered_map<const void*, Steps> steps_;  // by the identity of the optimizer
  // By Update::serial: the steps of all ranks at the end of the latest join, where they were not alike.
  std::unordered_map<uint64_t, std::vector<uint64_t>> uneven_;
  StepHabits habits_;
  LayerModes modes_;
  AutocastModes autocast_;
  std::shared_ptr<LocalSteps> local_steps_;  // the group has it as well
};

}  // namespace brigade::dist
