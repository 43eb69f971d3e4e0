// Keys: the first failure of all, and of each node that it ended well, that it has read what there
// was to read, and a count that shows that its launcher lives.
#include <brigade/dist/meeting/launch/node_exits.h>

#include <brigade/core/error.h>
#include <brigade/dist/meeting/launch/outcome.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <sstream>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks{200};
// For the others to read the last word, before node 0 takes the store away; and where its ranks have
// failed, for theirs to end because of that.
constexpr std::chrono::milliseconds kTimeToRead{2000};
constexpr std::chrono::milliseconds kTimeToFail{std::chrono::minutes(1)};
// A launcher that has not counted for so long has gone, or its host cannot be reached.
constexpr std::chrono::milliseconds kSilence{3000};
constexpr size_t kMostSummaryBytes = 4096;

constexpr const char* kFailures = "launch/exits/failures";
constexpr const char* kFirstFailure = "launch/exits/first_failure";
std::string ended_well(int node) { return fmt::format("launch/exits/{}", node); }
std::string has_read(int node) { return fmt::format("launch/exits/{}/read", node); }
std::string lives(int node) { return fmt::format("launch/exits/{}/lives", node); }

std::string in_text(const NodeFailure& failure) {
  return fmt::format("{} {}\n{}", failure.node, failure.status, failure.summary);
}

NodeFailure failure_from(const std::string& text) {
  NodeFailure result;
  std::istringstream in(text);
  in >> result.node >> result.status;
  const size_t end = std::min(text.find('\n'), text.size() - 1);
  result.summary = text.substr(end + 1);
  return result;
}

}  // namespace

void NodeFailure::blame_in(LaunchOutcome& outcome) const {
  outcome.exit_code = status;
  outcome.summary = fmt::format("node {} failed with status {}: {}", node, status, summary);
  for (RankOutcome& rank : outcome.ranks)
    rank.first_failure = false;
}

NodeExits::NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options)
    : store_(std::move(store)), node_(options.node_rank), exit_timeout_(options.exit_timeout) {
  for (int node = 0; node < options.nodes; ++node) {
    if (node != node_) others_.push_back(node);
  }
  heard_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (heard_ < 0) throw DistError("launch: cannot make a descriptor: {}", std::strerror(errno));
  // Signals are for the launcher's own thread.
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  listener_ = std::thread([this] { listen(); });
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

NodeExits::~NodeExits() {
  over_ = true;
  listener_.join();
  close(heard_);
}

std::optional<NodeFailure> NodeExits::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

// Until the end: a launcher that waits for others or ends its ranks lives, too.
void NodeExits::listen() noexcept {
  try {
    for (bool known = false; !over_; std::this_thread::sleep_for(kBetweenLooks)) {
      store_->add(lives(node_), 1);
      if (known || !store_->check(kFirstFailure)) continue;
      known = true;
      NodeFailure first = failure_from(store_->get(kFirstFailure, kTimeToRead));
      if (first.node == node_) continue;
      std::lock_guard lock(mutex_);
      failure_ = std::move(first);
      eventfd_write(heard_, 1);
    }
  } catch (const std::exception&) {
    // Node 0 has gone. Ranks that needed it notice by themselves, and join() tells.
  }
}

void NodeExits::join(LaunchOutcome& outcome, const JobSignals& signals) {
  const bool failed = outcome.exit_code != 0 && outcome.signal == 0;
  try {
    if (outcome.exit_code != 0) {
      tell_failure(outcome);
    } else {
      store_->set(ended_well(node_), "");
      if (!wait_for_others(outcome, signals)) tell_failure(outcome);
    }
    if (node_ == 0) {
      stay_for_readers(signals, failed ? kTimeToFail : kTimeToRead);
    } else {
      store_->set(has_read(node_), "");
    }
  } catch (const DistError& error) {
    if (outcome.exit_code != 0) return;
    outcome.exit_code = 1;
    outcome.summary =
        fmt::format("the launcher of node 0 has gone (it waits for a minute after a failure), or cannot be reached: {}",
                    error.what());
  }
}

void NodeExits::tell_failure(const LaunchOutcome& outcome) {
  if (store_->add(kFailures, 1) != 1) return;
  store_->set(kFirstFailure, in_text({node_, outcome.exit_code, outcome.summary.substr(0, kMostSummaryBytes)}));
}

// False when the time is over, or a signal has come.
bool NodeExits::wait_for_others(LaunchOutcome& outcome, const JobSignals& signals) {
  std::vector<int> running = others_;
  auto last_word = Clock::now();
  while (true) {
    if (const auto first = failure()) {
      first->blame_in(outcome);
      return true;
    }
    if (std::erase_if(running, [&](int node) { return store_->check(ended_well(node)); }) > 0) last_word = Clock::now();
    if (running.empty()) return true;
    if (exit_timeout_.count() > 0 && Clock::now() - last_word >= exit_timeout_) {
      outcome.exit_code = 1;
      outcome.summary = fmt::format("node {} still runs {:.1f} s after the last of the other nodes has ended",
                                    fmt::join(running, ", "), static_cast<double>(exit_timeout_.count()) * 1e-3);
      return false;
    }
    if (const int signal = signals.next(kBetweenLooks); signal != 0) {
      blame_signal(outcome, signal, false);
      outcome.exit_code = 128 + signal;
      return false;
    }
  }
}

void NodeExits::stay_for_readers(const JobSignals& signals, std::chrono::milliseconds time) {
  const auto begin = Clock::now();
  std::map<int, std::pair<int64_t, Clock::time_point>> counts;
  while (Clock::now() - begin < time) {
    bool awaited = false;
    for (const int node : others_) {
      if (store_->check(has_read(node))) continue;
      auto& [count, since] = counts.try_emplace(node, -1, begin).first->second;
      if (const int64_t now = store_->add(lives(node), 0); now != count) {
        count = now;
        since = Clock::now();
      }
      awaited = awaited || Clock::now() - since < kSilence;
    }
    if (!awaited || signals.next(std::chrono::milliseconds(20)) != 0) return;
  }
}

}  // namespace brigade::dist
