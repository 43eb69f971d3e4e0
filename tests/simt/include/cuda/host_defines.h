// The words of the device language that mean nothing to a host compiler. (threadIdx and its siblings, __shared__ and
// __launch_bounds__ are simt/device.h's.)
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
