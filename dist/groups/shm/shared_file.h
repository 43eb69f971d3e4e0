// Anonymous shared memory: a memfd, handed over as an open descriptor, so that nothing is left behind and no mount
// limits the size.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace brigade::dist::shm {

// Its size is sealed, so accesses of a peer can never be past the end. Only written pages take memory, so it may be far
// larger than the machine's memory.
class SharedFile {
 public:
  SharedFile() = default;
  // Makes a new file. Throws OutOfMemoryError.
  explicit SharedFile(uint64_t bytes);
  // Wraps a file that a peer has handed over. Throws DistError with the reason when it is not valid: another user's
  // file, a different size, or not made by SharedFile. `whose` is part of the message: "of rank 3".
  SharedFile(Socket descriptor, uint64_t bytes, std::string_view whose);

  int fd() const noexcept { return descriptor_.fd(); }
  uint64_t bytes() const noexcept { return bytes_; }
  // Releases the memory of this range, even while it is mapped. It reads as zeros afterwards.
  void release(uint64_t offset, uint64_t bytes) const noexcept;

 private:
  Socket descriptor_;
  uint64_t bytes_ = 0;
};

// A mapped range of a SharedFile.
class Mapping {
 public:
  Mapping() = default;
  // `offset`: a multiple of the page size. Throws OutOfMemoryError, and DistError for a range outside the file.
  Mapping(const SharedFile& file, uint64_t offset, size_t bytes);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  void* data() const noexcept { return data_; }
  size_t bytes() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace brigade::dist::shm
