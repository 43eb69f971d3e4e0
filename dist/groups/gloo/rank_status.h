// The status of the ranks of a Gloo group, which they exchange through the store, so that all name the same ranks when
// a collective fails.
//
// A rank publishes its status a few times a second, so that the last status of a dead rank is known; again when its
// collective fails; and its departure when it leaves.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/process_end.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace brigade::dist {

class Store;

// Whether a rank's latest collective has failed, and whether the rank itself timed out.
enum class RankState { Well, TimedOut, Stuck };

// A rank that had not arrived when another rank gave up waiting, and its status at that time.
struct LateRank {
  int place = 0;  // its rank in the group
  RankStatus rank_status;
};

// The published status of a rank.
struct PublishedStatus {
  bool stuck = false;          // its collective failed
  bool timed_out = false;      // because some rank did not arrive
  std::vector<LateRank> late;  // the ranks that were missing then
  Departure gone;              // why it will not arrive, if known
  bool without_store = false;  // the store is unreachable: nothing is known of the rank
  RankStatus rank_status;
};

struct StatusOfAll {
  std::vector<PublishedStatus> ranks;
  bool timed_out = false;  // some rank gave up waiting
  // If the store became unreachable: the rank that hosted it, if that rank is in this group or its parent.
  std::optional<RankName> gone_with_store;
};

// The error that one rank has found, published for all.
struct FoundOut {
  int by = 0;  // the rank
  std::string text;
  std::vector<Verdict> verdicts;
};

// Publishes the status of one rank of one group, and reads that of its peers. Thread-safe. Does not throw when the
// store is gone: then nothing is published, and nothing is known of the peers (RankStatus::unasked).
class StoredRankStatus {
 public:
  // Uses store keys under `prefix`; if there are peers, publishes from its own thread. `names`: the rank names in
  // errors.
  StoredRankStatus(std::shared_ptr<Store> store, std::string prefix, int rank, int size, RankNames names);
  // Joins the thread.
  ~StoredRankStatus();
  // Calls `look` on the thread a few times a second while this rank waits in a collective, with whether another rank
  // has given up: Gloo may miss broken connections. Call it before the first collective.
  void while_waiting(std::function<void(bool given_up_elsewhere)> look) { look_ = std::move(look); }
  StoredRankStatus(const StoredRankStatus&) = delete;
  StoredRankStatus& operator=(const StoredRankStatus&) = delete;

  // --- This rank. The thread publishes what it posts, finishes and does; everything else is published at once.

  void post(const CollectiveInfo& collective);
  // Ignored for the status if another collective was posted since.
  void finish(const CollectiveInfo& collective) noexcept;
  void note_activity(const RankActivity& activity);

  // Its collective failed: publishes the rank's activity when it posted that collective, and nothing afterwards. After
  // a timeout it also publishes which ranks were missing then: they may arrive before the others ask.
  void give_up(const CollectiveInfo& in, bool timed_out) noexcept;
  // Publishes that this rank leaves.
  void leave(const Departure& end) noexcept;
  // Publishes that this rank was aborted, so its collectives do not matter. Publishes nothing else afterwards.
  void abort(const std::string& reason) noexcept;

  // --- All ranks

  // Reads until every rank has given up or left, or for about a second (longer on a busy machine). `in`, `timed_out`:
  // why this rank gave up.
  StatusOfAll gather(const CollectiveInfo& in, bool timed_out) const;
  // Makes all ranks raise the same error: the first rank that calls it must find the error and publish it with
  // tell_found(). Every other rank gets the published error, or nothing when none is published within seconds or the
  // store is gone.
  std::optional<FoundOut> found_out_elsewhere(bool& is_first) const noexcept;
  void tell_found(const FoundOut& found) const noexcept;
  // Publishes that this rank has finished reading.
  void has_read() const noexcept;
  // If this rank hosts the store: waits until the others have finished reading, or for a second.
  void stay_for_others() const noexcept;

 private:
  void tell_changes();
  void watch_processes();
  std::string process_of(int rank);
  void tell(RankState state, const CollectiveInfo& collective, bool finished,
            const std::vector<LateRank>& late = {}) noexcept;
  void tell_gone(const Departure& end) noexcept;
  void tell_given_up() noexcept;
  bool given_up_elsewhere() const noexcept;
  std::vector<LateRank> late_for(const CollectiveInfo& in) const noexcept;
  PublishedStatus status_of(int rank) const noexcept;
  Departure end_of_process(int rank) const;
  std::optional<RankName> host_of_store() const;
  // Sets a value in the store, if the store is still there.
  void leave(const std::string& key, const std::string& value) const noexcept;
  std::string key(const char* what) const;
  std::string key(const char* what, int rank) const;

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const int rank_;
  const int size_;
  const RankNames names_;

  std::mutex publishing_;            // serializes writes to the store
  std::atomic<bool> silent_{false};  // the status is final: no updates follow

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  CollectiveInfo last_;  // posted by this rank
  bool last_finished_ = true;
  struct Activity {
    RankActivity what;
    int64_t since = 0;  // ns of the steady clock; 0: nothing was noted
  };
  std::shared_ptr<const Activity> activity_ = std::make_shared<Activity>();
  // For each unfinished collective, by sequence number: the rank's activity when it posted it.
  std::map<uint64_t, std::shared_ptr<const Activity>> activity_at_;
  std::function<void(bool)> look_;

  mutable std::mutex watching_;
  std::vector<PeerProcess> processes_;  // indexed by rank; only those of this host are watched

  std::thread thread_;  // last: it uses the other members
};

}  // namespace brigade::dist
