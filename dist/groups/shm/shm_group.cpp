// Ranks that are processes of one host: the shared-memory protocol over anonymous files.
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/meeting/rank_hosts.h>
#include <brigade/dist/meeting/store.h>

#include <fmt/format.h>

#include <array>
#include <sstream>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

class ShmGroup final : public shm::SharedGroup {
 public:
  ShmGroup(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<shm::Mapping> mapping,
           const RankNames& names)
      : SharedGroup(rank, size, timeout,
                    std::shared_ptr<shm::Control>(mapping, static_cast<shm::Control*>(mapping->data())), names),
        arena_(std::make_shared<Home>(mapping, block(rank))) {
    processes_.fill(-1);
  }
  ~ShmGroup() override {
    for (const int process : processes_) {
      if (process >= 0) close(process);
    }
  }
  const char* backend() const noexcept override { return "shm"; }

  // Once all ranks have written their process numbers.
  void watch_peers() {
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      processes_[static_cast<size_t>(r)] = static_cast<int>(syscall(SYS_pidfd_open, block(r).pid.load(), 0));
    }
  }

 protected:
  bool locate(const void* data, shm::DataPlace& place) const override {
    place.allocation = arena_->arena.find(data, place.offset);
    if (place.allocation < 0) return false;
    place.generation = block(rank()).segments[place.allocation].generation.load(std::memory_order_relaxed);
    return true;
  }
  void* resolve(int rank, const shm::DataPlace& place) override { return peers_.resolve(block(rank), rank, place); }

  Allocation allocate_shared(size_t bytes) override {
    const shm::Arena::Piece piece = arena_->arena.allocate(bytes);
    // A tensor may outlive the group: it keeps the arena.
    struct Owner {
      std::shared_ptr<Home> home;
      int32_t segment;
    };
    return {piece.data, new Owner{arena_, piece.segment}, [](void*, void* context, size_t) {
              const std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
              owner->home->arena.free(owner->segment);
            }};
  }

  std::string death_of(int rank) override {
    const int process = processes_[static_cast<size_t>(rank)];
    if (process < 0) return "";
    // Readable once the process has ended, even while nobody has asked for its exit status.
    pollfd entry{process, POLLIN, 0};
    if (poll(&entry, 1, 0) <= 0) return "";
    return fmt::format("died (process {} has ended)", block(rank).pid.load());
  }

 private:
  // The arena writes to this rank's block until its last tensor is gone, so it keeps the control
  // segment.
  struct Home {
    Home(std::shared_ptr<shm::Mapping> m, shm::RankBlock& own) : mapping(std::move(m)), arena(own) {}
    std::shared_ptr<shm::Mapping> mapping;
    shm::Arena arena;
  };

  std::shared_ptr<Home> arena_;
  shm::PeerSegments peers_;
  std::array<int, shm::kMaxRanks> processes_{};
};

}  // namespace

std::shared_ptr<shm::SharedGroup> shm::make_group_of_processes(const std::shared_ptr<Store>& store, int rank, int size,
                                                               std::chrono::milliseconds timeout,
                                                               const std::string& prefix, const RankNames& names) {
  if (size < 1 || size > shm::kMaxRanks) throw DistError("shm: expected 1 to {} ranks, got {}", shm::kMaxRanks, size);
  const std::string key = prefix + "/shm/control";
  std::shared_ptr<shm::Mapping> mapping;
  if (rank == 0) {
    mapping = std::make_shared<shm::Mapping>(sizeof(shm::Control));
    new (mapping->data()) shm::Control;
    store->set(key, fmt::format("{} {} {}", getpid(), mapping->fd(), host_identity()));
  } else {
    std::istringstream text(store->get(key, timeout));
    int pid = 0;
    int fd = 0;
    std::string host;
    text >> pid >> fd >> host;  // an identity has no spaces
    if (host != host_identity()) {
      throw DistError(
          "shm: rank {} runs on another host (or in another container) than rank {}; use the "
          "backend hosts or gloo across hosts",
          names(rank), names(0));
    }
    mapping = std::make_shared<shm::Mapping>(pid, fd, sizeof(shm::Control));
  }
  auto group = std::make_shared<ShmGroup>(rank, size, timeout, mapping, names);
  // Nobody is alone with the segment from here on: a rank that never comes is a timeout with its
  // number.
  store->set(fmt::format("{}/shm/ready/{}", prefix, rank), "1");
  for (int r = 0; r < size; ++r) {
    try {
      store->get(fmt::format("{}/shm/ready/{}", prefix, r), timeout);
    } catch (const TimeoutError&) {
      throw TimeoutError("rendezvous: rank {} waited {} ms for rank {} of {}, which did not come", names(rank),
                         timeout.count(), names(r), size);
    }
  }
  group->watch_peers();
  group->barrier({.description = "rendezvous"});
  return group;
}

ProcessGroupPtr make_shm_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                               const std::string& prefix, const RankNames& names) {
  return shm::make_group_of_processes(store, rank, size, timeout, prefix, names);
}

}  // namespace brigade::dist
