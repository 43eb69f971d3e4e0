// The kernel attributes set by cudaFuncSetAttribute.
#pragma once

#include <cstddef>

namespace simt::detail {

// The kernel's dynamic shared memory limit in bytes on the current device; 48 KiB unless it was raised there.
size_t dynamic_shared_limit(const void* kernel);

}  // namespace simt::detail
