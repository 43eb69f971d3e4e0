// Starts ranks as processes: for brigade run, tests and the lab's training jobs. For ranks as threads see
// dist/groups/threads/run_threads.h.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

struct LaunchOptions {
  int ranks = 1;  // on this node; other nodes may have different numbers
  int nodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;        // 0: a free port (one node only)
  int stdin_rank = -1;        // the rank that reads the launcher's standard input; the others get /dev/null
  bool prefix_output = true;  // "[rank 1] " before each line
  // How long a rank may still run after the last of the other ranks on this node has ended with status 0, and a node
  // after the last of the other nodes; 0: forever.
  std::chrono::milliseconds exit_timeout{std::chrono::minutes(30)};
  int max_restarts = 0;
  std::chrono::milliseconds back_off{500};  // before the first restart; doubles each time, up to 30 s
  std::chrono::milliseconds meeting_timeout{std::chrono::minutes(5)};  // for the launchers of the other nodes to join
  std::vector<std::pair<std::string, std::string>> environment;        // additional variables for every rank
  // After one rank has failed: time for the other ranks to report their own errors before SIGTERM, and then before
  // SIGKILL.
  std::chrono::milliseconds grace{std::chrono::seconds(2)};
};

struct RankOutcome {
  int rank = 0;
  int exit_code = 0;  // 128 + signal when a signal ended it
  int signal = 0;
  bool first_failure = false;
  std::string last_words;  // its last lines on standard error
};

struct LaunchOutcome {
  // The exit code of the first rank that failed (outcome.h), or of a victim if that rank ended with status 0; 0
  // when no rank failed. If a signal to the launcher ended the job: 128 + signal, unless a rank caught it and ended
  // with its own status.
  int exit_code = 0;
  int signal = 0;                  // to the launcher (SIGINT, SIGTERM, SIGHUP, SIGQUIT)
  std::vector<RankOutcome> ranks;  // of this node
  std::string summary;             // "", or the rank that failed first, how, and its last lines
  int output_error = 0;            // why some output could not be forwarded (errno)
};

// Starts `command` once per rank with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR,
// MASTER_PORT, OMP_NUM_THREADS (cores / ranks unless set), BRIGADE_AGENT_STORE=1 (the launcher of node 0 hosts the
// store), BRIGADE_RUN_ID (a random name; with several nodes this process's value), BRIGADE_SECRET (this process's
// job_secret(); with one node a random one when there is none) and BRIGADE_ERROR_FILE (dist/errors/error_file.h). Waits
// for all ranks, then ends all processes that they left running, including daemons. Forwards SIGINT, SIGTERM, SIGHUP
// and SIGQUIT to the ranks, and does not restart after these. When a rank fails, the others are ended; ranks die with
// the launcher (guardian.h). Throws IoError when the program cannot be started, and DistError when the launchers of
// several nodes do not meet.
LaunchOutcome launch_processes(const std::vector<std::string>& command, const LaunchOptions& options);

}  // namespace brigade::dist
