// The backward that a verdict is about, and what every verdict on it begins with.
#pragma once

#include <brigade/dist/errors/verdict.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// Its number among the reduced ones, the line of its call, and the ranks of the group.
struct Moment {
  uint64_t iteration = 0;
  SourceLocation where;
  int ranks = 1;

  std::vector<int> every_rank() const;
};
// A verdict at the line of that backward, with nothing said yet.
Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause);

}  // namespace brigade::dist
