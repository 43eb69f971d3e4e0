// A per-thread table of the leaves that were frozen while a listener observed them.
#include <brigade/autograd/detail/frozen_leaves.h>

#include <brigade/autograd/detail/stopped_gradients.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/place.h>

#include <unordered_map>
#include <vector>

namespace brigade::autograd::detail {

namespace {

constexpr size_t kKept = 1 << 16;  // a bound: entries of destroyed tensors are not removed

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
  if (frozen().size() >= kKept) frozen().clear();
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
