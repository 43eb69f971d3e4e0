// The launchers of several nodes: which node starts which ranks, and the coordinated end of an attempt.
#pragma once

#include <brigade/dist/rendezvous/launch/child.h>
#include <brigade/dist/rendezvous/launch/launcher.h>
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

// --- The launchers of several nodes agree on which node starts which ranks.

// The place of this node's ranks in the job; nodes may start different numbers of ranks.
struct NodePlace {
  int first_rank = 0;
  int world_size = 0;
};

// Waits for the launchers of all nodes, at most options.meeting_timeout. Throws TimeoutError that names a node which
// did not join, and DistError when two nodes have the same number or they disagree on the number of nodes.
NodePlace meet_nodes(Store& store, const LaunchOptions& options);

// --- Coordinates the end of an attempt, and of a job, over several nodes: through the store, the launchers publish how
// their ranks ended, end their own ranks when another node has failed, restart them together, and wait for each other.

struct NodeFailure {
  int node = 0;
  int status = 1;
  bool is_last = true;  // no attempt follows
  std::string summary;  // from its launcher

  // Makes this failure the cause in the outcome of a node that ended because of it.
  void blame_in(LaunchOutcome& outcome) const;
};

// The launchers of a job with restarts are always in the same attempt: the first node that fails in it ends it for all
// nodes, including those whose ranks wait for others or have ended with status 0.
class NodeExits {
 public:
  struct Times {
    // Time for the others to learn how the job ended, before node 0 closes the store. Long enough for a launcher that
    // was stopped for a while.
    std::chrono::milliseconds to_know{std::chrono::minutes(1)};
    std::chrono::milliseconds between_looks{200};
  };

  // `store`: hosted by the launcher of node 0. `is_connected`: whether the launcher of a node is connected to the
  // store's server (set on node 0 only). Starts a listener thread. Throws DistError when no descriptor is available.
  NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options, std::function<bool(int node)> is_connected,
            const Times& times);
  NodeExits(std::shared_ptr<Store> store, const LaunchOptions& options,
            std::function<bool(int node)> is_connected = nullptr)
      : NodeExits(std::move(store), options, std::move(is_connected), Times()) {}
  // Waits for a pending answer of the store.
  ~NodeExits();
  NodeExits(const NodeExits&) = delete;
  NodeExits& operator=(const NodeExits&) = delete;

  // Call it when ranks are started, first (0) or again: discards the failure of the previous attempt.
  void begin(int attempt);
  // Readable when another node has failed in this attempt.
  int fd() const noexcept { return heard_; }
  // The first node that failed in this attempt, or permanently, unless it is this node.
  std::optional<NodeFailure> failure() const;
  // Publishes the end of a rank, for ranks of all nodes that wait in a rendezvous.
  void tell_end_of_rank(int rank, const std::string& how);

  // Publishes that this node's ranks have failed and are restarted, which restarts those of the other nodes too.
  void end_attempt(const LaunchOutcome& outcome);
  // Call it when this node's ranks have all ended with status 0. Waits for the reports of all other nodes, at most
  // options.exit_timeout after the last report (0: forever). Returns false when another attempt follows because another
  // node has failed in this one; `outcome` then names that node. Otherwise `outcome` becomes that of the job, and names
  // a node that failed permanently, that has not ended in time, or that cannot report because node 0 is gone. A signal
  // ends the wait.
  bool is_over(LaunchOutcome& outcome, const JobSignals& signals);

  // Publishes the final outcome. Node 0, which hosts the store, waits until the others know how the job ended, or are
  // gone. If its own ranks ended with status 0 but some other node may not know the outcome, that is a failure too,
  // since that node will fail.
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
  int heard_ = -1;  // an eventfd
  mutable std::mutex mutex_;
  int attempt_ = 0;
  std::optional<NodeFailure> failure_;
  std::vector<std::pair<std::string, std::string>> ends_of_ranks_;  // keys and values, for the listener to publish
  std::atomic<bool> over_{false};
  std::thread listener_;
};

}  // namespace brigade::dist
