// Waits for NCCL collectives, and watches those that no caller waits for.
#include <brigade/dist/groups/nccl/works.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/collective_errors.h>
#include <brigade/dist/groups/unfinished.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace brigade::dist::nccl {
namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kPeriod = std::chrono::milliseconds(20);
}  // namespace

struct Works::Entry {
  Collective collective;
  std::optional<Clock::time_point> begun;  // when the thread saw that the device had started it
  bool finished = false;
};

// Shared by the works, which may outlive the group.
struct Works::State {
  explicit State(std::chrono::milliseconds given) : timeout(given) {}

  void finish(Entry& entry) {
    if (std::exchange(entry.finished, true)) return;
    if (!stopped && entry.collective.on_finish) entry.collective.on_finish();  // it refers to the group
    entry.collective.on_finish = nullptr;
    entry.collective.tensors.clear();
    std::erase_if(entries, [&](const auto& each) { return each.get() == &entry; });
  }
  void fail(const std::exception_ptr& given) {
    std::function<void(const std::exception_ptr&)> tell;
    {
      const std::lock_guard lock(mutex);
      if (error) return;
      error = given;
      tell = std::exchange(on_failure, nullptr);
    }
    if (tell) tell(given);
    const std::lock_guard lock(mutex);
    entries.clear();
  }
  void throw_if_failed() {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(error);
  }

  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<Entry>> entries;  // not finished
  std::shared_ptr<Communicator> communicator;
  std::function<void(const std::exception_ptr&)> on_failure;
  std::exception_ptr error;
  bool stopped = false;
};

class NcclWork final : public Work {
 public:
  NcclWork(std::shared_ptr<Works::State> state, std::shared_ptr<Works::Entry> entry)
      : state_(std::move(state)), entry_(std::move(entry)), met_(entry_->collective.met) {}

  bool is_completed() override {
    {
      const std::lock_guard lock(state_->mutex);
      if (entry_->finished || state_->error) return true;
    }
    if (met_ && !met_->is_completed()) return false;
    if (entry_->collective.captured) return false;  // true would let callers wait early, in every replay
    return !entry_->collective.done || entry_->collective.done->query();
  }
  void wait() override {
    wait_with([this] { met_->wait(); });
  }
  void wait(std::chrono::milliseconds timeout) override {
    wait_with([&] { met_->wait(timeout); });
  }
  WorkTimes times() const override {
    WorkTimes times = met_ ? met_->times() : WorkTimes();
    if (entry_->collective.done) times.reduced = 0;  // the host only reduced the token
    return times;
  }
  DeviceSpan on_device() const override {
    const Collective& collective = entry_->collective;
    if (!collective.done || collective.captured) return {};
    const int64_t ended = collective.done->reached_at();
    return ended == 0 ? DeviceSpan() : DeviceSpan{collective.begun->reached_at(), ended};
  }

 private:
  template <class Wait>
  void wait_with(Wait wait) {
    if (!has_met_ && met_) {
      try {
        if (!met_->is_completed()) state_->throw_if_failed();
        wait();
      } catch (...) {
        state_->fail(std::current_exception());
        state_->throw_if_failed();
      }
    }
    has_met_ = true;
    if (!entry_->collective.done) {
      const std::lock_guard lock(state_->mutex);
      state_->finish(*entry_);
      return;
    }
    entry_->collective.done->block();
    // Work that is queued on the device is valid unless a failure has aborted it. During capture nothing runs.
    const std::lock_guard lock(state_->mutex);
    if (!entry_->finished && state_->error) std::rethrow_exception(state_->error);
  }

  std::shared_ptr<Works::State> state_;
  std::shared_ptr<Works::Entry> entry_;
  WorkPtr met_;
  bool has_met_ = false;
};

Works::Works(std::chrono::milliseconds timeout, std::function<void(const std::exception_ptr&)> on_failure,
             std::function<std::string()> lost_peer)
    : state_(std::make_shared<State>(timeout)), lost_peer_(std::move(lost_peer)) {
  state_->on_failure = std::move(on_failure);
}

Works::~Works() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    state_->on_failure = nullptr;
    if (!state_->error) state_->error = group_gone_error();
    state_->changed.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  const std::lock_guard lock(state_->mutex);
  state_->entries.clear();
  state_->communicator.reset();
}

void Works::watch(std::shared_ptr<Communicator> communicator, Device device) {
  const std::lock_guard lock(state_->mutex);
  state_->communicator = std::move(communicator);
  if (!thread_.joinable()) thread_ = std::thread([this, device] { run(device); });
}

WorkPtr Works::add(Collective collective) {
  auto entry = std::make_shared<Entry>();
  entry->collective = std::move(collective);
  const std::lock_guard lock(state_->mutex);
  if (state_->error) std::rethrow_exception(state_->error);
  if (entry->collective.done && !entry->collective.captured) state_->entries.push_back(entry);
  return std::make_shared<NcclWork>(state_, std::move(entry));
}

ReplayHook Works::replays(Device device) const {
  return [state = state_, device]() -> std::function<void()> {
    state->throw_if_failed();
    auto entry = std::make_shared<Entry>();
    Collective& replay = entry->collective;
    replay.words = "a replay of a CUDA graph with collectives";
    replay.begun = device_runtime(device).new_event(device.index);
    replay.done = device_runtime(device).new_event(device.index);
    replay.begun->record();
    return [state, entry] {
      entry->collective.done->record();
      const std::lock_guard lock(state->mutex);
      if (!state->error) state->entries.push_back(entry);
    };
  };
}

void Works::fail(const std::exception_ptr& error) { state_->fail(error); }
void Works::throw_if_failed() const { state_->throw_if_failed(); }

bool Works::finish_within(std::chrono::milliseconds time) noexcept try {
  const auto deadline = Clock::now() + time;
  while (true) {
    std::vector<std::shared_ptr<Entry>> entries;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->error) return false;
      entries = state_->entries;
    }
    const bool is_done = std::ranges::all_of(entries, [&](const std::shared_ptr<Entry>& each) {
      if (!each->collective.done->query()) return false;
      const std::lock_guard lock(state_->mutex);
      state_->finish(*each);
      return true;
    });
    if (is_done) return true;
    if (Clock::now() >= deadline) return false;
    Unfinished::advance_all();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
} catch (const std::exception&) {
  return false;
}

void Works::run(Device device) {
  try {
    // A thread's first CUDA call makes a context on its current device, which by default is the first GPU.
    set_current_device(device);
  } catch (...) {
    state_->fail(std::current_exception());
  }
  std::optional<Clock::time_point> troubled_since;
  std::unique_lock lock(state_->mutex);
  while (!state_->stopped) {
    state_->changed.wait_for(lock, kPeriod);
    if (state_->stopped || state_->error) continue;
    const std::vector<std::shared_ptr<Entry>> entries = state_->entries;
    const std::shared_ptr<Communicator> communicator = state_->communicator;
    lock.unlock();
    std::exception_ptr failure;
    std::vector<std::shared_ptr<Entry>> done;
    const Entry* waits = nullptr;  // running on the device, perhaps waiting for peers
    try {
      for (const std::shared_ptr<Entry>& entry : entries) {
        if (entry->collective.done->query()) {
          done.push_back(entry);
          continue;
        }
        // Work queued before the collective has no time limit.
        if (!entry->begun && entry->collective.begun->query()) entry->begun = Clock::now();
        if (entry->begun && !waits) waits = entry.get();
        if (entry->begun && Clock::now() - *entry->begun > 2 * state_->timeout) {
          // The host group detects missing ranks within one timeout.
          const std::string lost = lost_peer_();
          throw TimeoutError("{}: the device did not come to its end within {} ms; {}", entry->collective.words,
                             (2 * state_->timeout).count(),
                             lost.empty() ? "a peer may have ended while NCCL ran" : lost);
        }
      }
      const auto error = waits ? communicator->asynchronous_error() : std::nullopt;
      if (!error) {
        troubled_since.reset();
      } else if (!troubled_since) {
        troubled_since = Clock::now();
      } else if (Clock::now() - *troubled_since > kReasonsTake) {
        const std::string lost = lost_peer_();
        if (!lost.empty()) throw PeerError("{}: {} ({})", waits->collective.words, lost, *error);
        throw DistError("{}: {}", waits->collective.words, *error);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) state_->fail(failure);
    lock.lock();
    for (const std::shared_ptr<Entry>& entry : done)
      state_->finish(*entry);
  }
}

}  // namespace brigade::dist::nccl
