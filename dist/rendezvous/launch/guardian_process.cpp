// Starts ranks, reaps them, and ends the processes that they leave behind, level by level: when a child ends, its own
// children become children of the guardian.
#include <brigade/dist/rendezvous/launch/guardian.h>

#include <brigade/dist/rendezvous/launch/child.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::dist {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
// The wait after SIGKILL: a process in an uninterruptible call, or of another user, does not end.
constexpr int64_t kPatienceAfterKill = 2000 * kMillisecond;
constexpr int kMostNamed = 16;
constexpr int kPauseMs = 10;

int64_t now() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Blocks all signals, and adopts orphaned descendants.
void become_a_subreaper() noexcept {
  setpgid(0, 0);  // leave the terminal's process group
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void close_from(unsigned first) noexcept {
  if (syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  for (int fd = static_cast<int>(first); fd < 4096; ++fd)  // before Linux 5.9
    close(fd);
}

class GuardianProcess {
 public:
  explicit GuardianProcess(const GuardianTask& task) : task_(task) {}

  [[noreturn]] void run() noexcept {
    close(task_.launchers_end);
    become_a_subreaper();
    start_ranks();
    hold_nothing_else();
    while (true) {
      pollfd entries[] = {{kSocket, POLLIN, 0}, {kSignals, POLLIN, 0}};
      poll(entries, 2, -1);
      pass_signals_on();
      reap();
      follow_orders();
    }
  }

 private:
  static constexpr int kSocket = 0;  // descriptors after hold_nothing_else()
  static constexpr int kSignals = 1;

  void start_ranks() noexcept {
    const pid_t own = getpid();
    for (size_t rank = 0; rank < task_.programs.size(); ++rank) {
      const pid_t process = fork();
      if (process == 0) {
        setpgid(0, 0);
        // When the guardian is killed, the keeper would kill the rank a moment later anyway. The getppid() check covers
        // a guardian that died before prctl took effect.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != own) _exit(1);
        const int why = task_.programs[rank].exec();
        tell(task_.socket, {.kind = GuardianNews::kCannotStart, .rank = static_cast<int32_t>(rank), .value = why});
        _exit(127);
      }
      if (process < 0)
        tell(task_.socket, {.kind = GuardianNews::kCannotStart, .rank = static_cast<int32_t>(rank), .value = errno});
      if (process > 0) setpgid(process, process);
      task_.ranks[rank] = std::max(process, 0);
    }
  }

  // Keeps only the socket and a signalfd: no output pipes, no ports.
  void hold_nothing_else() noexcept {
    sigset_t wanted;
    sigemptyset(&wanted);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
      sigaddset(&wanted, signal);
    // Moves both descriptors above the targets of dup2.
    const int socket = fcntl(task_.socket, F_DUPFD, 10);
    const int signals = fcntl(signalfd(-1, &wanted, SFD_NONBLOCK), F_DUPFD, 10);
    dup2(socket, kSocket);
    dup2(signals, kSignals);
    close_from(2);
  }

  static void tell(int socket, const GuardianNews& news) noexcept {
    [[maybe_unused]] const ssize_t sent = ::send(socket, &news, sizeof news, MSG_NOSIGNAL);
  }

  void pass_signals_on() noexcept {
    signalfd_siginfo info{};
    while (read(kSignals, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo != SIGCHLD) kill(task_.launcher, static_cast<int>(info.ssi_signo));
    }
  }

  // False when there are no children: then no process of the job is left, since orphans become children of the
  // guardian.
  bool reap() noexcept {
    while (true) {
      siginfo_t ended{};
      if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != ECHILD;
      if (ended.si_pid == 0) return true;
      const auto rank = std::find(task_.ranks.begin(), task_.ranks.end(), ended.si_pid);
      // Kills the rank's process group before the rank is reaped, while its group id cannot be reused.
      if (rank != task_.ranks.end()) kill(-ended.si_pid, SIGKILL);
      int status = 0;
      waitpid(ended.si_pid, &status, 0);
      if (rank == task_.ranks.end()) continue;
      *rank = 0;
      tell(kSocket, {.kind = GuardianNews::kEnded,
                     .rank = static_cast<int32_t>(rank - task_.ranks.begin()),
                     .value = status,
                     .time_ns = now()});
    }
  }

  void follow_orders() noexcept {
    GuardianOrder order;
    while (true) {
      const ssize_t got = ::recv(kSocket, &order, sizeof order, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got != static_cast<ssize_t>(sizeof order)) give_up();
      if (order.signal != 0) {
        signal_rank(order.rank, order.signal);
      } else {
        end_what_is_left(order.grace_ms * kMillisecond);
        tell(kSocket, {.kind = GuardianNews::kNothingLeft});
      }
    }
  }

  void signal_rank(int32_t rank, int signal) const noexcept {
    if (const pid_t process = task_.ranks[static_cast<size_t>(rank)]; process > 0) kill(-process, signal);
  }

  // The launcher is gone.
  [[noreturn]] void give_up() noexcept {
    for (size_t rank = 0; rank < task_.ranks.size(); ++rank)
      signal_rank(static_cast<int32_t>(rank), SIGKILL);
    end_what_is_left(0);
    _exit(0);
  }

  void end_what_is_left(int64_t grace) noexcept {
    int64_t kill_from = now() + grace;
    while (reap()) {
      const int64_t time = now();
      if (time >= kill_from + kPatienceAfterKill) {
        for_each_own_child([](const OwnChild& child) { name(GuardianNews::kLivesOn, child); });
        return;
      }
      for_each_own_child([&](const OwnChild& child) { end(child, time >= kill_from ? SIGKILL : SIGTERM); });
      pollfd entries[] = {{kSocket, POLLIN, 0}, {kSignals, POLLIN, 0}};
      poll(entries, 2, kPauseMs);
      pass_signals_on();
      // Any message of the launcher, or its end, cuts the grace period short.
      GuardianOrder order;
      if (kill_from > time && recv(kSocket, &order, sizeof order, MSG_DONTWAIT) >= 0) kill_from = time;
      // A closed socket or an ended child makes poll return at once: sleeps here to avoid a busy loop.
      if (kill_from <= time) poll(nullptr, 0, kPauseMs);
    }
  }

  void end(const OwnChild& child, int signal) noexcept {
    const auto end_of_told = told_.begin() + static_cast<ptrdiff_t>(told_count_);
    const bool told = std::find(told_.begin(), end_of_told, child.process) != end_of_told;
    if (!told && told_count_ < told_.size()) {
      told_[told_count_++] = child.process;
      if (told_count_ <= kMostNamed) name(GuardianNews::kLeft, child);
      // SIGCONT, so that a stopped process receives the signal.
      kill(child.process, signal);
      kill(child.process, SIGCONT);
    } else if (signal == SIGKILL) {
      kill(child.process, SIGKILL);
    }
  }

  static void name(GuardianNews::Kind kind, const OwnChild& child) noexcept {
    GuardianNews news{.kind = kind, .value = child.process};
    for (size_t i = 0; i + 1 < sizeof news.name && child.name[i]; ++i)
      news.name[i] = child.name[i];
    tell(kSocket, news);
  }

  const GuardianTask& task_;
  std::array<pid_t, 256> told_{};  // processes that got their first signal
  size_t told_count_ = 0;
};

}  // namespace

void keep_guardian(const GuardianTask& task) noexcept {
  become_a_subreaper();
  const pid_t guardian = fork();
  if (guardian == 0) GuardianProcess(task).run();
  close_from(0);
  for (bool guarded = guardian > 0; guarded;)
    guarded = waitpid(-1, nullptr, 0) != guardian;
  // The guardian leaves no process unless it was killed.
  const int64_t until = now() + kPatienceAfterKill;
  while (now() < until) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (waitpid(-1, nullptr, WNOHANG) < 0) break;
    for_each_own_child([](const OwnChild& child) { kill(child.process, SIGKILL); });
    poll(nullptr, 0, kPauseMs);
  }
  if (*task.folder != '\0') execl("/bin/rm", "rm", "-rf", "--", task.folder, nullptr);
  _exit(0);
}

}  // namespace brigade::dist
