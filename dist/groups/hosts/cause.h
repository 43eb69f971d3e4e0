// Messages that the ranks of a hosts group exchange over the store when the group breaks: the reason, and before that
// which rank waits for which. From another host, a rank that waits for a peer on its own host just looks late. So a
// rank that is about to give up on others asks them first: a rank that waits inside its host then gives up at once, and
// reports which rank it waited for.
#pragma once

#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/rendezvous/store.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// The failure that a rank reports to the others: text and verdicts of its error.
struct Reason {
  int rank = 0;
  std::string text;
  std::vector<Verdict> verdicts;
};

// Nothing here throws: when the store is gone, calls have no effect and there are no answers.
class SharedCause {
 public:
  SharedCause(std::shared_ptr<Store> store, std::string key, int rank, std::chrono::milliseconds timeout);

  // Publishes `reason`; only the first one counts.
  void tell(const Reason& reason) const noexcept;
  // The reason why the group broke, if a rank publishes one within `time`.
  std::optional<Reason> told(std::chrono::milliseconds time) const noexcept;

  // Asks the ranks on which this rank is about to give up. The answer comes through told().
  void ask(std::span<const int> ranks) const noexcept;
  // Whether another rank has asked this one.
  bool asked() const noexcept;
  // How often a waiting rank must check asked(), and how long the answer may take.
  std::chrono::milliseconds time_to_ask() const noexcept;
  std::chrono::milliseconds time_to_answer() const noexcept;

 private:
  std::string question(int rank) const;

  std::shared_ptr<Store> store_;
  std::string key_;
  int rank_;
  std::chrono::milliseconds timeout_;
};

}  // namespace brigade::dist
