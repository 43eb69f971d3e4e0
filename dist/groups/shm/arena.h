// Memory that peers can map: anonymous files (memfd), found through /proc, so that nothing has a
// name that could be left behind and no mount limits the size.
#pragma once

#include <brigade/dist/groups/shm/control.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace brigade::dist::shm {

// A mapped anonymous file.
class Mapping {
 public:
  Mapping() = default;
  // Makes one. Throws OutOfMemoryError.
  explicit Mapping(size_t bytes);
  // Maps that of another process. Throws DistError that says why it cannot be opened, or why it is
  // none: another user's, another size, a file that no Mapping has made.
  Mapping(int pid, int fd, size_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  void* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }
  int fd() const noexcept { return fd_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  int fd_ = -1;
};

// This rank's segments. Given-back segments are kept and handed out again for the same size.
// Thread-safe.
class Arena {
 public:
  explicit Arena(RankBlock& own) : own_(own) {}
  ~Arena();

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
  static constexpr size_t kKept = 8;  // per size
  mutable std::mutex mutex_;
  RankBlock& own_;
  std::map<int32_t, Mapping> mappings_;
  std::multimap<size_t, int32_t> free_;
};

// The peers' segments, mapped when they are first needed.
class PeerSegments {
 public:
  void* resolve(const RankBlock& peer, int rank, const DataPlace& place);

 private:
  struct Known {
    uint32_t generation;
    Mapping mapping;
  };
  std::map<std::pair<int, int32_t>, Known> known_;
};

}  // namespace brigade::dist::shm
