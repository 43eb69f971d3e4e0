// A small process that outlives the launcher for a moment: when the launcher is killed (SIGKILL),
// it ends the process groups of the ranks and removes their folder. PR_SET_PDEATHSIG alone ends
// only what the launcher has started itself: behind `sh -c` the rank would live on.
#pragma once

#include <string>

#include <sys/types.h>

namespace brigade::dist {

class Guardian {
 public:
  // `folder` goes when the guardian ends, whether the launcher ended well or was killed; "": none.
  // Throws DistError when no process can be started.
  explicit Guardian(const std::string& folder = "");
  // Nothing is left to guard: the process ends.
  ~Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // In the child, after fork and before exec: its process group is guarded from now on. Makes
  // system calls only.
  void add_own_group() const noexcept;
  // In the launcher, before the group's leader is waited for: afterwards the number may be
  // another's.
  void remove(pid_t group) const noexcept;

 private:
  int socket_ = -1;  // closed by the kernel when the launcher ends in any way
  pid_t process_ = -1;
};

}  // namespace brigade::dist
