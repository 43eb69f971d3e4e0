// Writes a rank's status into the store as JSON, and reads that of its peers.
#include <brigade/dist/groups/gloo/rank_status.h>

#include <brigade/core/clock.h>
#include <brigade/dist/errors/wire.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/store.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <utility>

#include <unistd.h>

namespace brigade::dist {
namespace {

// How long to wait for the error that the first rank finds; by then it has gathered everything that the others have.
constexpr std::chrono::seconds kLongestSearch{5};

struct LateInStore {
  int place = 0;
  CollectiveInfo collective;
  bool finished = false;
  RankActivity activity = {};
  double activity_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LateInStore, place, collective, finished, activity, activity_seconds)

struct RankStatusInStore {
  RankState state = RankState::Well;
  CollectiveInfo collective;
  bool finished = false;
  RankActivity activity = {};
  double activity_seconds = 0;
  std::vector<LateInStore> late = {};
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankStatusInStore, state, collective, finished, activity, activity_seconds, late)

bool has_left(const Departure& end) {
  return end.how == Departure::How::Left || end.how == Departure::How::LeftByException;
}

// `text`: LateInStore or RankStatusInStore.
RankStatus rank_status_of(const auto& text, const RankName& rank) {
  return {.rank = rank,
          .last = text.collective,
          .finished = text.finished,
          .activity = text.activity,
          .activity_seconds = text.activity_seconds};
}

}  // namespace

StoredRankStatus::StoredRankStatus(std::shared_ptr<Store> store, std::string prefix, int rank, int size,
                                   RankNames names)
    : store_(std::move(store)), prefix_(std::move(prefix)), rank_(rank), size_(size), names_(std::move(names)) {
  if (size == 1) return;
  try {
    store_->set(key("process", rank_), fmt::format("{} {}", getpid(), host_identity()));
  } catch (const std::exception&) {
    // The peers learn neither how this process ends nor its status.
  }
  thread_ = std::thread([this] {
    watch_processes();
    tell_changes();
  });
}

// All ranks have arrived, so each publishes its process promptly.
std::string StoredRankStatus::process_of(int rank) {
  constexpr int kTries = 20;
  for (int tries = 0; tries < kTries; ++tries) {
    try {
      return store_->get(key("process", rank), std::chrono::milliseconds(500));
    } catch (const TimeoutError&) {
      const std::lock_guard lock(mutex_);
      if (stop_) break;
    }
  }
  return "";  // it left before publishing its process
}

void StoredRankStatus::watch_processes() {
  std::vector<PeerProcess> watched(static_cast<size_t>(size_));
  try {
    const std::string host = host_identity();
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const std::string text = process_of(r);
      const size_t space = text.find(' ');
      if (space != std::string::npos && text.substr(space + 1) == host)
        watched[static_cast<size_t>(r)] = PeerProcess(std::atoi(text.c_str()));
    }
  } catch (const std::exception&) {
    // The store does not answer: only the peers' own reports remain.
  }
  const std::lock_guard lock(watching_);
  processes_ = std::move(watched);
}

Departure StoredRankStatus::end_of_process(int rank) const {
  const std::lock_guard lock(watching_);
  return processes_.empty() ? Departure() : processes_[static_cast<size_t>(rank)].end();
}

StoredRankStatus::~StoredRankStatus() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StoredRankStatus::post(const CollectiveInfo& collective) {
  const std::lock_guard lock(mutex_);
  last_ = collective;
  last_finished_ = false;
  activity_at_[collective.sequence] = activity_;
}

void StoredRankStatus::finish(const CollectiveInfo& collective) noexcept {
  const std::lock_guard lock(mutex_);
  if (last_.sequence == collective.sequence) last_finished_ = true;
  activity_at_.erase(collective.sequence);
}

void StoredRankStatus::note_activity(const RankActivity& activity) {
  auto noted = std::make_shared<const Activity>(activity, now_ns());
  const std::lock_guard lock(mutex_);
  activity_ = std::move(noted);
}

void StoredRankStatus::give_up(const CollectiveInfo& in, bool timed_out) noexcept {
  silent_ = true;
  tell(timed_out ? RankState::TimedOut : RankState::Stuck, in, false,
       timed_out ? late_for(in) : std::vector<LateRank>());
  tell_given_up();
}

void StoredRankStatus::leave(const Departure& end) noexcept {
  std::unique_lock lock(mutex_);
  const CollectiveInfo last = last_;
  const bool finished = last_finished_;
  lock.unlock();
  tell(RankState::Well, last, finished);
  tell_gone(end);
}

void StoredRankStatus::abort(const std::string& reason) noexcept {
  silent_ = true;
  tell_gone({Departure::How::Failed, reason});
  tell_given_up();
}

// Publishes every change, polling 20 times a second.
void StoredRankStatus::tell_changes() {
  uint64_t told = 0;
  bool told_finished = false;
  int64_t told_activity = 0;
  std::unique_lock lock(mutex_);
  uint64_t ticks = 0;
  while (!stopped_.wait_for(lock, std::chrono::milliseconds(50), [&] { return stop_; })) {
    // During a long wait, checks whether waiting is pointless.
    constexpr uint64_t kTicksBetween = 5;
    if (++ticks % kTicksBetween == 0 && !last_finished_ && look_) {
      lock.unlock();
      look_(!silent_ && given_up_elsewhere());
      lock.lock();
    }
    if (silent_ || (told == last_.sequence && told_finished == last_finished_ && told_activity == activity_->since))
      continue;
    told = last_.sequence;
    told_finished = last_finished_;
    told_activity = activity_->since;
    const CollectiveInfo last = last_;
    lock.unlock();
    tell(RankState::Well, last, told_finished);
    lock.lock();
  }
}

bool StoredRankStatus::given_up_elsewhere() const noexcept {
  try {
    return store_->check(key("given up"));
  } catch (const std::exception&) {
    return false;  // the store may be gone before us
  }
}

void StoredRankStatus::tell(RankState state, const CollectiveInfo& collective, bool finished,
                            const std::vector<LateRank>& late) noexcept {
  try {
    RankStatusInStore mine{.state = state, .collective = collective, .finished = finished};
    for (const auto& [place, there] : late)
      mine.late.push_back({place, there.last, there.finished, there.activity, there.activity_seconds});
    {
      const std::lock_guard lock(mutex_);
      const auto posted = mine.state == RankState::Well ? activity_at_.end() : activity_at_.find(collective.sequence);
      const Activity& activity = posted == activity_at_.end() ? *activity_ : *posted->second;
      mine.activity = activity.what;
      if (activity.since > 0) mine.activity_seconds = static_cast<double>(now_ns() - activity.since) * 1e-9;
    }
    const std::lock_guard lock(publishing_);
    if (silent_ && mine.state == RankState::Well) return;
    store_->set(key("place", rank_), to_text(mine));
  } catch (const std::exception&) {
    // The store may be gone before us.
  }
}

void StoredRankStatus::leave(const std::string& key, const std::string& value) const noexcept {
  try {
    store_->set(key, value);
  } catch (const std::exception&) {
    // The store may be gone before us.
  }
}

void StoredRankStatus::tell_gone(const Departure& end) noexcept { leave(key("gone", rank_), to_text(end)); }

void StoredRankStatus::tell_given_up() noexcept { leave(key("given up"), "1"); }

std::string StoredRankStatus::key(const char* what) const { return fmt::format("{}/{}", prefix_, what); }
std::string StoredRankStatus::key(const char* what, int rank) const {
  return fmt::format("{}/{}/{}", prefix_, what, rank);
}

std::vector<LateRank> StoredRankStatus::late_for(const CollectiveInfo& in) const noexcept {
  std::vector<LateRank> late;
  for (int r = 0; r < size_; ++r) {
    const PublishedStatus told = r == rank_ ? PublishedStatus() : status_of(r);
    if (r != rank_ && told.rank_status.unasked.empty() && !told.gone.has_ended() &&
        told.rank_status.last.sequence < in.sequence)
      late.push_back({r, told.rank_status});
  }
  return late;
}

PublishedStatus StoredRankStatus::status_of(int rank) const noexcept {
  PublishedStatus told;
  told.rank_status.rank = names_(rank);
  try {
    // Checked before its status is read: a process that has ended publishes nothing after that.
    const Departure ended = rank == rank_ ? Departure() : end_of_process(rank);
    told.gone = ended;
    const std::string gone = key("gone", rank);
    if (rank != rank_ && store_->check(gone))
      told.gone = decoded<Departure>(store_->get(gone, std::chrono::seconds(1)));
    const std::string place = key("place", rank);
    if (!store_->check(place)) return told;
    const auto text = decoded<RankStatusInStore>(store_->get(place, std::chrono::seconds(1)));
    told.timed_out = text.state == RankState::TimedOut;
    told.stuck = text.state != RankState::Well;
    if (told.stuck && told.gone == ended) told.gone = {};  // it left because of what made it stuck
    for (const LateInStore& late : text.late)
      told.late.push_back({late.place, rank_status_of(late, names_(late.place))});
    told.rank_status = rank_status_of(text, names_(rank));
  } catch (const TimeoutError& error) {
    told.rank_status.unasked = fmt::format("the store could not be asked: {}", error.what());
  } catch (const std::exception& error) {
    told.without_store = true;
    told.rank_status.unasked = fmt::format("the store could not be asked: {}", error.what());
  }
  return told;
}

// A subgroup does not blame a rank outside it.
std::optional<RankName> StoredRankStatus::host_of_store() const {
  const int host = store_->host_rank();
  const int place = host < 0 ? -1 : names_.find_global(host, size_);
  if (place >= 0) return names_(place);
  return host < 0 || names_.of_subgroup() ? std::nullopt : std::optional<RankName>(host);
}

StatusOfAll StoredRankStatus::gather(const CollectiveInfo& in, bool timed_out) const {
  // Peers that fail for the same reason report within moments; a peer that is dead or elsewhere does not. On a busy
  // machine the store and the peers are slow too, so a minimum number of looks is made, however long each takes.
  constexpr int kFewestLooks = 8;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timed_out ? 1500 : 700);
  const auto has_time = [&](int look) { return look < kFewestLooks || std::chrono::steady_clock::now() < deadline; };
  StatusOfAll told{std::vector<PublishedStatus>(static_cast<size_t>(size_)), timed_out};
  bool all = false;
  bool first_look = true;
  std::string unasked;  // a store that is gone stays gone
  for (int look = 0; has_time(look) && !all && unasked.empty(); ++look) {
    all = true;
    for (int r = 0; r < size_; ++r) {
      PublishedStatus& rank = told.ranks[static_cast<size_t>(r)];
      if (!rank.stuck && !rank.gone.has_ended()) {
        if (unasked.empty()) rank = status_of(r);
        if (unasked.empty()) unasked = rank.rank_status.unasked;
        if (rank.without_store) told.gone_with_store = host_of_store();
        if (!unasked.empty())
          rank = {.gone = end_of_process(r), .rank_status = {.rank = names_(r), .unasked = unasked}};
      }
      // A peer that gave up waiting has closed our connection; the ranks that it missed have not died because of that.
      told.timed_out = told.timed_out || rank.timed_out;
      // The rank was only late, and left when it found the others gone.
      if (told.timed_out && !first_look && has_left(rank.gone)) rank.gone = {};
      all = all && (rank.stuck || rank.gone.has_ended());
    }
    first_look = false;
    if (!all && unasked.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // The process of the store's host may be about to end.
  for (int look = 0; has_time(look) && told.gone_with_store; ++look) {
    for (int r = 0; r < size_; ++r) {
      PublishedStatus& rank = told.ranks[static_cast<size_t>(r)];
      if (!told.gone_with_store || names_(r).global != told.gone_with_store->global) continue;
      rank.gone = end_of_process(r);
      if (rank.gone.has_ended()) told.gone_with_store.reset();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  PublishedStatus& own = told.ranks[static_cast<size_t>(rank_)];
  own.stuck = true;
  own.late = status_of(rank_).late;
  own.rank_status.last = in;
  own.rank_status.unasked.clear();
  return told;
}

std::optional<FoundOut> StoredRankStatus::found_out_elsewhere(bool& is_first) const noexcept {
  is_first = false;
  try {
    is_first = store_->add(key("finders"), 1) == 1;
    if (is_first) return std::nullopt;
    const auto found = from_text(store_->get(key("found"), kLongestSearch));
    return FoundOut{found.at("by"), found.at("text"), found.at("verdicts").get<std::vector<Verdict>>()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void StoredRankStatus::tell_found(const FoundOut& found) const noexcept {
  try {
    store_->set(key("found"), to_text({{"by", found.by}, {"text", found.text}, {"verdicts", found.verdicts}}));
  } catch (const std::exception&) {
    // Then every rank reports what it knows itself.
  }
}

void StoredRankStatus::has_read() const noexcept { leave(key("read", rank_), "1"); }

void StoredRankStatus::stay_for_others() const noexcept {
  if (size_ == 1 || store_->host_rank() != names_(rank_).global) return;
  try {
    constexpr int kLooks = 100;  // as in gather()
    int looks = 0;
    for (int r = 0; r < size_; ++r) {
      while (r != rank_ && !store_->check(key("read", r)) && !store_->check(key("gone", r))) {
        if (++looks > kLooks) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  } catch (const std::exception&) {
    // The store is gone: no rank can read it.
  }
}

}  // namespace brigade::dist
