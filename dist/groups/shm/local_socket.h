// Messages between processes of one host that carry open descriptors, with the sender's credentials from the kernel.
// They use abstract AF_UNIX sockets (SOCK_SEQPACKET), which leave no files behind. Different network namespaces of a
// machine do not see each other's names.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

namespace brigade::dist::shm {

Socket listen_local(const std::string& name);
// Does not block; returns an empty socket when there is no connection (see errno).
Socket accept_local(const Socket& listener);
// Waits while the listener's queue is full. `with` names the listener in errors: PeerError when no process listens,
// TimeoutError.
Socket connect_local(const std::string& name, Deadline deadline, const std::string& with);

struct Credentials {
  uid_t user;
  int process;
};
// Credentials of the process that connected, or listened. A user unknown in this user namespace appears as the overflow
// user (65534).
Credentials peer_of(const Socket& connection);

struct LocalMessage {
  size_t bytes = 0;                 // 0: the other side is gone, or nothing has arrived
  bool cut = false;                 // it was longer, or had more descriptors
  std::vector<Socket> descriptors;  // closed with the message
};
// Does not block. All descriptors are close-on-exec.
LocalMessage receive_local(const Socket& connection, void* data, size_t bytes, size_t descriptors);
// Throws TimeoutError, and PeerError when the other side is gone.
void send_local(const Socket& connection, const void* data, size_t bytes, const std::vector<int>& descriptors,
                Deadline deadline, const std::string& with);
// Waits until something has arrived. Throws TimeoutError: "timed out waiting for `with` `what`".
void wait_local(const Socket& connection, Deadline deadline, const std::string& with, const char* what);

}  // namespace brigade::dist::shm
