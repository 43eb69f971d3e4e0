// Kinds of verdicts (docs/verdicts.md) that are made where they are found: each function has a file
// of its own under kinds/. They are pure: evidence in, words out. The warnings and notes at the end
// of a backward look for their evidence themselves, and need no declaration (advice.h).
#pragma once

#include <brigade/dist/diagnosis/moment.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/errors/verdict.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// --- At the end of a backward

// What a communication hook made of one bucket.
struct HookResult {
  std::string hook;    // its name
  std::string bucket;  // "bucket 0 of DDP(Net)"
  // kernels::probe() of the mean of the ranks' gradients, and of what the hook gave.
  double expected_probe = 0, found_probe = 0;
  double norm = 0;         // of the gradients, about
  bool was_finite = true;  // before the hook
  // Of the bucket; where the result is not finite, those that are not.
  std::vector<ParameterVerdict> parameters;
};
// Nothing where the hook may be right: lossy hooks may be far off, but not by exactly the number of
// ranks. `is_wrong_elsewhere`: the same hook is wrong in other buckets of this backward, so that less will do.
std::optional<Verdict> hook_result(const HookResult& found, const Moment& moment, bool is_wrong_elsewhere = false);

// The gradient hook `hook` has made zero of `rank`'s gradient of `parameter`, not of the others', in so many backwards in a
// row.
Verdict gradient_emptied(const NamedParameter& parameter, SourceLocation hook, int rank, int backwards,
                         const Moment& moment);

// --- In backward

// `op` at `where` has changed a gradient that is still local.
Verdict edited_before_reduction(const std::string& op, SourceLocation where, int rank, const NamedParameter& parameter,
                                const Moment& moment);

// --- Before an optimizer's step. What one rank sees by itself has no ranks yet

// A parameter that an optimizer moves and no reducer manages.
struct UnmanagedParameter {
  CauseKind kind = CauseKind::OutsideWrapper;  // or Replaced, Thawed, Added: it is in the wrapped module now
  std::string name;                            // in the module, or what is known of it
  int64_t bytes = 0;
  std::string optimizer;
  SourceLocation at;        // where it was registered or thawed
  SourceLocation last_use;  // outside the wrapper: of the backward that made its gradient
};
Verdict unmanaged_parameters(const UnmanagedParameter& found);

// A gradient that is not the mean over ranks.
struct UnreducedGradient {
  bool by_hand = false;
  Place set_at;               // by hand: where
  uint32_t backwards = 0;     // that it has gathered
  uint32_t local = 0;         // of them under no_sync, since the last reduction
  SourceLocation last_local;  // the latest of those
  SourceLocation no_sync_at;  // where no_sync was opened
  Place step_at;
  SourceLocation reducing_at = {};  // the backward in the middle of which the step comes
};
Verdict unreduced_gradients(const UnreducedGradient& found, ParameterVerdict parameter);

// The scale of a gradient is not the one that its step takes it for; `fault`: "is 1024 times too large, ...". `others`:
// gradients of which the same is true.
Verdict wrongly_scaled(const std::string& fault, size_t others, SourceLocation step_at, ParameterVerdict parameter);

// It has gathered `backwards`, and a step at `used_at` has used part of it already.
Verdict gradients_accumulate(uint32_t backwards, SourceLocation used_at, SourceLocation step_at,
                             ParameterVerdict parameter);

// A step for which there is no backward: without any gradient, with those of which an earlier step has made use, or after
// a backward whose gradients were cleared again.
struct IdleStep {
  std::string optimizer;
  SourceLocation used_at;  // where the earlier step was; none: there is no gradient
  SourceLocation step_at;
  bool is_cleared = false;
  SourceLocation cleared_at = {};  // where that is known
};
Verdict idle_step(const IdleStep& found);
// Averaged by the wrapper, and all-reduced by hand after that.
Verdict averaged_twice(SourceLocation step_at, ParameterVerdict parameter);
// The optimizer holds what the module has no more; `renewed`: the module has another of that name.
Verdict stale_optimizer(const std::string& optimizer, bool renewed, SourceLocation step_at, ParameterVerdict parameter);
// The optimizer holds a parameter of a module that has gone, and none holds `parameters`, which are averaged.
struct GoneModule {
  std::string optimizer;
  SourceLocation step_at;
  std::string name;  // of the parameter in that module
  SourceLocation registered_at;
};
Verdict optimizer_of_gone_module(const GoneModule& found, std::vector<ParameterVerdict> parameters);
// Forward reads another tensor in the place of a buffer of the module.
Verdict stale_buffer(const NamedParameter& buffer, const std::string& title, SourceLocation forward);
// They are averaged, and no optimizer of the thread holds them.
Verdict unheld_parameters(std::vector<ParameterVerdict> parameters, SourceLocation step_at);

// The forward of a wrapper ran before each of `steps` steps in a row, and none of them has found a gradient of it.
struct UnreachedModule {
  std::string title;  // of the wrapper
  std::string optimizer;
  uint64_t steps = 0;
  SourceLocation step_at;
};
Verdict unreached_module(const UnreachedModule& found, std::vector<ParameterVerdict> parameters, Cause cause);

// `bytes` of results in `nodes` operations were kept, and no other backward came through them.
Verdict needless_retain_graph(SourceLocation backward, size_t bytes, size_t nodes, SourceLocation step_at);

// The autocast that a forward began in.
struct AutocastOnRank {
  bool is_known = false;
  std::string dtypes;  // "bfloat16 on the CPU"; "" for none
  Place where;         // the region
};

// What a rank is about to do, as all ranks learn it when they disagree.
struct StepOnRank {
  std::string name;  // "step 3 of AdamW"
  Place where;
  std::string options;    // autograd::Update::options
  std::string gradients;  // '1' or '0' for each parameter of the optimizer: it has a gradient
  struct Edit {
    std::string parameter, op;
    Place where;
    // By something that has left no line.
    static Edit unseen(const std::string& parameter);
    std::string in_words() const;  // "mul_ at train.cpp:5"
  };
  std::vector<Edit> edits;  // of reduced gradients, by hand
  struct SetByHand {
    std::string parameter;
    Place where;
  };
  std::vector<SetByHand> set_by_hand;
  std::vector<Edit> writes;       // to parameters, by hand, since the latest step
  std::vector<Edit> buffers;      // replaced from outside forward, where each rank keeps its own
  bool state_was_loaded = false;  // since the latest step
  Place state_loaded_at;
  std::vector<Edit> state_writes;  // to the optimizer's state, by hand, since the latest step and load
  struct Member {
    std::string parameter;
    size_t group = 0;  // of options
  };
  std::vector<Member> members;  // what the optimizer holds of the wrapper's parameters, in its order
  // What the communication hook gave, per bucket: kernels::probe() by the norm. Empty where ranks may differ in it.
  std::vector<double> hook_probes;
  // The layers in evaluation, where a forward has looked at that.
  bool modes_are_known = false;
  std::vector<std::string> evaluating;
  // Of the optimizer's steps: those up to the end of the latest join, and which one this is since.
  uint64_t in_join = 0, since_join = 0;
  std::string optimizer;  // its class
  Place made_at;
  AutocastOnRank autocast;
  std::vector<std::string> moved_by_others;  // what other optimizers of the rank hold, and have moved before
};
// `steps`: one per rank. `optimizer`: its name; `parameters`: those that it moves. Different steps,
// hyperparameters, or sets of gradients; nothing where they are alike.
std::vector<Verdict> optimizers_differ(std::span<const StepOnRank> steps, const std::string& optimizer,
                                       std::span<const NamedParameter> parameters);
// The state of an optimizer is not alike on all ranks, since some have loaded one or have written to theirs.
struct StatesApart {
  std::vector<int> odd;                    // whose states are unlike those of most
  std::string what;                        // differs, in words
  std::vector<NamedParameter> parameters;  // of which the tensors differ, where that is known
};
Verdict other_state(std::span<const StepOnRank> steps, const StatesApart& apart, const std::string& optimizer);
// A reduced parameter whose gradients (or own values) are not alike on all ranks; or a buffer, by its values.
struct GradientsApart {
  NamedParameter parameter;
  std::vector<int> odd;  // unlike those of more than half of the ranks; empty where so many are not alike
};
// Null where it is not among them.
const GradientsApart* find(std::span<const GradientsApart> apart, const std::string& parameter);
// One for each way in which some of them were edited: gradients that two lines have changed, each for itself, have two.
// Nothing where none of them was edited.
std::vector<Verdict> gradients_edited(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);
// `apart`: of the parameters that some rank has written by hand those whose own values are not alike on all ranks. One for
// each line that has written to some.
std::vector<Verdict> parameters_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);
// `apart`: of the buffers that some ranks have replaced, and not all, those whose values are not alike on all ranks.
std::vector<Verdict> buffers_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);
// `apart`: reduced gradients that are not alike on all ranks after the hook of that name has sent them.
Verdict hook_results_differ(const std::string& hook, std::span<const GradientsApart> apart, const Place& backward);
// Nothing where all ranks train and evaluate the same layers, as far as it is known.
std::optional<Verdict> modes_differ(std::span<const StepOnRank> steps);
// Nothing where all forwards began in the same autocast, or where it is not known of some rank.
std::optional<Verdict> autocast_differs(std::span<const StepOnRank> steps);
// As gradients_edited, for those that were put in place by hand.
std::vector<Verdict> gradients_set_by_hand(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);

// --- At construction

// `lists`: of each rank, a line for each tensor, its name between backquotes; the first difference
// is at `entry`.
Verdict model_mismatch(std::span<const std::vector<std::string>> lists, size_t entry, const std::string& message,
                       SourceLocation where);
// `rank` makes at `line`, as `title`, what the rank `other` has made as `others_title`.
struct OtherOrder {
  int rank;
  std::string line, title;
  int other;
  std::string others_title;
};
Verdict wrappers_in_other_order(const OtherOrder& found, SourceLocation where);
Verdict nothing_to_reduce(const Moment& moment);
Verdict strides_differ(const NamedParameter& parameter, const Moment& moment);

// --- When values are compared

// parameters_differ, gradients_differ or buffers_differ, by `what`. `details`: more about the
// values, or "".
struct DifferentValues {
  std::string what;  // "parameter", "gradient", "buffer"
  std::string name;
  int64_t bytes = 0;
  std::vector<int> odd, others;  // ranks
  std::string details;
};
Verdict parameters_differ(const DifferentValues& found, SourceLocation where);

}  // namespace brigade::dist
