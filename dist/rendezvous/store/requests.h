// The requests of the TCP store. Each is one string (socket.h): "S key\0value", "G key",
// "A key\0amount", the key without the space. The answer to S is "ok", that to G "=value" or "-",
// that to A the sum; "!" and a reason is the answer to a request that cannot be fulfilled. What is
// no request ends the connection.
#pragma once

#include <brigade/dist/rendezvous/store.h>

#include <cstddef>

namespace brigade::dist {

constexpr size_t kMostKeyBytes = 64 << 10;
// A request holds a key beside its value.
constexpr size_t kMostRequestBytes = kMostStoreValueBytes + kMostKeyBytes + 64;

}  // namespace brigade::dist
