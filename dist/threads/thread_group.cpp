// Ranks that are threads of one process: the shared-memory protocol over plain memory. For tests, for the debugger and
// for learning.
#include <brigade/dist/shm/shared_group.h>

#include <fmt/format.h>

namespace brigade::dist {

namespace {

class ThreadGroup final : public shm::SharedGroup {
 public:
  ThreadGroup(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<shm::Control> control)
      : SharedGroup(rank, size, timeout, std::move(control)) {}
  const char* backend() const noexcept override { return "threads"; }

 protected:
  bool locate(const void* data, shm::Place& place) const override {
    place.address = reinterpret_cast<uint64_t>(data);
    return true;
  }
  void* resolve(int, const shm::Place& place) override { return reinterpret_cast<void*>(place.address); }
  Allocation allocate_shared(size_t bytes) override { return cpu_allocate(bytes); }
  std::string death_of(int) override { return ""; }  // a thread does not die alone
};

}  // namespace

std::vector<ProcessGroupPtr> make_thread_groups(int size, std::chrono::milliseconds timeout) {
  if (size < 1 || size > shm::kMaxRanks)
    throw DistError(fmt::format("threads: expected 1 to {} ranks, got {}", shm::kMaxRanks, size));
  auto control = std::make_shared<shm::Control>();
  std::vector<ProcessGroupPtr> groups;
  for (int rank = 0; rank < size; ++rank)
    groups.push_back(std::make_shared<ThreadGroup>(rank, size, timeout, control));
  return groups;
}

}  // namespace brigade::dist
