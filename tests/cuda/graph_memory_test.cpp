// The memory of CUDA graphs: its owner, and when it is released.
#include "device_memory.h"

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/graph.h>

#include <stdexcept>
#if __has_include(<simt/runtime.h>)
#include <simt/runtime.h>
#endif

namespace brigade::test::graph_memory_test {
using kernels::BinaryOp;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Device objects that are not yet destroyed; counted in the emulation only.
size_t live_objects() {
#if __has_include(<simt/runtime.h>)
  return simt::live_objects();
#else
  return 0;
#endif
}

}  // namespace

TEST_CASE("memory of a capture is reused inside of it, by nobody else while the graph lives, and then given back") {
  start_afresh();
  const cuda::Stream side = cuda::Stream::create();
  const Tensor source = filled(1000, 1);
  Tensor kept, whole;
  const auto graph = std::make_unique<cuda::Graph>();
  std::vector<const void*> taken;
  const uint64_t reserved = cuda::allocator_stats(0).bytes_reserved;
  {
    const cuda::StreamGuard guard(side);
    graph->capture_begin();
    for (int i = 0; i < 3; ++i) {
      const Tensor x = kernels::unary(source, kernels::UnaryOp::Exp);
      taken.push_back(x.raw_data());
    }
    taken.push_back(empty({3 << 20}, {kFloat32, kDevice}).raw_data());
    whole = empty({3 << 20}, {kFloat32, kDevice});
    CHECK(whole.raw_data() == taken.back());
    kept = kernels::binary_scalar(source, 4, BinaryOp::Add, false);
    graph->capture_end();
    CHECK(taken[1] == taken[0]);
    CHECK(taken[2] == taken[0]);
    // Neither the capture stream nor any other stream gets memory of the graph.
    cuda::empty_cache();
    std::vector<Tensor> others;
    for (int i = 0; i < 5; ++i) {
      others.push_back(empty({1000}, {kFloat32, kDevice}));
      others.push_back(empty({3 << 20}, {kFloat32, kDevice}));
      for (const void* address : taken) {
        CHECK(others[others.size() - 2].raw_data() != address);
        CHECK(others.back().raw_data() != address);
      }
    }
    CHECK(graph->pool() != 0);
    CHECK(cuda::allocator_stats(0).graph_pools == 1);
    CHECK(cuda::allocator_stats(0).graph_bytes_reserved == 14 * kMiB);
    const std::string summary = cuda::memory_summary(0);
    CHECK_MESSAGE(summary.find("CUDA graphs keep 14.0 MiB in 1 pool (12.0 MiB in use)") != std::string::npos, summary);
  }
  graph->replay();
  CHECK(values(kept) == std::vector<float>(1000, 5));
  graph->reset();
  CHECK(graph->pool() == 0);
  // Memory still referenced stays valid, as ordinary memory.
  CHECK(values(kept) == std::vector<float>(1000, 5));
  cuda::synchronize();
  cuda::empty_cache();
  CHECK(cuda::allocator_stats(0).graph_pools == 0);
  CHECK(cuda::allocator_stats(0).graph_bytes_reserved == 0);
  CHECK(cuda::allocator_stats(0).bytes_reserved == reserved + 14 * kMiB);
  kept = Tensor();
  {
    const cuda::StreamGuard guard(side);
    const Tensor x = empty({1000}, {kFloat32, kDevice});
    CHECK(cuda::allocator_stats(0).bytes_reserved == reserved + 14 * kMiB);
  }
  whole = Tensor();
  cuda::empty_cache();
  CHECK(cuda::allocator_stats(0).bytes_reserved == reserved);
}

TEST_CASE("a graph that goes, whether or not its capture came to its end, leaves nothing behind") {
  start_afresh();
  const Tensor x = filled(1000, 1);
  const auto cycle = [&] {
    cuda::Graph graph;
    graph.capture([&] {
      const Tensor noise = empty({1000}, {kFloat32, kDevice});
      kernels::fill_uniform(noise, default_generator().reserve(1000), 0, 1);
      kernels::add_inplace(x, noise, 1);
    });
    graph.replay();
    graph.replay();
    cuda::Graph failed;
    const auto fail = [&] {
      kernels::unary(x, kernels::UnaryOp::Exp);
      throw std::runtime_error("no such file");
    };
    CHECK_THROWS_AS(failed.capture(fail), std::runtime_error);
  };
  cycle();
  const auto stats = cuda::allocator_stats(0);
  const size_t objects = live_objects();
  cycle();
  CHECK(cuda::allocator_stats(0).bytes_reserved == stats.bytes_reserved);
  CHECK(cuda::allocator_stats(0).blocks.bytes_in_use == stats.blocks.bytes_in_use);
  CHECK(cuda::allocator_stats(0).graph_pools == 0);
  CHECK(live_objects() == objects);
}

TEST_CASE("two graphs that share a pool share memory, which lives as long as either") {
  start_afresh();
  const Tensor x = on_device(numbers({50000}, kFloat32)), result = filled(50000, 0);
  const Tensor expected = kernels::unary(kernels::unary(on_cpu(x), kernels::UnaryOp::Abs), kernels::UnaryOp::Sqrt);
  auto first = std::make_unique<cuda::Graph>();
  auto second = std::make_unique<cuda::Graph>();
  Tensor between;
  first->capture([&] {
    const Tensor scratch = kernels::unary(x, kernels::UnaryOp::Neg);
    between = kernels::unary(scratch, kernels::UnaryOp::Abs);
  });
  const uint64_t reserved = cuda::allocator_stats(0).bytes_reserved;
  second->capture(
      [&] {
        const Tensor scratch = kernels::unary(between, kernels::UnaryOp::Sqrt);
        kernels::copy(result, scratch);
      },
      first->pool());
  CHECK(second->pool() == first->pool());
  CHECK(cuda::allocator_stats(0).bytes_reserved == reserved);
  CHECK(cuda::allocator_stats(0).graph_pools == 1);
  for (int i = 0; i < 3; ++i) {
    kernels::fill(result, 0);
    first->replay();
    second->replay();
    CHECK(difference(result, expected) == 0);
  }
  first.reset();
  CHECK(cuda::allocator_stats(0).bytes_reserved == reserved);
  kernels::fill(result, 0);
  second->replay();
  CHECK(difference(result, expected) == 0);
  between = Tensor();
  const cuda::MemPoolId pool = second->pool();
  second.reset();
  CHECK(cuda::allocator_stats(0).graph_pools == 0);
  CHECK(cuda::allocator_stats(0).bytes_reserved < reserved);
  // The id of a released pool may be used again.
  cuda::Graph third;
  third.capture([&] { kernels::copy(result, kernels::unary(x, kernels::UnaryOp::Neg)); }, pool);
  third.replay();
  CHECK(difference(result, kernels::unary(on_cpu(x), kernels::UnaryOp::Neg)) == 0);
}

TEST_CASE("a second stream joins the capture; blocks that it has used are kept until the end") {
  const Tensor x = on_device(numbers({5000}, kFloat32)), y = filled(5000, 0);
  const cuda::Stream side = cuda::Stream::create();
  const Tensor ordinary = filled(5000, 2);
  const uint64_t waiting = cuda::allocator_stats(0).waiting_blocks;
  cuda::Graph graph;
  graph.capture([&] {
    cuda::Event fork, join;
    Tensor a = kernels::unary(x, kernels::UnaryOp::Exp);
    const void* const address = a.raw_data();
    fork.record(cuda::current_stream());
    fork.block(side);
    Tensor b;
    {
      const cuda::StreamGuard guard(side);
      b = kernels::binary(a, ordinary, BinaryOp::Mul);
      cuda::record_stream(a.raw_data(), side);
    }
    a = Tensor();
    CHECK(cuda::allocator_stats(0).waiting_blocks == waiting + 1);
    // The next allocation must not take this block, since the side stream has not been waited for.
    const Tensor c = kernels::unary(x, kernels::UnaryOp::Neg);
    CHECK(c.raw_data() != address);
    kernels::fill(c, -1);
    join.record(side);
    join.block(cuda::current_stream());
    kernels::copy(y, b);
  });
  const Tensor expected =
      kernels::binary_scalar(kernels::unary(on_cpu(x), kernels::UnaryOp::Exp), 2, BinaryOp::Mul, false);
  for (int i = 0; i < 10; ++i) {
    kernels::fill(y, 0);
    graph.replay();
    CHECK(difference(y, expected) < tolerance(kFloat32));
  }
  for (int i = 0; i < 2; ++i) {  // the first pass determines how far the side stream is
    cuda::empty_cache();
    cuda::synchronize();
  }
  cuda::empty_cache();
  CHECK(cuda::allocator_stats(0).waiting_blocks == waiting);
}

TEST_CASE("ordinary memory that a capturing stream has used waits until the capture is over") {
  const cuda::Stream side = cuda::Stream::create();
  start_afresh();
  Tensor x = filled(1000, 3);
  const void* const address = x.raw_data();
  cuda::Graph graph;
  {
    const cuda::StreamGuard guard(side);
    graph.capture_begin();
    kernels::fill(x, 4);
    cuda::record_stream(x.raw_data(), side);
    x = Tensor();
  }
  CHECK(cuda::allocator_stats(0).waiting_blocks == 1);
  CHECK(filled(1000, 1).raw_data() != address);
  {
    const cuda::StreamGuard guard(side);
    graph.capture_end();
    side.synchronize();
  }
  CHECK(filled(1000, 1).raw_data() != nullptr);
  side.synchronize();
  CHECK(filled(1000, 1).raw_data() == address);
  CHECK(cuda::allocator_stats(0).waiting_blocks == 0);
}

TEST_CASE("page-locked memory that a captured copy reads is the graph's until it is gone") {
  cuda::pinned_empty_cache();
  const Tensor x = filled(256, 0);
  const Allocation staged = cuda::pinned_allocate(1024);
  auto* const numbers = static_cast<float*>(staged.data);
  auto graph = std::make_unique<cuda::Graph>();
  graph->capture([&] {
    const cuda::Stream stream = cuda::current_stream();
    cuda::check(cudaMemcpyAsync(x.raw_data(), numbers, 1024, cudaMemcpyHostToDevice, stream.get()), "cudaMemcpyAsync");
    cuda::record_pinned(numbers, stream);
    const Allocation first = cuda::pinned_allocate(1 << 20);  // allocating from the system is allowed, too
    first.deleter(first.data, first.context, 1 << 20);
  });
  staged.deleter(staged.data, staged.context, 1024);
  for (const float value : {3.0f, 4.0f}) {
    std::fill(numbers, numbers + 256, value);
    graph->replay();
    CHECK(values(x) == std::vector<float>(256, value));
    const Allocation other = cuda::pinned_allocate(1024);
    CHECK(other.data != staged.data);
    other.deleter(other.data, other.context, 1024);
  }
  cuda::pinned_empty_cache();
  CHECK(cuda::pinned_allocator_stats().bytes_cached == 1024);
  graph.reset();
  const Allocation again = cuda::pinned_allocate(1024);
  CHECK(again.data == staged.data);
  again.deleter(again.data, again.context, 1024);
}

TEST_CASE("memory that runs out inside of a capture says what to do, and the graph can be captured later") {
  start_afresh();
  const size_t third = cuda::properties(0).total_memory / 3 / kMiB * kMiB;
  const auto large = [&] { return empty({static_cast<int64_t>(third)}, {kUInt8, kDevice}); };
  { const Tensor a = large(), b = large(); }  // cached
  cuda::Graph graph;
  const auto step = [&] { const Tensor a = large(), b = large(); };
  CHECK_THROWS_WITH_AS(graph.capture(step), doctest::Contains("call empty_cache() before the capture"),
                       OutOfMemoryError);
  cuda::empty_cache();
  graph.capture(step);
  graph.reset();
  CHECK(cuda::allocator_stats(0).bytes_reserved == 0);
}

}  // namespace brigade::test::graph_memory_test
