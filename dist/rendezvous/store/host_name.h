// Addresses of a host by its name, in time: a name server that does not answer keeps getaddrinfo
// busy for minutes, and nothing can interrupt it.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <memory>
#include <string>

#include <netdb.h>

namespace brigade::dist {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
using Resolver = int (*)(const char*, const char*, const addrinfo*, addrinfo**);  // getaddrinfo

// `passive`: to listen there. An address in numbers is not asked for. Throws DistError when there is
// no such host, TimeoutError when that is not known until the deadline.
Addresses resolve(const std::string& host, int port, bool passive, Deadline deadline, Resolver resolver = &getaddrinfo);

}  // namespace brigade::dist
