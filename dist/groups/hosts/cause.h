// What the ranks of a hosts group say to each other when it breaks, over the store: why, and before
// that who waits for whom. On another host one sees only that a rank does not come, not that it
// waits itself for a rank of its own host. So whoever is about to give up on ranks asks them first:
// one that waits inside its host gives up at once, and says for whom it waited.
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

// What a rank tells the others of its failure: the text and the verdicts of its error.
struct Reason {
  int rank = 0;
  std::string text;
  std::vector<Verdict> verdicts;
};

// A store that is gone is silent: nothing here throws.
class SharedCause {
 public:
  SharedCause(std::shared_ptr<Store> store, std::string key, int rank, std::chrono::milliseconds timeout);

  // The first reason counts.
  void tell(const Reason& reason) const noexcept;
  // Why the group broke, if a rank says so in time.
  std::optional<Reason> told(std::chrono::milliseconds time) const noexcept;

  // Asks ranks for whom this one has waited in vain. The answer comes by told().
  void ask(std::span<const int> ranks) const noexcept;
  // Whether another rank has asked this one.
  bool asked() const noexcept;
  // How often a rank that waits has to look whether it is asked, and how long the answer may take.
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
