// Watching rank processes: one loop over poll() for output, signals and the ends of children.
#include <brigade/dist/meeting/launch/launcher.h>

#include <brigade/dist/meeting/launch/child.h>
#include <brigade/dist/meeting/launch/first_failure.h>
#include <brigade/dist/meeting/launch/guardian.h>
#include <brigade/dist/meeting/launch/nodes.h>
#include <brigade/dist/meeting/launch/output.h>
#include <brigade/dist/meeting/store.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <poll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::dist {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongestBackOff = std::chrono::seconds(30);

// A rank is no foreground process of the terminal: reading from it would stop the rank.
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

// For the error files of the ranks, readable by their owner only; "" where none can be made: then
// the ends of the processes alone tell who was first.
std::string make_error_folder() {
  std::error_code failed;
  std::string name = (std::filesystem::temp_directory_path(failed) / "brigade-run-XXXXXX").string();
  return !failed && mkdtemp(name.data()) ? name : "";
}

// All ranks of one attempt.
class Attempt {
 public:
  Attempt(const std::vector<std::string>& command, const LaunchOptions& options, int restart, int port, NodePlace place,
          std::string run)
      : options_(options), place_(place), run_(std::move(run)), output_(options.prefix_output) {
    // Signals are read from a descriptor while ranks run, so that they reach the ranks and not only
    // us.
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &previous_signals_);
    signal_fd_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
    try {
      children_.resize(static_cast<size_t>(options.ranks));
      for (int local = 0; local < options.ranks; ++local) {
        Child& child = children_[static_cast<size_t>(local)];
        child.rank = place.first_rank + local;
        start(child, command, environment_for(child.rank, local, restart, port), child.rank == options.stdin_rank,
              guardian_);
      }
    } catch (...) {
      end_all(SIGKILL);
      finish();
      throw;
    }
  }
  ~Attempt() {
    end_all(SIGKILL);
    finish();
  }

  LaunchOutcome watch() {
    // Until the ranks have ended, not their streams: a daemon that a rank has left holds those for
    // as long as it lives. What the ranks themselves wrote lies in the pipes by then.
    while (std::any_of(children_.begin(), children_.end(), [](const Child& c) { return c.running; })) {
      // The socket too: ranks that announce many errors and print none wait for its room.
      std::vector<pollfd> entries{{signal_fd_, POLLIN, 0}, {output_.socket().fd(), POLLIN, 0}};
      for (Child& child : children_) {
        entries.push_back({child.running ? child.process : -1, POLLIN, 0});
        for (const Stream* stream : {&child.out, &child.err})
          entries.push_back({output_.waits(*stream) ? -1 : stream->fd, POLLIN, 0});
      }
      output_.add_to(entries);
      poll(entries.data(), entries.size(), time_to_next_step());
      forward_signals();
      output_.write();
      output_.receive();
      for (Child& child : children_) {
        drain(child);
        if (child.running) reap(child);
      }
      escalate();
    }
    for (Child& child : children_)
      output_.finish(child);
    write_the_rest();
    return outcome();
  }

 private:
  std::vector<std::pair<std::string, std::string>> environment_for(int rank, int local, int restart, int port) const {
    std::vector<std::pair<std::string, std::string>> result{
        {"RANK", std::to_string(rank)},
        {"WORLD_SIZE", std::to_string(place_.world_size)},
        {"LOCAL_RANK", std::to_string(local)},
        {"LOCAL_WORLD_SIZE", std::to_string(options_.ranks)},
        {"GROUP_RANK", std::to_string(options_.node_rank)},
        {"MASTER_ADDR", options_.master_addr},
        {"MASTER_PORT", std::to_string(port)},
        {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart)},
        {"BRIGADE_AGENT_STORE", "1"},
        {"BRIGADE_RUN_ID", run_},
        {"BRIGADE_ANNOUNCE_TO", output_.socket().address_for(rank)}};
    if (!error_folder_.empty()) result.emplace_back("BRIGADE_ERROR_FILE", error_file(rank));
    if (!std::getenv("OMP_NUM_THREADS")) {
      const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
      result.emplace_back("OMP_NUM_THREADS", std::to_string(std::max(1, cores / options_.ranks)));
    }
    result.insert(result.end(), options_.environment.begin(), options_.environment.end());
    return result;
  }

  // "": there is none.
  std::string error_file(int rank) const {
    if (error_folder_.empty()) return "";
    return fmt::format("{}/rank-{}", error_folder_, rank);
  }

  // For as long as that takes, unless a signal says that nobody waits for it.
  void write_the_rest() {
    for (bool again = true; output_.waits() && again;) {
      std::vector<pollfd> entries{{signal_fd_, POLLIN, 0}};
      output_.add_to(entries);
      again = poll(entries.data(), entries.size(), signalled_ ? 500 : -1) != 0;
      forward_signals();
      output_.write();
    }
    output_.give_up();
  }

  void drain(Child& child) {
    for (Stream* stream : {&child.out, &child.err}) {
      if (stream->fd >= 0) output_.drain(child, *stream);
    }
  }

  int time_to_next_step() const {
    if (!next_step_ && !last_must_end_) return -1;
    const auto until = next_step_ ? *next_step_ : *last_must_end_;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 60'000));
  }

  void forward_signals() {
    signalfd_siginfo info{};
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      end_all(static_cast<int>(info.ssi_signo));
      if (signalled_ == 0) failed_before_signal_ = first_failure_ >= 0;
      signalled_ = static_cast<int>(info.ssi_signo);
      if (!next_step_) next_step_ = Clock::now() + options_.grace;
    }
  }

  void reap(Child& child) {
    siginfo_t ended{};
    if (waitid(P_PID, static_cast<id_t>(child.pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0)
      return;
    // What it started itself goes with it, while the number of its group cannot be another's.
    kill(-child.pid, SIGKILL);
    guardian_.remove(child.pid);
    waitpid(child.pid, &child.status, 0);
    child.running = false;
    child.ended = Clock::now();
    if (child.process >= 0) close(std::exchange(child.process, -1));
    const bool failed = !WIFEXITED(child.status) || WEXITSTATUS(child.status) != 0;
    if (!failed) {
      // Each end gives those that remain the whole time again.
      if (options_.exit_timeout.count() > 0 && !overdue_) last_must_end_ = Clock::now() + options_.exit_timeout;
      return;
    }
    if (first_failure_ < 0) first_failure_ = child.rank;
    // The others learn of it through their group and may have something to say themselves.
    if (!next_step_) next_step_ = Clock::now() + options_.grace;
  }

  // A rank that loops or was stopped after the others have ended.
  void end_what_is_overdue() {
    if (!last_must_end_ || Clock::now() < *last_must_end_ || next_step_) return;
    last_must_end_.reset();
    for (const Child& child : children_) {
      if (child.running) late_.push_back(child.rank);
    }
    if (late_.empty()) return;
    first_failure_ = late_.front();
    overdue_ = true;
    next_step_ = Clock::now();
  }

  void escalate() {
    end_what_is_overdue();
    if (!next_step_ || Clock::now() < *next_step_) return;
    // Ranks first get time to report, then SIGTERM, then SIGKILL.
    end_all(asked_ ? SIGKILL : SIGTERM);
    asked_ = true;
    next_step_ = Clock::now() + std::chrono::seconds(2);
  }

  void end_all(int signal) {
    for (Child& child : children_) {
      if (!child.running) continue;
      kill(-child.pid, signal);
      child.told_to_end = true;
    }
  }

  void finish() {
    for (Child& child : children_) {
      if (child.running) {
        guardian_.remove(child.pid);
        waitpid(child.pid, &child.status, 0);
      }
      child.running = false;
      for (const int fd : {child.process, child.out.fd, child.err.fd}) {
        if (fd >= 0) close(fd);
      }
      child.process = child.out.fd = child.err.fd = -1;
    }
    if (signal_fd_ >= 0) {
      close(std::exchange(signal_fd_, -1));
      pthread_sigmask(SIG_SETMASK, &previous_signals_, nullptr);
    }
  }

  // What was overdue is known; everything else the ranks have left in words.
  FirstFailure first_failure() const {
    std::vector<RankEnd> ends;
    for (const Child& child : children_) {
      const int signal = WIFSIGNALED(child.status) ? WTERMSIG(child.status) : 0;
      const int exit_code = signal ? 128 + signal : WEXITSTATUS(child.status);
      if (overdue_ && child.rank == first_failure_) return {child.rank, exit_code, false, false, {}};
      const int64_t ended =
          std::chrono::duration_cast<std::chrono::nanoseconds>(child.ended.time_since_epoch()).count();
      ends.push_back(
          {child.rank, ended, exit_code, signal, child.told_to_end, read_error_file(error_file(child.rank))});
    }
    return find_first_failure(ends);
  }

  LaunchOutcome outcome() const {
    LaunchOutcome result;
    const FirstFailure first = first_failure();
    for (const Child& child : children_) {
      RankOutcome rank;
      rank.rank = child.rank;
      rank.signal = WIFSIGNALED(child.status) ? WTERMSIG(child.status) : 0;
      rank.exit_code = rank.signal ? 128 + rank.signal : WEXITSTATUS(child.status);
      rank.first_failure = child.rank == first.rank;
      for (const std::string& line : child.last_lines)
        rank.last_words += line + "\n";
      if (rank.first_failure) {
        result.exit_code = first.exit_code;
        const std::string how = rank.signal
                                    ? fmt::format("was ended by signal {} ({})", rank.signal, strsignal(rank.signal))
                                    : fmt::format("exited with status {}", rank.exit_code);
        result.summary =
            overdue_ ? fmt::format("{} still running {:g} s after the others had ended (--exit-timeout)",
                                   ranks_in_words(late_) + (late_.size() > 1 ? " were" : " was"),
                                   std::chrono::duration<double>(options_.exit_timeout).count())
            : first.awaited
                ? fmt::format("rank {} still ran while other ranks waited for it in vain, and {}", rank.rank, how)
            : first.left ? fmt::format("rank {} {} first, while other ranks still needed it", rank.rank, how)
                         : fmt::format("rank {} {} first", rank.rank, how);
        if (!first.because_of.empty()) result.summary += ", because of " + ranks_in_words(first.because_of);
        if (rank.last_words.empty()) {
          result.summary += "; it wrote nothing to standard error";
        } else {
          result.summary += "; its last words:\n" + rank.last_words;
        }
      }
      result.ranks.push_back(rank);
    }
    result.output_error = output_.write_error();
    if (signalled_ != 0) blame_signal(result);
    return result;
  }

  // Whoever ended because the launcher was told to end is no failure. A rank that has caught the
  // signal may end with a status of its own.
  void blame_signal(LaunchOutcome& result) const {
    result.signal = signalled_;
    const auto first = std::find_if(result.ranks.begin(), result.ranks.end(),
                                    [](const RankOutcome& rank) { return rank.first_failure; });
    if (failed_before_signal_) return;
    if (first == result.ranks.end() || first->signal != 0) result.exit_code = 128 + signalled_;
    if (first != result.ranks.end()) first->first_failure = false;
    result.summary = fmt::format("ended by signal {} ({})", signalled_, strsignal(signalled_));
  }

  const LaunchOptions& options_;
  const NodePlace place_;
  const std::string run_;
  const std::string error_folder_ = make_error_folder();
  Guardian guardian_{error_folder_};
  Output output_;
  std::vector<Child> children_;
  sigset_t signals_{}, previous_signals_{};
  int signal_fd_ = -1;
  int first_failure_ = -1;
  int signalled_ = 0;
  bool failed_before_signal_ = false;
  bool asked_ = false;
  bool overdue_ = false;
  std::vector<int> late_;  // ranks that were overdue
  std::optional<Clock::time_point> last_must_end_;
  std::optional<Clock::time_point> next_step_;
};

// One node: a name that nobody else has or knows. The launchers of several nodes share only what
// the user gives each.
std::string name_of_run(const LaunchOptions& options) {
  if (options.nodes > 1) {
    const char* given = std::getenv("BRIGADE_RUN_ID");
    return given ? given : "";
  }
  uint64_t words[2];
  if (getrandom(words, sizeof words, 0) != static_cast<ssize_t>(sizeof words))
    throw DistError("launch: cannot make a name for the run: {}", std::strerror(errno));
  return fmt::format("{:016x}{:016x}", words[0], words[1]);
}

}  // namespace

LaunchOutcome launch_processes(const std::vector<std::string>& command, const LaunchOptions& options) {
  if (command.empty()) throw DistError("launch: no program given");
  if (options.ranks < 1 || options.nodes < 1 || options.node_rank < 0 || options.node_rank >= options.nodes) {
    throw DistError("launch: expected at least 1 rank, and 0 <= node rank < nodes; got {} ranks, node {} of {}",
                    options.ranks, options.node_rank, options.nodes);
  }
  if (options.nodes > 1 && options.master_port == 0)
    throw DistError("launch: several nodes need a --master-port that all of them know");
  // A "/proc/self/exe" in the child would be the child's own program only after exec: name ours
  // now.
  std::vector<std::string> words = command;
  if (words.front() == "/proc/self/exe") {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length > 0) words.front().assign(path, static_cast<size_t>(length));
  }
  std::unique_ptr<TcpStoreServer> server;
  int port = options.master_port;
  const std::string run = name_of_run(options);
  if (options.node_rank == 0) {
    server = std::make_unique<TcpStoreServer>(options.master_addr, options.master_port, StoreJob{.run = run});
    port = server->port();
  }
  NodePlace place{0, options.ranks};
  if (options.nodes > 1) {
    // Nodes are started one after the other, by hand or by a scheduler; ranks need not wait for
    // that.
    const auto store =
        connect_tcp_store(options.master_addr, port, options.meeting_timeout,
                          {.run = run, .who = fmt::format("the launcher of node {}", options.node_rank)});
    place = meet_nodes(*store, options);
  }
  if (server) server->set_world_size(place.world_size);
  check_standard_input(options, place);
  for (int restart = 0;; ++restart) {
    LaunchOutcome outcome = Attempt(words, options, restart, port, place, run).watch();
    if (outcome.exit_code == 0 || outcome.signal != 0 || restart >= options.max_restarts) return outcome;
    std::fprintf(stderr, "brigade run: %s\nbrigade run: restart %d of %d\n", outcome.summary.c_str(), restart + 1,
                 options.max_restarts);
    // A cause that lasts for a while (a disk, a device, a host) would use up all restarts at once.
    // A signal ends this process here: no rank runs.
    std::this_thread::sleep_for(std::min(options.back_off * (1 << std::min(restart, 10)), kLongestBackOff));
  }
}

}  // namespace brigade::dist
