// Processes of a launcher: one rank, adopted children, and the signals that end a job.
#pragma once

#include <brigade/dist/rendezvous/launch/output.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace brigade::dist {

// --- One rank as a process: its program, and its state.

// The launcher's view of a rank.
struct Child : RankOutput {
  bool running = false;
  int status = 0;  // as returned by waitpid
  bool was_ended = false;
  std::chrono::steady_clock::time_point ended;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// The arguments of exec. All allocation happens before the fork, because the program has threads: after the fork there
// are only system calls.
class RankProgram {
 public:
  // `environment` overrides this process's variables. Makes the output pipes; `child` gets their read ends. Throws
  // DistError when that fails.
  RankProgram(Child& child, const std::vector<std::string>& command, const Environment& environment, bool reads_stdin);
  RankProgram(RankProgram&&) = default;

  // Called in the new process: becomes the rank. Returns errno, only on failure.
  int exec() noexcept;

 private:
  struct Pipe {
    int end = -1;
    explicit Pipe(int fd = -1) : end(fd) {}
    Pipe(Pipe&& other) noexcept : end(std::exchange(other.end, -1)) {}
    ~Pipe();
  };
  std::vector<std::string> words_, variables_;
  std::vector<char*> argv_, envp_;  // pointers into words_ and variables_
  bool reads_stdin_;
  Pipe out_, err_;  // write ends
};

// --- The children of this process, including those that it has adopted as a subreaper.

struct OwnChild {
  pid_t process;
  const char* name;  // as in /proc, at most 15 bytes; valid during the call
};

// Calls visit(context, child) for each child that has not ended. Uses system calls only, so that it may be called after
// the fork of a program with threads. Finds nothing when /proc is not mounted.
void visit_own_children(void (*visit)(void*, const OwnChild&), void* context) noexcept;

template <class F>
void for_each_own_child(F f) noexcept {
  visit_own_children([](void* context, const OwnChild& child) { (*static_cast<F*>(context))(child); }, &f);
}

// --- Signals that end a job (SIGINT, SIGTERM, SIGHUP, SIGQUIT), read from a descriptor while the job runs, so that the
// launcher can forward them to the ranks.

class JobSignals {
 public:
  // Blocks the signals for this thread. Throws DistError when no descriptor is available.
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  // Readable when a signal is pending.
  int fd() const noexcept { return fd_; }
  // The next signal; 0 when there is none.
  int next() const noexcept;
  // The same, after waiting up to `wait` for a signal.
  int next(std::chrono::milliseconds wait) const noexcept;

 private:
  int fd_ = -1;
  sigset_t previous_{};
};

}  // namespace brigade::dist
