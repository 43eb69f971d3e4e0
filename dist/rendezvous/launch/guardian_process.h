// What runs in the keeper and the guardian (guardian.h), which are forks of a program with threads:
// system calls only, nothing that allocates or locks.
#pragma once

#include <brigade/dist/rendezvous/launch/child.h>

#include <cstdint>
#include <span>

#include <sys/types.h>

namespace brigade::dist {

// What the launcher tells the guardian.
struct GuardianOrder {
  int32_t signal = 0;  // for the group of `rank`; 0: end what is left
  int32_t rank = -1;
  int64_t grace_ms = 0;
};

struct GuardianTask {
  int socket;          // the guardian's end
  int launchers_end;   // of the same
  pid_t launcher;      // for signals that are meant for it
  const char* folder;  // to remove at the end; "": none
  std::span<RankProgram> programs;
  std::span<pid_t> ranks;  // room for their process ids; 0: has ended
};

// Starts the guardian, waits for its end, ends what it may have left, removes the folder.
[[noreturn]] void keep_guardian(const GuardianTask& task) noexcept;

}  // namespace brigade::dist
