// The threads backend: ranks are threads of one process, and the shared-memory protocol runs over plain memory. For
// tests, debugging and learning.
#include <brigade/core/error.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/groups/subgroup.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace brigade::dist {
namespace {

// The blocks of the ranks of one world, in memory that is mapped and unmapped directly: an allocator would keep such
// large aligned blocks without reusing them.
class Blocks {
 public:
  explicit Blocks(int ranks) {
    void* data = mmap(nullptr, sizeof(shm::Control), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
      throw OutOfMemoryError("cannot map {} bytes for a group of threads: {}", sizeof(shm::Control),
                             std::strerror(errno));
    control_ = static_cast<shm::Control*>(data);
    for (int rank = 0; rank < ranks; ++rank)  // blocks of unused ranks are never touched
      new (&control_->ranks[rank]) shm::RankBlock;
  }
  ~Blocks() { munmap(control_, sizeof(shm::Control)); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  shm::Control* get() const noexcept { return control_; }

 private:
  shm::Control* control_ = nullptr;
};

// Shared state of the groups of one world. Lives as long as any of them.
struct World {
  explicit World(int ranks) : blocks(ranks) {}
  Blocks blocks;
  std::mutex mutex;
  // Memory of ranks that gave up while others could still be using it.
  std::vector<Tensor> kept;
  // Subgroups, by number, that some members have not entered yet.
  struct Begun {
    std::shared_ptr<World> world;
    int came = 0;
  };
  std::map<uint64_t, Begun> begun;

  // Called once by each member.
  std::shared_ptr<World> enter(const Subgroup& members) {
    const std::lock_guard lock(mutex);
    Begun& subgroup = begun[members.number];
    if (!subgroup.world) subgroup.world = std::make_shared<World>(members.size());
    std::shared_ptr<World> world = subgroup.world;
    if (++subgroup.came == members.size()) begun.erase(members.number);
    return world;
  }
};

class ThreadGroup final : public shm::SharedGroup {
 public:
  ThreadGroup(int rank, int size, std::chrono::milliseconds timeout, const std::shared_ptr<World>& world,
              RankNames names = {})
      : SharedGroup(rank, size, timeout, std::shared_ptr<shm::Control>(world, world->blocks.get()), std::move(names)),
        world_(world) {}
  ~ThreadGroup() override {
    end_channels();
    retire();
    keep_pending();
  }
  const char* backend() const noexcept override { return "threads"; }
  ProcessGroupPtr make_subgroup(const Subgroup& members) override {
    if (!members.is_member()) return nullptr;
    return std::make_shared<ThreadGroup>(members.rank, members.size(), members.timeout, world_->enter(members),
                                         members.names);
  }
  ProcessGroupPtr make_channel(const Subgroup& members) override { return make_subgroup(members); }

 protected:
  bool locate(const void* data, shm::DataPlace& place) const override {
    place.address = reinterpret_cast<uint64_t>(data);
    return true;
  }
  void* resolve(int, const shm::DataPlace& place) override { return reinterpret_cast<void*>(place.address); }
  Allocation allocate_shared(size_t bytes) override { return cpu_allocate(bytes); }
  Departure death_of(int) override { return {}; }  // a thread dies only with its process
  void keep(const Tensor& tensor) override {
    const std::lock_guard lock(world_->mutex);
    world_->kept.push_back(tensor);
  }

 private:
  const std::shared_ptr<World> world_;
};

}  // namespace

std::vector<ProcessGroupPtr> make_thread_groups(int size, std::chrono::milliseconds timeout) {
  if (size < 1 || size > shm::kMaxRanks)
    throw DistError("threads: expected 1 to {} ranks, got {}", shm::kMaxRanks, size);
  const auto world = std::make_shared<World>(size);
  std::vector<ProcessGroupPtr> groups;
  for (int rank = 0; rank < size; ++rank)
    groups.push_back(std::make_shared<ThreadGroup>(rank, size, timeout, world));
  return groups;
}

}  // namespace brigade::dist
