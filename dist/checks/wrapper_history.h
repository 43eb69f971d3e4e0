// The DDP wrappers that this rank has made on a group, which the ranks make in the same order: numbers the wrappers of one module class.
#pragma once

#include <brigade/dist/errors/collective_info.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

class WrapperHistory {
 public:
  WrapperHistory() = default;
  // Destroyed with the group: calls run_end_callbacks(), unless an exception is in flight.
  ~WrapperHistory();
  WrapperHistory(const WrapperHistory&) = delete;
  WrapperHistory& operator=(const WrapperHistory&) = delete;

  // The name of the next wrapper of a module of this name: DDP(Net), then DDP(Net)#2, DDP(Net)#3.
  Owner next(const std::string& module);

  // Two wrappers that two ranks have made in different orders.
  struct Swapped {
    std::string earlier, later;  // their titles
    int rank, other;             // `rank` now makes the wrapper that `other` made earlier
  };
  // `lines`: the line at which each rank made the wrapper that next() named last. Ranks may make one wrapper at
  // different lines (in the branches of an if), but not a wrapper at the line of a different wrapper.
  std::optional<Swapped> add(const std::string& module, std::vector<std::string> lines);

  // Registers a wrapper's report, which is called each time training ends or a model is saved. The wrapper may be gone
  // by then.
  void at_end(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void run_end_callbacks() const;

  // Notes a ZeroRedundancyOptimizer step, after which every rank holds the parameter values computed by each
  // parameter's owner.
  void note_shared_step() noexcept { has_shared_steps_ = true; }
  bool has_shared_steps() const noexcept { return has_shared_steps_; }

 private:
  std::vector<std::function<void()>> calls_;
  bool has_shared_steps_ = false;
  std::map<std::string, uint32_t> made_;
  std::map<std::string, std::vector<std::vector<std::string>>> lines_;  // indexed by module, wrapper and rank
};

}  // namespace brigade::dist
