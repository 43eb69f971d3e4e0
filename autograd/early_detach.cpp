// A short per-thread list of the tensors detached while no tape was kept.
#include <brigade/autograd/detail/early_detach.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/node.h>

#include <algorithm>
#include <deque>
#include <iterator>

namespace brigade::autograd::detail {

namespace {

constexpr size_t kKept = 1024;
constexpr size_t kNodes = 16;  // limit of the search through a result's history

thread_local std::deque<EarlyDetach> kept;

void keep(EarlyDetach each) {
  if (kept.size() == kKept) kept.pop_front();
  kept.push_back(each);
}

}  // namespace

void note_early_detach(const Tensor& source, const Tensor& result, SourceLocation where) {
  const Node* const made_by = grad_fn(source);
  if (!made_by) return keep({source.id(), result.id(), where});
  std::vector<const Node*> nodes{made_by};
  for (size_t i = 0; i < std::min(nodes.size(), kNodes); ++i) {
    for (const Edge& edge : nodes[i]->edges) {
      if (edge.leaf) keep({edge.leaf->id, result.id(), where});
      if (edge.node) nodes.push_back(edge.node.get());
    }
  }
}

std::vector<EarlyDetach> early_detaches(uint64_t leaf) {
  std::vector<EarlyDetach> found;
  std::ranges::copy_if(kept, std::back_inserter(found), [&](const EarlyDetach& each) { return each.leaf == leaf; });
  return found;
}

}  // namespace brigade::autograd::detail
