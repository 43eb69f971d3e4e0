// Reducer: averages the gradients of a set of parameters over ranks while backward runs.
//
// It listens to the backwards of its threads (autograd::Listener) and holds the state that outlasts them: the buckets
// (buckets.h) and what is local under no_sync (accumulation.h). A backward that is reduced is a Round (round.h), which
// lives from on_plan to on_finish. Whatever else looks at a backward is an observer (observer.h).
//
// One all-reduce averages the payload of a bucket (payload.h); there is no other communication, unless observers need
// some, for example to compose an error.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/reducer/accumulation.h>
#include <brigade/dist/reducer/buckets.h>
#include <brigade/dist/reducer/forwards.h>
#include <brigade/dist/reducer/options.h>
#include <brigade/dist/reducer/past.h>
#include <brigade/dist/reducer/round.h>
#include <brigade/dist/reducer/shared_leaves.h>

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace brigade::dist {

class Reducer final : public autograd::Listener {
 public:
  // `parameters`: those that require grad, in registration order, the same on every rank. Listens to the backwards of
  // a thread once autograd::add_listener is called for it there. Other reducers may manage some of the gradients as
  // well (shared_leaves.h).
  Reducer(std::vector<NamedParameter> parameters, ProcessGroupPtr group, ReducerOptions options);
  ~Reducer() override;

  // Called when a forward begins whose backward this group has to reduce: a rank whose loss then reaches no parameter
  // still takes part. `rows`: samples in its batch, 0 if unknown. Throws the deferred error (ReportAt::NextForward),
  // and, outside no_sync, the error that broke an earlier backward, as later backwards do.
  void prepare_for_forward(int64_t rows = 0, SourceLocation where = {});
  // Called when that forward has ended; `failed`: by an error. A backward that reaches no parameter counts as its
  // backward only if it goes through something that the forward recorded, or if one of the two recorded nothing. After
  // any other backward this rank takes part when the gradients are read (by clipping or an optimizer).
  void end_forward(bool failed = false) noexcept;
  // What is local to this rank; no_sync() enters and leaves there.
  Accumulation& accumulation() noexcept { return accumulation_; }
  const Accumulation& accumulation() const noexcept { return accumulation_; }

  // Sets the parameters that backwards have to reach from now on; all by default. For steps of one of several
  // optimizers. Throws ValueError for a tensor that is not managed.
  void expect(std::span<const Tensor> parameters);
  void expect_all();

  // Takes at most one hook, before the first backward. Throws DistError "register_comm_hook or
  // register_builtin_comm_hook can only be called once.", and names the registered hook.
  void register_comm_hook(CommHookPtr hook);
  // For optimizers that step in backward. Takes at most one follower; throws ValueError if there already is one.
  void follow_buckets(BucketFollower follower);
  void stop_following_buckets() noexcept { setup_.follower = {}; }
  // Sets a function to call before an optimizer steps; it may throw (see StepCheck).
  void before_optimizer_step(std::function<void(const autograd::Update&)> call) { optimizer_step_ = std::move(call); }
  // Null: no join() runs.
  void set_join(JoinPolicy* policy);
  // The part of a rank that has no data left: it sends zeros in the peers' backward. Afterwards its gradients are
  // those of all ranks.
  void shadow_round(SourceLocation where);
  ProcessGroup& group() const noexcept { return *setup_.group; }
  std::span<const NamedParameter> parameters() const noexcept { return setup_.parameters; }
  const ReducerOptions& options() const noexcept { return setup_.options; }
  const ReducerSetup& setup() const noexcept { return setup_; }
  const Buckets& buckets() const noexcept { return buckets_; }
  // The state of the backwards reduced so far.
  const Past& past() const noexcept { return last_; }
  const Forwards& forwards() const noexcept { return forwards_; }
  // Whether the group has failed, so that nothing can be reduced.
  bool is_broken() const noexcept { return broken_ != nullptr; }
  // The call of the running backward while its gradients are still local to this rank; no line: none.
  SourceLocation reducing_at() const noexcept {
    return round_ && round_->traffic().is_sent ? round_->where() : SourceLocation();
  }
  // The position of a managed parameter; -1 for any other tensor.
  int64_t find(const Tensor& parameter) const noexcept;
  SharedLeaves& shared_leaves() noexcept { return shared_; }
  const SharedLeaves& shared_leaves() const noexcept { return shared_; }
  // Makes the gradients of the managed parameters undefined, except those that another reducer averages.
  void clear_gradients();

 private:
  void on_plan(const autograd::Plan& plan) override;
  void on_grad_ready(uint32_t tag, bool defined) override;
  void on_finish(const autograd::Plan& plan) override;
  void on_refused() noexcept override;
  void on_error(const autograd::Plan* plan, std::exception_ptr error) noexcept override;
  void on_gradients_wanted(std::span<const Tensor> leaves) override;
  bool looks_for_non_finite() const override;
  void on_non_finite(const char* op, SourceLocation where, DType dtype) override;
  void on_update(const autograd::Update& update) override;
  void on_update_end() noexcept override;

  // For a backward that reaches nothing of this reducer, whose forward may have recorded nothing: whether its loss
  // leaves out all wrappers of the group, that is, other forwards recorded something, and the backward goes through
  // none of them.
  bool passes_by_all(const autograd::Plan& plan) const;
  bool awaits_use(const Tensor& leaf) const;
  // Whether this reducer takes part in a backward of the peers when these gradients are read.
  bool is_wanted(std::span<const Tensor> leaves) const;
  // Whether an observer knows that the backward was to reach this reducer.
  bool is_meant(const TracedBackward& backward) const;
  // Starts that round and returns the backward it is attributed to. `wanted`: all reducers that do so.
  TracedBackward begin_wanted(std::span<Reducer* const> wanted);
  // Called when gradients are used: the forwards before need no backward.
  void need_no_forwards() noexcept;
  // With join(): announces the backward, or returns true: it is announced, and its buckets are sent, when all nodes
  // have run.
  bool announce(SourceLocation where);
  Round& start_round(Round::Start start);
  // Runs the rest of a round, when all of its buckets are sent or wait for their turn.
  void finish_round(const TracedBackward* backward);
  // Completes a round whose gradients are sound: puts them in place, and tells the observers.
  void conclude();
  // Keeps what outlasts the ended round.
  void remember(bool sound);
  void rebuild(SourceLocation where);
  // ReportAt::NextForward: defers `error`, in case other backwards reach what is missing.
  void keep_back(std::exception_ptr error);
  // Clears and returns the deferred error, if any, to be thrown or dropped.
  std::exception_ptr take_kept_back() noexcept;
  // Completes a round that is an error.
  void report(const TracedBackward* backward, const std::string& failure);
  std::exception_ptr plain_error() const;
  void settle();
  void tell_follower_of_end(bool sound);
  // Called when the group itself failed (a peer died, a timeout): nothing more can be exchanged, and the contents of
  // the buckets are unusable. Stores the exception that is being handled.
  void give_up() noexcept;
  // Gives up if `f` throws.
  template <class F>
  void or_give_up(F&& f);
  void end_round() noexcept;

  const uint64_t made_as_;  // number among the reducers of this process
  ReducerSetup setup_;
  Buckets buckets_;
  Accumulation accumulation_;
  SharedLeaves shared_;
  std::optional<Round> round_;  // of the running backward, if it is reduced
  Forwards forwards_;
  Past last_;
  RecordedGraph recorded_;
  std::function<void(const autograd::Update&)> optimizer_step_;
  std::exception_ptr kept_back_;
  std::exception_ptr broken_;  // the error with which the group failed; nothing can be exchanged
};

// Whether the gradient of this leaf is managed by some reducer, of any thread.
bool is_reduced(const Tensor& leaf) noexcept;

}  // namespace brigade::dist
