// A custom process group: all communication between ranks goes through one small interface. This group forwards every
// collective to another group and counts them. DistributedDataParallel takes any ProcessGroup. The counts show that a
// training step is one all-reduce per bucket, and a small one in which the ranks agree on the optimizer's step.
#include <brigade/brigade.h>

#include <cstdio>
#include <memory>
#include <string_view>

using namespace brigade;
using dist::CollectiveOptions;
using dist::WorkPtr;

class CountingGroup final : public dist::ProcessGroup {
 public:
  explicit CountingGroup(dist::ProcessGroupPtr inner)
      : ProcessGroup(inner->rank(), inner->size(), inner->timeout()), inner_(std::move(inner)) {}
  int calls = 0;
  size_t bytes = 0;  // sent by this rank

  const char* backend() const noexcept override { return "counting"; }
  using ProcessGroup::allocate;  // the overload for devices
  Tensor allocate(int64_t numel, DType dtype) override { return inner_->allocate(numel, dtype); }
  void abort(std::string_view reason) override { inner_->abort(reason); }
  void note_failure(std::string_view reason) override { inner_->note_failure(reason); }

 protected:
  // The public methods check the tensors and fill in the caller's line, then call these.
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return counted(tensor.nbytes(), inner_->all_reduce(tensor, options, options.where));
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return counted(tensor.nbytes(), inner_->broadcast(tensor, options, options.where));
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return counted(input.nbytes(), inner_->all_gather(output, input, options, options.where));
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return counted(input.nbytes(), inner_->reduce_scatter(output, input, options, options.where));
  }
  WorkPtr do_barrier(const CollectiveOptions& options) override {
    inner_->barrier(options, options.where);  // blocks until all ranks are here
    return counted(0, dist::completed_work());
  }
  void do_progress() override { inner_->progress(); }
  void do_note_activity(const dist::RankActivity& activity) override { inner_->note_activity(activity); }

 private:
  WorkPtr counted(size_t given, WorkPtr work) {
    ++calls;
    bytes += given;
    return work;
  }
  dist::ProcessGroupPtr inner_;
};

int main() {
  bool as_claimed = false;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const auto counting = std::make_shared<CountingGroup>(group);
    nn::Linear net(64, 10);
    dist::DistributedDataParallel<nn::Linear> ddp(net, counting);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    for (int step = 0; step < 10; ++step) {
      counting->calls = 0;  // only the last step is reported
      counting->bytes = 0;
      optimizer.zero_grad();
      ddp(randn({16, 64})).mean().backward();  // different data on every rank
      optimizer.step();
    }
    const bool consistent = dist::verify_consistency(*group, net).consistent();  // all ranks hold the same weights
    if (group->rank() != 0) return;
    const size_t gradients = net->weight.nbytes() + net->bias.nbytes();
    std::printf("a step: %d collectives, %zu bytes, gradients %zu\n", counting->calls, counting->bytes, gradients);
    const bool well_counted = counting->bytes > gradients && counting->bytes < gradients + 200 && counting->calls == 2;
    as_claimed = well_counted && consistent;
  });
  return as_claimed ? 0 : 1;
}
