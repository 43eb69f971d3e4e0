// Pins each rank of a benchmark to a core of its own.
#pragma once

namespace brigade::lab::bench {

// Pins the calling thread, and all threads that it starts from now on, to core number `rank` of those that this
// process may use, modulo their count. Kernels called from this thread run on one thread. Throws DistError when the
// system call fails.
void pin_rank(int rank);

}  // namespace brigade::lab::bench
