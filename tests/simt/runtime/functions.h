// What cudaFuncSetAttribute said about kernels.
#pragma once

#include <cstddef>

namespace simt::detail {

// Bytes of dynamic shared memory that the kernel may have on the current device; 48 KiB until it asked for more there.
size_t dynamic_shared_limit(const void* kernel);

}  // namespace simt::detail
