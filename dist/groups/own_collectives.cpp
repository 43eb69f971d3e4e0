// Counts collectives, and keeps the ids of the latest tensors that were reduced.
#include <brigade/dist/groups/own_collectives.h>

#include <brigade/autograd/write_log.h>

#include <array>

namespace brigade::dist {
namespace {

// The most recent tensors that this thread has all-reduced. A step looks up each of its gradients; a table that counts
// ids per hash slot rules out most of them.
class LatestReduced {
 public:
  void add(const ReducedByHand& reduced) noexcept {
    ReducedByHand& oldest = latest_[count_++ % latest_.size()];
    if (count_ > latest_.size()) --place_of(oldest.id);
    oldest = reduced;
    ++place_of(reduced.id);
  }
  const ReducedByHand* find(uint64_t id) const noexcept {
    if (places_[id % places_.size()] == 0) return nullptr;
    for (size_t i = count_; i > 0 && i + latest_.size() > count_; --i) {
      const ReducedByHand& each = latest_[(i - 1) % latest_.size()];
      if (each.id == id) return &each;
    }
    return nullptr;
  }

 private:
  uint16_t& place_of(uint64_t id) noexcept { return places_[id % places_.size()]; }

  std::array<ReducedByHand, 512> latest_{};
  std::array<uint16_t, 16384> places_{};
  size_t count_ = 0;
};
thread_local LatestReduced latest_reduced;
thread_local bool in_hook = false;
thread_local uint64_t posted = 0;

}  // namespace

uint64_t collectives_of_this_thread() noexcept { return posted; }
const ReducedByHand* reduced_by_hand(const Tensor& tensor) noexcept { return latest_reduced.find(tensor.id()); }

ReducedByHook::ReducedByHook(bool is_hook) noexcept : before_(in_hook) { in_hook = in_hook || is_hook; }
ReducedByHook::~ReducedByHook() { in_hook = before_; }

void note_posted() noexcept { ++posted; }
void note_all_reduce(const Tensor& tensor, ReduceOp op, int ranks, SourceLocation where) noexcept {
  if (!in_hook) latest_reduced.add({tensor.id(), op, ranks, where, autograd::writes_so_far()});
}

}  // namespace brigade::dist
