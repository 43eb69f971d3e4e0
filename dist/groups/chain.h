// Chain reduction: partial sums travel from rank to rank. The hosts group uses it between hosts, where each rank also
// adds the elements of the other ranks on its host.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

struct Chain {
  // The ranks in the order in which they add. Every rank of the group appears at least once, and no rank twice in a
  // row.
  std::vector<int> hops;
  // Called on the group's thread for every hop of this rank, piece by piece: adds the hop's elements [begin, end) to
  // `partial`, whose first element is number `begin` (null at hop 0), and writes the sum to `result`, which may alias
  // `partial`.
  std::function<void(size_t hop, const void* partial, void* result, int64_t begin, int64_t end)> add;
};

class ChainGroup : public ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;
  // Every rank receives the last hop's result in `tensor`, whose previous values are ignored. Recorded as all_reduce.
  virtual WorkPtr reduce_along(Chain chain, const Tensor& tensor, const CollectiveOptions& options) = 0;
};

// Same as make_gloo_group, but returns the derived type.
std::shared_ptr<ChainGroup> make_gloo_chain(std::shared_ptr<Store> store, int rank, int size,
                                            std::chrono::milliseconds timeout, const std::string& prefix,
                                            const RankNames& names);

}  // namespace brigade::dist
