// What a rank says of its backwards and steps to peers that meet it in another collective: which forwards it is in the
// backward of, and which wrappers it misses, because their forward ran under no_grad or the backward reaches nothing of
// them. A peer that reduces such a wrapper in the same place of the program then knows why this rank does not.
#pragma once

#include <brigade/core/place.h>
#include <brigade/core/tensor.h>
#include <brigade/dist/errors/rank_activity.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace brigade::dist {

class ProcessGroup;

// Of one thread.
class MissedWrappers {
 public:
  static MissedWrappers& of_this_thread();
  // Wrappers that are static objects outlive it.
  ~MissedWrappers() {
    all_.clear();
    lines_.clear();
  }

  // The latest forward of `wrapper` was not recorded. `opened`: the guard, no line where none is known. It is missed where
  // that is so at this line for the first time: a second one shows that the program means it, to evaluate for one.
  void add_forward(const void* wrapper, const ProcessGroup& group, const Owner& owner, SourceLocation where,
                   SourceLocation opened);
  // The latest forward of `wrapper` was recorded, and the backward at `where` has reached nothing of it.
  void add_backward(const void* wrapper, const ProcessGroup& group, const Owner& owner, SourceLocation where);
  // The wrapper's next forward records, its backward is reduced; or it ends.
  void forget(const void* wrapper) noexcept {
    if (!all_.empty()) erase(wrapper);
  }
  void end(const void* wrapper) noexcept;

  // What this thread does in the backward `number`, at `where`: one of the wrappers so far and of this one. `forward`: no line
  // where it is not known.
  const RankActivity& in_backward(uint64_t number, const Owner& owner, SourceLocation forward, SourceLocation where);
  // A collective of the latest such backward has failed: what this thread has said is what its peers ask for now.
  void break_off() noexcept { broken_ = backward_; }
  bool has_broken_off(uint64_t number) const noexcept { return broken_ == number; }
  // Tells the peers of `group` what this rank does, with what it has missed of that group, the latest first.
  void note(RankActivity activity, ProcessGroup& group) const;

 private:
  struct Missed {
    const void* wrapper;
    const ProcessGroup* group;
    RankActivity::Missed missed;
  };
  void add(Missed missed);
  void erase(const void* wrapper) noexcept;

  std::vector<Missed> all_;                           // one of a wrapper, the latest last
  std::vector<std::pair<const void*, Place>> lines_;  // of forwards that were not recorded
  uint64_t backward_ = 0, broken_ = 0;
  RankActivity in_backward_;
};

}  // namespace brigade::dist
