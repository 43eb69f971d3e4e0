// Writes a rank's whereabouts into the store as JSON, and reads those of its peers.
#include <brigade/dist/groups/gloo/whereabouts.h>

#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/meeting/store.h>
#include <brigade/dist/timeline/timeline.h>

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

namespace brigade::dist {

namespace {

constexpr const char* kWell = "well";
constexpr const char* kTimedOut = "timed out";
constexpr const char* kStuck = "stuck";

struct LateInStore {
  int place = 0;
  CollectiveInfo collective;
  bool finished = false;
  std::string activity = {};
  Place activity_at = {};
  double activity_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LateInStore, place, collective, finished, activity, activity_at, activity_seconds)

struct WhereaboutsInStore {
  std::string state;
  CollectiveInfo collective;
  bool finished = false;
  std::string activity = {};
  Place activity_at = {};
  double activity_seconds = 0;
  std::vector<LateInStore> late = {};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WhereaboutsInStore, state, collective, finished, activity, activity_at,
                                   activity_seconds, late)

// Of `text`, which has the fields of both.
Whereabouts whereabouts_of(const auto& text, int rank) {
  return {.rank = rank,
          .last = text.collective,
          .finished = text.finished,
          .activity = text.activity,
          .activity_at = text.activity_at,
          .activity_seconds = text.activity_seconds};
}

}  // namespace

StoredWhereabouts::StoredWhereabouts(std::shared_ptr<Store> store, std::string prefix, int rank, int size,
                                     RankNames names)
    : store_(std::move(store)), prefix_(std::move(prefix)), rank_(rank), size_(size), names_(std::move(names)) {
  if (size > 1) thread_ = std::thread([this] { tell_changes(); });
}

StoredWhereabouts::~StoredWhereabouts() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StoredWhereabouts::post(const CollectiveInfo& collective) {
  const std::lock_guard lock(mutex_);
  last_ = collective;
  last_finished_ = false;
}

void StoredWhereabouts::finish(const CollectiveInfo& collective) noexcept {
  const std::lock_guard lock(mutex_);
  if (last_.sequence == collective.sequence) last_finished_ = true;
}

void StoredWhereabouts::note_activity(std::string_view what, SourceLocation where) {
  const std::lock_guard lock(mutex_);
  activity_ = what;
  activity_at_ = where;
  activity_since_ = now_ns();
}

void StoredWhereabouts::give_up(const CollectiveInfo& in, bool timed_out) noexcept {
  silent_ = true;
  tell(timed_out ? kTimedOut : kStuck, in, false, timed_out ? late_for(in) : std::vector<LateRank>());
}

void StoredWhereabouts::leave(const std::string& how) noexcept {
  std::unique_lock lock(mutex_);
  const CollectiveInfo last = last_;
  const bool finished = last_finished_;
  lock.unlock();
  tell(kWell, last, finished);
  tell_gone(how);
}

void StoredWhereabouts::abort(const std::string& reason) noexcept {
  silent_ = true;
  tell_gone("failed: " + reason);
}

// Whenever something has changed, a few times a second at most.
void StoredWhereabouts::tell_changes() {
  uint64_t told = 0;
  bool told_finished = false;
  int64_t told_activity = 0;
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, std::chrono::milliseconds(50), [&] { return stop_; })) {
    if (silent_ || (told == last_.sequence && told_finished == last_finished_ && told_activity == activity_since_))
      continue;
    told = last_.sequence;
    told_finished = last_finished_;
    told_activity = activity_since_;
    const CollectiveInfo last = last_;
    lock.unlock();
    tell(kWell, last, told_finished);
    lock.lock();
  }
}

void StoredWhereabouts::tell(const char* state, const CollectiveInfo& collective, bool finished,
                             const std::vector<LateRank>& late) noexcept {
  try {
    WhereaboutsInStore mine{.state = state, .collective = collective, .finished = finished};
    for (const auto& [place, there] : late)
      mine.late.push_back(
          {place, there.last, there.finished, there.activity, there.activity_at, there.activity_seconds});
    {
      const std::lock_guard lock(mutex_);
      mine.activity = activity_;
      mine.activity_at = activity_at_;
      if (activity_since_ > 0) mine.activity_seconds = static_cast<double>(now_ns() - activity_since_) * 1e-9;
    }
    const std::lock_guard lock(telling_);
    if (silent_ && mine.state == kWell) return;
    store_->set(fmt::format("{}/place/{}", prefix_, rank_), to_text(mine));
  } catch (const std::exception&) {
    // The store may be gone before us.
  }
}

void StoredWhereabouts::tell_gone(const std::string& how) noexcept {
  try {
    store_->set(fmt::format("{}/gone/{}", prefix_, rank_), how);
  } catch (const std::exception&) {
    // The store may be gone before us.
  }
}

std::vector<LateRank> StoredWhereabouts::late_for(const CollectiveInfo& in) const noexcept {
  std::vector<LateRank> late;
  for (int r = 0; r < size_; ++r) {
    const ToldByRank told = r == rank_ ? ToldByRank() : told_by(r);
    if (r != rank_ && told.gone.empty() && told.whereabouts.last.sequence < in.sequence)
      late.push_back({r, told.whereabouts});
  }
  return late;
}

ToldByRank StoredWhereabouts::told_by(int rank) const noexcept {
  ToldByRank told;
  told.whereabouts.rank = names_(rank);
  try {
    const std::string gone = fmt::format("{}/gone/{}", prefix_, rank);
    if (rank != rank_ && store_->check(gone)) told.gone = store_->get(gone, std::chrono::seconds(1));
    const std::string key = fmt::format("{}/place/{}", prefix_, rank);
    if (!store_->check(key)) return told;
    const auto text = decoded<WhereaboutsInStore>(store_->get(key, std::chrono::seconds(1)));
    told.timed_out = text.state == kTimedOut;
    told.stuck = text.state != kWell;
    for (const LateInStore& late : text.late)
      told.late.push_back({late.place, whereabouts_of(late, names_(late.place))});
    told.whereabouts = whereabouts_of(text, names_(rank));
  } catch (const std::exception&) {
    // Then we do not know.
  }
  return told;
}

ToldByAll StoredWhereabouts::gather(const CollectiveInfo& in, bool timed_out) const {
  // Peers that fail because of the same thing come within moments; one that is dead or elsewhere
  // does not.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timed_out ? 1500 : 700);
  ToldByAll told{std::vector<ToldByRank>(static_cast<size_t>(size_)), timed_out};
  bool all = false;
  bool first_look = true;
  while (!all && std::chrono::steady_clock::now() < deadline) {
    all = true;
    for (int r = 0; r < size_; ++r) {
      ToldByRank& rank = told.ranks[static_cast<size_t>(r)];
      if (!rank.stuck && rank.gone.empty()) rank = told_by(r);
      // A peer that gave up waiting has broken our connection: who was missed there has not died
      // because of that.
      told.timed_out = told.timed_out || rank.timed_out;
      // It was only late, and left when it found us gone.
      if (told.timed_out && !first_look && rank.gone.starts_with("left")) rank.gone.clear();
      all = all && (rank.stuck || !rank.gone.empty());
    }
    first_look = false;
    if (!all) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ToldByRank& own = told.ranks[static_cast<size_t>(rank_)];
  own.stuck = true;
  own.late = told_by(rank_).late;
  own.whereabouts.last = in;
  return told;
}

}  // namespace brigade::dist
