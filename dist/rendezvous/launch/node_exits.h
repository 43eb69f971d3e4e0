// The end of an attempt, and of a job, over several nodes: the launchers tell each other in the store
// how their ranks ended, end their own where another node has failed, start them again together, and
// wait for each other.
#pragma once

#include <brigade/dist/rendezvous/launch/launcher.h>
#include <brigade/dist/rendezvous/launch/signals.h>
#include <brigade/dist/rendezvous/store.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace brigade::dist {

struct NodeFailure {
  int node = 0;
  int status = 1;
  bool is_last = true;  // no attempt follows
  std::string summary;  // in the words of its launcher

  // That of a node that ended because of it.
  void blame_in(LaunchOutcome& outcome) const;
};

// The launchers of a job with restarts are in the same attempt: the first that fails in one ends it
// for all, also for those whose ranks wait for others or have ended well.
class NodeExits {
 public:
  struct Times {
    // For the others to learn how the job ended, before node 0 takes the store away. Long enough for
    // a launcher that was stopped for a while.
    std::chrono::milliseconds to_know{std::chrono::minutes(1)};
    std::chrono::milliseconds between_looks{200};
  };

  // `store`: that of the launcher of node 0. `is_connected`: whether the launcher of that node is
  // there, in the eyes of the store's server (on node 0; unset on the others). A thread listens from
  // here on. Throws DistError where there is no descriptor.
  NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options, std::function<bool(int node)> is_connected,
            const Times& times);
  NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options,
            std::function<bool(int node)> is_connected = nullptr)
      : NodeExits(std::move(store), options, std::move(is_connected), Times()) {}
  // Waits for an answer of the store that is under way.
  ~NodeExits();
  NodeExits(const NodeExits&) = delete;
  NodeExits& operator=(const NodeExits&) = delete;

  // Ranks are started, for the first time (0) or again: what was heard of the attempt before is over.
  void begin(int attempt);
  // Readable when another node has failed in this attempt.
  int fd() const noexcept { return heard_; }
  // The first node that failed in this attempt, or for good, unless it is this one.
  std::optional<NodeFailure> failure() const;
  // For the ranks of all nodes that wait in a meeting.
  void tell_end_of_rank(int rank, const std::string& how);

  // This node's ranks have failed, and are to be started again: so are those of the others.
  void end_attempt(const LaunchOutcome& outcome);
  // This node's ranks have ended well. Waits for the word of every other node, at most
  // options.exit_timeout after the last that came (0: for ever). False where another attempt follows,
  // because another node has failed in this one, as `outcome` says then. Otherwise `outcome` becomes
  // that of the job: a node that failed for good, that has not ended by then, or whose word cannot be
  // had because node 0 has gone, is named. A signal ends the waiting.
  bool is_over(LaunchOutcome& outcome, const JobSignals& signals);

  // The last word. Node 0, which has the store, stays until the others know how the job ended, or have
  // gone; where its ranks ended well and it cannot be sure that all others know, that is a failure, too:
  // theirs will be one.
  void join(LaunchOutcome& outcome, const JobSignals& signals);

 private:
  void listen() noexcept;
  std::optional<NodeFailure> hear(int attempt);
  void tell_failure(const LaunchOutcome& outcome, bool is_last);
  void stay_for_readers(LaunchOutcome& outcome, const JobSignals& signals);

  const std::shared_ptr<Store> store_;
  const int node_;
  const std::chrono::milliseconds exit_timeout_;
  const std::function<bool(int node)> is_connected_;
  const Times times_;
  std::vector<int> others_;
  int heard_ = -1;  // an event's descriptor
  mutable std::mutex mutex_;
  int attempt_ = 0;
  std::optional<NodeFailure> failure_;
  std::vector<std::pair<std::string, std::string>> ends_of_ranks_;  // keys and values, for the listener to tell
  std::atomic<bool> over_{false};
  std::thread listener_;
};

}  // namespace brigade::dist
