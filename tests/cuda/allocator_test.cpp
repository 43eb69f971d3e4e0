// The caching allocator of CUDA devices.
#include "device_memory.h"

#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/device.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>

#if __has_include(<simt/runtime.h>)
#include <simt/runtime.h>
#define BRIGADE_TEST_COUNTS_QUERIES
#endif

namespace brigade::test::allocator_test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

struct Held {
  Allocation allocation;
  size_t bytes;
  explicit Held(size_t size, int device = 0) : allocation(cuda::allocate(size, device)), bytes(size) {}
  ~Held() {
    if (allocation.deleter) allocation.deleter(allocation.data, allocation.context, bytes);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  char* data() const { return static_cast<char*>(allocation.data); }
};

}  // namespace

TEST_CASE("blocks are cut from segments, reused, and merge again") {
  start_afresh();
  const uint64_t calls = cuda::allocator_stats(0).blocks.system_calls;
  char* first = nullptr;
  {
    const Held a(1000), b(5000), c(1);
    first = a.data();
    CHECK(b.data() == a.data() + 1024);
    CHECK(c.data() == b.data() + 5120);
    const auto stats = cuda::allocator_stats(0);
    CHECK(stats.blocks.system_calls == calls + 1);
    CHECK(stats.bytes_reserved == 2 * kMiB);
    CHECK(stats.blocks.bytes_in_use == 1024 + 5120 + 512);
    CHECK(stats.blocks.bytes_cached == 2 * kMiB - (1024 + 5120 + 512));
  }
  // The three blocks have been merged: a request for a whole megabyte fits in their place.
  const Held whole(kMiB);
  CHECK(whole.data() == first);
  const Held large(3 * kMiB), huge(30 * kMiB + 1);
  const auto stats = cuda::allocator_stats(0);
  CHECK(stats.blocks.system_calls == calls + 3);
  CHECK(stats.bytes_reserved == (2 + 20 + 32) * kMiB);
  CHECK(stats.blocks.peak_bytes_in_use >= stats.blocks.bytes_in_use);
  CHECK(cuda::allocate(0, 0).data == nullptr);
}

TEST_CASE("a step that repeats its shapes asks the device for nothing") {
  const auto step = [] {
    const Tensor x = on_device(ones({300, 70}));
    const Tensor y = kernels::binary(x, x, kernels::BinaryOp::Add);
    return kernels::unary(y, kernels::UnaryOp::Exp);
  };
  step();
  const uint64_t calls = cuda::allocator_stats(0).blocks.system_calls;
  for (int i = 0; i < 10; ++i)
    step();
  CHECK(cuda::allocator_stats(0).blocks.system_calls == calls);
}

TEST_CASE("a block is not handed to another stream, and not again while another stream uses it") {
  start_afresh();
  const cuda::Stream side = cuda::Stream::create();
  char* data = nullptr;
  {
    const Held block(kMiB);
    data = block.data();
    {
      const cuda::StreamGuard guard(side);
      const Held other(kMiB);
      CHECK(other.data() != data);
    }
    // Work on the side stream that nothing waits for yet.
    const Tensor slow = on_device(zeros({100000}));
    cuda::Event start;
    start.record(cuda::current_stream());
    start.block(side);
    const cuda::StreamGuard guard(side);
    kernels::fill(slow, 1);
    cuda::record_stream(block.data() + 100, side);
    cuda::record_stream(slow.raw_data(), side);
    cuda::record_stream(&start, side);  // not device memory
  }
  CHECK(cuda::allocator_stats(0).waiting_blocks >= 1);
  side.synchronize();
  const Held again(kMiB);
  CHECK(cuda::allocator_stats(0).waiting_blocks == 0);
  CHECK(again.data() == data);
}

#ifdef BRIGADE_TEST_COUNTS_QUERIES
TEST_CASE("a request asks about one event of each stream that blocks wait for, however many wait") {
  start_afresh();
  const cuda::Stream first = cuda::Stream::create(), second = cuda::Stream::create();
  std::atomic<bool> is_released = false;
  for (const cuda::Stream& stream : {first, second})
    REQUIRE(simt::enqueue(
                stream.get(), [] {}, [&] { return is_released.load(); }) == cudaSuccess);
  {
    std::vector<std::unique_ptr<Held>> blocks;
    for (int i = 0; i < 40; ++i) {
      blocks.push_back(std::make_unique<Held>(1000));
      if (i % 3 != 0) cuda::record_stream(blocks.back()->data(), first);
      if (i % 3 != 1) cuda::record_stream(blocks.back()->data(), second);
    }
  }
  CHECK(cuda::allocator_stats(0).waiting_blocks == 40);
  const size_t before = simt::event_queries();
  for (int i = 0; i < 10; ++i)
    const Held other(1000);
  CHECK(simt::event_queries() - before == 10 * 2);
  CHECK(cuda::allocator_stats(0).waiting_blocks == 40);
  is_released = true;
  first.synchronize();
  // Blocks used only by `first` are free, regardless of their order in the queue.
  { const Held other(1000); }
  CHECK(cuda::allocator_stats(0).waiting_blocks <= 27);
  second.synchronize();
  { const Held other(1000); }
  CHECK(cuda::allocator_stats(0).waiting_blocks == 0);
}
#endif

TEST_CASE("out of memory: the cache is given back first; then an error with a breakdown, and all goes on") {
  start_afresh();
  const size_t total = cuda::properties(0).total_memory;
  const size_t third = total / 3 / kMiB * kMiB;
  { const Held a(third), b(third); }  // cached, in two segments
  const uint64_t retries = cuda::allocator_stats(0).retries;
  {
    const Held most(2 * third);
    CHECK(cuda::allocator_stats(0).retries == retries + 1);
    CHECK_THROWS_WITH_AS(cuda::allocate(2 * third, 0), doctest::Contains("out of memory on cuda:0: asked for "),
                         OutOfMemoryError);
    try {
      cuda::allocate(2 * third, 0);
    } catch (const OutOfMemoryError& error) {
      const std::string text = error.what();
      for (const char* part : {" are in use (at most ", " are cached in ", "of the device's ", "use a smaller batch"})
        CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    }
    CHECK_THROWS_AS(cuda::allocate(size_t{1} << 60, 0), OutOfMemoryError);
    const Held small(1000);
    CHECK(small.data() != nullptr);
  }
  CHECK(cuda::memory_summary(0).find("cuda:0: 0.0 MiB are in use") == 0);
  cuda::empty_cache();
}

TEST_CASE("random requests on several streams and threads never overlap, and all comes back") {
  start_afresh();
  const auto work = [](unsigned seed) {
    std::mt19937 random(seed);
    const cuda::Stream own = cuda::Stream::create();
    std::map<char*, std::unique_ptr<Held>> held;
    for (int i = 0; i < 400; ++i) {
      if (random() % 5 < 3) {
        const size_t bytes = random() % 8 == 0 ? random() % (3 * kMiB) : random() % 5000;
        const cuda::StreamGuard guard(random() % 2 ? own : cuda::Stream::default_stream(0));
        auto block = std::make_unique<Held>(bytes + 1);
        if (random() % 6 == 0) cuda::record_stream(block->data(), own);
        const auto next = held.lower_bound(block->data());
        const bool free_after = next == held.end() || block->data() + block->bytes <= next->first;
        const bool free_before =
            next == held.begin() || std::prev(next)->first + std::prev(next)->second->bytes <= block->data();
        if (!free_after || !free_before) return false;
        held.emplace(block->data(), std::move(block));
      } else if (!held.empty()) {
        held.erase(std::next(held.begin(), random() % static_cast<int>(held.size())));
      }
    }
    return true;
  };
  bool fine[2] = {false, false};
  std::thread other([&] { fine[1] = work(2); });
  fine[0] = work(1);
  other.join();
  CHECK(fine[0]);
  CHECK(fine[1]);
  start_afresh();
}

}  // namespace brigade::test::allocator_test
