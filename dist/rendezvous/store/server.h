// Parts of the TCP store's server: requests, keys and values, connections; and the sum that both stores share.
#pragma once

#include <brigade/dist/rendezvous/store.h>
#include <brigade/dist/rendezvous/store/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace brigade::dist {

// --- The requests of the TCP store. Each is one string (socket.h): "S key\0value", "G key", "A key\0amount", the key
// without the space. The answer to S is "ok", that to G "=value" or "-", that to A the sum. A request that cannot be
// fulfilled is answered with "!" and a reason. An invalid request closes the connection.

constexpr size_t kMostKeyBytes = 64 << 10;
// A request holds a key and a value.
constexpr size_t kMostRequestBytes = kMostStoreValueBytes + kMostKeyBytes + 64;

// --- The keys and values of a TCP store, within limits.

class StoredValues {
 public:
  explicit StoredValues(const StoreLimits& limits) : limits_(limits), bytes_(std::make_shared<std::atomic<size_t>>()) {}

  // Throw DistError that names the exceeded limit when there is no room; the value is then unchanged.
  void set(const std::string& key, std::string value);
  int64_t add(const std::string& key, int64_t amount);
  // nullptr when the key is absent. A value lives, and counts against the limit, as long as any caller holds it, so
  // that a client that does not read its answers cannot make the store exceed its limit.
  std::shared_ptr<const std::string> find(const std::string& key) const;

 private:
  const StoreLimits limits_;
  std::shared_ptr<std::atomic<size_t>> bytes_;  // outlives the map: deleters of values decrement it
  std::map<std::string, std::shared_ptr<const std::string>> values_;
};

// --- The arithmetic of Store::add, shared by both stores.

// The integer in `text` (nullptr: the key is absent, which counts as 0) plus `amount`. Throws DistError that names the
// key and its value when the value, or the sum, is not a 64-bit integer.
int64_t added_to(const std::string& key, const std::string* text, int64_t amount);

// --- One connection of a TCP store's server, with its unhandled input and pending output. Nothing here blocks.

struct Connection {
  Socket socket;
  std::string came;
  // A client's greeting and the store's nonce, between the request for a proof and the proof.
  std::string greeting;
  std::string nonce;
  std::string who;  // the client that has greeted
  bool greeted = false;
  bool closing = false;                     // close once the answer is sent
  Deadline since = {};                      // when it was accepted
  Deadline moved = {};                      // when bytes were last transferred, in either direction
  std::string head;                         // of the answer
  std::shared_ptr<const std::string> body;  // the rest of the answer: a value, not copied
  size_t sent = 0;                          // bytes of head and body

  bool pending() const noexcept { return !head.empty(); }
  // Whether a request or an answer is incomplete.
  bool busy() const noexcept { return pending() || !came.empty(); }

  // Receives available data, once. False when the other side is gone.
  bool receive();
  // Answers `prefix` and `rest` as one string, and sends as much as the socket accepts. False as for receive().
  bool answer(std::string_view prefix, std::shared_ptr<const std::string> rest = nullptr);
  bool flush();
};

}  // namespace brigade::dist
