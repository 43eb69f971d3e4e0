// Reducer: the gradients of a set of parameters, averaged over ranks while backward runs.
//
// The life of one backward. on_plan: the engine says which parameters it will reach; the others are marked unused at
// once, so no bucket waits for them. on_grad_ready: a parameter's gradient lies complete in its slot of a bucket; when
// the bucket is full, and all before it are launched, its all-reduce starts while backward goes on. on_finish: all
// buckets are waited for, the flags that travelled in them are read, and every rank reaches the same verdict.
//
// The payload of a bucket (dist/reducer/payload.h) is averaged by one all-reduce: there is no other communication,
// unless the verdict is an error.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/diagnosis/advisories.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/dist/diagnosis/verdict.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/reducer/bucket.h>
#include <brigade/dist/reducer/comm_hook.h>
#include <brigade/dist/reducer/payload.h>
#include <brigade/dist/timeline/timeline.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

struct RankReport;

struct NamedParameter {
  std::string name;
  Tensor tensor;
};

struct ReducerOptions {
  // false (strict): a parameter that is not ready on every rank is an error at the end of the same backward. true: a
  // parameter that some ranks did not use is averaged with zeros; one that no rank used keeps its gradient as it was.
  bool find_unused_parameters = false;
  // The set that the first backward used is the one to expect from then on; another one is an error.
  bool static_graph = false;
  // Gradients live in the buckets. false: they live in memory of their own and are copied in and out.
  bool gradient_as_bucket_view = true;
  BucketLimits limits;
  // When a strict error is raised: at the end of the backward that caused it, or, as PyTorch does, in the next forward.
  enum class ReportAt : uint8_t { Backward, NextForward };
  ReportAt report_at = ReportAt::Backward;
  // Look at the numbers as well: non-finite gradients, a rank of another size, a hook that does not average, a late
  // rank.
  bool diagnosis = true;
  // What the module is called in messages.
  std::string module_name = "module";
  // Positions of parameters that are reduced in buckets of their own, after all others, and not before `trigger` is
  // ready.
  std::vector<uint32_t> delayed = {};
  std::optional<uint32_t> trigger = {};
  // The parameters of the module as they are now: explains one that was replaced. May be empty.
  std::function<std::vector<NamedParameter>()> current_parameters = {};
};

// What happened to a parameter's gradient since it was last averaged.
struct LocalGradient {
  uint32_t backwards = 0;  // that added to it under no_sync
  SourceLocation where;    // of the latest of them
  // autograd::writes_so_far() when the last reduction ended, and when accumulation began.
  uint64_t writes_at_reduction = 0;
  uint64_t writes_at_accumulation = 0;
};

class Reducer final : public autograd::Listener {
 public:
  // `parameters`: those that require grad, in registration order, the same on every rank. Hears the backwards of a
  // thread once autograd::add_listener is called for it there. Throws ValueError when a gradient is managed by another
  // reducer.
  Reducer(std::vector<NamedParameter> parameters, ProcessGroupPtr group, ReducerOptions options);
  ~Reducer() override;

  // Tells that a forward has begun whose backward this group has to reduce: a rank whose loss then reaches no parameter
  // still takes its part. `rows`: samples in its batch, 0 when not known. Throws the error that was kept back
  // (ReportAt::NextForward).
  void prepare_for_forward(int64_t rows = 0);
  // While the depth is above zero, backward accumulates locally.
  void enter_no_sync(SourceLocation where) noexcept;
  void leave_no_sync() noexcept { --no_sync_depth_; }
  bool syncs() const noexcept { return no_sync_depth_ == 0; }
  SourceLocation no_sync_where() const noexcept { return no_sync_where_; }

  // The parameters that backwards have to reach from now on; all by default. For a step of one of several optimizers.
  // Throws ValueError for a tensor that is not managed.
  void expect(std::span<const Tensor> parameters);
  void expect_all();

  // At most one, before the first backward. Throws DistError "register_comm_hook or register_builtin_comm_hook can only
  // be called once.", and names the hook that is there.
  void register_comm_hook(CommHookPtr hook);
  const CommHookPtr& comm_hook() const noexcept { return hook_; }
  // Called as soon as a bucket is reduced and sound, in bucket order, while backward may still run: for optimizers that
  // step in backward. Gets the positions of the parameters that have a gradient.
  void on_bucket_reduced(std::function<void(std::span<const uint32_t>)> call) { bucket_reduced_ = std::move(call); }
  // Called before an optimizer steps; may throw (see StepCheck).
  void on_optimizer_step(std::function<void(const autograd::Update&)> call) { optimizer_step_ = std::move(call); }
  // join(): called before a backward is reduced; and the part of a rank that has no data left: it sends zeros in the
  // peers' backward.
  void on_round_begins(std::function<void()> call) { round_begins_ = std::move(call); }
  void shadow_round(SourceLocation where);
  // With join(): divide by the ranks that still have data instead of all.
  void divide_by_participants(bool on) noexcept { divide_by_participants_ = on; }

  std::span<const NamedParameter> parameters() const noexcept { return parameters_; }
  const ReducerOptions& options() const noexcept { return options_; }
  std::vector<BucketLayout> layout() const;
  bool has_rebuilt_buckets() const noexcept { return rebuilt_; }
  // Order in which gradients became ready in the last reduced backward.
  std::span<const uint32_t> ready_order() const noexcept { return ready_order_; }
  // Per parameter: ranks that used it in the last reduced backward.
  std::span<const int> users() const noexcept { return last_users_; }
  // Backwards reduced so far, and collectives launched for them (error reports not counted).
  uint64_t rounds() const noexcept { return round_; }
  uint64_t collectives() const noexcept { return collectives_; }
  // The position of a managed parameter; -1 for any other tensor.
  int64_t find(const Tensor& parameter) const noexcept;
  const LocalGradient& local(uint32_t parameter) const noexcept { return local_[parameter]; }
  // Whether backward `number` of this thread was reduced or accumulated here, as far back as a few.
  bool has_heard(uint64_t number) const noexcept;
  Timeline& timeline() noexcept { return timeline_; }
  const Timeline& timeline() const noexcept { return timeline_; }
  Advisories& advisories() noexcept { return advisories_; }
  const Advisories& advisories() const noexcept { return advisories_; }
  // Gradients of all managed parameters become undefined.
  void clear_gradients();

  void on_plan(const autograd::Plan& plan) override;
  void on_grad_ready(uint32_t tag, bool defined) override;
  void on_finish(const autograd::Plan& plan) override;
  void on_error(const autograd::Plan* plan, std::exception_ptr error) noexcept override;
  bool looks_for_non_finite() const override {
    return state_ == State::Reducing && non_finite_loss_ && !non_finite_before_;
  }
  void on_non_finite(const char* op, SourceLocation where) override;
  void on_update(const autograd::Update& update) override;

 private:
  struct Bucket {
    Bucket(BucketLayout bucket_layout, Payload bucket_payload)
        : layout(std::move(bucket_layout)), payload(std::move(bucket_payload)) {}
    BucketLayout layout;
    Payload payload;
    uint32_t pending = 0;
    WorkPtr work;
    WorkPtr tail_work;  // with a hook: of flags and words
    bool completed = false;
    bool settled = false;
    double sum_of_squares = 0;      // of this rank's gradients, on the CPU
    std::vector<int64_t> measured;  // on a device: elements per slot, to be measured when the bucket is launched
    std::vector<Tensor> to_copy;    // on a device: gradients per slot that are copied in when it is launched
    bool received = false;
    double probe = 0;  // see kernels::probe()
  };
  // Where a parameter lives.
  struct Slot {
    uint32_t bucket = 0;
    uint32_t index = 0;  // in the bucket
    Tensor view;
  };
  enum class State : uint8_t { Idle, Accumulating, Reducing };
  // What the reduced payload says about the backward as a whole.
  struct Outcome {
    std::vector<int> users;  // per parameter: ranks that used it
    int present = 0;         // ranks whose backward reached a parameter
    int failed = 0;          // ranks whose backward failed
    int joined = 0;          // ranks that only send zeros
    int changed = 0;         // ranks whose graph changed (static_graph)
    int non_finite = 0;      // ranks with an infinite or NaN gradient
    bool same_round = true;
    // Seen from means and variances, which rounding blurs: worth a look.
    bool late = false;           // one rank is much later than the others
    bool outlier = false;        // one rank's gradients are much larger
    bool uneven = false;         // batches of different sizes
    std::vector<Verdict> hooks;  // what the hook got wrong
  };

  // reducer.cpp
  void build(std::vector<BucketLayout> layouts);
  std::vector<BucketLayout> cut(std::span<const uint32_t> order) const;
  void rebuild();
  // reducer_round.cpp
  void begin_round(SourceLocation where, bool failed);
  void prepare_unplanned(uint32_t parameter);
  void set_flag(uint32_t parameter, double value);
  void take_gradient(uint32_t parameter, bool defined);
  void measure(uint32_t parameter);
  void receive(Bucket& bucket);
  void one_less_pending(uint32_t bucket);
  void launch_ready();
  void launch(uint32_t index);
  void poll();
  void complete(uint32_t index);
  void finish_round();
  bool is_sound(const Outcome& outcome, std::span<const uint32_t> parameters) const;
  bool is_error(const Outcome& outcome) const;
  void conclude();
  void settle(Bucket& bucket);
  void settle_all();
  void reset() noexcept;
  GradBucket as_grad_bucket(uint32_t index) const;
  std::string describe(uint32_t index) const;
  // reducer_report.cpp: exchanges what the ranks saw and throws the common error, or keeps it back for the next
  // forward.
  void report(const autograd::Plan* plan, const std::string& failure);
  RankReport own_report(const autograd::Plan* plan, const std::string& failure) const;
  void raise(std::exception_ptr error);
  void check_hook_result(Bucket& bucket, uint32_t index);
  std::vector<std::string> exchange(const std::string& text, const char* about);
  void look_at_loss(const autograd::Plan& plan);
  void blame_loss(SourceLocation where);
  // reducer_advice.cpp
  void advise();
  void advise_on_needless_option();
  void advise_on_non_finite();
  void advise_on_slow_rank();
  void advise_on_outlier();
  void advise_on_batches();
  void warn_of_early_write(uint32_t parameter);
  Verdict new_advice(const char* kind, Severity severity, CauseKind cause) const;
  ParameterVerdict about(uint32_t parameter, std::vector<int> ready, std::vector<int> not_ready) const;

  std::vector<NamedParameter> parameters_;
  ProcessGroupPtr group_;
  ReducerOptions options_;
  std::vector<Bucket> buckets_;
  std::map<Device, std::shared_ptr<DeviceStream>> reading_;  // see Payload
  std::vector<Slot> slots_;
  CommHookPtr hook_;
  bool hook_sends_ = true;  // this round
  std::function<void(std::span<const uint32_t>)> bucket_reduced_;
  std::function<void(const autograd::Update&)> optimizer_step_;
  std::function<void()> round_begins_;
  bool divide_by_participants_ = false;

  State state_ = State::Idle;
  bool forward_pending_ = false;
  int no_sync_depth_ = 0;
  SourceLocation no_sync_where_;
  bool broken_ = false;  // the group failed: nothing can be exchanged any more
  bool absent_ = false;  // this backward reaches no parameter of ours
  bool joined_ = false;  // this is a shadow round
  bool failed_ = false;  // this rank's backward failed
  bool changed_ = false;
  uint32_t next_bucket_ = 0;    // to launch
  uint32_t next_complete_ = 0;  // to complete
  Outcome outcome_;
  std::vector<uint8_t> planned_;   // reached by the running backward
  std::vector<uint8_t> used_;      // since the last reduction
  std::vector<uint8_t> expected_;  // see expect()
  std::vector<uint8_t> delayed_;   // see ReducerOptions::delayed
  std::vector<uint8_t> recorded_;  // static_graph: what the first backward used; empty before
  std::string recorded_at_;        // "file:line" of that backward
  std::vector<LocalGradient> local_;
  std::vector<int> last_users_;
  // Gradients kept aside for parameters that may turn out unused everywhere.
  std::vector<std::pair<uint32_t, Tensor>> stale_;
  std::vector<uint32_t> ready_order_;
  std::vector<uint64_t> heard_;  // numbers of the latest backwards
  bool rebuilt_ = false;
  uint64_t round_ = 0;
  uint64_t collectives_ = 0;
  int64_t rows_ = 0;
  SlowRankStreak slow_streak_;
  int slow_looks_ = 0;
  int batch_looks_ = 0;
  int outlier_looks_ = 0;
  std::vector<int> outlier_ranks_;  // who stood out last
  int outlier_rounds_ = 0;          // and for how many rounds in a row
  bool some_unused_ = false;
  std::vector<double> own_sums_;       // per parameter: sum of squares of this rank's gradient, this round
  std::vector<uint32_t> non_finite_;   // parameters, this round
  std::vector<Tensor> device_losses_;  // not looked at, since that would wait for the device
  bool non_finite_loss_ = false;
  bool non_finite_before_ = false;
  Cause non_finite_cause_;
  SourceLocation backward_where_;
  RoundEvents events_;
  int64_t forward_began_ = 0;
  Timeline timeline_;
  Advisories advisories_;
  std::exception_ptr kept_back_;
};

}  // namespace brigade::dist
