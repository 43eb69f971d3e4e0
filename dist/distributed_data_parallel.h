// DistributedDataParallel: a module whose gradients are averaged over the ranks of a process group while backward runs.
//
//   auto group = dist::init_process_group();
//   Net net;
//   dist::DistributedDataParallel ddp(net, group);
//   Tensor loss = cross_entropy(ddp(images), labels);
//   loss.backward();          // gradients of all ranks, averaged; or an error that says which parameter is missing and
//   why optimizer.step();
#pragma once

#include <brigade/dist/reducer.h>
#include <brigade/nn/module.h>

#include <memory>
#include <thread>
#include <utility>

namespace brigade::dist {

struct DDPOptions {
  // See ReducerOptions. Costs nothing measurable here: the plan of backward is exact, and the flags travel in the
  // buckets.
  bool find_unused_parameters = false;
  // Caps of the buckets, in MiB of gradients.
  double bucket_cap_mb = 25;
  double first_bucket_mb = 1;
  // Copy rank 0's buffers to the others at the start of each forward that trains.
  bool broadcast_buffers = true;
  // Keep the tape that explains missing gradients.
  bool diagnosis = true;
  ReducerOptions::ReportAt report_at = ReducerOptions::ReportAt::Backward;
};

// The part that does not depend on the type of the module.
class DistributedDataParallelBase {
 public:
  // Collective. Checks that all ranks hold the same model and copies rank 0's parameters and buffers to the others.
  // Throws DistError (the ranks differ: names the first entry and the ranks), ValueError ("DistributedDataParallel is
  // not needed when a module doesn't have any parameter that requires a gradient.").
  DistributedDataParallelBase(std::shared_ptr<nn::Module> module, ProcessGroupPtr group, const DDPOptions& options,
                              SourceLocation where);
  ~DistributedDataParallelBase();
  DistributedDataParallelBase(const DistributedDataParallelBase&) = delete;
  DistributedDataParallelBase& operator=(const DistributedDataParallelBase&) = delete;

  // While the guard lives, backward accumulates locally; the next backward outside reduces what has gathered. What
  // counts is where *backward* runs. Guards nest.
  class NoSync {
   public:
    explicit NoSync(std::shared_ptr<Reducer> reducer) noexcept : reducer_(std::move(reducer)) {
      reducer_->enter_no_sync();
    }
    ~NoSync() { reducer_->leave_no_sync(); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    std::shared_ptr<Reducer> reducer_;
  };
  [[nodiscard]] NoSync no_sync() const noexcept { return NoSync(reducer_); }

  const Reducer& reducer() const noexcept { return *reducer_; }
  ProcessGroup& group() const noexcept { return *group_; }

 protected:
  // Before the module's forward.
  void pre_forward(SourceLocation where);

 private:
  std::shared_ptr<nn::Module> module_;
  ProcessGroupPtr group_;
  DDPOptions options_;
  std::vector<Tensor> buffers_;
  std::shared_ptr<Reducer> reducer_;
  std::thread::id thread_;
};

// `Module`: a module handle (nn::Linear, or a class made by BRIGADE_MODULE).
template <nn::Holder Module>
class DistributedDataParallel : public DistributedDataParallelBase {
 public:
  DistributedDataParallel(Module module, ProcessGroupPtr group, const DDPOptions& options = {},
                          SourceLocation where = SourceLocation::current())
      : DistributedDataParallelBase(module.ptr(), std::move(group), options, where), module_(std::move(module)) {}

  // The module's forward.
  template <class A>
  decltype(auto) operator()(A&& a, SourceLocation where = SourceLocation::current()) {
    pre_forward(where);
    return module_(std::forward<A>(a), where);
  }
  template <class A, class B>
  requires(!std::is_same_v<std::remove_cvref_t<B>, SourceLocation>) decltype(auto) operator()(
      A&& a, B&& b, SourceLocation where = SourceLocation::current()) {
    pre_forward(where);
    return module_(std::forward<A>(a), std::forward<B>(b), where);
  }
  template <class A, class B, class C>
  requires(!std::is_same_v<std::remove_cvref_t<C>, SourceLocation>) decltype(auto) operator()(
      A&& a, B&& b, C&& c, SourceLocation where = SourceLocation::current()) {
    pre_forward(where);
    return module_(std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), where);
  }

  Module& module() noexcept { return module_; }

 private:
  Module module_;
};

}  // namespace brigade::dist
