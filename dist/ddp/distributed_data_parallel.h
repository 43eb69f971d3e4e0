// DistributedDataParallel: averages the gradients of a module over the ranks of a process group while backward runs.
//
//   auto group = dist::init_process_group();
//   Net net;
//   dist::DistributedDataParallel ddp(net, group);
//   Tensor loss = cross_entropy(ddp(images), labels);
//   loss.backward();   // gradients of all ranks, averaged; or an error that says which parameter is missing, and why
//   optimizer.step();  // or an error that says which gradient is not what it should be, before a weight has moved
#pragma once

#include <brigade/core/tensor_list.h>
#include <brigade/dist/checks/replaced_buffers.h>
#include <brigade/dist/checks/step.h>
#include <brigade/dist/ddp/explanation.h>
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/observers/activity_notes.h>
#include <brigade/dist/observers/error_reporter.h>
#include <brigade/dist/observers/wrapper_log.h>
#include <brigade/dist/reducer/reducer.h>
#include <brigade/nn/module.h>
#include <brigade/optim/optimizer.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace brigade::autograd {
class FollowedWrites;
}

namespace brigade::dist {

struct ReplicaTensor;

struct DDPOptions {
  // Average parameters that a backward does not reach with zeros, instead of raising an error. The cost is not
  // measurable: the plan of backward is exact, and the flags travel in the buckets.
  bool find_unused_parameters = false;
  // Every backward uses the same set of parameters as the first one; a different set is an error. Parameters that are
  // never used are allowed.
  bool static_graph = false;
  // Gradients are views of the buckets. false: they have their own memory, and are copied in and out.
  bool gradient_as_bucket_view = true;
  // Bucket capacities, in MiB of gradients; INFINITY: no limit.
  double bucket_cap_mb = 25;
  double first_bucket_mb = 1;
  // Copy rank 0's buffers to the others at the start of a recording forward, in train() and in eval(): in the first
  // one, and in the first after each that is outside no_sync, as in PyTorch. Under NoGradGuard a rank may evaluate
  // alone. false: each rank keeps its own buffers, in a join as well.
  bool broadcast_buffers = true;
  // Keep the tape that explains missing gradients, and watch the gradients (dist/observers).
  bool diagnosis = true;
  ReducerOptions::ReportAt report_at = ReducerOptions::ReportAt::Backward;
  // Let the ranks agree before each step of an optimizer that holds parameters of this wrapper (see StepCheck).
  bool check_steps = true;
  // Compare parameters and gradients over the ranks in every K-th step; 0: never.
  int verify_every = 0;
  // The dtype in which gradients are sent, whatever dtype they are kept in; nullopt: their own. float16 sends half of
  // float32's bytes and overflows above 65504, which predivision postpones (reduce_in_hook); float32 averages half
  // gradients without rounding the sums. Takes the place of a communication hook.
  std::optional<DType> reduce_dtype = std::nullopt;
  double gradient_predivide_factor = 1;
  // Names that are not reduced, broadcast or checked.
  std::vector<std::string> parameters_and_buffers_to_ignore = {};
  // These parameters are reduced together, after all others, once the gradient of `param_to_hook_all_reduce` is also
  // ready. Set both or neither.
  std::vector<std::string> delay_all_reduce_named_params = {};
  std::string param_to_hook_all_reduce = {};
};

// The part of the wrapper that does not depend on the type of the module.
class DistributedDataParallelBase : public Joinable {
 public:
  // Checks that all ranks hold the same model with the same options (except gradient_as_bucket_view), and copies rank
  // 0's parameters and buffers to the others. Collective. Throws ConsistencyError (the ranks differ: names the first
  // entry and the ranks), ValueError (an invalid option or name; an empty module or group). A module without
  // trainable parameters is allowed: nothing will be reduced.
  DistributedDataParallelBase(std::shared_ptr<nn::Module> module, ProcessGroupPtr group, const DDPOptions& options,
                              SourceLocation where);
  ~DistributedDataParallelBase() override;

  // While the guard lives, backward accumulates locally; the next backward outside reduces the accumulated gradients.
  // What matters is where *backward* runs. Guards nest, and can be moved:
  //   std::optional<decltype(ddp)::NoSync> guard;
  //   if (!last_micro_batch) guard.emplace(ddp.no_sync());
  class NoSync {
   public:
    NoSync(std::shared_ptr<Reducer> reducer, SourceLocation where) noexcept : reducer_(std::move(reducer)) {
      reducer_->accumulation().enter_no_sync(where);
    }
    ~NoSync() {
      if (reducer_) reducer_->accumulation().leave_no_sync();
    }
    NoSync(NoSync&&) noexcept = default;
    NoSync& operator=(NoSync&&) = delete;

   private:
    std::shared_ptr<Reducer> reducer_;
  };
  [[nodiscard]] NoSync no_sync(SourceLocation where = SourceLocation::current()) const noexcept {
    return NoSync(reducer_, where);
  }

  // While the guard lives, backward has to reach only these parameters: those that the next step of one of several
  // optimizers moves. Must be the same on every rank. Other parameters are averaged if they are reached.
  class Expected {
   public:
    Expected(std::shared_ptr<Reducer> reducer, std::span<const Tensor> parameters) : reducer_(std::move(reducer)) {
      reducer_->expect(parameters);
    }
    ~Expected() {
      if (reducer_) reducer_->expect_all();
    }
    Expected(Expected&&) noexcept = default;
    Expected& operator=(Expected&&) = delete;

   private:
    std::shared_ptr<Reducer> reducer_;
  };
  [[nodiscard]] Expected expect(TensorList parameters) const { return Expected(reducer_, parameters); }
  [[nodiscard]] Expected expect(const optim::Optimizer& optimizer) const {
    return Expected(reducer_, optimizer.parameters());
  }

  // See Reducer::register_comm_hook.
  void register_comm_hook(CommHookPtr hook) { reducer_->register_comm_hook(std::move(hook)); }
  // Gives each parameter its own optimizer, created by `make`, which steps and then clears the gradient as soon as
  // the parameter's bucket is reduced, while backward continues. A strict error stops its bucket and all later ones;
  // the parameters of earlier buckets have moved. A trainable parameter that is ignored steps as soon as its gradient
  // is ready, with this rank's gradient alone. Throws ValueError if called twice.
  void apply_optimizer_in_backward(
      const std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor> parameters)>& make);

  const Reducer& reducer() const noexcept { return *reducer_; }
  Reducer& reducer() noexcept { return *reducer_; }
  // Errors advise in the words of Fabric.
  void speak_for_fabric() noexcept;
  ProcessGroup& group() const noexcept { return *group_; }
  const DDPOptions& options() const noexcept { return options_; }
  const nn::Module& wrapped() const noexcept { return *module_; }
  // Warnings and notes so far (see Advisories).
  const std::vector<Verdict>& advisories() const noexcept { return log_->advisories.all(); }
  // When things happened in the latest reduced backwards. Without diagnosis it is empty until keep() is called.
  Timeline& timeline() noexcept { return log_->timeline; }
  const Timeline& timeline() const noexcept { return log_->timeline; }
  // One line per module with the state of each of its parameters: "reduced", "reduced, by several wrappers", "frozen",
  // "frozen after wrapping", "ignored", or "trainable, unknown to the reducer".
  std::string describe() const;
  // May be called at any time, also after an error. Lists for each parameter of the module: whether the latest
  // reduced backward used it and on which ranks, its bucket and order, the optimizers that hold it, and the line that
  // last wrote it (see Explanation). Local: use on other ranks comes from their flags in that backward, and is "not
  // known" if these leave it open (used on some ranks of three and more).
  //   std::cerr << ddp.explain().table();
  Explanation explain() const;
  // The same with information from the other ranks. Collective. If all ranks are in the same backward, it is known
  // which ranks used what; otherwise the result is that of explain().
  Explanation explain_with_peers(SourceLocation where = SourceLocation::current()) const;

  // See join.h. A shadow's gradients are those of the others; when the join ends, all ranks hold the gradients of the
  // rank whose model they take.
  std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) override;
  ProcessGroup& join_process_group() const noexcept override { return *group_; }

 protected:
  // Runs forward between what the wrapper does before and after it; if it throws, the peers are notified of the reason.
  // `batch`: its first argument, null if that is no tensor.
  template <class F>
  decltype(auto) guarded(const Tensor* batch, SourceLocation where, F&& forward) {
    pre_forward(batch, where);
    const JoinedForward scope(*this);
    const struct End {
      Reducer& reducer;
      int exceptions = std::uncaught_exceptions();
      ~End() { reducer.end_forward(std::uncaught_exceptions() > exceptions); }
    } end{*reducer_};
    try {
      return forward();
    } catch (const std::exception& error) {
      note_failed_forward(error.what(), batch);
      throw;
    }
  }
  template <class T>
  static const Tensor* batch_of(const T& argument) {
    if constexpr (std::is_same_v<std::remove_cvref_t<T>, Tensor>) return &argument;
    return nullptr;
  }
  void pre_forward(const Tensor* batch, SourceLocation where);
  void note_failed_forward(const char* error, const Tensor* batch);

 private:
  class InJoin;
  // What the wrapper announces in a join.
  enum Announced : int64_t { kForward = 0, kForwardWithBuffers = 1, kBackward = 2 };
  void broadcast_buffers_from(int root, SourceLocation where);
  void note_buffers_are_alike();
  void broadcast_model_from(int root, bool with_buffers, SourceLocation where);
  bool is_ignored(const std::string& name) const;
  // "reduced", "frozen", ...: see ExplainedParameter.
  const char* state_of(const std::string& name, const Tensor& parameter) const;
  ExplainedParameter explained(const std::string& name, const Tensor& parameter) const;
  std::vector<NamedParameter> current(const nn::Named<Tensor>& tensors) const;
  // The contents of the module, by how the wrapper handles them.
  struct Contents {
    std::vector<ReplicaTensor> replica;
    std::vector<NamedParameter> trainable;
    std::unordered_set<const TensorImpl*> ignored;
  };
  Contents sort_out(SourceLocation where);
  static void step_in_backward(optim::Optimizer& optimizer);
  void observe(ReducerOptions& options);
  ReducerOptions make_reducer_options(const std::vector<NamedParameter>& trainable, SourceLocation where) const;
  void check_steps(std::unordered_set<const TensorImpl*> ignored);
  void note_at_construction(SourceLocation where);
  void look_at_buffers(SourceLocation where);

  std::shared_ptr<nn::Module> module_;
  ProcessGroupPtr group_;
  DDPOptions options_;
  Owner owner_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  std::vector<uint32_t> buffers_sent_;  // versions of the buffers when all ranks last held the same
  bool buffers_are_due_ = true;         // the latest recording forward was to be reduced, or there was none
  std::shared_ptr<WrapperLog> log_;
  std::shared_ptr<ActivityNotes> notes_;
  std::shared_ptr<ErrorReporter> errors_;
  std::shared_ptr<Reducer> reducer_;
  std::unique_ptr<StepCheck> step_check_;
  // One per parameter of the reducer, then one per ignored parameter, called by a hook.
  std::vector<std::unique_ptr<optim::Optimizer>> in_backward_;
  std::vector<Tensor> ignored_parameters_;
  std::vector<std::pair<Tensor, uint64_t>> step_hooks_;
  std::unique_ptr<autograd::FollowedWrites> followed_writes_;  // of the parameters, and of buffers that each rank keeps
  StaleBuffers stale_buffers_;
  std::thread::id thread_;
  int exceptions_ = std::uncaught_exceptions();  // while it is made
  Tensor failed_batch_;                          // of the latest forward, if it threw
};

// `Module`: a module handle (nn::Linear, or a class declared with BRIGADE_MODULE).
template <nn::Holder Module>
class DistributedDataParallel : public DistributedDataParallelBase {
 public:
  DistributedDataParallel(Module module, ProcessGroupPtr group, const DDPOptions& options = {},
                          SourceLocation where = SourceLocation::current())
      : DistributedDataParallelBase(module.ptr(), std::move(group), options, where), module_(std::move(module)) {}

  // Runs the module's forward.
  template <class A>
  decltype(auto) operator()(A&& a, SourceLocation where = SourceLocation::current()) {
    return guarded(batch_of(a), where, [&]() -> decltype(auto) { return module_(std::forward<A>(a), where); });
  }
  template <class A, class B>
  requires(!std::is_same_v<std::remove_cvref_t<B>, SourceLocation>) decltype(auto) operator()(
      A&& a, B&& b, SourceLocation where = SourceLocation::current()) {
    return guarded(batch_of(a), where,
                   [&]() -> decltype(auto) { return module_(std::forward<A>(a), std::forward<B>(b), where); });
  }
  template <class A, class B, class C>
  requires(!std::is_same_v<std::remove_cvref_t<C>, SourceLocation>) decltype(auto) operator()(
      A&& a, B&& b, C&& c, SourceLocation where = SourceLocation::current()) {
    return guarded(batch_of(a), where, [&]() -> decltype(auto) {
      return module_(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), where);
    });
  }

  Module& module() noexcept { return module_; }

 private:
  Module module_;
};

}  // namespace brigade::dist
