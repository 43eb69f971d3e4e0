// Collectives on device tensors over a group that reduces in host memory.
#include "device_collectives.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/elementwise.h>

#include <thread>
#include <vector>

#ifndef BRIGADE_REAL_CUDA
#include <simt/runtime.h>
#endif

namespace brigade::test::staging_test {
namespace {

Device device_of(int rank) { return choose_device("cuda", rank); }

}  // namespace

TEST_CASE("every collective reduces, sends and gathers what the device holds") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    dist::run_threads(ranks, [&](const dist::ProcessGroupPtr& group) {
      const int rank = group->rank();
      const Device device = device_of(rank);
      check_collectives(*group, device, {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64});
      const Tensor mean = filled(rank, {3}, kFloat32, device);
      group->all_reduce(mean, {.op = dist::ReduceOp::Avg})->wait();
      all_are(mean, (ranks - 1) / 2.0);
      CHECK_THROWS_AS(group->all_gather(filled(0, {4 * ranks}, kFloat32, device), full({4}, 1.0)), DeviceError);
      CHECK(group->allocate(5, kFloat32, device).device() == device);
      CHECK(group->allocate(5, kFloat32).device() == Device());
    });
  }
}

TEST_CASE("a collective follows what is queued before it, and what is queued after it sees the result") {
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    const Device device = device_of(group->rank());
    set_current_device(device);
    check_stream_order(*group, device);
  });
}

TEST_CASE("errors of the group come out of the wait, and nothing hangs") {
  // Ranks that call different collectives.
  CHECK_THROWS_AS(dist::run_threads(2,
                                    [](const dist::ProcessGroupPtr& group) {
                                      const Device device = device_of(group->rank());
                                      const int64_t numel = group->rank() == 0 ? 10 : 20;
                                      group->all_reduce(filled(1, {numel}, kFloat32, device))->wait();
                                    }),
                  DistError);
  // A rank that never calls the collective.
  try {
    dist::run_threads(
        2,
        [](const dist::ProcessGroupPtr& group) {
          if (group->rank() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(900));
            return;
          }
          const dist::WorkPtr work =
              group->all_reduce(filled(1, {10}, kFloat32, device_of(0)), {.description = "late"});
          CHECK_THROWS_AS(work->wait(std::chrono::milliseconds(300)), TimeoutError);
          CHECK(work->is_completed());
          CHECK_THROWS_AS(work->wait(), TimeoutError);  // the same error again
        },
        std::chrono::milliseconds(5000));
  } catch (const DistError&) {
    // The group's error when its ranks leave.
  }
  // Works that are never waited for.
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    const Device device = device_of(group->rank());
    for (int i = 0; i < 3; ++i)
      group->all_reduce(filled(1, {100}, kFloat32, device));
  });
}

TEST_CASE("memory of a tensor whose work nobody waits for is not handed out while it is copied") {
  for (int round = 0; round < 20; ++round) {
    dist::run_threads(1, [](const dist::ProcessGroupPtr& group) {
      const Device device = device_of(0);
      set_current_device(device);
      device_runtime(device).synchronize(device.index);
      cuda::empty_cache();
      [[maybe_unused]] const void* address = nullptr;  // not checked on real GPUs
      {
        const Tensor x = filled(1, {1000}, kFloat32, device);
        address = x.raw_data();
        group->all_reduce(x);
      }
      // Polls until the copy back is queued, as far as that is observable.
      for (int i = 0; i < 1000; ++i) {
        group->progress();
#ifndef BRIGADE_REAL_CUDA
        if (simt::queued_copies(address, 4000).writes > 0) break;
#endif
      }
#ifndef BRIGADE_REAL_CUDA
      REQUIRE(simt::queued_copies(address, 4000).writes == 1);
#endif
      std::vector<Tensor> others;
      for (int i = 0; i < 5; ++i) {
        others.push_back(empty({1000}, {kFloat32, device}));
#ifndef BRIGADE_REAL_CUDA
        CHECK(simt::queued_copies(others.back().raw_data(), 4000).writes == 0);
#endif
      }
      for (const Tensor& other : others)
        kernels::fill(other, -7);
      device_runtime(device).synchronize(device.index);
      for (const Tensor& other : others)
        all_are(other, -7);
    });
  }
}

}  // namespace brigade::test::staging_test
