// Ranks that are threads of one process: the shared-memory protocol over plain memory. For tests,
// for the debugger and for learning.
#include <brigade/dist/groups/shm/shared_group.h>

#include <mutex>

namespace brigade::dist {

namespace {

// Memory of ranks that gave up while others could still be using it. Lives as long as any of the
// groups.
struct Kept {
  std::mutex mutex;
  std::vector<Tensor> tensors;
};

class ThreadGroup final : public shm::SharedGroup {
 public:
  ThreadGroup(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<shm::Control> control,
              std::shared_ptr<Kept> kept)
      : SharedGroup(rank, size, timeout, std::move(control)), kept_(std::move(kept)) {}
  ~ThreadGroup() override { keep_pending(); }
  const char* backend() const noexcept override { return "threads"; }

 protected:
  bool locate(const void* data, shm::DataPlace& place) const override {
    place.address = reinterpret_cast<uint64_t>(data);
    return true;
  }
  void* resolve(int, const shm::DataPlace& place) override { return reinterpret_cast<void*>(place.address); }
  Allocation allocate_shared(size_t bytes) override { return cpu_allocate(bytes); }
  std::string death_of(int) override { return ""; }  // a thread does not die alone
  void keep(const Tensor& tensor) override {
    const std::lock_guard lock(kept_->mutex);
    kept_->tensors.push_back(tensor);
  }

 private:
  std::shared_ptr<Kept> kept_;
};

}  // namespace

std::vector<ProcessGroupPtr> make_thread_groups(int size, std::chrono::milliseconds timeout) {
  if (size < 1 || size > shm::kMaxRanks)
    throw DistError("threads: expected 1 to {} ranks, got {}", shm::kMaxRanks, size);
  auto control = std::make_shared<shm::Control>();
  auto kept = std::make_shared<Kept>();
  std::vector<ProcessGroupPtr> groups;
  for (int rank = 0; rank < size; ++rank)
    groups.push_back(std::make_shared<ThreadGroup>(rank, size, timeout, control, kept));
  return groups;
}

}  // namespace brigade::dist
