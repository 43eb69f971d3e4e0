// A custom reducer, which shows how DistributedDataParallel works inside. It puts the gradients of a module into
// buckets, is notified by the engine when each gradient is complete, and starts the all-reduce of a bucket as soon as
// its last gradient is ready, while backward still computes the others. A flag per parameter is sent along with its
// gradient, so that every rank learns which parameters got no gradient, and on how many ranks. Two ranks (threads)
// train a network with it and a copy under DistributedDataParallel; both end up bitwise equal.
#include <brigade/brigade.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

using namespace brigade;

// For float32 parameters that are equal on all ranks at the start. Call zero_grad before each backward.
class Reducer final : public autograd::Listener {
 public:
  int launched_early = 0;  // all-reduces launched while gradients of other buckets were still pending

  Reducer(const nn::Named<Tensor>& parameters, dist::ProcessGroupPtr group, size_t per_bucket)
      : parameters_(parameters), slots_(parameters.size()), group_(std::move(group)) {
    // Gradients become ready roughly from the last parameter to the first, so the first bucket has the last parameters.
    for (size_t end = parameters_.size(); end > 0;) {
      const size_t begin = end > per_bucket ? end - per_bucket : 0;
      int64_t numel = 0;
      for (size_t i = begin; i < end; ++i)
        numel += parameters_[i].second.numel() + 1;
      const Tensor memory = group_->allocate(numel, kFloat32);
      int64_t start = 0;
      for (size_t i = begin; i < end; ++i) {
        const Tensor& leaf = parameters_[i].second;
        slots_[i] = {memory.narrow(0, start, leaf.numel()).view(leaf.sizes()),
                     memory.narrow(0, start + leaf.numel(), 1), buckets_.size()};
        start += leaf.numel() + 1;
        autograd::set_grad_target(leaf, slots_[i].gradient);  // the gradient is computed in the bucket: no copy
        autograd::observe(leaf, *this, static_cast<uint32_t>(i));
      }
      buckets_.push_back({.memory = memory, .size = end - begin});
      end = begin;
    }
  }
  ~Reducer() override {
    for (const auto& [name, leaf] : parameters_) {
      autograd::stop_observing(leaf, *this);
      autograd::set_grad_target(leaf, Tensor());
    }
  }

  // Which leaves will get a gradient is known before the first kernel of backward runs. The other parameters are marked
  // ready at once.
  void on_plan(const autograd::Plan& plan) override {
    std::vector<bool> planned(parameters_.size());
    plan.for_each_observed(this, [&](uint32_t i) { planned[i] = true; });
    for (Bucket& bucket : buckets_) {
      bucket.memory.zero_();
      bucket.pending = bucket.size;
    }
    next_ = 0;
    for (uint32_t i = 0; i < planned.size(); ++i)
      if (!planned[i]) on_grad_ready(i, false);
  }
  void on_grad_ready(uint32_t i, bool has_gradient) override {
    if (has_gradient) slots_[i].flag.fill_(1.0);
    --buckets_[slots_[i].bucket].pending;
    // In the order of the buckets, which is the same on every rank.
    for (; next_ < buckets_.size() && buckets_[next_].pending == 0; ++next_) {
      buckets_[next_].work = group_->all_reduce(buckets_[next_].memory, {.op = dist::ReduceOp::Avg});
      if (next_ + 1 < buckets_.size()) ++launched_early;
    }
  }
  // All nodes have run. The averages are the same on every rank, and so are the averaged flags: the fraction of ranks
  // with a gradient.
  void on_finish(const autograd::Plan&) override {
    for (const Bucket& bucket : buckets_)
      bucket.work->wait();
    std::string unused;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const float share = slots_[i].flag.item<float>();
      if (share > 0) parameters_[i].second.set_grad(slots_[i].gradient);
      if (share < 1) unused += "\n  " + parameters_[i].first + (share > 0 ? " (on some ranks)" : " (on all ranks)");
    }
    if (!unused.empty()) throw DistError("no gradient for{}", unused);
  }
  // The peers must not wait for buckets of a rank whose backward has failed.
  void on_error(const autograd::Plan*, std::exception_ptr) noexcept override { group_->abort("a backward failed"); }

 private:
  struct Slot {
    Tensor gradient, flag;
    size_t bucket = 0;
  };
  struct Bucket {
    Tensor memory;
    size_t size, pending = 0;
    dist::WorkPtr work = nullptr;
  };
  nn::Named<Tensor> parameters_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
  dist::ProcessGroupPtr group_;
  size_t next_ = 0;  // the next bucket to launch
};

int main() {
  std::vector<float> with_own[2], with_ddp[2];
  std::string error[2];
  int early = 0;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const int rank = group->rank();
    for (const bool own : {false, true}) {
      manual_seed(0);  // the same parameters on every rank
      nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
      std::optional<dist::DistributedDataParallel<nn::Sequential>> ddp;
      std::optional<Reducer> reducer;
      if (own)
        reducer.emplace(net->named_parameters(), group, 2);
      else
        ddp.emplace(net, group);
      optim::SGD optimizer(net->parameters(), {.lr = 0.02, .momentum = 0.9});
      manual_seed(100 + static_cast<uint64_t>(rank));  // different data on every rank
      for (int step = 0; step < 50; ++step) {
        const Tensor x = randn({16, 4});
        optimizer.zero_grad();
        mse_loss(own ? net(x) : (*ddp)(x), x.sum({1}, true)).backward();
        optimizer.step();
      }
      for (const Tensor& parameter : net->parameters())
        for (const float value : parameter.to_vector<float>())
          (own ? with_own : with_ddp)[rank].push_back(value);
      if (!own) continue;
      if (rank == 0) early = reducer->launched_early;
      optimizer.zero_grad();
      try {  // rank 1 skips the first layer
        (rank == 0 ? net(randn({16, 4})) : net->parameters()[2]).sum().backward();
      } catch (const std::exception& thrown) {
        error[rank] = thrown.what();
      }
    }
  });
  std::printf("reductions that began during backward: %d of 100\n%s\n", early, error[0].c_str());
  const bool same = with_own[0] == with_ddp[0] && with_own[1] == with_ddp[1];
  std::printf("parameters after 50 steps: %s DistributedDataParallel's\n", same ? "bit for bit" : "other than");
  return same && early == 50 && error[0] == error[1] && error[0].find("0.weight (on some") != std::string::npos ? 0 : 1;
}
