// The autocast that the forward of the latest backward began in: where ranks differ in it for long, they average gradients of
// another precision.
#pragma once

#include <brigade/dist/checks/before_backward.h>
#include <brigade/dist/diagnosis/kinds.h>

#include <cstdint>
#include <optional>
#include <span>

namespace brigade::dist {

class AutocastModes {
 public:
  // Before a forward of the wrapper that a backward may follow, after `backwards` of them.
  void look(uint64_t backwards);
  // What was seen before the latest of as many backwards, for the ranks to compare; 0 where nothing was.
  uint64_t digest(uint64_t backwards) const noexcept;
  AutocastOnRank seen(uint64_t backwards) const { return seen_.latest(backwards); }
  // The ranks have compared, after as many backwards. A verdict where they have differed in several backwards in a row: a
  // rank may take one batch in full precision, because the other overflows.
  std::optional<Verdict> compare(std::span<const StepOnRank> steps, uint64_t backwards);

 private:
  BeforeBackward<AutocastOnRank> seen_;
  uint64_t differed_at_ = 0;  // the latest backward in which they did
  int in_a_row_ = 0;
};

}  // namespace brigade::dist
