// Makes the network of a mode and takes its steps.
#include <brigade/lab/bench/ddp/replica.h>

#include <brigade/autograd/tape.h>
#include <brigade/core/random.h>

#include <chrono>
#include <utility>

namespace brigade::lab::bench {

namespace {

constexpr uint64_t kBatches = 4;

Tensor in_dtype(const Tensor& tensor, DType dtype) {
  return is_floating_point(tensor.dtype()) && tensor.dtype() != dtype ? tensor.to(dtype) : tensor;
}

}  // namespace

Replica::Replica(const Workload& workload, Mode mode, const dist::ProcessGroupPtr& group)
    : workload_(workload), mode_(std::move(mode)) {
  manual_seed(1);
  network_ = workload_.make();
  if (mode_.unused_tenth) network_->add_unused_tenth();
  network_->to(mode_.dtype);
  for (uint64_t i = 0; i < kBatches; ++i) {
    const Batch batch = workload_.batch(1 + i + kBatches * static_cast<uint64_t>(group->rank()));
    batches_.push_back({in_dtype(batch.x, mode_.dtype), in_dtype(batch.target, mode_.dtype)});
  }
  if (mode_.wrapped) {
    ddp_.emplace(network_, group, mode_.options);
    if (mode_.hook) ddp_->register_comm_hook(mode_.hook());
    if (mode_.stays_local) averager_ = averaged_once(group);
  }
  optimizer_ = std::make_unique<optim::SGD>(network_->parameters(), optim::SGDOptions{.lr = 1e-4});
}

int64_t Replica::bytes() const {
  int64_t bytes = 0;
  for (const Tensor& parameter : network_->parameters())
    bytes += static_cast<int64_t>(parameter.nbytes());
  return bytes;
}

void Replica::backward_of(const Batch& batch) {
  const Tensor y = ddp_ ? (*ddp_)(batch.x) : network_(batch.x);
  workload_.loss(y, batch.target).backward();
}

StepTimes Replica::step() {
  using Clock = std::chrono::steady_clock;
  // The tape belongs to the thread: what has no diagnosis must not pay for another's.
  std::optional<autograd::Tape::Pause> pause;
  if (!ddp_ || !mode_.options.diagnosis) pause.emplace();
  StepTimes times;
  const auto begin = Clock::now();
  optimizer_->zero_grad();
  for (int i = 1; i <= mode_.micro_batches; ++i) {
    std::optional<dist::DistributedDataParallelBase::NoSync> guard;
    if (i < mode_.micro_batches) guard.emplace(ddp_->no_sync());
    backward_of(batches_[next_++ % kBatches]);
  }
  optimizer_->step();
  times.step_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count() / mode_.micro_batches;
  if (averager_) averager_->average_parameters(network_);
  if (ddp_) {
    const dist::RoundEvents& round = ddp_->reducer().timeline().rounds().back();
    times.shares = shares_of(round);
    times.buckets = round.buckets.size();
  }
  return times;
}

}  // namespace brigade::lab::bench
