// A rank's memory that its peers can access: ranges (segments) of one shared file, which the ranks hand each other once
// (handover.h). After that a peer maps a segment on first use, without any message.
#pragma once

#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/groups/shm/shared_file.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace brigade::dist::shm {

// This rank's segments. Freed segments are cached and reused for the same size. Thread-safe.
class Arena {
 public:
  // Throws OutOfMemoryError.
  Arena();
  ~Arena();
  // The file that the peers map.
  const SharedFile& file() const noexcept { return file_; }
  // Sets the block in which the peers find the list of segments. Call it before the first allocation.
  void announce_in(RankBlock& own) noexcept { own_ = &own; }

  struct Piece {
    void* data;
    int32_t segment;
  };
  // Throws OutOfMemoryError, or DistError when all segments are in use.
  Piece allocate(size_t bytes);
  void free(int32_t segment);
  // The segment that holds `address`; -1 when none does.
  int32_t find(const void* address, uint64_t& offset) const;

 private:
  static constexpr size_t kKept = 8;  // cached segments per size
  struct Held {
    uint64_t offset;  // in the file
    Mapping mapping;
  };
  uint64_t free_stretch(size_t bytes) const;

  mutable std::mutex mutex_;
  SharedFile file_;
  RankBlock* own_ = nullptr;
  std::map<int32_t, Held> held_;
  std::multimap<size_t, int32_t> free_;
  uint64_t next_ = 0;  // where to look first for a free range
};

// The peers' segments, mapped on first use.
class PeerSegments {
 public:
  // `files`: indexed by rank; this rank's own entry is not used.
  explicit PeerSegments(std::vector<SharedFile> files) : files_(std::move(files)) {}
  // Throws DistError for a segment that its rank has freed.
  void* resolve(const RankBlock& peer, int rank, const DataPlace& place);

 private:
  struct Known {
    uint32_t generation;
    Mapping mapping;
  };
  std::vector<SharedFile> files_;
  std::map<std::pair<int, int32_t>, Known> known_;
};

}  // namespace brigade::dist::shm
