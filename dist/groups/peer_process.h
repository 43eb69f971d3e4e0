// A process of this host that a rank watches: whether it has ended, and how.
#pragma once

#include <brigade/dist/errors/departure.h>
#include <brigade/dist/rendezvous/store/socket.h>

namespace brigade::dist {

class PeerProcess {
 public:
  // Watches none.
  PeerProcess() = default;
  // Of this host, and alive; watches none where the kernel does not let it. Throws nothing.
  explicit PeerProcess(int process) noexcept;

  // Running while it does, or where none is watched. Then, as far as this process may know it: Left ("its process (12) ended
  // with status 0"), or Died ("process 12 was ended by signal 9, Killed", "process 12 ended with status 3", "process 12 has
  // ended"). Cheap while it runs.
  Departure end() const;

 private:
  int process_ = 0;
  Socket watched_;  // a pidfd
};

}  // namespace brigade::dist
