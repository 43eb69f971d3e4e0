// A process group that forwards to another one and corrupts the last element of each result, except for all-reduces
// that have a description or are not of Phase::Program.
#pragma once

#include <brigade/dist/groups/process_group.h>

namespace brigade::test {

class FalsifyingGroup : public dist::ProcessGroup {
 public:
  explicit FalsifyingGroup(dist::ProcessGroupPtr honest)
      : ProcessGroup(honest->rank(), honest->size(), honest->timeout()), honest_(std::move(honest)) {}

  const char* backend() const noexcept override { return "falsifying"; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override { return honest_->allocate(numel, dtype); }
  void abort(std::string_view reason) override { honest_->abort(reason); }

 protected:
  dist::WorkPtr do_all_reduce(const Tensor& tensor, const dist::CollectiveOptions& options) override {
    return falsified(honest_->all_reduce(tensor, options),
                     options.description.empty() && options.topic.phase == dist::Phase::Program ? tensor : Tensor());
  }
  dist::WorkPtr do_broadcast(const Tensor& tensor, const dist::CollectiveOptions& options) override {
    return falsified(honest_->broadcast(tensor, options), tensor);
  }
  dist::WorkPtr do_all_gather(const Tensor& output, const Tensor& input,
                              const dist::CollectiveOptions& options) override {
    return falsified(honest_->all_gather(output, input, options), output);
  }
  dist::WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input,
                                  const dist::CollectiveOptions& options) override {
    return falsified(honest_->reduce_scatter(output, input, options), output);
  }
  dist::WorkPtr do_barrier(const dist::CollectiveOptions& options) override {
    honest_->barrier(options);
    return falsified(nullptr, {});
  }

 private:
  struct Work : dist::Work {
    dist::WorkPtr honest;
    Tensor result;
    bool is_completed() override { return !honest || honest->is_completed(); }
    void wait() override {
      if (honest) honest->wait();
      if (!result.defined() || result.numel() == 0) return;
      auto* const last = static_cast<std::byte*>(result.raw_data()) + result.nbytes() - 1;
      *last ^= std::byte{0x10};
    }
    void wait(std::chrono::milliseconds) override { wait(); }
  };

  static dist::WorkPtr falsified(dist::WorkPtr honest, const Tensor& result) {
    auto work = std::make_shared<Work>();
    work->honest = std::move(honest);
    work->result = result;
    return work;
  }

  dist::ProcessGroupPtr honest_;
};

}  // namespace brigade::test
