// Places segments in the shared file, caches freed ones, and maps the segments of peers on first use.
#include <brigade/dist/groups/shm/arena.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <utility>

#include <sys/resource.h>

namespace brigade::dist::shm {
namespace {

// The size of an address space; only written pages take memory.
constexpr uint64_t kRoom = uint64_t{1} << 47;

// A file larger than `ulimit -f` would raise SIGXFSZ.
uint64_t allowed_room() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kRoom;
  return std::min<uint64_t>(kRoom, limit.rlim_cur);
}

}  // namespace

Arena::Arena() : file_(allowed_room()) {}

Arena::~Arena() {
  for (const auto& [segment, held] : held_)
    own_->segments[segment].bytes.store(0, std::memory_order_release);
}

Arena::Piece Arena::allocate(size_t bytes) {
  constexpr size_t kPage = 4096;
  if (bytes > kRoom)
    throw OutOfMemoryError("cannot make {} bytes of shared memory: an address space holds less", bytes);
  bytes = std::max((bytes + kPage - 1) / kPage * kPage, kPage);
  std::lock_guard lock(mutex_);
  const auto kept = free_.find(bytes);
  if (kept != free_.end()) {
    const int32_t segment = kept->second;
    free_.erase(kept);
    return {held_.at(segment).mapping.data(), segment};
  }
  for (int32_t segment = 0; segment < kAllocations; ++segment) {
    if (held_.contains(segment)) continue;
    const uint64_t offset = free_stretch(bytes);
    Mapping mapping(file_, offset, bytes);
    Segment& entry = own_->segments[segment];
    entry.offset.store(offset, std::memory_order_relaxed);
    entry.generation.fetch_add(1, std::memory_order_relaxed);
    entry.bytes.store(bytes, std::memory_order_release);
    void* data = mapping.data();
    held_.emplace(segment, Held{offset, std::move(mapping)});
    next_ = offset + bytes;
    return {data, segment};
  }
  throw DistError("shm: all {} shared segments of this rank are in use", kAllocations);
}

// Takes the range after the last allocation, so that ranges are reused as late as possible; searches from the start
// when the end of the file is reached.
uint64_t Arena::free_stretch(size_t bytes) const {
  if (bytes <= file_.bytes() && next_ <= file_.bytes() - bytes) return next_;
  std::vector<std::pair<uint64_t, uint64_t>> used;
  for (const auto& [segment, held] : held_)
    used.emplace_back(held.offset, held.offset + held.mapping.bytes());
  used.emplace_back(file_.bytes(), file_.bytes());
  std::sort(used.begin(), used.end());
  uint64_t begin = 0;
  for (const auto& [offset, end] : used) {
    if (offset - begin >= bytes) return begin;
    begin = end;
  }
  throw OutOfMemoryError(
      "cannot make {} bytes of shared memory: this process may have {}, and no stretch of them is free", bytes,
      file_.bytes());
}

void Arena::free(int32_t segment) {
  std::lock_guard lock(mutex_);
  const auto held = held_.find(segment);
  const size_t bytes = held->second.mapping.bytes();
  if (free_.count(bytes) < kKept) {
    free_.emplace(bytes, segment);
    return;
  }
  own_->segments[segment].bytes.store(0, std::memory_order_release);
  const uint64_t offset = held->second.offset;
  held_.erase(held);
  file_.release(offset, bytes);
}

int32_t Arena::find(const void* address, uint64_t& offset) const {
  std::lock_guard lock(mutex_);
  for (const auto& [segment, held] : held_) {
    const char* base = static_cast<const char*>(held.mapping.data());
    const char* at = static_cast<const char*>(address);
    if (at >= base && at < base + held.mapping.bytes()) {
      offset = static_cast<uint64_t>(at - base);
      return segment;
    }
  }
  return -1;
}

void* PeerSegments::resolve(const RankBlock& peer, int rank, const DataPlace& place) {
  const auto key = std::make_pair(rank, place.allocation);
  auto found = known_.find(key);
  if (found == known_.end() || found->second.generation != place.generation) {
    // Drops a mapping whose segment the peer has freed since, then maps the new one.
    if (found != known_.end()) known_.erase(found);
    const Segment& entry = peer.segments[place.allocation];
    const uint64_t bytes = entry.bytes.load(std::memory_order_acquire);
    if (bytes == 0 || entry.generation.load(std::memory_order_relaxed) != place.generation)
      throw DistError("shm: a rank has given back the memory of a collective that it had posted");
    Mapping mapping(files_[static_cast<size_t>(rank)], entry.offset.load(std::memory_order_relaxed), bytes);
    found = known_.emplace(key, Known{place.generation, std::move(mapping)}).first;
  }
  return static_cast<char*>(found->second.mapping.data()) + place.offset;
}

}  // namespace brigade::dist::shm
