// What compilers know by different names: functions for CUDA kernels, and thread-local variables that every operation
// touches.
#pragma once

// --- Functions that CUDA kernels call as well as the CPU.

#ifdef __CUDACC__
#define BRIGADE_HOST_DEVICE __host__ __device__
#else
#define BRIGADE_HOST_DEVICE
#endif

// --- The attribute of small thread-local variables that every operation touches.

// Precedes the declaration of such a variable. Position-independent code finds a thread-local
// variable by a call, unless the variable is in the block that a thread starts with
// ("initial-exec"); a library that is loaded later finds little room there.
#ifdef __CUDACC__  // nvcc does not know the attribute; object files may find the same variable differently
#define BRIGADE_INITIAL_EXEC
#else
#define BRIGADE_INITIAL_EXEC [[gnu::tls_model("initial-exec")]]
#endif
