// Devices, streams, events and errors of core/cuda.
#include "on_device.h"

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/device_runtime.h>

#include <cstring>
#include <thread>

namespace brigade::test::streams_test {

TEST_CASE("devices are counted, described and chosen for a scope") {
  REQUIRE(cuda::device_count() >= 1);
  CHECK(cuda::why_not_available() == "");
  CHECK(cuda::properties(0).multiprocessors > 0);
  CHECK(cuda::properties(0).total_memory > 0);
  CHECK_THROWS_WITH_AS(cuda::properties(99), doctest::Contains("there is no cuda:99: the last is cuda:"), DeviceError);
  CHECK_THROWS_AS(cuda::set_device(-1), DeviceError);
  if (cuda::device_count() > 1) {
    {
      const cuda::DeviceGuard guard(1);
      CHECK(cuda::current_device() == 1);
    }
    CHECK(cuda::current_device() == 0);
    // A copy to another device and back, ordered with the work queued on both.
    const Tensor x = on_device(numbers({1000}, kFloat32));
    const Tensor there = empty({1000}, {kFloat32, Device(kCUDA, 1)});
    kernels::copy(there, x);
    kernels::scale_inplace(x, 0);
    CHECK(difference(there, numbers({1000}, kFloat32)) == 0);
  }
}

TEST_CASE("the current stream belongs to the thread and to the scope") {
  const cuda::Stream before = cuda::current_stream();
  CHECK(before == cuda::Stream::default_stream(0));
  const cuda::Stream side = cuda::Stream::create();
  {
    const cuda::StreamGuard guard(side);
    CHECK(cuda::current_stream() == side);
    std::thread([&] { CHECK(cuda::current_stream() == before); }).join();
    const cuda::StreamGuard inner(cuda::Stream::create(true));
    CHECK_FALSE(cuda::current_stream() == side);
  }
  CHECK(cuda::current_stream() == before);
}

TEST_CASE("an event orders two streams, and only where it blocks") {
  for (int round = 0; round < 20; ++round) {
    const cuda::Stream first = cuda::Stream::create();
    const cuda::Stream second = cuda::Stream::create();
    const Tensor x = on_device(zeros({4096}));
    const Tensor y = empty({4096}, {kFloat32, kDevice});
    cuda::Event start;
    start.record(cuda::current_stream());
    start.block(first);
    cuda::Event filled;
    {
      const cuda::StreamGuard guard(first);
      kernels::fill(x, 3);
      filled.record(first);
    }
    {
      const cuda::StreamGuard guard(second);
      filled.block(second);
      kernels::copy(y, x);
      second.synchronize();
    }
    CHECK(second.query());
    CHECK(filled.query());
    CHECK(on_cpu(y).to_vector<float>() == std::vector<float>(4096, 3));
  }
  cuda::Event never;
  CHECK(never.query());
  never.synchronize();
  never.block(cuda::current_stream());
  CHECK_THROWS_AS(never.elapsed_since(never), ValueError);
  cuda::Event a(true), b(true);
  a.record(cuda::current_stream());
  b.record(cuda::current_stream());
  b.synchronize();
  CHECK(b.elapsed_since(a) >= 0);
}

TEST_CASE("an error names the call, what CUDA says, and the kernel launched last") {
  kernels::fill(on_device(zeros({3})), 1);
  try {
    cuda::check(cudaErrorInvalidValue, "cudaSomething");
    FAIL("nothing was thrown");
  } catch (const cuda::CudaError& error) {
    const std::string text = error.what();
    CHECK(error.code() == cudaErrorInvalidValue);
    CHECK(text.find("cudaSomething failed: ") == 0);
    CHECK(text.find("cudaErrorInvalidValue") != std::string::npos);
    CHECK(text.find("the kernel launched last was fill at cuda/inplace.cu:") != std::string::npos);
  }
}

TEST_CASE("page-locked memory is kept for reuse, but not while a copy still reads it") {
  const cuda::Stream side = cuda::Stream::create();
  const Allocation first = cuda::pinned_allocate(1000);
  std::memset(first.data, 1, 1000);
  const Tensor x = empty({1000}, {kUInt8, kDevice});
  // The memory of x may still be written by work of its previous owner on its stream.
  cuda::Event free_to_use;
  free_to_use.record(cuda::current_stream());
  free_to_use.block(side);
  cuda::check(cudaMemcpyAsync(x.raw_data(), first.data, 1000, cudaMemcpyHostToDevice, side.get()), "cudaMemcpyAsync");
  cuda::record_pinned(first.data, side);
  first.deleter(first.data, first.context, 1000);
  const Allocation second = cuda::pinned_allocate(1000);
  if (second.data != first.data) side.synchronize();  // the copy had not run yet
  second.deleter(second.data, second.context, 1000);
  side.synchronize();
  const Allocation third = cuda::pinned_allocate(700);
  CHECK((third.data == first.data || third.data == second.data));
  third.deleter(third.data, third.context, 700);
  CHECK(on_cpu(x).to_vector<double>() == std::vector<double>(1000, 1));
  CHECK(cuda::pinned_allocator_stats().bytes_in_use == 0);
  cuda::pinned_empty_cache();
  CHECK(cuda::pinned_allocator_stats().bytes_cached == 0);
}

}  // namespace brigade::test::streams_test
