// A core of its own for each rank of a benchmark.
#pragma once

namespace brigade::lab::bench {

// The calling thread, and those that it starts from now on, run on one core: number `rank` of those
// that this process may use, counted round where there are fewer. Kernels called from here take one
// thread. Throws DistError where the kernel refuses.
void pin_rank(int rank);

}  // namespace brigade::lab::bench
