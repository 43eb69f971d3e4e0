// Functions that CUDA kernels call as well as the CPU.
#pragma once

#ifdef __CUDACC__
#define BRIGADE_HOST_DEVICE __host__ __device__
#else
#define BRIGADE_HOST_DEVICE
#endif
