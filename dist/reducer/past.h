// What the ranks have told each other about a backward, and what a reducer remembers of those it has reduced.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace brigade::dist {

// Which backward: its number among the reduced ones, the line of its call, and the number of ranks of the group.
struct Moment {
  uint64_t iteration = 0;
  SourceLocation where;
  int ranks = 1;

  std::vector<int> every_rank() const {
    std::vector<int> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
};

// What the reduced payloads say about a backward as a whole.
struct Outcome {
  std::vector<int> users;  // per parameter: ranks that used it
  int present = 0;         // ranks whose backward reached a parameter
  int failed = 0;          // ranks whose backward failed
  int joined = 0;          // ranks that only send zeros
  int changed = 0;         // ranks whose graph changed (static_graph)
  bool same_round = true;
  bool rejected = false;  // an observer does not trust the gradients
};

// The latest backward whose buckets all came back. "Per parameter" is indexed by the reducer's parameters.
struct ReducedBackward {
  uint64_t number = 0;                // from 1; 0: there was none
  SourceLocation where;               // the call
  bool sound = true;                  // false: all ranks raised an error at its end
  bool sent = true;                   // false: a communication hook let the gradients stay local
  bool whole = true;                  // false: a rank had no data left (join), failed, or was in another backward
  std::vector<uint8_t> used;          // per parameter: on this rank
  std::vector<int> users;             // per parameter: ranks that used it
  std::vector<uint32_t> buckets;      // per parameter
  std::vector<uint32_t> ready_order;  // positions of parameters, in the order of gradient readiness on this rank
};

struct Past {
  uint64_t rounds = 0;                // backwards so far, the latest even if it was aborted
  uint64_t collectives = 0;           // launched for them; those of error reports are not counted
  std::vector<int> users;             // per parameter, of the latest sound one
  std::vector<uint32_t> ready_order;  // of the latest
  ReducedBackward backward;
  std::vector<uint64_t> last_used;  // per parameter: number of the latest backward in which a rank used it; 0: none
};

}  // namespace brigade::dist
