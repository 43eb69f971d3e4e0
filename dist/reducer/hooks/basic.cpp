// Hooks that need no state: plain all-reduce, half precision, none, a user's own; and the Works
// they are made of.
#include <brigade/dist/reducer/comm_hook.h>
#include <brigade/kernels/elementwise.h>

#include <utility>

namespace brigade::dist {

namespace {

class ThenWork final : public Work {
 public:
  ThenWork(WorkPtr work, std::function<void()> after) : work_(std::move(work)), after_(std::move(after)) {}
  // What comes after may be more communication, which has its place in the order of waits: polling
  // does not start it.
  bool is_completed() override { return !after_ && (!work_ || work_->is_completed()); }
  void wait() override {
    if (work_) work_->wait();
    finish();
  }
  void wait(std::chrono::milliseconds timeout) override {
    if (work_) work_->wait(timeout);
    finish();
  }

 private:
  void finish() {
    if (const auto after = std::exchange(after_, nullptr)) after();
  }
  WorkPtr work_;
  std::function<void()> after_;
};

class AllReduceHook final : public CommHook {
 public:
  std::string name() const override { return "allreduce"; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    return group.all_reduce(bucket.buffer(), options, where);
  }
};

class CompressHook final : public CommHook {
 public:
  explicit CompressHook(DType dtype) : dtype_(dtype) {}
  std::string name() const override { return dtype_ == kFloat16 ? "fp16_compress" : "bf16_compress"; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    const Tensor small = group.allocate(bucket.buffer().numel(), dtype_, bucket.buffer().device());
    kernels::copy(small, bucket.buffer());
    const WorkPtr sent = group.all_reduce(small, options, where);
    return then(sent, [small, buffer = bucket.buffer()] { kernels::copy(buffer, small); });
  }

 private:
  DType dtype_;
};

class NoopHook final : public CommHook {
 public:
  std::string name() const override { return "noop"; }
  WorkPtr run(ProcessGroup&, const GradBucket&, const CollectiveOptions&, SourceLocation) override {
    return completed_work();
  }
  // The own gradients, whatever the mean is.
  bool is_approximate() const override { return true; }
};

class UserHook final : public CommHook {
 public:
  UserHook(std::string name, std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start)
      : name_(std::move(name)), start_(std::move(start)) {}
  std::string name() const override { return name_; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions&, SourceLocation) override {
    return start_(group, bucket);
  }

 private:
  std::string name_;
  std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start_;
};

}  // namespace

void CommHook::load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) {
  if (state.empty()) return;
  throw ValueError("the communication hook {} has no state, got '{}'", name(), state.front().first);
}

WorkPtr then(WorkPtr work, std::function<void()> after) {
  return std::make_shared<ThenWork>(std::move(work), std::move(after));
}
WorkPtr completed_work() { return std::make_shared<ThenWork>(nullptr, nullptr); }

CommHookPtr allreduce_hook() { return std::make_shared<AllReduceHook>(); }
CommHookPtr fp16_compress_hook() { return std::make_shared<CompressHook>(kFloat16); }
CommHookPtr bf16_compress_hook() { return std::make_shared<CompressHook>(kBFloat16); }
CommHookPtr noop_hook() { return std::make_shared<NoopHook>(); }
CommHookPtr make_comm_hook(std::string name, std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start) {
  if (!start) throw ValueError("make_comm_hook: Communication hook must be callable.");
  return std::make_shared<UserHook>(std::move(name), std::move(start));
}

}  // namespace brigade::dist
