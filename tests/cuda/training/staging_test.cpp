// Collectives on tensors of a device, over a group that reduces in host memory.
#include "on_device.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/elementwise.h>

#include <thread>

using namespace brigade;
using namespace brigade::test;

namespace {

Device device_of(int rank) { return choose_device("cuda", rank); }

Tensor filled(double value, const Shape& sizes, DType dtype, Device device) {
  return full(sizes, value, {dtype, device});
}

void all_are(const Tensor& tensor, double value) {
  for (const double each : tensor.to_vector<double>())
    if (each != value) FAIL("found ", each, ", expected ", value, " in ", to_string(tensor));
}

}  // namespace

TEST_CASE("every collective reduces, sends and gathers what the device holds") {
  for (const int ranks : {1, 2, 3}) {
    CAPTURE(ranks);
    dist::run_threads(ranks, [&](const dist::ProcessGroupPtr& group) {
      const int rank = group->rank();
      const Device device = device_of(rank);
      for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64}) {
        const Tensor sum = filled(rank + 1, {1000}, dtype, device);
        group->all_reduce(sum)->wait();
        all_are(sum, ranks * (ranks + 1) / 2);
        const Tensor largest = filled(rank + 1, {7}, dtype, device);
        group->all_reduce(largest, {.op = dist::ReduceOp::Max})->wait();
        all_are(largest, ranks);
        const Tensor sent = filled(rank + 5, {33}, dtype, device);
        group->broadcast(sent, {.root = ranks - 1})->wait();
        all_are(sent, ranks + 4);
        const Tensor gathered = filled(0, {4 * ranks}, dtype, device);
        group->all_gather(gathered, filled(rank + 2, {4}, dtype, device))->wait();
        const Tensor part = filled(0, {4}, dtype, device);
        group->reduce_scatter(part, gathered)->wait();
        for (int r = 0; r < ranks; ++r)
          all_are(view::slice(gathered, 0, 4 * r, 4 * r + 4), r + 2);
        all_are(part, ranks * (rank + 2));
      }
      const Tensor mean = filled(rank, {3}, kFloat32, device);
      group->all_reduce(mean, {.op = dist::ReduceOp::Avg})->wait();
      all_are(mean, (ranks - 1) / 2.0);
      CHECK_THROWS_AS(group->all_gather(filled(0, {4 * ranks}, kFloat32, device), full({4}, 1)), DeviceError);
      CHECK(group->allocate(5, kFloat32, device).device() == device);
      CHECK(group->allocate(5, kFloat32).device() == Device());
    });
  }
}

TEST_CASE("a collective follows what is queued before it, and what is queued after it sees the result") {
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    const Device device = device_of(group->rank());
    set_current_device(device);
    for (int round = 0; round < 25; ++round) {
      const cuda::StreamGuard guard(cuda::Stream::create());
      const Tensor x = filled(1, {5000}, kFloat32, device);
      const Tensor y = filled(1, {300}, kFloat64, device);
      for (int i = 0; i < 5; ++i) {
        kernels::scale_inplace(x, 2);
        kernels::scale_inplace(y, 3);
      }
      const dist::WorkPtr first = group->all_reduce(x);
      const dist::WorkPtr second = group->all_reduce(y);
      if (round % 2) group->progress();
      // Waited for in another order than they were called in; and a collective of the CPU comes between.
      if (round % 3 == 0) {
        const Tensor on_cpu = full({3}, group->rank());
        group->all_reduce(on_cpu)->wait();
        all_are(on_cpu, 1);
      }
      second->wait();
      const Tensor after = kernels::binary_scalar(y, 1, kernels::BinaryOp::Add, false);
      first->wait();
      kernels::scale_inplace(x, 0.5);
      all_are(after, 2 * 243 + 1);
      all_are(x, 32);
      CHECK(first->is_completed());
      CHECK(second->is_completed());
    }
  });
}

TEST_CASE("errors of the group come out of the wait, and nothing hangs") {
  // Ranks that disagree on the collective.
  CHECK_THROWS_AS(dist::run_threads(2,
                                    [](const dist::ProcessGroupPtr& group) {
                                      const Device device = device_of(group->rank());
                                      const int64_t numel = group->rank() == 0 ? 10 : 20;
                                      group->all_reduce(filled(1, {numel}, kFloat32, device))->wait();
                                    }),
                  DistError);
  // A rank that does not come.
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
    // What the group says when its ranks leave.
  }
  // Works that nobody waits for.
  dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
    const Device device = device_of(group->rank());
    for (int i = 0; i < 3; ++i)
      group->all_reduce(filled(1, {100}, kFloat32, device));
  });
}
