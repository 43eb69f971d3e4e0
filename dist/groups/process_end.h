// Ends of processes: an early exit of this one fails, and another one is watched.
#pragma once

#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/rendezvous/store/socket.h>

namespace brigade::dist {

// --- A process that exits before its ranks have finished must not report success: its launcher, a script or a
// scheduler would take the job for done.

// After this call, exit(0) on any thread ends the process with status 1 and a message on standard error when a backward
// runs on another thread, or when ranks that are threads have not ended (RanksAreThreads). Other statuses are kept.
void fail_early_exits() noexcept;

// RAII: marks that this process has ranks that are threads.
class RanksAreThreads {
 public:
  RanksAreThreads() noexcept;
  ~RanksAreThreads();
  RanksAreThreads(const RanksAreThreads&) = delete;
  RanksAreThreads& operator=(const RanksAreThreads&) = delete;
};

// --- Watches another process of this host: whether it has ended, and how.

class PeerProcess {
 public:
  // Watches no process.
  PeerProcess() = default;
  // `process` must be alive and on this host. Watches no process when the kernel does not allow it.
  explicit PeerProcess(int process) noexcept;

  // Running while the process runs, or when none is watched. After its end, as far as the kernel reveals it: Left ("its
  // process (12) ended with status 0"), or Died ("process 12 was ended by signal 9, Killed", "process 12 ended with
  // status 3", "process 12 has ended"). Cheap while the process runs.
  Departure end() const;

 private:
  int process_ = 0;
  Socket watched_;  // a pidfd
};

}  // namespace brigade::dist
