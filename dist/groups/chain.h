// A reduction whose partial sums are handed from rank to rank, for a group whose ranks add the
// elements of others too: that of the hosts, each of which adds those of its own ranks.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

struct Chain {
  // The ranks in the order in which they add; every rank of the group at least once, none twice
  // in a row.
  std::vector<int> hops;
  // Called on the group's thread for every hop of this rank, piece by piece: adds what the hop has
  // for elements [begin, end) to `partial`, of which the first is element `begin` (null at hop 0),
  // and writes `result`, which may be `partial`.
  std::function<void(size_t hop, const void* partial, void* result, int64_t begin, int64_t end)> add;
};

class ChainGroup : public ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;
  // Every rank gets the last hop's result in `tensor`, which is not read. Recorded as all_reduce.
  virtual WorkPtr reduce_along(Chain chain, const Tensor& tensor, const CollectiveOptions& options) = 0;
};

// make_gloo_group, with the type.
std::shared_ptr<ChainGroup> make_gloo_chain(std::shared_ptr<Store> store, int rank, int size,
                                            std::chrono::milliseconds timeout, const std::string& prefix,
                                            const RankNames& names);

}  // namespace brigade::dist
