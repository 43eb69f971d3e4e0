// Memory for the small objects that come and go with every operation (tensors, storages, nodes):
// free lists per thread and size, in steps of 64 bytes, so that a step that repeats itself
// allocates nothing from the system.
#pragma once

#include <brigade/core/compiler.h>

#include <cstddef>
#include <cstdint>

namespace brigade::detail {

// A block of at least `bytes`, 64-byte aligned.
void* block_from_system(size_t bytes);
void block_to_system(void* block) noexcept;
// Makes the calling thread give its blocks back when it ends.
void keep_blocks_until_thread_ends() noexcept;

inline constexpr size_t kBlockStep = 64;
inline constexpr size_t kBlockClasses = 16;
inline constexpr uint32_t kBlocksKept = 16384;  // per thread and size

struct FreeBlock {
  FreeBlock* next;
};
struct BlockLists {
  FreeBlock* first[kBlockClasses];
  uint32_t count[kBlockClasses];
  bool kept_until_end;
  bool gone;
};
BRIGADE_INITIAL_EXEC inline constinit thread_local BlockLists block_lists{};

// Memory checkers need to see every object.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPooling = false;
#else
inline constexpr bool kPooling = true;
#endif

inline void* allocate_block(size_t bytes) {
  const size_t index = (bytes - 1) / kBlockStep;
  if (kPooling && index < kBlockClasses) {
    BlockLists& lists = block_lists;
    if (FreeBlock* const block = lists.first[index]) {
      lists.first[index] = block->next;
      --lists.count[index];
      return block;
    }
  }
  return block_from_system((index + 1) * kBlockStep);
}

inline void free_block(void* block, size_t bytes) noexcept {
  const size_t index = (bytes - 1) / kBlockStep;
  BlockLists& lists = block_lists;
  if (!kPooling || index >= kBlockClasses || lists.count[index] == kBlocksKept || lists.gone) {
    block_to_system(block);
    return;
  }
  if (!lists.kept_until_end) [[unlikely]]
    keep_blocks_until_thread_ends();
  auto* const freed = static_cast<FreeBlock*>(block);
  freed->next = lists.first[index];
  lists.first[index] = freed;
  ++lists.count[index];
}

// Base of classes whose objects live in such blocks. The destructor of a class that others derive
// from must be virtual.
struct Pooled {
  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* block, size_t bytes) noexcept { free_block(block, bytes); }
};

}  // namespace brigade::detail
