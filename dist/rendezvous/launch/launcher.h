// Starting ranks that are processes: brigade run, tests, the lab's training jobs. Those that are
// threads: dist/groups/threads/run_threads.h.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

struct LaunchOptions {
  int ranks = 1;  // on this node; other nodes may have other numbers
  int nodes = 1;
  int node_rank = 0;
  std::string master_addr = "127.0.0.1";
  int master_port = 0;        // 0: a free one (one node only)
  int stdin_rank = -1;        // the rank that reads the launcher's standard input; the others get /dev/null
  bool prefix_output = true;  // "[rank 1] " before each line
  // How long a rank may run on after the last of the others on this node has ended well, and a node
  // after the last of the other nodes; 0: for ever.
  std::chrono::milliseconds exit_timeout{std::chrono::minutes(30)};
  int max_restarts = 0;
  std::chrono::milliseconds back_off{500};  // before the first restart; doubles with each, up to 30 s
  std::chrono::milliseconds meeting_timeout{std::chrono::minutes(5)};  // for the launchers of the other nodes to come
  std::vector<std::pair<std::string, std::string>> environment;        // more variables for every rank
  // Time that the other ranks get to report an error of their own after one has failed, before
  // SIGTERM, and then before SIGKILL.
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
  // That of the first rank that failed (first_failure.h), 0 when none did; where that one ended
  // with status 0, a victim's. Where a signal to the launcher ended the job, 128 + signal, unless a
  // rank caught it and ended with a status of its own.
  int exit_code = 0;
  int signal = 0;                  // to the launcher (SIGINT, SIGTERM, SIGHUP, SIGQUIT)
  std::vector<RankOutcome> ranks;  // of this node
  std::string summary;             // "" or who failed first, how, and its last words
  int output_error = 0;            // why not all that ranks wrote could be passed on (errno)
};

// Starts `command` once per rank with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK,
// MASTER_ADDR, MASTER_PORT, OMP_NUM_THREADS (cores / ranks unless set), BRIGADE_AGENT_STORE=1 (the
// launcher of node 0 hosts the store), BRIGADE_RUN_ID (a random name; with several nodes the one
// that the variable has here), BRIGADE_SECRET (that of secret.h here; with one node a random one
// where there is none), BRIGADE_ERROR_FILE (dist/errors/error_file.h) and waits for all;
// then ends whatever they have left running, daemons too. Forwards SIGINT, SIGTERM, SIGHUP,
// SIGQUIT to the ranks, and restarts nothing then; when one fails the others are ended; ranks die
// with the launcher (guardian.h). Throws IoError when the program cannot be started, and DistError
// when the launchers of several nodes do not meet.
LaunchOutcome launch_processes(const std::vector<std::string>& command, const LaunchOptions& options);

}  // namespace brigade::dist
