// What stays of the backwards that a reducer has reduced, for those who ask later.
#pragma once

#include <brigade/core/place.h>
#include <brigade/dist/reducer/use_history.h>

#include <cstdint>
#include <vector>

namespace brigade::dist {

// The latest one whose buckets all came back. "Per parameter" counts those of the reducer.
struct ReducedBackward {
  uint64_t number = 0;                  // from 1; 0: there was none
  Place where;                          // of its call
  bool sound = true;                    // false: all ranks have raised an error at its end
  bool sent = true;                     // false: a communication hook let the gradients stay local
  std::vector<double> hook_probes;      // Round::hook_probes()
  bool whole = true;                    // false: a rank had no data left (join), failed, or was in another backward
  std::vector<uint8_t> used;            // per parameter: on this rank
  std::vector<int> users;               // per parameter: ranks that used it
  std::vector<uint32_t> buckets;        // per parameter
  std::vector<uint32_t> ready_order;    // positions of parameters, as their gradients became ready on this rank
  std::vector<std::vector<bool>> told;  // by rank and parameter: it was used. Only where the ranks exchanged it
};

struct Past {
  uint64_t round = 0;  // the number of the latest, also of one that was broken off
  uint64_t collectives = 0;
  std::vector<int> users;             // of the latest sound one, per parameter
  std::vector<uint32_t> ready_order;  // of the latest
  bool alike = false;                 // all ranks' gradients seemed the same
  ReducedBackward backward;
  std::vector<UseHistory> used_here;  // per parameter
  std::vector<uint64_t> last_used;    // per parameter: number of the latest in which a rank used it; 0: none
};

}  // namespace brigade::dist
