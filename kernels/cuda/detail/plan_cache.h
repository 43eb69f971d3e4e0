// How a library is to solve a problem (which algorithm, with how much memory) is asked once and
// kept.
#pragma once

#include <brigade/kernels/cuda/detail/thread_state.h>

#include <cstdint>
#include <map>
#include <memory>

namespace brigade::kernels::cuda {

struct PlanStats {
  uint64_t made = 0;
  uint64_t found = 0;  // calls that were served by a plan made before
};

// Of one thread and device. Problem: a struct of everything that the choice depends on, with
// operator<=>.
template <class Problem, class Plan>
class PlanCache {
 public:
  // A job that never repeats a shape must not grow: at so many plans all are dropped.
  static constexpr size_t kMost = 1024;

  // The plan for `problem`, made by make(problem) -> std::unique_ptr<Plan> when it is new. Valid
  // until the next call.
  template <class Make>
  Plan& get(const Problem& problem, Make&& make) {
    const auto found = plans_.find(problem);
    if (found != plans_.end()) {
      ++stats_.found;
      return *found->second;
    }
    const AllowDuringCapture allow;
    std::unique_ptr<Plan> plan = make(problem);
    if (plans_.size() >= kMost) plans_.clear();
    ++stats_.made;
    return *plans_.emplace(problem, std::move(plan)).first->second;
  }
  const PlanStats& stats() const noexcept { return stats_; }
  size_t size() const noexcept { return plans_.size(); }

 private:
  std::map<Problem, std::unique_ptr<Plan>> plans_;
  PlanStats stats_;
};

}  // namespace brigade::kernels::cuda
