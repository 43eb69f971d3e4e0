// Makes the network of a mode and runs its steps.
#include <brigade/lab/bench/ddp/replica.h>

#include <brigade/autograd/tape.h>
#include <brigade/core/random.h>
#include <brigade/kernels/elementwise.h>

#include <chrono>
#include <utility>

namespace brigade::lab::bench {
namespace {

constexpr uint64_t kBatches = 4;
// Steps before a capture: the first ones allocate buffers, rebuild buckets and choose algorithms.
constexpr size_t kWarmUp = 3;

Tensor placed(const Tensor& tensor, DType dtype, Device device) {
  const bool is_cast = is_floating_point(tensor.dtype()) && tensor.dtype() != dtype;
  return (is_cast ? tensor.to(dtype) : tensor).to(device);
}

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Replica::Replica(const Workload& workload, Mode mode, const dist::ProcessGroupPtr& group, Device device)
    : workload_(workload), mode_(std::move(mode)), device_(device) {
  check_runs_on(mode_, device.type);
  manual_seed(1);
  network_ = workload_.make();
  if (mode_.unused_tenth) network_->add_unused_tenth();
  network_->to(mode_.dtype);
  network_->to(device);
  for (uint64_t i = 0; i < kBatches; ++i) {
    const Batch batch = workload_.batch(1 + i + kBatches * static_cast<uint64_t>(group->rank()));
    batches_.push_back({placed(batch.x, mode_.dtype, device), placed(batch.target, mode_.dtype, device)});
  }
  if (mode_.wrapped) {
    ddp_.emplace(network_, group, mode_.options);
    ddp_->timeline().keep(1);  // without diagnosis, too
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

void Replica::train() {
  // The tape belongs to the thread: a replica without diagnosis pauses it, so that it does not pay for another's
  // tape.
  std::optional<autograd::Tape::Pause> pause;
  if (!ddp_ || !mode_.options.diagnosis) pause.emplace();
  if (mode_.captured) return train_captured();
  optimizer_->zero_grad();
  for (int i = 1; i <= mode_.micro_batches; ++i) {
    std::optional<dist::DistributedDataParallelBase::NoSync> guard;
    if (i < mode_.micro_batches) guard.emplace(ddp_->no_sync());
    backward_of(next_batch());
  }
  optimizer_->step();
}

void Replica::train_captured() {
  const auto step = [this] {
    optimizer_->zero_grad();
    backward_of(fixed_);
    optimizer_->step();
  };
  if (!fixed_.x.defined()) fixed_ = {batches_[0].x.clone(), batches_[0].target.clone()};
  const bool is_warm = next_ >= kWarmUp;
  if (is_warm && !graph_) {
    graph_ = device_runtime(device_).new_graph();
    graph_->capture(step);
  }
  const Batch& batch = next_batch();
  kernels::copy(fixed_.x, batch.x);
  kernels::copy(fixed_.target, batch.target);
  if (is_warm) {
    graph_->replay();
  } else {
    step();
  }
}

void Replica::wait_for_device() const {
  if (device_.type != DeviceType::CPU) device_runtime(device_).synchronize(device_.index);
}

StepTimes Replica::step() {
  StepTimes times;
  const auto begin = std::chrono::steady_clock::now();
  train();
  wait_for_device();
  times.step_ms = ms_since(begin) / mode_.micro_batches;
  if (averager_) averager_->average_parameters(network_);
  if (ddp_ && !graph_) {
    const dist::RoundEvents& round = ddp_->timeline().rounds().back();
    times.shares = shares_of(round);
    times.buckets = round.buckets.size();
  }
  return times;
}

double Replica::mean_ms_of(int64_t steps) {
  wait_for_device();
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < steps; ++step)
    train();
  wait_for_device();
  const double ms = ms_since(begin) / static_cast<double>(steps * mode_.micro_batches);
  if (averager_) averager_->average_parameters(network_);
  return ms;
}

}  // namespace brigade::lab::bench
