// The launchers of several nodes agree on which node starts which ranks.
#pragma once

#include <brigade/dist/rendezvous/launch/launcher.h>
#include <brigade/dist/rendezvous/store.h>

namespace brigade::dist {

// The place of this node's ranks in the job; nodes may start different numbers of ranks.
struct NodePlace {
  int first_rank = 0;
  int world_size = 0;
};

// Waits for the launchers of all nodes, at most options.meeting_timeout. Throws TimeoutError that names a node which
// did not join, and DistError when two nodes have the same number or they disagree on the number of nodes.
NodePlace meet_nodes(Store& store, const LaunchOptions& options);

}  // namespace brigade::dist
