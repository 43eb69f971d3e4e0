// One connection of a TCP store's server: what came and is not handled, and what is to go out.
// Nothing here waits.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <memory>
#include <string>
#include <string_view>

namespace brigade::dist {

struct Connection {
  Socket socket;
  std::string came;
  // A stranger's greeting and the store's nonce, from the question for a proof to the answer.
  std::string greeting;
  std::string nonce;
  std::string who;  // has greeted
  bool greeted = false;
  bool closing = false;                     // once the answer is sent
  Deadline since = {};                      // when it was accepted
  Deadline moved = {};                      // when bytes went last, in either direction
  std::string head;                         // of the answer
  std::shared_ptr<const std::string> body;  // the rest of it: a value, which is not copied
  size_t sent = 0;                          // of both

  bool pending() const noexcept { return !head.empty(); }
  // In the middle of a request or of an answer.
  bool busy() const noexcept { return pending() || !came.empty(); }

  // Takes what has come, some of it. False when the other side is gone.
  bool receive();
  // Answers `prefix` and `rest` as one string, and sends what the socket takes. False as above.
  bool answer(std::string_view prefix, std::shared_ptr<const std::string> rest = nullptr);
  bool flush();
};

}  // namespace brigade::dist
