// Memory for tensors: the interface, and the caching allocator of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brigade {

// Memory and the function that frees it.
struct Allocation {
  void* data = nullptr;
  void* context = nullptr;
  void (*deleter)(void* data, void* context, size_t bytes) = nullptr;
};

struct AllocatorStats {
  uint64_t allocations = 0;   // requests served
  uint64_t system_calls = 0;  // of these, requests that went to the operating system
  uint64_t bytes_in_use = 0;  // handed out now
  uint64_t bytes_cached = 0;  // kept for reuse
  uint64_t peak_bytes_in_use = 0;
};

// 64-byte aligned memory from size classes (powers of two with three steps between), kept per
// thread for small blocks and in one shared pool for the rest, so that a training step that repeats
// its shapes causes no system call and no page fault. `bytes` may be 0. Throws OutOfMemoryError
// with the bytes requested and in use. Safe from any thread; another thread may free a block.
// BRIGADE_CPU_ALLOC=system turns the cache off (for leak checkers). With the cache on, glibc's
// malloc keeps up to 32 MiB of freed memory, for libraries that allocate there, unless
// MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or GLIBC_TUNABLES is set.
Allocation cpu_allocate(size_t bytes);
// Statistics of the process. Each other thread may hold up to 256 KiB that it has not counted in or out yet.
AllocatorStats cpu_allocator_stats();
// Gives cached blocks of the shared pool and of the calling thread back to the operating system.
void cpu_allocator_empty_cache();

}  // namespace brigade
