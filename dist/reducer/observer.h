// ReducerObserver: what a reducer reports to those who watch it (dist/observers). A reducer works without observers: it averages, and its errors name no cause.
//
// Observers are called in the order of ReducerOptions::observers, which must be the same on every rank: some exchange
// texts.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/core/place.h>
#include <brigade/dist/groups/work.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

class Round;
class SentWord;
struct NamedParameter;

// A backward whose records the tape may still hold: one that is running, or one that has ended.
class TracedBackward {
 public:
  explicit TracedBackward(const autograd::Plan& plan)
      : roots_(plan.roots()), where_(plan.where()), number_(plan.number()), keeps_graph_(plan.keeps_graph()) {}
  // Plan::where and Plan::number.
  TracedBackward(SourceLocation where, uint64_t number) : where_(where), number_(number) {}

  SourceLocation where() const noexcept { return where_; }
  bool has_ended() const noexcept { return roots_.empty(); }
  std::span<const Tensor> roots() const noexcept { return roots_; }
  uint64_t number() const noexcept { return number_; }
  bool keeps_graph() const noexcept { return keeps_graph_; }

 private:
  std::span<const Tensor> roots_;
  SourceLocation where_;
  uint64_t number_;
  bool keeps_graph_ = false;
};

class ReducerObserver {
 public:
  virtual ~ReducerObserver() = default;

  // What is to travel with the gradients for this observer; asked once.
  virtual std::vector<SentWord*> words() { return {}; }

  // --- Between reduced backwards

  // A forward begins; its end comes with or without an error.
  virtual void on_forward() {}
  virtual void on_forward_end() noexcept {}
  // A backward has reached no parameter of the reducer, although a forward waits for its backward.
  virtual void on_passed_by(const autograd::Plan&) {}
  // Whether such a backward was to reach one of them: its path was cut.
  virtual bool is_meant(std::span<const NamedParameter>, const TracedBackward&) const { return false; }
  // The root of a backward was refused. This rank takes part in the backward of its peers as one that fails.
  virtual void on_refused() {}
  // The check of an optimizer's step begins, with gradients that hold that many local backwards; the step has ended.
  virtual void on_step(const autograd::Update&, uint32_t /*local_backwards*/) {}
  virtual void on_step_end() noexcept {}

  // --- In a reduced backward

  // No gradient was touched yet. `plan`: null if this rank takes part without a sound backward of its own.
  virtual void on_begin(const Round&, const autograd::Plan* /*plan*/) {}
  // Gradients that earlier backwards have accumulated locally are about to be averaged.
  virtual void on_accumulated(const Round&, uint32_t /*parameter*/) {}
  // The gradient is in its slot; called if hears_gradients() was true at construction.
  virtual bool hears_gradients() const { return false; }
  virtual void on_ready(const Round&, uint32_t /*parameter*/) {}
  virtual void on_launch(const Round&, uint32_t /*bucket*/) {}
  // All nodes have run.
  virtual void on_computed(const Round&) {}
  // This rank waits for a bucket; the bucket is reduced.
  virtual void on_wait(const Round&, uint32_t /*bucket*/) {}
  virtual void on_reduced(const Round&, uint32_t /*bucket*/, const WorkPtr&) {}
  // The words of a bucket show nothing wrong. Whether its gradients are to be trusted; every rank must answer alike.
  virtual bool accepts(const Round&, uint32_t /*bucket*/) { return true; }
  // The gradients cannot be trusted, on any rank. The error to raise, or null to leave it to the next observer.
  // `backward`: null if causes are not to be searched for. `failure`: the text of the exception of this rank, or "".
  // Throws DistError if the ranks cannot exchange what they know.
  virtual std::exception_ptr on_error(const Round&, const TracedBackward* /*backward*/,
                                      const std::string& /*failure*/) {
    return nullptr;
  }
  // The gradients are final. After all observers have run, the first exception goes on to the caller of backward.
  virtual void on_finish(const Round&) {}
  // Called last, with or without an error.
  virtual void on_backward_end(const autograd::Plan&) noexcept {}
  // A collective has failed.
  virtual void on_group_error() noexcept {}
};

}  // namespace brigade::dist
