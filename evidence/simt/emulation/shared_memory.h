// The shared memory of one block.
#pragma once

#include <cstddef>
#include <vector>

namespace simt::detail {

class SharedMemory {
 public:
  // The limit of every device by default, and the limit after a kernel opts in (sm_90).
  static constexpr size_t kDefaultBytes = size_t{48} << 10;
  static constexpr size_t kMaximalBytes = size_t{227} << 10;

  ~SharedMemory();

  // Provides fresh memory for the next block.
  void begin_block(size_t dynamic_bytes);
  void end_block();

  // Under the thread sanitizer, the memory of all blocks lives until the launch ends: if reused, it would look shared.
  void end_launch();

  // The array of a site, created when the first thread of the block arrives. nullptr if the block's static arrays
  // exceed 48 KiB.
  void* array(const void* site, size_t bytes);
  void* dynamic() const { return dynamic_; }

 private:
  struct Array {
    const void* site;
    void* data;
  };

  std::vector<Array> arrays_;
  std::vector<void*> finished_;
  void* dynamic_ = nullptr;
  size_t static_bytes_ = 0;
};

}  // namespace simt::detail
