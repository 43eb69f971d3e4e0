// StepCheck: checks what an optimizer is about to do before it moves a weight.
//
// Each rank inspects the stamps of its gradients (where they come from), without communication. Then the ranks agree:
// one all-reduce of 64 bytes shows whether they are in the same step, with the same hyperparameters, the same set of
// gradients, and the same values of gradients that were edited or set by hand. Only on a mismatch do they exchange
// more; where values differ, all ranks throw the same ConsistencyError, before anything has moved.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/checks/gradient_values.h>
#include <brigade/dist/checks/modes.h>
#include <brigade/dist/checks/step_habits.h>
#include <brigade/dist/checks/unsynced_steps.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/reducer.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace brigade::dist {

struct StepCheckOptions {
  // Compare parameters, gradients and rank-local buffers by hash in every K-th step of an optimizer. 0: never.
  uint64_t verify_every = 0;
  bool own_buffers = false;  // each rank keeps its own buffers: they are not broadcast
  bool diagnosis = true;     // look for habits and for edits that no log has noted, too
};

// The module whose steps are checked.
struct CheckedModule {
  using Tensors = std::function<std::vector<NamedParameter>()>;

  const nn::Module& module;
  Tensors parameters, buffers;                    // return those that the module has at the call
  std::unordered_set<const TensorImpl*> ignored;  // tensors that the user excluded
};

// Maps a parameter's position in an optimizer to its parameter group; positions must be passed in ascending order.
class GroupAt {
 public:
  // `sizes`: of the parameter groups; empty for an optimizer with a single group.
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
  // Keys of the advisories.
  static constexpr const char* kModesDiffer = "modes_differ";
  static constexpr const char* kAutocastDiffers = "autocast_differs";
  static constexpr const char* kHookResultsDiffer = "hook_result differs";
  static constexpr const char* kBuffersDrift = "buffers drift";
  // Warnings and notes go to the log.
  StepCheck(Reducer& reducer, WrapperLog& log, StepCheckOptions options, CheckedModule checked);
  ~StepCheck();
  StepCheck(const StepCheck&) = delete;
  StepCheck& operator=(const StepCheck&) = delete;

  // Throws ConsistencyError if the ranks must not take this step.
  void operator()(const autograd::Update& update);
  // Called before a forward of the wrapper that records.
  void look_at_modes() {
    modes_.look(reducer_.past().rounds);
    autocast_.look(reducer_.past().rounds);
  }
  // Disables the checks during a join, where ranks may take different numbers of steps. The steps of an optimizer
  // without state are then counted from the end of the join. The same holds in a join of another wrapper that shares
  // parameters with this one.
  void pause_for_join() noexcept { is_paused_ = true; }
  void resume_after_join() noexcept;
  // Called at the end of a join in which some ranks had less data: all ranks learn which optimizers have taken fewer
  // steps on some of them, so that the next join refuses those that keep state, as a step outside a join does.
  // Collective.
  void compare_steps_of_join(SourceLocation where);

 private:
  // Inspects a step with gradients that the communication hook has left local.
  void look_at_local(const autograd::Update& update);
  // Agrees on one step with the other ranks.
  void agree(const autograd::Update& update);
  // Whether a loss scaler found a non-finite gradient: in this optimizer, or in another one of the scaler.
  enum Found : int64_t { kNothing, kElsewhere, kHere };
  // Stores the agreed result in the scaler's step, the same on all ranks.
  void answer_scaler(const autograd::Update& update, Found found) const;
  // The optimizer's step count at the end of the latest join, and the number of this step since then.
  struct Count {
    uint64_t in_join, since;
    bool of_all;  // the steps in the join count too: this step depends on them
  };
  Count count_of(const autograd::Update& update) const;
  void count(const autograd::Update& update);
  // Throws if the ranks left an uneven join with different states of the optimizer.
  void refuse_after_uneven_join(const autograd::Update& update);
  // Checks what this rank can see alone.
  std::vector<Verdict> audit(const autograd::Update& update);
  // The fault that the optimizer itself has found.
  Verdict scale_fault(const autograd::Update& update) const;
  // Whether another wrapper averages the gradient of this managed parameter, and so checks it.
  bool is_judged_elsewhere(int64_t managed) const {
    return reducer_.setup().sharing[static_cast<uint32_t>(managed)] == Sharing::Elsewhere;
  }
  // False for local SGD and for inner steps: each rank has gradients, and weights, of its own.
  bool uses_means() const noexcept { return reducer_.past().backward.sent && !inner_.is_now(); }
  // Whether another wrapper averages the parameter, or ignores it at the user's request.
  bool is_managed_elsewhere(const Tensor& parameter) const;
  // Whether the parameter belongs to the module of another wrapper of this rank, which then reports why it does not
  // manage it (frozen, or added later).
  bool is_in_other_module(const Tensor& parameter) const;
  Verdict unmanaged(const autograd::Update& update, size_t position, const std::vector<NamedParameter>& current) const;
  std::optional<Verdict> look_at(uint32_t managed, const autograd::GradStamp& stamp, SourceLocation step_at) const;
  // Everything that has to match over the ranks.
  StepOnRank own_step(const autograd::Update& update) const;
  struct Agreement {
    uint64_t digest = 0;
    ValuesDigest values;  // of gradients that were changed since their reduction
    bool has_updated_buffers = false;
  };
  Agreement agreement(const autograd::Update& update) const;
  // The optimizer's state for the parameters that the reducer manages, in the order of its parameters.
  struct StateValues {
    std::vector<GradientValues> tensors;
    std::vector<size_t> positions;  // of each tensor: position of its parameter in the optimizer
    std::vector<int64_t> steps;     // of each parameter, if the optimizer reads it; else 0
  };
  StateValues state_of(const autograd::Update& update) const;
  // The optimizer's parameters, by position, that were written by hand since its latest step. Writes without a
  // recorded line (through data_ptr(), and bump_version()) are included, with no line. Each with its writes.
  std::vector<std::pair<size_t, std::vector<StepOnRank::Edit>>> written_by_hand(const autograd::Update& update) const;
  // Whether the step, for which the audit has found this, is one on this rank's own gradients that the program can take
  // back before the next step on averages (the inner steps of first-order MAML): another optimizer holds all that it
  // moves, and the program has made copies.
  bool is_inner(const autograd::Update& update, std::span<const Verdict> found);
  // Of the latest inner steps, if these verdicts show that some of the weights that they moved were not put back.
  std::vector<Verdict> not_taken_back(std::span<const Verdict> verdicts) const;
  // The optimizer's state tensors that were written by hand since its latest step, by parameter.
  std::vector<StepOnRank::Edit> state_written(const autograd::Update& update) const;
  // Buffers that this rank has replaced since the optimizer's latest step.
  std::vector<StepOnRank::Edit> buffers_replaced(const autograd::Update& update) const;
  // Buffers that forward has updated since then, in the first steps that have any.
  std::vector<StepOnRank::Edit> buffers_updated(const autograd::Update& update) const;
  // Tells once of buffers that the forwards of all ranks update and that differ in two steps in a row.
  void warn_of_drift(std::span<const StepOnRank> steps, const Topic& about, SourceLocation where);
  // Writes to a managed gradient since it was reduced.
  std::vector<autograd::Write> edits_of(uint32_t managed, const Tensor& grad) const;
  // Whether a write without a recorded line has reached the gradient, or memory that shares its bucket.
  bool may_be_edited_unseen(uint32_t managed, const Tensor& grad) const;
  // The `parameters` whose values differ on some rank.
  enum class Compared : uint8_t { Gradients, Parameters };
  std::vector<GradientsApart> differing(const std::vector<NamedParameter>& parameters, Compared compared,
                                        const Topic& about, SourceLocation where) const;
  // A verdict if the ranks hold different states of the optimizer because some have loaded one or written to theirs.
  std::optional<Verdict> differing_state(const autograd::Update& update, std::span<const StepOnRank> steps,
                                         const Topic& about) const;
  // The parameters with a state tensor that differs between ranks. `positions`: of each tensor's parameter.
  std::vector<NamedParameter> parameters_of(std::span<const std::vector<GradientValues>> states,
                                            std::span<const size_t> positions, const autograd::Update& update) const;
  // The gradients that the communication hook has left different on the ranks.
  std::vector<GradientsApart> left_apart_by_hook(std::span<const StepOnRank> steps, const Topic& about,
                                                 SourceLocation where) const;
  // Finds in what the agreements of the ranks differ. Warnings go to the advisories, the same on all ranks.
  std::vector<Verdict> compare(const autograd::Update& update, const Topic& about);
  // Warns if the forwards of these gradients ran in different train/eval or autocast modes on the ranks, or one rank has
  // left out a batch.
  void warn_of_differences(std::span<const StepOnRank> steps);
  void verify(const autograd::Update& update);
  void warn_of_retained_graphs(const autograd::Update& update);
  // Raises the findings of all ranks on every rank, unless the optimizer is about to throw its own fault.
  void raise_of_all(const autograd::Update& update, const std::vector<Verdict>& own, const Topic& about) const;
  [[noreturn]] void raise(const autograd::Update& update, std::vector<Verdict> verdicts) const;

  Reducer& reducer_;
  ProcessGroup& group_;
  WrapperLog& log_;
  StepCheckOptions options_;
  CheckedModule checked_;
  bool is_paused_ = false;
  uint64_t joins_ = 0;  // ended joins of other wrappers
  struct Steps {
    uint64_t latest = 0;
    uint64_t in_join = 0;       // up to the end of the latest join
    bool loaded_since = false;  // whether a state was loaded since that join
    uint64_t writes_seen = 0;   // autograd::writes_by_hand() at the latest step
    // Versions of the parameters' memory before the latest step, and whether that step has moved them.
    std::vector<uint32_t> versions = {};
    bool has_moved = false;

    void compared(const autograd::Update& update, bool moves);
    // False if nothing but that step has written to the parameter since.
    bool may_be_written(size_t position, const Tensor& parameter) const;
  };
  // Steps on this rank's own gradients. Once the next backward is reduced, a step is taken only if all ranks again hold
  // the same weights.
  struct InnerSteps {
    uint64_t count = 0, rounds = 0;                     // those not yet taken back, and Past::rounds at the latest
    const void *optimizer = nullptr, *outer = nullptr;  // identities: whose steps, and who holds the same weights
    std::vector<Verdict> now, found;  // what the audit found in this step, if it is one, and in the latest: the fault
    bool is_due = false;              // this step first compares all weights
    Place latest_at;                  // the latest step

    bool is_now() const noexcept { return !now.empty(); }
    void begin(uint64_t reduced) noexcept {
      now.clear();
      is_due = count > 0 && reduced > rounds;
    }
    // The step is taken.
    void end(const autograd::Update& update, uint64_t reduced);
  };
  InnerSteps inner_;
  std::unordered_map<const void*, Steps> steps_;  // by the identity of the optimizer
  // Step counts of all ranks at the end of the latest join where they differed, by Update::serial.
  std::unordered_map<uint64_t, std::vector<uint64_t>> uneven_;
  uint64_t updates_compared_ = 0, drifting_ = 0;  // steps with buffers_updated(); those in a row where they differed
  StepHabits habits_;
  LayerModes modes_;
  AutocastModes autocast_;
  std::shared_ptr<LocalSteps> local_steps_;  // shared with the group
};

}  // namespace brigade::dist
