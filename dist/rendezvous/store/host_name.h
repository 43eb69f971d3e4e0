// Resolves a host name with a deadline: if the name server does not answer, getaddrinfo blocks for minutes and cannot
// be interrupted.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <memory>
#include <string>

#include <netdb.h>

namespace brigade::dist {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
using Resolver = int (*)(const char*, const char*, const addrinfo*, addrinfo**);  // getaddrinfo

// `passive`: for listening. A numeric address needs no name server. Throws DistError when there is no such host,
// TimeoutError when the name server has not answered by the deadline.
Addresses resolve(const std::string& host, int port, bool passive, Deadline deadline, Resolver resolver = &getaddrinfo);

}  // namespace brigade::dist
