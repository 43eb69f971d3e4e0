// The code of the keeper and the guardian (guardian.h), which are forks of a program with threads: system calls only,
// no allocation and no locks.
#pragma once

#include <brigade/dist/rendezvous/launch/child.h>

#include <cstdint>
#include <span>

#include <sys/types.h>

namespace brigade::dist {

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
