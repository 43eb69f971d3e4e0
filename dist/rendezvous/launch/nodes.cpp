// Each launcher puts its count of ranks into the store, and adds up the counts of all nodes.
#include <brigade/dist/rendezvous/launch/node_exits.h>

#include <fmt/format.h>

#include <cstdlib>

namespace brigade::dist {

NodePlace meet_nodes(Store& store, const LaunchOptions& options) {
  if (store.add(fmt::format("launch/node/{}", options.node_rank), 1) > 1)
    throw DistError("launch: two launchers have --node-rank {}; nodes are numbered 0 to {}", options.node_rank,
                    options.nodes - 1);
  // Value: "nodes ranks restarts".
  store.set(fmt::format("launch/ranks/{}", options.node_rank),
            fmt::format("{} {} {}", options.nodes, options.ranks, options.max_restarts));
  NodePlace place;
  for (int node = 0; node < options.nodes; ++node) {
    std::string said;
    try {
      said = store.get(fmt::format("launch/ranks/{}", node), options.meeting_timeout);
    } catch (const TimeoutError&) {
      throw TimeoutError(
          "launch: node {} waited {} ms for node {} of {}, which did not come; start it with --nnodes {} --node-rank "
          "{} and the same --master-addr and --master-port",
          options.node_rank, options.meeting_timeout.count(), node, options.nodes, options.nodes, node);
    }
    char* rest = nullptr;
    const long nodes = std::strtol(said.c_str(), &rest, 10);
    if (nodes != options.nodes)
      throw DistError("launch: --nnodes is {} on node {}, but {} on node {}", options.nodes, options.node_rank, nodes,
                      node);
    const int ranks = static_cast<int>(std::strtol(rest, &rest, 10));
    // Restarts apply to all nodes or to none.
    if (const int restarts = std::atoi(rest); restarts != options.max_restarts)
      throw DistError("launch: --max-restarts is {} on node {}, but {} on node {}; give all nodes the same",
                      options.max_restarts, options.node_rank, restarts, node);
    if (node < options.node_rank) place.first_rank += ranks;
    place.world_size += ranks;
  }
  return place;
}

}  // namespace brigade::dist
