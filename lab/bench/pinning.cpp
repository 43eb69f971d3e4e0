// Chooses the core and configures the kernel's affinity and OpenMP.
#include <brigade/lab/bench/pinning.h>

#include <brigade/core/error.h>

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace brigade::lab::bench {

void pin_rank(int rank) {
  // The affinity of the process, since this thread may have been pinned already.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    throw DistError("cannot ask for the cores of this thread: {}", std::strerror(errno));
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[static_cast<size_t>(rank) % cores.size()], &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0)
    throw DistError("cannot pin rank {} to a core: {}", rank, std::strerror(errno));
#ifdef _OPENMP
  omp_set_num_threads(1);
#endif
}

}  // namespace brigade::lab::bench
