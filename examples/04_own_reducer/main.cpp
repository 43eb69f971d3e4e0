// A custom reducer, which shows how DistributedDataParallel works inside: it puts the gradients of a module into buckets
// and starts the all-reduce of a bucket when its last gradient is ready, while backward computes the others. A flag per
// parameter tells every rank which parameters got no gradient, and on how many ranks. Two ranks (threads) train a
// network with it and a twin under DistributedDataParallel; both end up bitwise equal.
#include <brigade/brigade.h>

#include <cstdio>
#include <string>
#include <vector>

using namespace brigade;

// For float32 parameters that are equal on all ranks at the start. Call zero_grad before each backward.
class Reducer final : public autograd::Listener {
 public:
  int launched_early = 0;  // all-reduces launched while gradients of other buckets were still pending

  Reducer(const nn::Named<Tensor>& parameters, dist::ProcessGroupPtr group, size_t per_bucket)
      : parameters_(parameters), per_bucket_(per_bucket), group_(std::move(group)) {
    std::vector<int64_t> numel((parameters_.size() + per_bucket - 1) / per_bucket);
    for (size_t i = 0; i < parameters_.size(); ++i)
      numel[bucket_of(i)] += parameters_[i].second.numel() + 1;
    for (const int64_t each : numel)
      buckets_.push_back({group_->allocate(each, kFloat32)});
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor& leaf = parameters_[i].second;
      Bucket& bucket = buckets_[bucket_of(i)];
      slots_.push_back({bucket.memory.narrow(0, bucket.used, leaf.numel()).view(leaf.sizes()),
                        bucket.memory.narrow(0, bucket.used + leaf.numel(), 1)});
      bucket.used += leaf.numel() + 1;
      ++bucket.size;
      autograd::set_grad_target(leaf, slots_[i].gradient);  // the gradient is computed in the bucket: no copy
      autograd::observe(leaf, *this, static_cast<uint32_t>(i));
    }
  }
  ~Reducer() override {
    for (const auto& [name, leaf] : parameters_) {
      autograd::stop_observing(leaf, *this);
      autograd::set_grad_target(leaf, Tensor());
    }
  }

  // Known before the first kernel of backward runs: which leaves will get a gradient. The others are ready at once.
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
    --buckets_[bucket_of(i)].pending;
    // In the order of the buckets, which is the same on every rank.
    for (; next_ < buckets_.size() && buckets_[next_].pending == 0; ++next_) {
      buckets_[next_].work = group_->all_reduce(buckets_[next_].memory, {.op = dist::ReduceOp::Avg});
      if (next_ + 1 < buckets_.size()) ++launched_early;
    }
  }
  // All nodes have run. An averaged flag is the fraction of ranks with a gradient, the same on every rank.
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
  };
  struct Bucket {
    Tensor memory;
    int64_t used = 0;
    size_t size = 0, pending = 0;
    dist::WorkPtr work = nullptr;
  };
  // Gradients become ready roughly from the last parameter to the first.
  size_t bucket_of(size_t i) const { return (parameters_.size() - 1 - i) / per_bucket_; }

  nn::Named<Tensor> parameters_;
  size_t per_bucket_, next_ = 0;  // the next bucket to launch
  dist::ProcessGroupPtr group_;
  std::vector<Slot> slots_;
  std::vector<Bucket> buckets_;
};

int main() {
  bool same = true;
  int early = 0;
  std::string error[2];
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    manual_seed(0);  // the same parameters on every rank
    nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
    manual_seed(0);
    nn::Sequential twin(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
    Reducer reducer(net->named_parameters(), group, 2);
    dist::DistributedDataParallel<nn::Sequential> ddp(twin, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.02, .momentum = 0.9});
    optim::SGD of_twin(twin->parameters(), {.lr = 0.02, .momentum = 0.9});
    manual_seed(100 + static_cast<uint64_t>(group->rank()));  // different data on every rank
    for (int step = 0; step < 50; ++step) {
      const Tensor x = randn({16, 4}), target = x.sum({1}, true);
      optimizer.zero_grad();
      mse_loss(net(x), target).backward();
      optimizer.step();
      of_twin.zero_grad();
      mse_loss(ddp(x), target).backward();
      of_twin.step();
    }
    const std::vector<Tensor> own = net->parameters(), others = twin->parameters();
    for (size_t i = 0; i < own.size() && group->rank() == 0; ++i)
      same = same && equal(own[i], others[i]);
    if (group->rank() == 0) early = reducer.launched_early;
    optimizer.zero_grad();
    try {  // rank 1 skips the first layer
      (group->rank() == 0 ? net(randn({16, 4})) : own[2]).sum().backward();
    } catch (const std::exception& thrown) {
      error[group->rank()] = thrown.what();
    }
  });
  std::printf("reductions that began during backward: %d of 100\n%s\n", early, error[0].c_str());
  std::printf("parameters after 50 steps: %s DistributedDataParallel's\n", same ? "bit for bit" : "other than");
  return same && early == 50 && error[0] == error[1] && error[0].find("0.weight (on some") != std::string::npos ? 0 : 1;
}
