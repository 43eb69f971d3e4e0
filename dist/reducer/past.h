// What a reducer remembers of the backwards it has reduced.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// The latest backward whose buckets all came back. "Per parameter" is indexed by the reducer's parameters.
struct ReducedBackward {
  uint64_t number = 0;                // from 1; 0: there was none
  Place where;                        // the call
  bool sound = true;                  // false: all ranks raised an error at its end
  bool sent = true;                   // false: a communication hook let the gradients stay local
  bool whole = true;                  // false: a rank had no data left (join), failed, or was in another backward
  std::vector<uint8_t> used;          // per parameter: on this rank
  std::vector<int> users;             // per parameter: ranks that used it
  std::vector<uint32_t> buckets;      // per parameter
  std::vector<uint32_t> ready_order;  // positions of parameters, in the order of gradient readiness on this rank
};

struct Past {
  uint64_t round = 0;  // number of the latest backward, even if it was aborted
  uint64_t collectives = 0;
  std::vector<int> users;             // per parameter, of the latest sound one
  std::vector<uint32_t> ready_order;  // of the latest
  bool alike = false;                 // all ranks' gradients seemed the same
  int non_finite_in_a_row = 0;        // up to the latest, whose gradients were not finite
  ReducedBackward backward;
  std::vector<uint64_t> last_used;  // per parameter: number of the latest backward in which a rank used it; 0: none
};

}  // namespace brigade::dist
