// Reducer: the gradients of a set of parameters, averaged over ranks while backward runs.
//
// The life of one backward. on_plan: the engine says which parameters it will reach; the others are marked unused at
// once, so no bucket waits for them. on_grad_ready: a parameter's gradient lies complete in its slot of a bucket; when
// the bucket is full, and all before it are launched, its all-reduce starts while backward goes on. on_finish: all
// buckets are waited for, the flags that travelled in them are read, and every rank reaches the same verdict.
//
// The payload of a bucket is [gradient slots | one flag per parameter | control words], averaged by one all-reduce:
// there is no other communication, unless the verdict is an error.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/bucket.h>
#include <brigade/dist/diagnosis/verdict.h>
#include <brigade/dist/process_group.h>

#include <string>
#include <vector>

namespace brigade::dist {

struct NamedParameter {
  std::string name;
  Tensor tensor;
};

struct ReducerOptions {
  // false (strict): a parameter that is not ready on every rank is an error at the end of the same backward. true: a
  // parameter that some ranks did not use is averaged with zeros; one that no rank used keeps its gradient as it was.
  bool find_unused_parameters = false;
  BucketLimits limits;
  // When a strict error is raised: at the end of the backward that caused it, or, as PyTorch does, in the next forward.
  enum class ReportAt : uint8_t { Backward, NextForward };
  ReportAt report_at = ReportAt::Backward;
  // What the module is called in messages.
  std::string module_name = "module";
};

class Reducer final : public autograd::Listener {
 public:
  // `parameters`: those that require grad, in registration order, the same on every rank. Gradients become views of the
  // buckets. Hears the backwards of a thread once autograd::add_listener is called for it there.
  Reducer(std::vector<NamedParameter> parameters, ProcessGroupPtr group, ReducerOptions options);
  ~Reducer() override;

  // Tells that a forward has begun whose backward this group has to reduce: a rank whose loss then reaches no parameter
  // still takes its part. Throws the error that was kept back (ReportAt::NextForward).
  void prepare_for_forward();
  // While the depth is above zero, backward accumulates locally.
  void enter_no_sync() noexcept { ++no_sync_depth_; }
  void leave_no_sync() noexcept { --no_sync_depth_; }
  bool syncs() const noexcept { return no_sync_depth_ == 0; }

  std::span<const NamedParameter> parameters() const noexcept { return parameters_; }
  std::vector<BucketLayout> layout() const;
  bool has_rebuilt_buckets() const noexcept { return rebuilt_; }
  // Order in which gradients became ready in the last reduced backward.
  std::span<const uint32_t> ready_order() const noexcept { return ready_order_; }
  // Backwards reduced so far, and collectives launched for them (error reports not counted).
  uint64_t rounds() const noexcept { return round_; }
  uint64_t collectives() const noexcept { return collectives_; }

  void on_plan(const autograd::Plan& plan) override;
  void on_grad_ready(uint32_t tag, bool defined) override;
  void on_finish(const autograd::Plan& plan) override;
  void on_error(const autograd::Plan* plan, std::exception_ptr error) noexcept override;

 private:
  struct Bucket {
    BucketLayout layout;
    Tensor buffer;  // the whole payload, in memory of the group
    Tensor tail;    // its flags and control words
    uint32_t pending = 0;
    WorkPtr work;
  };
  // Where a parameter lives.
  struct Slot {
    uint32_t bucket = 0;
    uint32_t index = 0;  // in the bucket
  };
  enum class State : uint8_t { Idle, Accumulating, Reducing };
  // What the reduced payload says about the backward as a whole.
  struct Outcome {
    std::vector<int> users;  // per parameter: ranks that used it
    int present = 0;         // ranks whose backward reached a parameter
    int failed = 0;          // ranks whose backward failed
    bool same_round = true;
  };

  void build(std::vector<BucketLayout> layouts);
  void rebuild();
  void begin_round(SourceLocation where, bool failed);
  void prepare_unplanned(uint32_t parameter);
  void set_flag(uint32_t parameter, double value);
  void launch_ready();
  void launch(Bucket& bucket);
  Outcome finish_round();
  void conclude(const Outcome& outcome);
  void settle(const Outcome& outcome);
  bool is_error(const Outcome& outcome) const;
  // Exchanges what the ranks saw and throws the common error, or keeps it back for the next forward.
  void report(const Outcome& outcome, const autograd::Plan* plan, const std::string& failure);
  void clear_gradients();
  void reset() noexcept;
  std::string describe(const Bucket& bucket) const;

  std::vector<NamedParameter> parameters_;
  ProcessGroupPtr group_;
  ReducerOptions options_;
  std::vector<Bucket> buckets_;
  std::vector<Slot> slots_;

  State state_ = State::Idle;
  bool forward_pending_ = false;
  int no_sync_depth_ = 0;
  bool broken_ = false;  // the group failed: nothing can be exchanged any more
  bool absent_ = false;  // this backward reaches no parameter of ours
  bool failed_ = false;  // this rank's backward failed
  uint32_t next_bucket_ = 0;
  std::vector<uint8_t> planned_;  // reached by the running backward
  std::vector<uint8_t> used_;     // since the last reduction
  std::vector<std::pair<uint32_t, Tensor>>
      stale_;  // gradients kept aside for parameters that may turn out unused everywhere
  std::vector<uint32_t> ready_order_;
  bool rebuilt_ = false;
  uint64_t round_ = 0;
  uint64_t collectives_ = 0;
  SourceLocation backward_where_;
  std::exception_ptr kept_back_;
};

}  // namespace brigade::dist
