// The backward that a verdict is about, and the verdict fields that follow from it.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// Its number among the reduced backwards, the line of its call, and the number of ranks of the group.
struct Moment {
  uint64_t iteration = 0;
  SourceLocation where;
  int ranks = 1;

  std::vector<int> every_rank() const;
};
// A verdict at the line of that backward, without a message yet.
Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause);

}  // namespace brigade::dist
