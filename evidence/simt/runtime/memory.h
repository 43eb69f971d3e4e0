// The addresses that the runtime has allocated.
#pragma once

#include <cstddef>

namespace simt::runtime {

enum class MemoryKind { Unregistered, Host, Device };

struct Memory {
  MemoryKind kind = MemoryKind::Unregistered;
  int device = 0;
  size_t bytes_left = 0;  // from the address to the end of its allocation
};

// The caller must hold the lock.
Memory find_memory(const void* address);

}  // namespace simt::runtime
