// The launchers of several nodes agree on who starts which ranks.
#pragma once

#include <brigade/dist/rendezvous/launch/launcher.h>
#include <brigade/dist/rendezvous/store.h>

namespace brigade::dist {

// Where this node's ranks stand in the whole: nodes may start different numbers of ranks.
struct NodePlace {
  int first_rank = 0;
  int world_size = 0;
};

// Waits for the launchers of all nodes, at most options.meeting_timeout. Throws TimeoutError that
// names a node which did not come, and DistError when two have the same number or they disagree on
// how many there are.
NodePlace meet_nodes(Store& store, const LaunchOptions& options);

}  // namespace brigade::dist
