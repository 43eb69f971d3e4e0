// Hooks that send what the bucket holds: plain all-reduce, half precision, no-op, user-defined, and post-local SGD
// (global averages first, then none); and the Works they are made of.
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/comm_hooks/iteration.h>
#include <brigade/dist/groups/group_memory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/optimizer.h>

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

namespace brigade::dist {
namespace {

class ThenWork final : public Work {
 public:
  ThenWork(WorkPtr work, std::function<void()> after) : work_(std::move(work)), after_(std::move(after)) {}
  // `after` may start more communication, which has its place in the order of waits, so polling must not start it.
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

// Sends gradients in a dtype other than the one they are kept in.
class CastHook final : public CommHook {
 public:
  CastHook(std::string name, DType dtype, double factor) : name_(std::move(name)), dtype_(dtype), factor_(factor) {}
  std::string name() const override { return name_; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    const Tensor& buffer = bucket.buffer();
    if (buffer.dtype() == dtype_ && factor_ == 1) return group.all_reduce(buffer, options, where);
    multiply(buffer, 1 / factor_);
    const Tensor sent = room_to_exchange(group, buffer.numel(), dtype_, buffer.device());
    kernels::copy(sent, buffer);
    return then(group.all_reduce(sent, options, where), [sent, buffer, factor = factor_] {
      kernels::copy(buffer, sent);
      multiply(buffer, factor);
    });
  }

 private:
  static void multiply(const Tensor& buffer, double factor) {
    if (factor != 1) kernels::foreach_scale(std::vector<Tensor>{buffer}, factor, Tensor());
  }

  std::string name_;
  DType dtype_;
  double factor_;
};

class NoopHook final : public CommHook {
 public:
  std::string name() const override { return "noop"; }
  // Steps with these gradients therefore count as local steps (LocalSteps).
  bool begin_round(uint64_t) override { return false; }
  WorkPtr run(ProcessGroup&, const GradBucket&, const CollectiveOptions&, SourceLocation) override {
    return completed_work();
  }
  // The result is this rank's own gradients, whatever the mean is.
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

class PostLocalSgdHook final : public CommHook {
 public:
  explicit PostLocalSgdHook(uint64_t start) : start_(start) {}
  std::string name() const override { return "post_local_sgd"; }
  bool begin_round(uint64_t) override { return iteration_ < start_; }
  WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
              SourceLocation where) override {
    if (bucket.is_last()) ++iteration_;
    return group.all_reduce(bucket.buffer(), options, where);
  }

  std::vector<std::pair<std::string, Tensor>> state_dict() const override { return {iteration_entry(iteration_)}; }
  void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state) override {
    const uint64_t iteration = iteration_in(state, name());
    for (const auto& [key, tensor] : state) {
      if (key != kIterationKey)
        throw ValueError("{}: the state has an entry '{}' that does not belong there", name(), key);
    }
    iteration_ = iteration;
  }

 private:
  uint64_t start_;
  uint64_t iteration_ = 0;  // global averages so far
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
CommHookPtr fp16_compress_hook() { return std::make_shared<CastHook>("fp16_compress", kFloat16, 1); }
CommHookPtr bf16_compress_hook() { return std::make_shared<CastHook>("bf16_compress", kBFloat16, 1); }
CommHookPtr reduce_in_hook(DType dtype, double predivide_factor) {
  if (!is_floating_point(dtype))
    throw ValueError("reduce_in_hook: expected a floating dtype, got {}", brigade::name(dtype));
  if (!(predivide_factor > 0) || !std::isfinite(predivide_factor) || (predivide_factor != 1 && dtype != kFloat16)) {
    throw ValueError(
        "reduce_in_hook: expected a predivide_factor above 0, other than 1 for float16 only, got {} for {}; the other "
        "dtypes hold what float32 holds",
        predivide_factor, brigade::name(dtype));
  }
  return std::make_shared<CastHook>(fmt::format("reduce_in_{}", brigade::name(dtype)), dtype, predivide_factor);
}
CommHookPtr post_local_sgd_hook(uint64_t start_local_sgd_iter) {
  return std::make_shared<PostLocalSgdHook>(start_local_sgd_iter);
}
CommHookPtr noop_hook() { return std::make_shared<NoopHook>(); }
CommHookPtr make_comm_hook(std::string name, std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start) {
  if (!start) throw ValueError("make_comm_hook: Communication hook must be callable.");
  return std::make_shared<UserHook>(std::move(name), std::move(start));
}

}  // namespace brigade::dist
