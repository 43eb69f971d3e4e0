// brigade run: starts a program once per rank.
#include <brigade/core/error.h>
#include <brigade/dist/rendezvous/launch/environment.h>
#include <brigade/dist/rendezvous/launch/launcher.h>
#include <brigade/lab/commands/commands.h>
#include <brigade/lab/options.h>
#include <brigade/lab/results.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <iostream>
#include <memory>

#include <poll.h>
#include <unistd.h>

namespace brigade::lab {
namespace {

// Throws ValueError when another launcher has started one `brigade run` per node (srun -N 2 brigade run ...) and
// --nnodes is missing.
void refuse_jobs_side_by_side() {
  std::optional<dist::LaunchedRank> launched;
  try {
    launched = dist::find_launched_rank(dist::launch_variables());
  } catch (const DistError&) {
    // Incomplete variables do not matter here: the ranks get a complete set.
  }
  if (!launched || launched->world_size < 2) return;
  throw ValueError(
      "this is process {} of {} of {}, and each would start a job of its own; one job on {} nodes: --nnodes {} "
      "--node-rank {} --master-addr ADDRESS_OF_NODE_0 --master-port PORT; jobs side by side: --nnodes 1",
      launched->rank, launched->world_size, launched->launcher, launched->world_size, launched->world_size,
      launched->rank);
}

nlohmann::json row_of(const std::vector<std::string>& command, const dist::LaunchOutcome& outcome) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const dist::RankOutcome& rank : outcome.ranks) {
    ranks.push_back({{"rank", rank.rank},
                     {"exit_code", rank.exit_code},
                     {"signal", rank.signal},
                     {"first_failure", rank.first_failure},
                     {"last_words", rank.last_words}});
  }
  return {{"command", command}, {"exit_code", outcome.exit_code}, {"summary", outcome.summary}, {"ranks", ranks}};
}

// Whether to print messages: after a signal, only if standard error accepts output within 500 ms.
bool can_say_it(const dist::LaunchOutcome& outcome) {
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  return outcome.signal == 0 || poll(&room, 1, 500) > 0;
}

}  // namespace

void add_run(Command& app) {
  struct Arguments {
    dist::LaunchOptions options;
    bool no_prefix = false;
    double meeting_s = 300;
    double exit_s = 1800;
    double timeout_s = 30;
    std::vector<std::string> command;
    Results results;
  };
  auto arguments = std::make_shared<Arguments>();
  Command run = app.add_command("run", "Start a program once per rank, with torchrun's environment variables");
  run.footer(
      "Examples:\n  brigade run -n 2 ./train --epochs 3\n  brigade run -n 4 --nnodes 2 --node-rank 0 --master-addr "
      "10.0.0.1 --master-port 29500 -- ./train");
  run.add_option("-n,--nproc-per-node", arguments->options.ranks,
                 "ranks on this node (other nodes may have other numbers)")
      .required()
      .check(number_from(1, 64));
  const Option nodes = run.add_option("--nnodes", arguments->options.nodes, "nodes").check(number_from(1));
  run.add_option("--node-rank", arguments->options.node_rank, "number of this node").check(number_from(0));
  run.add_option("--master-addr", arguments->options.master_addr, "address of node 0");
  run.add_option("--master-port", arguments->options.master_port,
                 "port of the store on node 0; 0 picks a free one (one node only)")
      .check(number_from(0, 65535));
  run.add_option("--meeting-timeout", arguments->meeting_s, "seconds for the launchers of all nodes to come")
      .check(number_from(0.1, 86400.0))
      .show_default();
  const Option timeout =
      run.add_option("--timeout", arguments->timeout_s,
                     "seconds that a rank waits for the others in a collective, unless the program says otherwise "
                     "(BRIGADE_TIMEOUT; 30 without it)")
          .check(number_from(0.001, 31536000.0));
  run.add_option("--exit-timeout", arguments->exit_s,
                 "seconds that a rank may run on after the others have ended; 0: for ever")
      .check(number_from(0.0, 1e6))
      .show_default();
  run.add_option("--max-restarts", arguments->options.max_restarts,
                 "start all ranks again after a failure, at most so often")
      .check(number_from(0));
  run.add_option("--stdin", arguments->options.stdin_rank,
                 "rank that reads the standard input; the others get /dev/null, and without this option all do")
      .check(number_from(0));
  run.add_flag("--no-prefix", arguments->no_prefix, "do not put [rank r] before each line");
  arguments->results.add_json_option(run);
  run.add_option("command", arguments->command, "program and its arguments").required();
  run.end_options_at_first_word();
  run.action([arguments, nodes, timeout] {
    if (!nodes.is_given()) refuse_jobs_side_by_side();
    arguments->options.meeting_timeout = std::chrono::milliseconds(static_cast<int64_t>(arguments->meeting_s * 1000));
    arguments->options.exit_timeout = std::chrono::milliseconds(static_cast<int64_t>(arguments->exit_s * 1000));
    if (timeout.is_given())
      arguments->options.environment.emplace_back("BRIGADE_TIMEOUT", fmt::format("{}", arguments->timeout_s));
    arguments->options.prefix_output = !arguments->no_prefix;
    arguments->results.begin();
    const dist::LaunchOutcome outcome = dist::launch_processes(arguments->command, arguments->options);
    const bool can_say = can_say_it(outcome);
    if (can_say && !outcome.summary.empty())
      std::cerr << "brigade run: " << outcome.summary << (outcome.summary.back() == '\n' ? "" : "\n");
    arguments->results.add(row_of(arguments->command, outcome));
    arguments->results.write();
    if (outcome.output_error == 0) return outcome.exit_code;
    if (can_say)
      std::cerr << "brigade run: not all that the ranks wrote could be passed on: "
                << std::strerror(outcome.output_error) << "\n";
    return outcome.exit_code != 0 ? outcome.exit_code : 3;
  });
}

}  // namespace brigade::lab
