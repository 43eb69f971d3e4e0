// Messages between processes of one host that carry open descriptors, and the kernel's word on who
// sends them: sockets with a name in the kernel (abstract AF_UNIX, SOCK_SEQPACKET), which leave
// nothing behind. Two network namespaces of a machine do not see each other's names.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

namespace brigade::dist::shm {

Socket listen_local(const std::string& name);
// Does not wait; an empty socket when nobody came (errno says why).
Socket accept_local(const Socket& listener);
// Waits while too many others do. `with` is who listens there in the errors: PeerError when nobody
// does, TimeoutError.
Socket connect_local(const std::string& name, Deadline deadline, const std::string& with);

struct Credentials {
  uid_t user;
  int process;
};
// Of the process that connected, or listened. A user that this user namespace does not know comes
// as the overflow user (65534).
Credentials peer_of(const Socket& connection);

struct LocalMessage {
  size_t bytes = 0;                 // 0: the other side is gone, or nothing has come
  bool cut = false;                 // it was longer, or brought more descriptors
  std::vector<Socket> descriptors;  // closed with the message
};
// Does not wait. All descriptors are closed on exec.
LocalMessage receive_local(const Socket& connection, void* data, size_t bytes, size_t descriptors);
// Throws TimeoutError, and PeerError when the other side is gone.
void send_local(const Socket& connection, const void* data, size_t bytes, const std::vector<int>& descriptors,
                Deadline deadline, const std::string& with);
// Until something has come. Throws TimeoutError: waited for `with` `what`.
void wait_local(const Socket& connection, Deadline deadline, const std::string& with, const char* what);

}  // namespace brigade::dist::shm
