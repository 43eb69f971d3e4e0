// Signals that end a job (SIGINT, SIGTERM, SIGHUP, SIGQUIT), read from a descriptor while the job runs, so that the
// launcher can forward them to the ranks.
#pragma once

#include <chrono>
#include <csignal>

namespace brigade::dist {

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
