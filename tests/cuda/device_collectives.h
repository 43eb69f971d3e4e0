// Checks of collectives on device tensors, for any backend.
#pragma once

#include "on_device.h"

#include <brigade/core/cuda/stream.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/kernels/elementwise.h>

#include <vector>

namespace brigade::test {

inline Tensor filled(double value, const Shape& sizes, DType dtype, Device device) {
  return full(sizes, value, {dtype, device});
}

inline void all_are(const Tensor& tensor, double value) {
  for (const double each : tensor.to_vector<double>())
    if (each != value) FAIL("found ", each, ", expected ", value, " in ", to_string(tensor));
}

// Sum, maximum, minimum, broadcast, all_gather and reduce_scatter.
inline void check_collectives(dist::ProcessGroup& group, Device device, const std::vector<DType>& dtypes) {
  const int rank = group.rank();
  const int ranks = group.size();
  for (const DType dtype : dtypes) {
    CAPTURE(name(dtype));
    const Tensor sum = filled(rank + 1, {1000}, dtype, device);
    group.all_reduce(sum)->wait();
    all_are(sum, ranks * (ranks + 1) / 2);
    const Tensor largest = filled(rank + 1, {7}, dtype, device);
    group.all_reduce(largest, {.op = dist::ReduceOp::Max})->wait();
    all_are(largest, ranks);
    const Tensor smallest = filled(rank + 1, {7}, dtype, device);
    group.all_reduce(smallest, {.op = dist::ReduceOp::Min})->wait();
    all_are(smallest, 1);
    const Tensor sent = filled(rank + 5, {33}, dtype, device);
    group.broadcast(sent, {.root = ranks - 1})->wait();
    all_are(sent, ranks + 4);
    const Tensor gathered = filled(0, {4 * ranks}, dtype, device);
    group.all_gather(gathered, filled(rank + 2, {4}, dtype, device))->wait();
    const Tensor part = filled(0, {4}, dtype, device);
    group.reduce_scatter(part, gathered)->wait();
    for (int r = 0; r < ranks; ++r)
      all_are(view::slice(gathered, 0, 4 * r, 4 * r + 4), r + 2);
    all_are(part, ranks * (rank + 2));
  }
}

// A collective waits for the work queued before it, and work queued after it sees the result.
inline void check_stream_order(dist::ProcessGroup& group, Device device) {
  const int ranks = group.size();
  for (int round = 0; round < 25; ++round) {
    const cuda::StreamGuard guard(cuda::Stream::create());
    const Tensor x = filled(1, {5000}, kFloat32, device);
    const Tensor y = filled(1, {300}, kFloat64, device);
    for (int i = 0; i < 5; ++i) {
      kernels::scale_inplace(x, 2);
      kernels::scale_inplace(y, 3);
    }
    const dist::WorkPtr first = group.all_reduce(x);
    const dist::WorkPtr second = group.all_reduce(y);
    if (round % 2) group.progress();
    // The waits come in another order than the calls, with a CPU collective in between.
    if (round % 3 == 0) {
      const Tensor on_cpu = full({3}, 1.0 * group.rank());
      group.all_reduce(on_cpu)->wait();
      all_are(on_cpu, ranks * (ranks - 1) / 2);
    }
    second->wait();
    const Tensor after = kernels::binary_scalar(y, 1, kernels::BinaryOp::Add, false);
    first->wait();
    kernels::scale_inplace(x, 0.5);
    all_are(after, ranks * 243 + 1);
    all_are(x, ranks * 16);
    CHECK(first->is_completed());
    CHECK(second->is_completed());
  }
}

}  // namespace brigade::test
