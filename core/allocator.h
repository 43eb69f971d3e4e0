// Memory for tensors: the interface, and the caching allocator of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brigade {

// Memory with the way to give it back.
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
// its shapes makes no system call and no page fault. `bytes` may be 0. Throws OutOfMemoryError with
// what was asked and what is in use. Safe from any thread; a block may be freed by another thread
// than the one that asked for it. BRIGADE_CPU_ALLOC=system turns the cache off (for leak checkers).
// With it glibc's malloc is told to keep up to 32 MiB of what is freed, for the libraries that take
// their room there, unless MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_ or GLIBC_TUNABLES is set.
Allocation cpu_allocate(size_t bytes);
// Of the process. Other threads may hold up to 256 KiB each that they have not counted in or out
// yet.
AllocatorStats cpu_allocator_stats();
// Gives cached blocks of the shared pool and of the calling thread back to the operating system.
void cpu_allocator_empty_cache();

}  // namespace brigade
