// The shm backend: ranks are processes of one host, and the shared-memory protocol runs over anonymous files.
#include <brigade/dist/groups/process_end.h>
#include <brigade/dist/groups/shm/arena.h>
#include <brigade/dist/groups/shm/handover.h>
#include <brigade/dist/groups/shm/shared_group.h>
#include <brigade/dist/groups/subgroup.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/store.h>

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::dist {
namespace {

// The memory of a rank. The arena writes to the rank's block until its last tensor is gone, so the control segment
// lives as long.
struct Home {
  shm::Mapping control;
  shm::Arena arena;

  shm::Control* blocks() const noexcept { return static_cast<shm::Control*>(control.data()); }
};

// The store and prefix under which two ranks of a group meet again, for a channel.
struct Meeting {
  std::shared_ptr<Store> store;
  std::string prefix;
};

class ShmGroup final : public shm::SharedGroup {
 public:
  ShmGroup(int rank, int size, std::chrono::milliseconds timeout, const std::shared_ptr<Home>& home,
           shm::HandedOver peers, const RankNames& names, Meeting meeting)
      : SharedGroup(rank, size, timeout, std::shared_ptr<shm::Control>(home, home->blocks()), names),
        home_(home),
        meeting_(std::move(meeting)),
        peers_(std::move(peers.memory)) {
    home->arena.announce_in(block(rank));
    for (int r = 0; r < size; ++r)
      watched_.push_back(r == rank ? PeerProcess() : PeerProcess(peers.processes[static_cast<size_t>(r)]));
  }
  ~ShmGroup() override {
    end_channels();
    retire();
  }
  const char* backend() const noexcept override { return "shm"; }
  ProcessGroupPtr make_subgroup(const Subgroup& members) override;
  ProcessGroupPtr make_channel(const Subgroup& members) override {
    return make_shm_group(meeting_.store, members.rank, members.size(), members.timeout,
                          prefix_of(meeting_.prefix, members), members.names);
  }

 protected:
  bool locate(const void* data, shm::DataPlace& place) const override {
    place.allocation = home_->arena.find(data, place.offset);
    if (place.allocation < 0) return false;
    place.generation = block(rank()).segments[place.allocation].generation.load(std::memory_order_relaxed);
    return true;
  }
  void* resolve(int rank, const shm::DataPlace& place) override { return peers_.resolve(block(rank), rank, place); }

  Allocation allocate_shared(size_t bytes) override {
    const shm::Arena::Piece piece = home_->arena.allocate(bytes);
    // A tensor may outlive the group: it keeps the arena.
    struct Owner {
      std::shared_ptr<Home> home;
      int32_t segment;
    };
    return {piece.data, new Owner{home_, piece.segment}, [](void*, void* context, size_t) {
              const std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
              owner->home->arena.free(owner->segment);
            }};
  }

  Departure death_of(int rank) override { return watched_[static_cast<size_t>(rank)].end(); }

 private:
  std::shared_ptr<Home> home_;
  Meeting meeting_;
  shm::PeerSegments peers_;
  std::vector<PeerProcess> watched_;  // indexed by rank
};

// The first rank's side: makes its group and invites the other ranks.
std::shared_ptr<ShmGroup> invite(shm::MemoryHost& host, int size, std::chrono::milliseconds timeout,
                                 const RankNames& names, const Meeting& meeting) {
  auto home = std::make_shared<Home>();
  const shm::SharedFile control(sizeof(shm::Control));
  home->control = shm::Mapping(control, 0, sizeof(shm::Control));
  new (home->control.data()) shm::Control;
  shm::HandedOver peers = host.exchange(control, home->arena.file(), size, timeout, names);
  return std::make_shared<ShmGroup>(0, size, timeout, home, std::move(peers), names, meeting);
}

// The side of an invited rank.
std::shared_ptr<ShmGroup> follow(std::string_view invitation, int rank, int size, std::chrono::milliseconds timeout,
                                 const RankNames& names, const Meeting& meeting) {
  auto home = std::make_shared<Home>();
  shm::SharedFile control;
  shm::HandedOver peers =
      shm::accept_invitation(invitation, rank, size, home->arena.file(), control, sizeof(shm::Control), timeout, names);
  home->control = shm::Mapping(control, 0, sizeof(shm::Control));
  return std::make_shared<ShmGroup>(rank, size, timeout, home, std::move(peers), names, meeting);
}

// The ranks are synchronized and on one host, so the invitation travels through the group itself, without a store.
ProcessGroupPtr ShmGroup::make_subgroup(const Subgroup& members) {
  std::optional<shm::MemoryHost> host;
  if (members.rank == 0) host.emplace();
  const std::vector<std::string> invitations =
      all_gather_text(host ? host->invitation() : "", "memory of a new group", members.where);
  if (!members.is_member()) return nullptr;
  const auto first = static_cast<size_t>(members.ranks.front());
  const Meeting meeting{meeting_.store, prefix_of(meeting_.prefix, members)};
  const std::shared_ptr<ShmGroup> group =
      host ? invite(*host, members.size(), members.timeout, members.names, meeting)
           : follow(invitations[first], members.rank, members.size(), members.timeout, members.names, meeting);
  group->barrier({.description = "rendezvous"}, members.where);
  return group;
}

// Waits until all ranks are ready before any of them waits for memory, so that a rank that never arrives causes a
// TimeoutError with its number.
void wait_until_all_come(Store& store, int rank, int size, std::chrono::milliseconds timeout, const std::string& prefix,
                         const RankNames& names) {
  store.set(fmt::format("{}/shm/ready/{}", prefix, rank), "1");
  AwaitedRanks others(store, prefix, rank, size, timeout, names);
  for (int r = 0; r < size; ++r)
    others.get(fmt::format("{}/shm/ready/{}", prefix, r), r);
}

}  // namespace

std::shared_ptr<shm::SharedGroup> shm::make_group_of_processes(const std::shared_ptr<Store>& store, int rank, int size,
                                                               std::chrono::milliseconds timeout,
                                                               const std::string& prefix, const RankNames& names) {
  if (size < 1 || size > shm::kMaxRanks) throw DistError("shm: expected 1 to {} ranks, got {}", shm::kMaxRanks, size);
  const std::string key = prefix + "/shm/memory";
  std::shared_ptr<ShmGroup> group;
  if (rank == 0) {
    MemoryHost host;
    store->set(key, host_identity() + "\n" + host.invitation());
    wait_until_all_come(*store, rank, size, timeout, prefix, names);
    group = invite(host, size, timeout, names, {store, prefix});
  } else {
    const std::string text = AwaitedRanks(*store, prefix, rank, size, timeout, names).get(key, 0);
    const size_t end = std::min(text.find('\n'), text.size());
    if (text.substr(0, end) != host_identity()) {
      throw DistError(
          "shm: rank {} runs on another host (or in another container or namespace) than rank {}; use the backend "
          "hosts or gloo across hosts",
          names(rank), names(0));
    }
    wait_until_all_come(*store, rank, size, timeout, prefix, names);
    group = follow(std::string_view(text).substr(end), rank, size, timeout, names, {store, prefix});
  }
  group->barrier({.description = "rendezvous"});
  return group;
}

ProcessGroupPtr make_shm_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                               const std::string& prefix, const RankNames& names) {
  return shm::make_group_of_processes(store, rank, size, timeout, prefix, names);
}

}  // namespace brigade::dist
