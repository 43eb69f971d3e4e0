// Dispatch on element size, for kernels that move elements without computing.
#pragma once

#include <brigade/core/dtype.h>

namespace brigade::kernels {

// Calls body with an unsigned integer type as wide as an element of the dtype.
template <class Body>
decltype(auto) visit_bits(DType dtype, Body&& body) {
  switch (itemsize(dtype)) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    default: return body(uint64_t{});
  }
}

}  // namespace brigade::kernels
