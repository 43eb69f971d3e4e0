// The process between the launcher and its ranks. It is their parent and adopts whatever they leave
// behind (PR_SET_CHILD_SUBREAPER), so nothing of the job gets lost: daemons with sessions of their
// own become its children. It ends them at the end of the job, and everything when the launcher is
// killed (SIGKILL).
//
//   launcher -- keeper -- guardian -- ranks, and what they have left
//
// The keeper only waits: when the guardian itself is killed, it adopts and ends what was the
// guardian's. SIGINT, SIGTERM, SIGHUP and SIGQUIT to the guardian, which is $PPID for a rank, are
// passed on to the launcher.
#pragma once

#include <brigade/dist/rendezvous/launch/child.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace brigade::dist {

// What the guardian tells the launcher.
struct GuardianNews {
  enum Kind : int32_t {
    kCannotStart,  // rank, value: errno
    kEnded,        // rank, value: status as waitpid says it, time_ns
    kLeft,         // value: process id, name: a process that a rank left, and that is being ended
    kLivesOn,      // the same: one that did not end in time
    kNothingLeft,  // the answer to end_what_is_left: all that can be ended has ended
    kGone          // the guardian was killed
  };
  Kind kind = kGone;
  int32_t rank = -1;  // its place among the programs
  int32_t value = 0;
  int64_t time_ns = 0;  // on the steady clock
  char name[16] = {};
};

class Guardian {
 public:
  // Starts `programs`, each in a process group of its own. `folder` goes when the guardian ends,
  // whether the launcher ended well or was killed; "": none. Throws DistError when no process can
  // be started.
  explicit Guardian(const std::string& folder = "", std::vector<RankProgram> programs = {});
  // Ends (SIGKILL) what still runs, and waits for that.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Readable when there is news.
  int fd() const noexcept { return socket_; }
  // The next; nullopt when none has come yet.
  std::optional<GuardianNews> news() const noexcept;
  // To the process group of a rank, unless that has ended.
  void signal(int rank, int signal) const noexcept;
  // After the last rank: SIGTERM for all that is left, SIGKILL after `grace`, and kNothingLeft
  // when it is over. Once more, with 0: without further grace.
  void end_what_is_left(std::chrono::milliseconds grace) const noexcept;

 private:
  int socket_ = -1;  // closed by the kernel when the launcher ends in any way
  pid_t keeper_ = -1;
};

// A new folder that its owner alone may use, for a guardian to remove: NAME-XXXXXX in the folder for
// temporary files, or where that is missing or cannot be written to in /tmp, /var/tmp, /dev/shm or the
// working folder. "" where no folder can be made anywhere; errno says why the first could not.
std::string make_guarded_folder(const std::string& name);

}  // namespace brigade::dist
