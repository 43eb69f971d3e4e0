// Watches another process of this host: whether it has ended, and how.
#pragma once

#include <brigade/dist/errors/departure.h>
#include <brigade/dist/rendezvous/store/socket.h>

namespace brigade::dist {

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
