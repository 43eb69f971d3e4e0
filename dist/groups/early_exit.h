// A process that exits before its ranks have finished must not report success: its launcher, a script or a scheduler
// would take the job for done.
#pragma once

namespace brigade::dist {

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

}  // namespace brigade::dist
