// The guardian is the process between the launcher and its ranks. It is their parent and adopts the processes that they
// leave behind (PR_SET_CHILD_SUBREAPER), so no process of the job is lost: daemons with their own sessions become its
// children. It ends them at the end of the job, and ends everything when the launcher is killed (SIGKILL).
//
//   launcher -- keeper -- guardian -- ranks, and processes that they left behind
//
// The keeper only waits: when the guardian itself is killed, it adopts and ends the guardian's children. SIGINT,
// SIGTERM, SIGHUP and SIGQUIT to the guardian, which is $PPID for a rank, are forwarded to the launcher.
#pragma once

#include <brigade/dist/rendezvous/launch/child.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

namespace brigade::dist {

// A message from the guardian to the launcher.
struct GuardianNews {
  enum Kind : int32_t {
    kCannotStart,  // rank, value: errno
    kEnded,        // rank, value: status as returned by waitpid, time_ns
    kLeft,         // value: process id, name: a process that a rank left behind, and that is being ended
    kLivesOn,      // value, name: such a process that did not end in time
    kNothingLeft,  // the answer to end_what_is_left: every process that can be ended has ended
    kGone          // the guardian was killed
  };
  Kind kind = kGone;
  int32_t rank = -1;  // index into the programs
  int32_t value = 0;
  int64_t time_ns = 0;  // on the steady clock
  char name[16] = {};
};

class Guardian {
 public:
  // Starts `programs`, each in its own process group. `folder` is removed when the guardian ends, whether the launcher
  // exited or was killed; "": none. Throws DistError when no process can be started.
  explicit Guardian(const std::string& folder = "", std::vector<RankProgram> programs = {});
  // Ends (SIGKILL) all processes that still run, and waits for their end.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Readable when there is news.
  int fd() const noexcept { return socket_; }
  // The next message; nullopt when there is none yet.
  std::optional<GuardianNews> news() const noexcept;
  // Signals the process group of a rank, unless the rank has ended.
  void signal(int rank, int signal) const noexcept;
  // Call it after the last rank has ended: sends SIGTERM to all remaining processes, SIGKILL after `grace`, and answers
  // kNothingLeft when they have ended. A second call with 0 cuts the grace period short.
  void end_what_is_left(std::chrono::milliseconds grace) const noexcept;

 private:
  int socket_ = -1;  // closed by the kernel however the launcher ends
  pid_t keeper_ = -1;
};

// Makes a folder that only its owner may use, for a guardian to remove: NAME-XXXXXX in the folder for temporary files,
// or, when that is missing or not writable, in /tmp, /var/tmp, /dev/shm or the working folder. Returns "" when no
// folder can be made; errno is that of the first failure.
std::string make_guarded_folder(const std::string& name);

// --- The code of the keeper and the guardian (above), which are forks of a program with threads: system calls
// only, no allocation and no locks.

// A message from the launcher to the guardian.
struct GuardianOrder {
  int32_t signal = 0;  // for the process group of `rank`; 0: end all remaining processes
  int32_t rank = -1;
  int64_t grace_ms = 0;
};

struct GuardianTask {
  int socket;          // the guardian's end
  int launchers_end;   // the launcher's end
  pid_t launcher;      // receives the forwarded signals
  const char* folder;  // to remove at the end; "": none
  std::span<RankProgram> programs;
  std::span<pid_t> ranks;  // output: their process ids; 0: has ended
};

// Starts the guardian, waits for its end, ends the processes that it left, if any, and removes the folder.
[[noreturn]] void keep_guardian(const GuardianTask& task) noexcept;

}  // namespace brigade::dist
