// Kinds of verdicts (docs/reference/verdicts.md) that are made where the fault is found: each function has
// its own file under kinds/. The functions are pure: evidence in, text out. The warnings and notes
// at the end of a backward collect their own evidence and need no declaration here (advice.h).
#pragma once

#include <brigade/autograd/gradient_scale.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/errors/named_parameter.h>
#include <brigade/dist/errors/verdict.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// --- At the end of a backward

// The result of a communication hook for one bucket.
struct HookResult {
  std::string hook;    // its name
  std::string bucket;  // "bucket 0 of DDP(Net)"
  // kernels::probe() of the mean of the ranks' gradients, and of the hook's result.
  double expected_probe = 0, found_probe = 0;
  double norm = 0;         // of the gradients, approximate
  bool was_finite = true;  // before the hook
  // The parameters of the bucket; if the result is not finite, only the non-finite ones.
  std::vector<ParameterVerdict> parameters;
};
// Returns nothing if the hook may be right: lossy hooks may be far off, but not by exactly the number of ranks.
// `is_wrong_elsewhere`: the same hook is wrong in other buckets of this backward, so weaker evidence suffices.
std::optional<Verdict> hook_result(const HookResult& found, const Moment& moment, bool is_wrong_elsewhere = false);

// The gradient hook `hook` zeroed the gradient of `parameter` on `rank`, but not on the other ranks, in `backwards`
// backwards in a row.
Verdict gradient_emptied(const NamedParameter& parameter, SourceLocation hook, int rank, int backwards,
                         const Moment& moment);

// --- In backward

// `op` at `where` has changed a gradient that is still local.
Verdict edited_before_reduction(const std::string& op, SourceLocation where, int rank, const NamedParameter& parameter,
                                const Moment& moment);

// --- Before an optimizer's step. A verdict found by one rank alone has no ranks yet

// A parameter that an optimizer updates and no reducer manages.
struct UnmanagedParameter {
  CauseKind kind = CauseKind::OutsideWrapper;  // or Replaced, Thawed, Added: it is in the wrapped module now
  std::string name;                            // in the module, or whatever is known of it
  int64_t bytes = 0;
  std::string optimizer;
  SourceLocation at;        // where it was registered or thawed
  SourceLocation last_use;  // OutsideWrapper: the backward that made its gradient
};
Verdict unmanaged_parameters(const UnmanagedParameter& found);

// A gradient that is not the mean over ranks.
struct UnreducedGradient {
  bool by_hand = false;
  Place set_at;               // if set by hand: where
  uint32_t backwards = 0;     // backwards accumulated in the gradient
  uint32_t local = 0;         // of them under no_sync, since the last reduction
  SourceLocation last_local;  // the latest of those
  SourceLocation no_sync_at;  // where no_sync was opened
  Place step_at;
  SourceLocation reducing_at = {};  // the backward that is still running at the step
};
Verdict unreduced_gradients(const UnreducedGradient& found, ParameterVerdict parameter);

// The scale of a gradient is not the one that its step assumes.
Verdict wrongly_scaled(const autograd::ScaleFault& fault, SourceLocation step_at, ParameterVerdict parameter);

// The gradient has accumulated `backwards` backwards, and a step at `used_at` has already used some of them.
Verdict gradients_accumulate(uint32_t backwards, SourceLocation used_at, SourceLocation step_at,
                             ParameterVerdict parameter);

// A step without a backward of its own: no parameter has a gradient, an earlier step already used the gradients, or
// they were cleared after the backward.
struct IdleStep {
  std::string optimizer;
  std::string parameters;  // "embed.weight and 9 more"
  SourceLocation used_at;  // where the earlier step was; none: there is no gradient
  SourceLocation step_at;
  bool is_cleared = false;
  SourceLocation cleared_at = {};  // where that is known
};
Verdict idle_step(const IdleStep& found);
// Gradients that the wrapper averaged and that were then all-reduced by hand.
struct SecondReduction {
  ReduceOp op;
  int ranks;  // that took part in it
  Place at, step_at;
  std::string scaled_by;  // "div_ at train.cpp:5" has scaled the result; "" if nothing has
};
Verdict averaged_twice(const SecondReduction& found, std::vector<ParameterVerdict> parameters);
// An optimizer that holds a parameter that the module no longer has.
struct StaleOptimizer {
  std::string optimizer;
  Place made_at, step_at;
  std::string name;         // of the parameter in the module; "": it never was in one
  bool is_renewed = false;  // the module has another of that name,
  Place since = {};         // from this line on
  bool is_tied = false;     // and the old one under another name
};
Verdict stale_optimizer(const StaleOptimizer& found, ParameterVerdict parameter);
// The same, or it holds only tensors of no module, and no optimizer holds `parameters`, which are averaged.
Verdict optimizer_of_gone_module(const StaleOptimizer& found, std::vector<ParameterVerdict> parameters);
// Forward reads another tensor in place of a buffer of the module.
Verdict stale_buffer(const NamedParameter& buffer, const std::string& title, SourceLocation forward);
// `parameters` are averaged, but no optimizer of the thread holds them.
Verdict unheld_parameters(std::vector<ParameterVerdict> parameters, SourceLocation step_at);

// The forward of a wrapper ran before each of `steps` steps in a row, and none of the steps found a gradient of the
// wrapper.
struct UnreachedModule {
  std::string title;  // of the wrapper
  std::string optimizer;
  uint64_t steps = 0;
  SourceLocation step_at;
};
Verdict unreached_module(const UnreachedModule& found, std::vector<ParameterVerdict> parameters, Cause cause);

// `bytes` of results in `nodes` operations were kept, but no other backward went through them.
Verdict needless_retain_graph(SourceLocation backward, size_t bytes, size_t nodes, SourceLocation step_at);

// The autocast state in which a forward began.
struct AutocastOnRank {
  bool is_known = false;
  std::string dtypes;  // "bfloat16 on the CPU"; "" for none
  Place where;         // the region
};

// The step that a rank is about to take, as exchanged between the ranks when they disagree.
struct StepOnRank {
  std::string name;  // "step 3 of AdamW"
  Place where;
  std::string options;    // autograd::Update::options
  std::string gradients;  // '1' for each parameter of the optimizer that has a gradient, else '0'
  struct Edit {
    std::string parameter, op;
    Place where;
    // An edit whose source line is unknown.
    static Edit unseen(const std::string& parameter);
    std::string in_words() const;  // "mul_ at train.cpp:5"
  };
  std::vector<Edit> edits;  // of reduced gradients, by hand
  struct SetByHand {
    std::string parameter;
    Place where;
  };
  std::vector<SetByHand> set_by_hand;
  std::vector<Edit> writes;           // to parameters, by hand, since the latest step
  std::vector<Edit> buffers;          // replaced from outside forward, if each rank keeps its own
  std::vector<Edit> updated_buffers;  // likewise, written in forward and used there for what is trained
  bool state_was_loaded = false;      // since the latest step
  Place state_loaded_at;
  std::vector<Edit> state_writes;  // to the optimizer's state, by hand, since the latest step and load
  struct Member {
    std::string parameter;
    size_t group = 0;  // its option group
  };
  std::vector<Member> members;  // what the optimizer holds of the wrapper's parameters, in its order
  // Results of the communication hook per bucket: kernels::probe() divided by the norm. Empty if ranks may differ in
  // them.
  std::vector<double> hook_probes;
  // Layers in evaluation mode, if a forward has checked.
  bool modes_are_known = false;
  std::vector<std::string> evaluating;
  // Steps of the optimizer up to the end of the latest join, and the number of this step since then.
  uint64_t in_join = 0, since_join = 0;
  std::string optimizer;  // its class
  Place made_at;
  AutocastOnRank autocast;
  std::vector<std::string> moved_by_others;  // what other optimizers of the rank hold and have already updated
  std::vector<Edit> options_set;             // of options ("lr of group 0"), in force: "set by set_lr()"
  std::string made_with;                     // the options at construction, if known
};
// Finds steps, hyperparameters, or sets of gradients that differ between ranks; returns nothing if
// all are alike. `steps`: one per rank. `optimizer`: its name; `parameters`: those that it updates.
std::vector<Verdict> optimizers_differ(std::span<const StepOnRank> steps, const std::string& optimizer,
                                       std::span<const NamedParameter> parameters);
// The state of an optimizer differs between ranks because some ranks loaded a state or wrote to theirs.
struct StatesApart {
  std::vector<int> odd;                    // ranks whose states differ from those of most ranks
  std::string what;                        // what differs, in words
  std::vector<NamedParameter> parameters;  // whose state tensors differ, if known
};
Verdict other_state(std::span<const StepOnRank> steps, const StatesApart& apart, const std::string& optimizer);
// A reduced parameter whose gradients (or own values) differ between ranks, or a buffer whose values do.
struct GradientsApart {
  NamedParameter parameter;
  std::vector<int> odd;  // differ from more than half of the ranks; empty if no such majority exists
};
// Null if `parameter` is not in `apart`.
const GradientsApart* find(std::span<const GradientsApart> apart, const std::string& parameter);
// Returns one verdict for each way in which gradients in `apart` were edited: gradients that two lines changed
// independently get two. Returns nothing if none was edited.
std::vector<Verdict> gradients_edited(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);
// `apart`: the parameters that some rank wrote by hand and whose own values differ between ranks. One verdict for each
// line that wrote to some of them.
std::vector<Verdict> parameters_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);
// buffers_differ. `apart`: the buffers that every rank's forward updates, and whose values differ between ranks.
Verdict buffers_drift(std::span<const StepOnRank::Edit> updates, std::span<const GradientsApart> apart,
                      SourceLocation where);
// `apart`: the buffers that some but not all ranks replaced, and whose values differ between ranks.
std::vector<Verdict> buffers_written(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);
// `apart`: reduced gradients that differ between ranks after the hook named `hook` sent them.
Verdict hook_results_differ(const std::string& hook, std::span<const GradientsApart> apart, const Place& backward);
// Returns nothing if all ranks train and evaluate the same layers, as far as is known.
std::optional<Verdict> modes_differ(std::span<const StepOnRank> steps);
// Returns nothing if all forwards began in the same autocast state, or if it is unknown for some rank.
std::optional<Verdict> autocast_differs(std::span<const StepOnRank> steps);
// Like gradients_edited, for gradients that were set by hand.
std::vector<Verdict> gradients_set_by_hand(std::span<const StepOnRank> steps, std::span<const GradientsApart> apart);

// --- At construction

// `lists`: for each rank, one line per tensor, with its name in backquotes; the first difference is at `entry`.
Verdict model_mismatch(std::span<const std::vector<std::string>> lists, size_t entry, SourceLocation where);
// The same if the lists differ only in what is frozen; `set_at`: the line that last set requires_grad, for each entry.
std::optional<Verdict> frozen_on_some_ranks(std::span<const std::vector<std::string>> lists,
                                            std::span<const std::vector<std::string>> set_at, SourceLocation where);
// `rank` makes at `line`, as `title`, what rank `other` made as `others_title`.
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

// parameters_differ, gradients_differ or buffers_differ, depending on `what`. `details`: more about the values, or "".
struct DifferentValues {
  std::string what;  // "parameter", "gradient", "buffer"
  std::string name;
  int64_t bytes = 0;
  std::vector<int> odd, others;  // ranks
  std::string details;
};
Verdict parameters_differ(const DifferentValues& found, SourceLocation where);

}  // namespace brigade::dist
