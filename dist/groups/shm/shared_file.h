// Memory without a name that processes share: an anonymous file (memfd), handed over as an open
// descriptor, so that nothing can be left behind and no mount limits the size.
#pragma once

#include <brigade/dist/rendezvous/store/socket.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace brigade::dist::shm {

// Its size is sealed: a peer's access can never lie behind the end. It takes memory only where it
// was written, so it may be far larger than the machine's.
class SharedFile {
 public:
  SharedFile() = default;
  // Makes one. Throws OutOfMemoryError.
  explicit SharedFile(uint64_t bytes);
  // One that a peer has handed over. Throws DistError that says why it is none: another user's,
  // another size, a file that no SharedFile has made. `whose` begins the error: "of rank 3".
  SharedFile(Socket descriptor, uint64_t bytes, std::string_view whose);

  int fd() const noexcept { return descriptor_.fd(); }
  uint64_t bytes() const noexcept { return bytes_; }
  // Gives the memory of this stretch back, whoever has it mapped. It reads as zeros afterwards.
  void release(uint64_t offset, uint64_t bytes) const noexcept;

 private:
  Socket descriptor_;
  uint64_t bytes_ = 0;
};

// A mapped stretch of one.
class Mapping {
 public:
  Mapping() = default;
  // `offset`: of whole pages. Throws OutOfMemoryError, and DistError for a stretch that lies outside.
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
