// The end of a job over several nodes: the launchers tell each other in the store how their ranks
// ended, end their own where another node has failed, and wait for each other.
#pragma once

#include <brigade/dist/meeting/launch/launcher.h>
#include <brigade/dist/meeting/launch/signals.h>
#include <brigade/dist/meeting/store.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace brigade::dist {

struct NodeFailure {
  int node = 0;
  int status = 1;
  std::string summary;  // in the words of its launcher

  // That of a node that ended because of it.
  void blame_in(LaunchOutcome& outcome) const;
};

class NodeExits {
 public:
  // `store`: that of the launcher of node 0. A thread listens to it from here on. Throws DistError
  // where there is no descriptor.
  NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options);
  // Waits for an answer of the store that is under way.
  ~NodeExits();
  NodeExits(const NodeExits&) = delete;
  NodeExits& operator=(const NodeExits&) = delete;

  // Readable when another node has failed.
  int fd() const noexcept { return heard_; }
  // The first node of the job that failed, unless it is this one.
  std::optional<NodeFailure> failure() const;

  // Tells how this node's ranks ended. Where they ended well, waits for the word of every other
  // node, at most options.exit_timeout after the last that came (0: for ever), and `outcome` becomes
  // that of the job: a node that failed, that has not ended by then, or whose word cannot be had
  // because node 0 has gone, is named. A signal ends the waiting. Node 0, which has the store, stays
  // until the others know, or are silent.
  void join(LaunchOutcome& outcome, const JobSignals& signals);

 private:
  void listen() noexcept;
  void tell_failure(const LaunchOutcome& outcome);
  bool wait_for_others(LaunchOutcome& outcome, const JobSignals& signals);
  void stay_for_readers(const JobSignals& signals, std::chrono::milliseconds time);

  const std::shared_ptr<Store> store_;
  const int node_;
  const std::chrono::milliseconds exit_timeout_;
  std::vector<int> others_;
  int heard_ = -1;  // an event's descriptor
  mutable std::mutex mutex_;
  std::optional<NodeFailure> failure_;
  std::atomic<bool> over_{false};
  std::thread listener_;
};

}  // namespace brigade::dist
