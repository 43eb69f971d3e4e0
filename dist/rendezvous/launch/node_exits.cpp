// Store keys: the first failure of each attempt, and the first permanent one; for each node, that its ranks ended with
// status 0 in an attempt, and that it knows how the job ended.
#include <brigade/dist/rendezvous/launch/node_exits.h>

#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/launch/outcome.h>
#include <brigade/dist/rendezvous/rendezvous.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sstream>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeToRead{2000};
constexpr size_t kMostSummaryBytes = 4096;

constexpr const char* kFailures = "launch/exits/failures";
constexpr const char* kFirstFailure = "launch/exits/first_failure";
std::string failures(int attempt) { return fmt::format("launch/attempt/{}/failures", attempt); }
std::string ended_well(int attempt, int node) { return fmt::format("launch/attempt/{}/well/{}", attempt, node); }
std::string knows(int node) { return fmt::format("launch/exits/{}/knows", node); }

// A line for launchers, then text for ranks and users.
std::string in_text(const NodeFailure& failure) {
  return fmt::format("{} {} {}\nnode {} failed with status {}: {}", failure.node, failure.status,
                     failure.is_last ? 1 : 0, failure.node, failure.status, failure.summary);
}

NodeFailure failure_from(const std::string& text) {
  NodeFailure result;
  int is_last = 1;
  std::istringstream in(text);
  in >> result.node >> result.status >> is_last;
  result.is_last = is_last != 0;
  const size_t words = std::min(text.find('\n'), text.size() - 1) + 1;
  result.summary = text.substr(std::min(text.find(": ", words), text.size() - 2) + 2);
  return result;
}

}  // namespace

void NodeFailure::blame_in(LaunchOutcome& outcome) const {
  outcome.exit_code = status;
  outcome.summary = fmt::format("node {} failed with status {}: {}", node, status, summary);
  for (RankOutcome& rank : outcome.ranks)
    rank.first_failure = false;
}

NodeExits::NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options,
                     std::function<bool(int node)> is_connected, const Times& times)
    : store_(std::move(store)),
      node_(options.node_rank),
      exit_timeout_(options.exit_timeout),
      is_connected_(std::move(is_connected)),
      times_(times) {
  for (int node = 0; node < options.nodes; ++node) {
    if (node != node_) others_.push_back(node);
  }
  heard_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (heard_ < 0) throw DistError("launch: cannot make a descriptor: {}", std::strerror(errno));
  // Signals are handled on the launcher's own thread.
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

void NodeExits::begin(int attempt) {
  const std::lock_guard lock(mutex_);
  attempt_ = attempt;
  if (failure_ && failure_->is_last) return;
  failure_.reset();
  eventfd_t ignored = 0;
  eventfd_read(heard_, &ignored);
}

std::optional<NodeFailure> NodeExits::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void NodeExits::tell_end_of_rank(int rank, const std::string& how) {
  const std::lock_guard lock(mutex_);
  ends_of_ranks_.emplace_back(rank_ended_key(attempt_, rank), how);
}

// Runs until destruction, also while the launcher waits for others or ends its ranks.
void NodeExits::listen() noexcept {
  try {
    for (; !over_; std::this_thread::sleep_for(times_.between_looks)) {
      std::vector<std::pair<std::string, std::string>> ends;
      int attempt = 0;
      bool known = false;
      {
        const std::lock_guard lock(mutex_);
        ends.swap(ends_of_ranks_);
        attempt = attempt_;
        known = failure_.has_value();
      }
      for (const auto& [key, how] : ends)
        store_->set(key, how);
      if (known) continue;
      std::optional<NodeFailure> heard = hear(attempt);
      const std::lock_guard lock(mutex_);
      if (!heard || heard->node == node_ || (attempt != attempt_ && !heard->is_last)) continue;
      failure_ = std::move(heard);
      eventfd_write(heard_, 1);
    }
  } catch (const std::exception&) {
    // Node 0 is gone. Ranks that need it notice by themselves, and join() reports it.
  }
}

// A permanent failure if there is one, else that of the attempt.
std::optional<NodeFailure> NodeExits::hear(int attempt) {
  for (const std::string& key : {std::string(kFirstFailure), attempt_over_key(attempt)}) {
    if (store_->check(key)) return failure_from(store_->get(key, kTimeToRead));
  }
  return std::nullopt;
}

void NodeExits::end_attempt(const LaunchOutcome& outcome) {
  try {
    tell_failure(outcome, false);
  } catch (const DistError&) {
    // Node 0 is gone: the next attempt fails because of that.
  }
}

void NodeExits::tell_failure(const LaunchOutcome& outcome, bool is_last) {
  const std::string text = in_text({node_, outcome.exit_code, is_last, outcome.summary.substr(0, kMostSummaryBytes)});
  if (is_last && store_->add(kFailures, 1) == 1) store_->set(kFirstFailure, text);
  // Read by ranks that wait in a rendezvous.
  if (store_->add(failures(attempt_), 1) == 1) store_->set(attempt_over_key(attempt_), text);
}

bool NodeExits::is_over(LaunchOutcome& outcome, const JobSignals& signals) {
  std::vector<int> running = others_;
  auto last_word = Clock::now();
  try {
    store_->set(ended_well(attempt_, node_), "");
    while (true) {
      if (const auto first = failure()) {
        first->blame_in(outcome);
        return first->is_last;
      }
      if (std::erase_if(running, [&](int node) { return store_->check(ended_well(attempt_, node)); }) > 0)
        last_word = Clock::now();
      if (running.empty()) return true;
      if (exit_timeout_.count() > 0 && Clock::now() - last_word >= exit_timeout_) {
        outcome.exit_code = 1;
        outcome.summary = fmt::format("node {} still runs {:.1f} s after the last of the other nodes has ended",
                                      fmt::join(running, ", "), static_cast<double>(exit_timeout_.count()) * 1e-3);
        return true;
      }
      if (const int signal = signals.next(times_.between_looks); signal != 0) {
        blame_signal(outcome, signal, false);
        outcome.exit_code = 128 + signal;
        return true;
      }
    }
  } catch (const DistError& error) {
    outcome.exit_code = 1;
    outcome.summary =
        fmt::format("the launcher of node 0 has gone (it waits for a minute for the others), or cannot be reached: {}",
                    error.what());
    return true;
  }
}

void NodeExits::join(LaunchOutcome& outcome, const JobSignals& signals) {
  try {
    if (outcome.exit_code != 0 && !(failure() && failure()->is_last)) tell_failure(outcome, true);
    if (node_ == 0) {
      stay_for_readers(outcome, signals);
    } else {
      store_->set(knows(node_), "");
    }
  } catch (const DistError& error) {
    if (outcome.exit_code != 0) return;
    outcome.exit_code = 1;
    outcome.summary =
        fmt::format("the launcher of node 0 has gone (it waits for a minute for the others), or cannot be reached: {}",
                    error.what());
  }
}

void NodeExits::stay_for_readers(LaunchOutcome& outcome, const JobSignals& signals) {
  std::vector<int> waiting = others_, lost;
  for (const auto end = Clock::now() + times_.to_know; !waiting.empty();) {
    std::erase_if(waiting, [&](int node) {
      // In this order, because a node publishes the key before it disconnects.
      const bool is_there = !is_connected_ || is_connected_(node);
      if (store_->check(knows(node))) return true;
      if (!is_there) lost.push_back(node);
      return !is_there;
    });
    if (waiting.empty()) break;
    const int signal = signals.next(std::chrono::milliseconds(20));
    if (signal == 0 && Clock::now() < end) continue;
    if (signal != 0 && outcome.exit_code == 0) {
      blame_signal(outcome, signal, false);
      outcome.exit_code = 128 + signal;
    }
    lost.insert(lost.end(), waiting.begin(), waiting.end());
    break;
  }
  if (lost.empty() || outcome.exit_code != 0) return;
  outcome.exit_code = 1;
  outcome.summary = fmt::format(
      "all ranks ended well, but the launcher of node {} was killed or has stopped before it knew that; it ends with a "
      "failure",
      fmt::join(lost, ", "));
}

}  // namespace brigade::dist
