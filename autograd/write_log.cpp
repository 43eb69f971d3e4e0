// The thread's latest writes, searched for those that overlap a tensor's bytes.
#include <brigade/autograd/write_log.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/core/place.h>

#include <algorithm>
#include <deque>
#include <ranges>
#include <unordered_map>
#include <utility>

namespace brigade::autograd {
namespace {

struct Log {
  std::deque<Write> writes;  // oldest first, by number
  uint64_t count = 0;

  // The kept writes after number `number`.
  auto since(uint64_t number) const {
    const auto kept = static_cast<std::ptrdiff_t>(std::min<uint64_t>(count - number, writes.size()));
    return std::ranges::subrange(writes.end() - kept, writes.end());
  }
};
thread_local Log log;

// A tensor that is followed, and the latest write to it.
struct Followed {
  int64_t begin, end;
  size_t followers;
  std::string what;  // an optimizer's name where it was a step
  SourceLocation where;
  uint32_t version;
  bool by_step = false;
  std::vector<WriteByHand> by_hand = {};  // since the latest step
  bool only_replaced = true;
  bool in_forward = false;
  uint64_t number = 0;
  std::optional<uint32_t> copied_version = {};
};
// Followed tensors may outlive the thread's own objects: their optimizer may be a static object.
thread_local bool has_ended = false;
struct FollowedByStorage : std::unordered_map<const Storage*, std::vector<Followed>> {
  ~FollowedByStorage() { has_ended = true; }
};
thread_local FollowedByStorage followed;
thread_local uint64_t by_hand = 0;

// Bytes from the first to the last element.
std::pair<int64_t, int64_t> extent(const Tensor& tensor) {
  const auto size = static_cast<int64_t>(tensor.itemsize());
  int64_t last = 0;
  for (int d = 0; d < tensor.dim(); ++d)
    last += std::max<int64_t>(0, tensor.sizes()[d] - 1) * tensor.strides()[d];
  const int64_t begin = tensor.storage_offset() * size;
  return {begin, begin + (last + 1) * size};
}

// Calls f(entry) for the followed tensors of the same storage that share bytes with this one.
template <class F>
void for_each_followed(const Tensor& tensor, F&& f) {
  const auto found = followed.find(tensor.storage().get());
  if (found == followed.end()) return;
  const auto [begin, end] = extent(tensor);
  for (Followed& each : found->second) {
    if (each.begin < end && begin < each.end) f(each);
  }
}

// Adds a write to the latest ones.
void add(std::vector<WriteByHand>& writes, const char* op, SourceLocation where) {
  constexpr size_t kMost = 8;
  if (!writes.empty() && Place(writes.back().where) == Place(where)) writes.pop_back();
  if (writes.size() == kMost) writes.erase(writes.begin());
  writes.push_back({op, where});
}

// `op`: of a write by hand; null for a step.
void set_latest(const Tensor& tensor, std::string_view what, SourceLocation where, const char* op) {
  const bool replaces = (what == "copy_" || what == "load_state_dict") && detail::current_call == 0;
  for_each_followed(tensor, [&](Followed& each) {
    const uint32_t version = tensor.storage()->version();
    // A gap means a write that was not logged, such as one by the kernel of a batch norm.
    each.only_replaced = each.only_replaced && replaces && version - each.version <= 1;
    if (each.what != what) each.what = what;
    each.where = where;
    each.version = version;
    each.by_step = !op;
    if (op) {
      add(each.by_hand, op, where);
      each.in_forward = detail::current_call != 0;
      ++by_hand;
    } else {
      each.by_hand.clear();
    }
    each.number = by_hand;
  });
}

}  // namespace

void note_write(const Tensor& tensor, const char* op, SourceLocation where) {
  if (!tensor.storage()->is_watched() || tensor.numel() == 0) return;
  const auto [begin, end] = extent(tensor);
  if (log.writes.size() == kWritesKept) log.writes.pop_front();
  log.writes.push_back({tensor.storage().get(), begin, end, op, where, ++log.count});
  if (!followed.empty()) set_latest(tensor, op, where, op);
}

void note_copy(const Tensor& tensor) {
  if (!tensor.storage()->is_watched()) return;
  for_each_followed(tensor, [&](Followed& each) { each.copied_version = tensor.storage()->version(); });
}

uint64_t writes_so_far() noexcept { return log.count; }

std::vector<Write> writes_to(const Tensor& tensor, uint64_t since) {
  std::vector<Write> found;
  if (log.count <= since) return found;
  const auto [begin, end] = extent(tensor);
  for (const Write& write : log.since(since)) {
    if (write.storage == tensor.storage().get() && write.begin < end && begin < write.end) found.push_back(write);
  }
  return found;
}

uint64_t writes_to_memory_of(const Tensor& tensor, uint64_t since) {
  if (log.count <= since) return 0;
  const auto kept = log.since(since);
  return static_cast<uint64_t>(
      std::ranges::count(kept, static_cast<const Storage*>(tensor.storage().get()), &Write::storage));
}

FollowedWrites::FollowedWrites(std::span<const Tensor> tensors, const std::string& what, SourceLocation where) {
  for (const Tensor& tensor : tensors) {
    const Storage* const storage = tensor.storage().get();
    const auto [begin, end] = extent(tensor);
    tensor.storage()->watch();
    std::vector<Followed>& known = followed[storage];
    size_t followers = 1;
    // The same tensor, or memory that was at this address before.
    std::erase_if(known, [&, b = begin, e = end](const Followed& each) {
      if (each.begin == b && each.end == e) followers += each.followers;
      return each.begin < e && b < each.end;
    });
    known.push_back({begin, end, followers, what, where, storage->version()});
    keys_.push_back({storage, begin, end});
  }
}

FollowedWrites::~FollowedWrites() {
  if (has_ended) return;
  for (const Key& key : keys_) {
    const auto found = followed.find(key.storage);
    if (found == followed.end()) continue;
    std::erase_if(found->second, [&](Followed& each) {
      return each.begin == key.begin && each.end == key.end && --each.followers == 0;
    });
    if (found->second.empty()) followed.erase(found);
  }
}

uint64_t writes_by_hand() noexcept { return by_hand; }

bool follows_writes() noexcept { return !followed.empty(); }

void note_update(const Tensor& tensor, const std::string& optimizer, SourceLocation where) {
  set_latest(tensor, optimizer, where, nullptr);
}

std::optional<LastWrite> last_write(const Tensor& tensor) {
  std::optional<LastWrite> result;
  for_each_followed(tensor, [&](const Followed& each) {
    const bool is_latest = each.version == tensor.storage()->version();
    result = LastWrite{each.by_step ? "step of " + each.what : each.what,
                       each.where,
                       is_latest,
                       !each.by_hand.empty(),
                       each.by_hand,
                       each.only_replaced && is_latest,
                       each.in_forward,
                       each.number,
                       each.copied_version == tensor.storage()->version()};
  });
  return result;
}

}  // namespace brigade::autograd
