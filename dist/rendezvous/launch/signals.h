// Signals that end a job (SIGINT, SIGTERM, SIGHUP, SIGQUIT), read from a descriptor while it runs, so
// that they reach the ranks and not the launcher alone.
#pragma once

#include <chrono>
#include <csignal>

namespace brigade::dist {

class JobSignals {
 public:
  // Blocks them for this thread. Throws DistError when there is no descriptor.
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  // Readable when one has come.
  int fd() const noexcept { return fd_; }
  // The next; 0 when there is none.
  int next() const noexcept;
  // The same, after waiting for one.
  int next(std::chrono::milliseconds wait) const noexcept;

 private:
  int fd_ = -1;
  sigset_t previous_{};
};

}  // namespace brigade::dist
