// Counts collectives, and keeps the ids of the latest tensors that were reduced.
#include <brigade/dist/groups/own_collectives.h>

#include <algorithm>
#include <array>

namespace brigade::dist {

namespace {

// The most recent ids of tensors that this thread has all-reduced. A step looks up each of its gradients; a table that
// counts ids per hash slot rules out most of them.
class LatestIds {
 public:
  void add(uint64_t id) noexcept {
    uint64_t& oldest = ids_[count_++ % ids_.size()];
    if (count_ > ids_.size()) --place_of(oldest);
    oldest = id;
    ++place_of(id);
  }
  bool has(uint64_t id) const noexcept {
    return places_[id % places_.size()] != 0 && std::find(ids_.begin(), ids_.end(), id) != ids_.end();
  }

 private:
  uint16_t& place_of(uint64_t id) noexcept { return places_[id % places_.size()]; }

  std::array<uint64_t, 512> ids_{};
  std::array<uint16_t, 16384> places_{};
  size_t count_ = 0;
};
thread_local LatestIds latest_reduced;
thread_local bool in_hook = false;
thread_local uint64_t posted = 0;

}  // namespace

uint64_t collectives_of_this_thread() noexcept { return posted; }
bool was_reduced_by_hand(const Tensor& tensor) noexcept { return latest_reduced.has(tensor.id()); }

ReducedByHook::ReducedByHook(bool is_hook) noexcept : before_(in_hook) { in_hook = in_hook || is_hook; }
ReducedByHook::~ReducedByHook() { in_hook = before_; }

void note_posted() noexcept { ++posted; }
void note_all_reduce(const Tensor& tensor) noexcept {
  if (!in_hook) latest_reduced.add(tensor.id());
}

}  // namespace brigade::dist
