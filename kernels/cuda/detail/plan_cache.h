// A cache of the plans (algorithm and workspace size) that a library chooses for problems.
#pragma once

#include <brigade/kernels/cuda/detail/thread_state.h>

#include <cstdint>
#include <map>
#include <memory>

namespace brigade::kernels::cuda {

struct PlanStats {
  uint64_t made = 0;
  uint64_t found = 0;  // cache hits
};

// The cache of one thread and device. Problem: a struct of everything that the choice depends on, with operator<=>.
template <class Problem, class Plan>
class PlanCache {
 public:
  // Bounds the memory of jobs that never repeat a shape: at this size all plans are dropped.
  static constexpr size_t kMost = 1024;

  // Returns the plan for `problem`, created by make(problem) -> std::unique_ptr<Plan> if it is not cached. Valid until
  // the next call.
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
