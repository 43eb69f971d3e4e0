// The small variables of a thread that every operation touches.
#pragma once

// Before the declaration of one. Position-independent code finds a thread's variable by a call,
// unless it lies in the block that a thread starts with ("initial-exec"); a library that is loaded
// later finds little room there.
#ifdef __CUDACC__  // does not know it; how code finds a variable is its own affair
#define BRIGADE_INITIAL_EXEC
#else
#define BRIGADE_INITIAL_EXEC [[gnu::tls_model("initial-exec")]]
#endif
