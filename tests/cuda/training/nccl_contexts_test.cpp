// No thread of a rank creates a context on a GPU other than the rank's: each rank would take several hundred MiB of the
// first GPU.
#include "device_collectives.h"
#include "on_gpus.h"

#include <brigade/dist/groups/threads/run_threads.h>

#include <thread>

#ifndef BRIGADE_REAL_CUDA  // a GPU does not report which threads have a context

#include <simt/runtime.h>

namespace brigade::test::nccl_contexts_test {

TEST_CASE("ranks on the second and third GPU leave the first alone, with the threads that watch their collectives") {
  constexpr std::chrono::milliseconds kWatched{200};  // ten times the polling interval of the watcher thread
  size_t before[simt::kDevices];
  for (int device = 0; device < simt::kDevices; ++device)
    before[device] = simt::threads_with_context(device);
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& control) {
    const Device device(kCUDA, 1 + control->rank());
    set_current_device(device);
    const dist::ProcessGroupPtr group = dist::make_nccl_group(control);
    const Tensor x = filled(1, {4}, kFloat32, device);
    for (int i = 0; i < 3; ++i) {
      group->all_reduce(x);  // only the watcher thread waits for it
      std::this_thread::sleep_for(kWatched);
    }
  });
  CHECK(simt::threads_with_context(0) == before[0]);
  // The rank's own thread and the watcher thread.
  CHECK(simt::threads_with_context(1) == before[1] + 2);
  CHECK(simt::threads_with_context(2) == before[2] + 2);
  CHECK(simt::threads_with_context(3) == before[3]);
}

}  // namespace brigade::test::nccl_contexts_test

#endif
