// Collects calls that can be issued together.
#include <brigade/dist/groups/coalescing.h>

#include <brigade/core/error.h>

#include <utility>

namespace brigade::dist {

// Shared state of the returned works, which may outlive everything else.
struct Coalescing::Outcome {
  WorkPtr whole;
  std::exception_ptr error;
};

class CoalescedWork final : public Work {
 public:
  CoalescedWork(std::shared_ptr<Coalescing::Outcome> outcome, const char* what, SourceLocation where,
                SourceLocation manager)
      : outcome_(std::move(outcome)), what_(what), where_(where), manager_(manager) {}

  bool is_completed() override { return outcome_->error || (outcome_->whole && outcome_->whole->is_completed()); }
  void wait() override { issued().wait(); }
  void wait(std::chrono::milliseconds timeout) override { issued().wait(timeout); }
  bool completes_within(std::chrono::milliseconds time) override {
    return outcome_->error || (outcome_->whole && outcome_->whole->completes_within(time));
  }
  WorkTimes times() const override { return outcome_->whole ? outcome_->whole->times() : WorkTimes(); }
  DeviceSpan on_device() const override { return outcome_->whole ? outcome_->whole->on_device() : DeviceSpan(); }

 private:
  Work& issued() {
    if (outcome_->error) std::rethrow_exception(outcome_->error);
    if (!outcome_->whole)
      throw DistError(where_,
                      "{}: its result is waited for before the coalescing manager of {} has issued it; wait after the "
                      "manager's end()",
                      what_, manager_);
    return *outcome_->whole;
  }

  const std::shared_ptr<Coalescing::Outcome> outcome_;
  const char* const what_;
  const SourceLocation where_, manager_;
};

namespace {

bool share_memory(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.numel() == 0 || b.numel() == 0) return false;
  const auto* const from_a = static_cast<const char*>(a.raw_data());
  const auto* const from_b = static_cast<const char*>(b.raw_data());
  return from_a < from_b + b.nbytes() && from_b < from_a + a.nbytes();
}

}  // namespace

Coalescing::Coalescing(SourceLocation where) : where_(where), outcome_(std::make_shared<Outcome>()) {}

WorkPtr Coalescing::add(const CollectiveCall& call) {
  const char* const what = name(call.kind);
  const SourceLocation where = call.options.where;
  for (const auto& kept : kept_) {
    const CollectiveCall& other = kept->call;
    if (call.kind != other.kind)
      throw ValueError(where,
                       "{}: the coalescing manager of {} has collected {}; it takes collectives of one kind, use "
                       "another manager for this one",
                       what, where_, name(other.kind));
    if (call.output.device() != other.output.device())
      throw DeviceError(where, "{}: the coalescing manager of {} has collected tensors of {}, got {}", what, where_,
                        to_string(other.output.device()), describe(call.output));
    if (share_memory(call.output, other.output) || share_memory(call.output, other.input) ||
        share_memory(call.input, other.output))
      throw ValueError(where,
                       "{}: {} shares memory with what the same coalescing manager has collected at {}; collectives "
                       "that are issued together have no order, call this one after the manager's end()",
                       what, describe(call.output), other.options.where);
  }
  kept_.push_back(std::make_unique<KeptCall>(call));
  return std::make_shared<CoalescedWork>(outcome_, what, where, where_);
}

std::vector<CollectiveCall> Coalescing::calls() const {
  std::vector<CollectiveCall> calls;
  for (const auto& kept : kept_)
    calls.push_back(kept->get());
  return calls;
}

void Coalescing::settle(WorkPtr whole) { outcome_->whole = std::move(whole); }

void Coalescing::settle(const std::exception_ptr& error) { outcome_->error = error; }

}  // namespace brigade::dist
