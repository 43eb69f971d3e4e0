// The requests of the TCP store. Each is one string (socket.h): "S key\0value", "G key", "A key\0amount", the key
// without the space. The answer to S is "ok", that to G "=value" or "-", that to A the sum. A request that cannot be
// fulfilled is answered with "!" and a reason. An invalid request closes the connection.
#pragma once

#include <brigade/dist/rendezvous/store.h>

#include <cstddef>

namespace brigade::dist {

constexpr size_t kMostKeyBytes = 64 << 10;
// A request holds a key and a value.
constexpr size_t kMostRequestBytes = kMostStoreValueBytes + kMostKeyBytes + 64;

}  // namespace brigade::dist
