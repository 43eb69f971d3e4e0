// One connection of a TCP store's server, with its unhandled input and pending output. Nothing here blocks.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <memory>
#include <string>
#include <string_view>

namespace brigade::dist {

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
