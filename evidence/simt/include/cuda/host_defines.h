// Keywords of the device language that a host compiler ignores. (simt/device.h defines threadIdx etc., __shared__, and
// __launch_bounds__.)
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
