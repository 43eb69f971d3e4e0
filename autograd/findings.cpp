// The findings of a thread: detaches without a tape, and frozen leaves.
#include <brigade/autograd/detail/findings.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/node.h>
#include <brigade/core/place.h>
#include <brigade/core/tensor.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <unordered_map>
#include <vector>

namespace brigade::autograd::detail {

// --- A short per-thread list of the tensors detached while no tape was kept.

namespace {

constexpr size_t kKeptDetaches = 1024;
constexpr size_t kNodes = 16;  // limit of the search through a result's history

thread_local std::deque<EarlyDetach> kept;

void keep(EarlyDetach each) {
  if (kept.size() == kKeptDetaches) kept.pop_front();
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

// --- A per-thread table of the leaves that were frozen while a listener observed them.

namespace {

constexpr size_t kKeptLeaves = 1 << 16;  // a bound: entries of destroyed tensors are not removed

struct Entry {
  FrozenLeaf latest = {};
  bool is_frozen = false;
};
std::unordered_map<uint64_t, Entry>& frozen() {
  thread_local std::unordered_map<uint64_t, Entry> leaves;
  return leaves;
}

}  // namespace

void note_frozen(const Tensor& leaf, SourceLocation where) {
  const AutogradMeta* const known = meta(leaf);
  if (!known || known->observers.empty()) return;
  if (frozen().size() >= kKeptLeaves) frozen().clear();
  Entry& entry = frozen()[leaf.id()];
  if (Place(entry.latest.where) != Place(where)) entry.latest = {leaf.id(), where, stopped_gradients().backward};
  entry.is_frozen = true;
}

void note_thawed(const Tensor& leaf) noexcept {
  if (const auto found = frozen().find(leaf.id()); found != frozen().end()) found->second.is_frozen = false;
}

std::optional<FrozenLeaf> frozen_leaf(uint64_t leaf) {
  const auto found = frozen().find(leaf);
  return found == frozen().end() || !found->second.is_frozen ? std::nullopt : std::optional(found->second.latest);
}

std::vector<uint64_t>& leaves_of_refused_root() noexcept {
  thread_local std::vector<uint64_t> leaves;
  return leaves;
}

}  // namespace brigade::autograd::detail
