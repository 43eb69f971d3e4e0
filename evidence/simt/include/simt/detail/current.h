// The kernel thread that this OS thread currently runs, and the calls into the scheduler.
#pragma once

#include <cuda_runtime_api.h>
#include <simt/detail/sanitizers.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace simt::detail {

using Location = std::source_location;

class BlockRunner;

struct Current {
  uint3 thread{};
  uint3 block{};
  dim3 block_size;
  dim3 grid_size;
  unsigned index = 0;  // of the thread in its block
  BlockRunner* runner = nullptr;
};

// Fibers never move to another OS thread, so a cached address of this variable stays valid.
inline constinit thread_local Current current{};

// threadIdx etc.
#if SIMT_TSAN
SIMT_UNSEEN_BY_TSAN inline uint3 thread_index() { return current.thread; }
SIMT_UNSEEN_BY_TSAN inline uint3 block_index() { return current.block; }
SIMT_UNSEEN_BY_TSAN inline dim3 block_size() { return current.block_size; }
SIMT_UNSEEN_BY_TSAN inline dim3 grid_size() { return current.grid_size; }
SIMT_UNSEEN_BY_TSAN inline unsigned linear_index() { return current.index; }
#else
inline const uint3& thread_index() { return current.thread; }
inline const uint3& block_index() { return current.block; }
inline const dim3& block_size() { return current.block_size; }
inline const dim3& grid_size() { return current.grid_size; }
inline unsigned linear_index() { return current.index; }
#endif
inline unsigned lane_index() { return linear_index() % 32; }

// Waits for all threads of the block; returns the number of threads whose predicate holds.
unsigned barrier(bool predicate, const Location& where);

enum class WarpOperation : uint8_t { Sync, Shuffle, Ballot };

// Waits for the lanes of the mask, which must call the same operation with the same mask. Returns the bits of lane
// `source` (Shuffle), or a mask of the lanes with nonzero bits (Ballot).
uint64_t warp(WarpOperation operation, unsigned mask, uint64_t bits, unsigned source, const Location& where);

// The block's array for a SIMT_SHARED; `site` is the address of a static object that identifies it.
void* shared_array(const void* site, size_t bytes, const char* name, const Location& where);
void* dynamic_shared();

void fence();

// Throws an Error that names the kernel, thread, block, and line.
[[noreturn]] void fail(const std::string& message, const Location& where);

}  // namespace simt::detail
