// Where the ranks of a Gloo group are, as they tell each other through the store, so that all name
// the same ranks when a collective fails.
//
// A rank writes where it is a few times a second, so that one that can speak no more has said where
// it was; once more when its collective fails; and a word when it goes away.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/peer_process.h>

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

// Whether a rank's latest collective has failed, and whether it was by its own time-out.
enum class RankState { Well, TimedOut, Stuck };

// A rank that had not come when another one gave up waiting, and where it was then.
struct LateRank {
  int place = 0;  // in the group
  Whereabouts whereabouts;
};

// What a rank has told.
struct ToldByRank {
  bool stuck = false;          // its collective failed
  bool timed_out = false;      // because somebody did not come
  std::vector<LateRank> late;  // whom it missed then
  Departure gone;              // where it is not coming
  bool without_store = false;  // the store could not be reached: nothing is known of the rank
  Whereabouts whereabouts;
};

struct ToldByAll {
  std::vector<ToldByRank> ranks;
  bool timed_out = false;  // some rank gave up waiting
  // The rank with which the store has gone, when it could not be reached any more, if that rank is one
  // of the group or of the larger one.
  std::optional<RankName> gone_with_store;
};

// What a rank has found out, for all.
struct FoundOut {
  int by = 0;  // the rank
  std::string text;
  std::vector<Verdict> verdicts;
};

// Of one rank of one group. Thread-safe. Nothing here throws for a store that is gone: then peers
// are not told, and nothing is known of them (Whereabouts::unasked).
class StoredWhereabouts {
 public:
  // Below `prefix` in the store; tells in a thread of its own when there are peers. `names`: the
  // numbers by which errors call the ranks.
  StoredWhereabouts(std::shared_ptr<Store> store, std::string prefix, int rank, int size, RankNames names);
  // Ends the thread.
  ~StoredWhereabouts();
  // Calls `look` on the thread, a few times a second while this rank waits in a collective, and says whether another rank
  // has given up: Gloo may sleep over broken connections. Before the first collective.
  void while_waiting(std::function<void(bool given_up_elsewhere)> look) { look_ = std::move(look); }
  StoredWhereabouts(const StoredWhereabouts&) = delete;
  StoredWhereabouts& operator=(const StoredWhereabouts&) = delete;

  // --- This rank. What it posts, finishes and does is told by the thread, the rest at once.

  void post(const CollectiveInfo& collective);
  // Counts when no other was posted since.
  void finish(const CollectiveInfo& collective) noexcept;
  void note_activity(const RankActivity& activity);

  // Its collective failed: publishes what the rank did when it posted that collective, and nothing after that. After a
  // time-out it also publishes which ranks were missing then: they may arrive before the others ask.
  void give_up(const CollectiveInfo& in, bool timed_out) noexcept;
  // It goes away.
  void leave(const Departure& end) noexcept;
  // It was aborted: no collective of it is to be looked at. From here on it tells nothing else.
  void abort(const std::string& reason) noexcept;

  // --- All ranks

  // Reads until every rank has given up or gone away, or for about a second (longer where the machine is busy). `in`, `timed_out`: why
  // this rank gave up.
  ToldByAll gather(const CollectiveInfo& in, bool timed_out) const;
  // So that all say the same: the first rank that asks is to find out, and to tell it. Every other one
  // gets what that rank told; nothing when it told nothing within seconds, or there is no store.
  std::optional<FoundOut> found_out_elsewhere(bool& is_first) const noexcept;
  void tell_found(const FoundOut& found) const noexcept;
  // Nothing of the others is read any more.
  void has_read() const noexcept;
  // Where the store goes with this rank: waits until the others have read what they need, or for a second.
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
  ToldByRank told_by(int rank) const noexcept;
  Departure end_of_process(int rank) const;
  std::optional<RankName> host_of_store() const;
  // In the store, if it is still there.
  void leave(const std::string& key, const std::string& value) const noexcept;
  std::string key(const char* what) const;
  std::string key(const char* what, int rank) const;

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const int rank_;
  const int size_;
  const RankNames names_;

  std::mutex telling_;               // one text after the other
  std::atomic<bool> silent_{false};  // the last word is said

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
  // By sequence number of the collectives that are not finished: what the rank did when it posted each.
  std::map<uint64_t, std::shared_ptr<const Activity>> activity_at_;
  std::function<void(bool)> look_;

  mutable std::mutex watching_;
  std::vector<PeerProcess> processes_;  // by rank: those of this host

  std::thread thread_;  // last: it uses the others
};

}  // namespace brigade::dist
