// Starts a job with its store, its name and its place among the nodes, and restarts it when it fails.
#include <brigade/dist/rendezvous/launch/launcher.h>

#include <brigade/core/detail/files.h>
#include <brigade/dist/rendezvous/launch/attempt.h>
#include <brigade/dist/rendezvous/launch/child.h>
#include <brigade/dist/rendezvous/launch/node_exits.h>
#include <brigade/dist/rendezvous/launch/outcome.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/dist/rendezvous/secret.h>
#include <brigade/dist/rendezvous/store.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>

#include <unistd.h>

namespace brigade::dist {
namespace {

constexpr std::chrono::milliseconds kLongestBackOff = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kTimeToTell = std::chrono::seconds(1);

std::string launcher_of(int node) { return fmt::format("the launcher of node {}", node); }

// A rank is not in the terminal's foreground process group: reading from the terminal would stop the rank.
void check_standard_input(const LaunchOptions& options, const NodePlace& place) {
  if (options.stdin_rank < 0) return;
  if (options.stdin_rank >= place.world_size)
    throw DistError("launch: rank {} is to read the standard input, but there are ranks 0 to {}", options.stdin_rank,
                    place.world_size - 1);
  if (isatty(STDIN_FILENO) == 1)
    throw DistError(
        "launch: rank {} is to read the standard input, which is a terminal, and ranks run in its background; put a "
        "pipe in between: cat | brigade run --stdin {} ...",
        options.stdin_rank, options.stdin_rank);
}

// On one node, a random unique name. The launchers of several nodes share only what the user passes to each.
std::string name_of_run(const LaunchOptions& options) {
  if (options.nodes == 1) return random_token().substr(0, 32);
  const char* given = std::getenv("BRIGADE_RUN_ID");
  return given ? given : "";
}

// The user's secret. Without one: on one node a random secret that only this launcher and its ranks know, else "".
std::string secret_of_job(const LaunchOptions& options) {
  const std::string given = job_secret();
  return given.empty() && options.nodes == 1 ? random_token() : given;
}

// Publishes how the processes of this node's ranks ended, for ranks that wait for them in a rendezvous. On one node the
// store is in this process.
RankEndCallback on_rank_end(NodeExits* other_nodes, int port, const LaunchOptions& options, const StoreJob& job) {
  if (other_nodes)
    return [other_nodes](int, int rank, const std::string& how) { other_nodes->tell_end_of_rank(rank, how); };
  return [store = std::shared_ptr<Store>(), port, address = options.master_addr, job](int attempt, int rank,
                                                                                      const std::string& how) mutable {
    try {
      if (!store) store = connect_tcp_store(address, port, kTimeToTell, job);
      store->set(rank_ended_key(attempt, rank), how);
    } catch (const DistError&) {
      // The peers then wait until their timeout.
    }
  };
}

// Starts the ranks, and restarts them when they fail, at most max_restarts times.
LaunchOutcome run_attempts(const std::vector<std::string>& words, const LaunchOptions& options, int port,
                           const NodePlace& place, const StoreJob& job, const JobSignals& signals,
                           NodeExits* other_nodes) {
  const RankEndCallback on_rank_end_callback = on_rank_end(other_nodes, port, options, job);
  for (int restart = 0;; ++restart) {
    LaunchOutcome outcome;
    int signal = 0;
    {
      if (other_nodes) other_nodes->begin(restart);
      Attempt attempt(words, options, restart, port, place, job, signals, other_nodes, on_rank_end_callback);
      outcome = attempt.watch();
      if (outcome.signal != 0) return outcome;
      if (outcome.exit_code == 0 && (!other_nodes || other_nodes->is_over(outcome, signals))) return outcome;
      if (restart >= options.max_restarts) return outcome;
      if (other_nodes) {
        if (const auto failed = other_nodes->failure(); failed && failed->is_last) return outcome;
        other_nodes->end_attempt(outcome);
      }
      signal = attempt.say(fmt::format("brigade run: {}{}brigade run: restart {} of {}\n", outcome.summary,
                                       outcome.summary.ends_with('\n') ? "" : "\n", restart + 1, options.max_restarts));
    }
    // Backs off, since a fault that lasts for a while (a disk, a device, a host) would use up all restarts at once.
    if (signal == 0) signal = signals.next(std::min(options.back_off * (1 << std::min(restart, 10)), kLongestBackOff));
    if (signal == 0) continue;
    blame_signal(outcome, signal, false);
    outcome.exit_code = 128 + signal;
    return outcome;
  }
}

}  // namespace

LaunchOutcome launch_processes(const std::vector<std::string>& command, const LaunchOptions& options) {
  // The ranks' pipes must not get the numbers of the standard descriptors: they would not survive exec.
  brigade::detail::fill_standard_descriptors();
  if (command.empty()) throw DistError("launch: no program given");
  if (options.ranks < 1 || options.nodes < 1 || options.node_rank < 0 || options.node_rank >= options.nodes) {
    throw DistError("launch: expected at least 1 rank, and 0 <= node rank < nodes; got {} ranks, node {} of {}",
                    options.ranks, options.node_rank, options.nodes);
  }
  if (options.nodes > 1 && options.master_port == 0)
    throw DistError("launch: several nodes need a --master-port that all of them know");
  // Resolves "/proc/self/exe" here, because it would name a different program in the child.
  std::vector<std::string> words = command;
  if (words.front() == "/proc/self/exe") {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length > 0) words.front().assign(path, static_cast<size_t>(length));
  }
  std::unique_ptr<TcpStoreServer> server;
  int port = options.master_port;
  const StoreJob job{.run = name_of_run(options), .secret = secret_of_job(options)};
  if (options.node_rank == 0) {
    server = std::make_unique<TcpStoreServer>(options.master_addr, options.master_port, job);
    port = server->port();
  }
  NodePlace place{0, options.ranks};
  std::optional<NodeExits> others;
  if (options.nodes > 1) {
    // Nodes may be started one after another, by hand or by a scheduler; the launchers wait for this, so that ranks
    // need not.
    StoreJob own = job;
    own.who = launcher_of(options.node_rank);
    const auto store = connect_tcp_store(options.master_addr, port, options.meeting_timeout, own);
    place = meet_nodes(*store, options);
    std::function<bool(int)> is_connected;
    if (server) is_connected = [&server](int node) { return server->is_connected(launcher_of(node)); };
    others.emplace(store, options, std::move(is_connected));
  }
  if (server) server->set_world_size(place.world_size);
  check_standard_input(options, place);
  const JobSignals signals;
  LaunchOutcome outcome;
  try {
    outcome = run_attempts(words, options, port, place, job, signals, others ? &*others : nullptr);
  } catch (const std::exception& error) {
    LaunchOutcome failed{.exit_code = 1, .summary = error.what()};
    if (others) others->join(failed, signals);
    throw;
  }
  if (others) others->join(outcome, signals);
  return outcome;
}

}  // namespace brigade::dist
