// The wrappers of one group, which the ranks make in the same order: what tells those of one class
// apart.
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
  // With the group: tell_rest(), unless an exception says more.
  ~WrapperHistory();
  WrapperHistory(const WrapperHistory&) = delete;
  WrapperHistory& operator=(const WrapperHistory&) = delete;

  // DDP(Net), then DDP(Net)#2, DDP(Net)#3: the next wrapper of a module of this name.
  Owner next(const std::string& module);

  // Two wrappers that two ranks have made in another order.
  struct Swapped {
    std::string earlier, later;  // their titles
    int rank, other;             // `rank` makes now what `other` made earlier
  };
  // `lines`: where each rank has made the wrapper of which next() was the last. Ranks may make
  // one wrapper at different lines (in the branches of an if); but not one at the line of another.
  std::optional<Swapped> add(const std::string& module, std::vector<std::string> lines);

  // What a wrapper has to tell when training ends, or a model is saved; it may be gone by then. Called each time.
  void tell_at_end(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void tell_rest() const;

  // After such a step every rank holds what the owner of each parameter has made of it: a ZeroRedundancyOptimizer's.
  void note_shared_step() noexcept { has_shared_steps_ = true; }
  bool has_shared_steps() const noexcept { return has_shared_steps_; }

 private:
  std::vector<std::function<void()>> calls_;
  bool has_shared_steps_ = false;
  std::map<std::string, uint32_t> made_;
  std::map<std::string, std::vector<std::vector<std::string>>> lines_;  // by module, wrapper and rank
};

}  // namespace brigade::dist
