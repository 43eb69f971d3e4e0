// Vector types, aligned for a single device access, and the sizes of grids and blocks.
#pragma once

#include "host_defines.h"

#define SIMT_VECTORS_OF_4_BYTES(T, name) \
  struct alignas(8) name##2 {            \
    T x, y;                              \
  };                                     \
  struct name##3 {                       \
    T x, y, z;                           \
  };                                     \
  struct alignas(16) name##4 {           \
    T x, y, z, w;                        \
  };

SIMT_VECTORS_OF_4_BYTES(int, int)
SIMT_VECTORS_OF_4_BYTES(unsigned, uint)
SIMT_VECTORS_OF_4_BYTES(float, float)

#undef SIMT_VECTORS_OF_4_BYTES

struct alignas(16) double2 {
  double x, y;
};
struct alignas(16) longlong2 {
  long long x, y;
};

struct dim3 {
  unsigned x, y, z;

  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
