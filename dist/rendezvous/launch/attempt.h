// Runs the ranks of a job on this node, from their start until the last process that they left behind has ended.
#pragma once

#include <brigade/dist/rendezvous/launch/child.h>
#include <brigade/dist/rendezvous/launch/guardian.h>
#include <brigade/dist/rendezvous/launch/launcher.h>
#include <brigade/dist/rendezvous/launch/node_exits.h>
#include <brigade/dist/rendezvous/launch/outcome.h>
#include <brigade/dist/rendezvous/launch/output.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace brigade::dist {

// Receives how the process of a rank ended, as text, and in which attempt.
using RankEndCallback = std::function<void(int attempt, int rank, const std::string& how)>;

class Attempt {
 public:
  // `options`, `signals`, `other_nodes` (null: none) and `on_rank_end_callback` must outlive this object.
  Attempt(std::vector<std::string> command, const LaunchOptions& options, int restart, int port, NodePlace place,
          StoreJob job, const JobSignals& signals, const NodeExits* other_nodes,
          const RankEndCallback& on_rank_end_callback);
  // Ends all processes that still run.
  ~Attempt();

  // Runs a poll() loop over output, signals and the ends of ranks. Throws IoError when the program cannot be started.
  LaunchOutcome watch();
  // Writes to standard error, and waits for its reader. Returns a signal that arrived while waiting, or 0.
  int say(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  Environment environment_for(int rank, int local, int restart, int port) const;
  std::string error_file(int rank) const;
  std::vector<RankProgram> prepare_programs(int restart, int port);
  void close_streams();

  bool ranks_run() const;
  void wait_for_events();
  void hear_guardian();
  void hear_other_nodes();
  void take_end(Child& child, const GuardianNews& news);
  void forward_signals();
  void end_what_is_left();
  void tell_what_was_left();
  void write_the_rest();
  int time_to_next_step() const;
  void end_what_is_overdue();
  void escalate();
  void end_all(int signal);
  FirstFailure first_failure() const;
  LaunchOutcome outcome() const;

  const std::vector<std::string> command_;
  const LaunchOptions& options_;
  const NodePlace place_;
  const StoreJob job_;
  const JobSignals& signals_;
  const NodeExits* const other_nodes_;
  const RankEndCallback& on_rank_end_;
  const int restart_;
  const std::string error_folder_;  // "": none; then only the ends of the processes show the first failure
  Output output_;
  std::vector<Child> children_;
  std::optional<Guardian> guardian_;
  int first_failure_ = -1;
  std::optional<NodeFailure> failed_node_;
  bool failed_before_node_ = false;
  int signalled_ = 0;
  bool failed_before_signal_ = false;
  bool asked_ = false;
  bool ending_the_rest_ = false;
  bool nothing_left_ = false;
  std::vector<std::string> left_, live_on_;  // descriptions of processes that ranks left behind
  std::vector<int> overdue_;
  std::optional<Clock::time_point> last_must_end_;
  std::optional<Clock::time_point> next_step_;
};

}  // namespace brigade::dist
