// Copies in, posts the group's collective and copies back, each step when the previous one is done.
#include <brigade/dist/groups/staging.h>

#include <brigade/core/factory.h>
#include <brigade/dist/groups/collective_errors.h>

#include <algorithm>
#include <exception>

namespace brigade::dist {

struct Staging::Transfer {
  Device device;
  std::vector<Tensor> tensors;
  std::vector<Tensor> on_host;
  uint32_t writes = 0;
  Post post;
  std::unique_ptr<DeviceEvent> arrived;   // in host memory
  std::unique_ptr<DeviceEvent> returned;  // on the device
  WorkPtr work;
  WorkTimes times;
  bool finished = false;
  std::exception_ptr error;
};

class StagedWork final : public Work {
 public:
  StagedWork(Staging& staging, Staging::TransferPtr transfer) : staging_(staging), transfer_(std::move(transfer)) {}
  bool is_completed() override {
    if (!transfer_->finished) staging_.progress();
    return transfer_->finished && (transfer_->error || transfer_->returned->query());
  }
  void wait() override { finish(nullptr); }
  void wait(std::chrono::milliseconds timeout) override { finish(&timeout); }
  WorkTimes times() const override { return transfer_->times; }

 private:
  void finish(const std::chrono::milliseconds* timeout) {
    if (!transfer_->finished) staging_.wait_for(transfer_, timeout);
    if (transfer_->error) std::rethrow_exception(transfer_->error);
    transfer_->returned->block();
    // Later work on this stream is ordered after the copy.
    transfer_->tensors.clear();
    transfer_->on_host.clear();
  }

  Staging& staging_;  // valid while the transfer is not finished
  Staging::TransferPtr transfer_;
};

Staging::~Staging() {
  waiting_.insert(waiting_.end(), posted_.begin(), posted_.end());
  for (const TransferPtr& transfer : waiting_) {
    if (transfer->finished) continue;
    transfer->error = group_gone_error();
    transfer->finished = true;
    transfer->work.reset();
  }
  for (const TransferPtr& transfer : returning_) {
    if (transfer->tensors.empty()) continue;
    try {
      transfer->returned->synchronize();
    } catch (...) {
      // The device is lost, and the tensor with it.
    }
  }
}

Staging::Side& Staging::side_of(Device device) {
  Side& side = sides_[device];
  if (!side.stream) {
    const DeviceRuntime& runtime = device_runtime(device);
    side = {runtime.new_stream(device.index), runtime.new_event(device.index)};
  }
  return side;
}

WorkPtr Staging::stage(std::vector<Tensor> tensors, uint32_t reads, uint32_t writes, Post post) {
  let_go();
  auto transfer = std::make_shared<Transfer>();
  const Device device = tensors.front().device();
  const DeviceRuntime& runtime = device_runtime(device);
  transfer->device = device;
  transfer->tensors = std::move(tensors);
  transfer->writes = writes;
  transfer->post = std::move(post);
  transfer->arrived = runtime.new_event(device.index);
  transfer->returned = runtime.new_event(device.index);
  // The copy runs after the work that is queued now.
  const Side& side = side_of(device);
  side.ready->record();
  const DeviceStreamGuard guard(*side.stream);
  side.ready->block();
  for (size_t i = 0; i < transfer->tensors.size(); ++i) {
    const Tensor& tensor = transfer->tensors[i];
    transfer->on_host.push_back(empty_pinned(runtime, tensor.sizes(), tensor.dtype()));
    if (reads >> i & 1U)
      runtime.copy_async(transfer->on_host[i].raw_data(), tensor.raw_data(), tensor.nbytes(), device.index);
  }
  transfer->arrived->record();
  waiting_.push_back(transfer);
  return std::make_shared<StagedWork>(*this, std::move(transfer));
}

void Staging::post(Transfer& transfer) {
  try {
    transfer.work = transfer.post(transfer.on_host);
  } catch (...) {
    transfer.error = std::current_exception();
    transfer.finished = true;
  }
}

// The collective is done: copies the result back.
void Staging::finish(const TransferPtr& given) {
  Transfer& transfer = *given;
  transfer.finished = true;
  if (transfer.work && !transfer.error) transfer.times = transfer.work->times();
  transfer.work.reset();
  if (transfer.error) return;
  const DeviceRuntime& runtime = device_runtime(transfer.device);
  const DeviceStreamGuard guard(*side_of(transfer.device).stream);
  for (size_t i = 0; i < transfer.tensors.size(); ++i) {
    const Tensor& tensor = transfer.tensors[i];
    if (transfer.writes >> i & 1U)
      runtime.copy_async(tensor.raw_data(), transfer.on_host[i].raw_data(), tensor.nbytes(), transfer.device.index);
  }
  transfer.returned->record();
  returning_.push_back(given);
}

void Staging::let_go() {
  while (!returning_.empty()) {
    const Transfer& oldest = *returning_.front();
    const auto is_captured = [&] { return device_runtime(oldest.device).is_capturing(oldest.device.index); };
    // A transfer that was waited for holds no tensors. Events cannot be queried during graph capture.
    if (!oldest.tensors.empty() && (is_captured() || !oldest.returned->query())) return;
    returning_.pop_front();
  }
}

void Staging::progress() {
  let_go();
  while (!waiting_.empty() && waiting_.front()->arrived->query()) {
    const TransferPtr transfer = waiting_.front();
    waiting_.pop_front();
    post(*transfer);
    if (!transfer->finished) posted_.push_back(transfer);
  }
  std::erase_if(posted_, [&](const TransferPtr& transfer) {
    if (transfer->finished) return true;
    if (!transfer->work->is_completed()) return false;
    try {
      transfer->work->wait();
    } catch (...) {
      transfer->error = std::current_exception();
    }
    finish(transfer);
    return true;
  });
}

void Staging::post_all() {
  while (!waiting_.empty()) {
    waiting_.front()->arrived->synchronize();
    progress();
  }
}

void Staging::wait_for(const TransferPtr& transfer, const std::chrono::milliseconds* timeout) {
  while (!transfer->finished && !transfer->work) {
    waiting_.front()->arrived->synchronize();
    progress();
  }
  if (!transfer->finished) {
    try {
      if (timeout) {
        transfer->work->wait(*timeout);
      } else {
        transfer->work->wait();
      }
    } catch (...) {
      transfer->error = std::current_exception();
    }
    finish(transfer);
    std::erase(posted_, transfer);
  }
}

}  // namespace brigade::dist
