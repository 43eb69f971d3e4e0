#include <brigade/core/allocator.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/core/version.h>
#include <brigade/core/view.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace brigade::test::core_test {

TEST_CASE("Philox4x32-10 gives the published values") {
  // Known answers from Random123's kat_vectors.
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32_10({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
        std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a generator hands out disjoint parts of its stream") {
  RandomGenerator generator(5);
  const PhiloxState first = generator.reserve(5);
  const PhiloxState second = generator.reserve(1);
  CHECK(first.offset == 0);
  CHECK(second.offset == 2);
  CHECK(first.word(9) == second.word(1));
  generator.manual_seed(5);
  CHECK(generator.reserve(1).word(0) == first.word(0));
}

TEST_CASE("what a generator hands out for a CUDA graph follows the words of the replay, on the device only") {
  PhiloxReplay replay{5, 0};
  RandomGenerator generator(5);
  generator.set_replay(&replay);
  const PhiloxState captured = generator.reserve(8);
  const RandomGenerator copy = generator;
  CHECK(copy.replay() == &replay);
  replay = {6, 100};
  CHECK(captured.word(3) == PhiloxState{5, 0}.word(3));
  CHECK(captured.now().word(3) == PhiloxState{6, 100}.word(3));
  replay.moved = ~uint64_t{0};  // one block back
  CHECK(generator.reserve(1).now().word(3) == PhiloxState{6, 1}.word(3));
  generator.manual_seed(7);
  CHECK(generator.replay() == nullptr);
  CHECK(generator.reserve(1).now().word(3) == PhiloxState{7, 0}.word(3));
}

TEST_CASE("half types round to nearest, ties to even, and keep the special values") {
  struct Row {
    float value, as_float16, as_bfloat16;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Row& row : std::vector<Row>{{1.0F, 1.0F, 1.0F},
                                         {0.1F, 0.0999755859375F, 0x1.9ap-4F},
                                         {1.00048828125F, 1.0F, 1.0F},          // halfway: to even
                                         {1.00146484375F, 1.001953125F, 1.0F},  // halfway in float16: to even
                                         {65504.0F, 65504.0F, 65536.0F},
                                         {65520.0F, infinity, 65536.0F},
                                         {6e-8F, 5.9604645e-8F, 0x1.02p-24F},
                                         {-2.5e-8F, -0.0F, -0x1.aep-26F},
                                         {infinity, infinity, infinity}}) {
    CAPTURE(row.value);
    CHECK(static_cast<float>(float16(row.value)) == row.as_float16);
    CHECK(static_cast<float>(bfloat16(row.value)) == row.as_bfloat16);
  }
  CHECK(std::isnan(static_cast<float>(float16(std::nanf("")))));
  CHECK(std::isnan(static_cast<float>(bfloat16(std::nanf("")))));
}

TEST_CASE("promotion of dtypes") {
  CHECK(promote_types(kFloat32, kInt64) == kFloat32);
  CHECK(promote_types(kFloat16, kBFloat16) == kFloat32);
  CHECK(promote_types(kBool, kUInt8) == kUInt8);
  CHECK(promote_types(kInt32, kInt64) == kInt64);
  CHECK(promote_types(kFloat16, kInt64) == kFloat16);
  CHECK(dtype_from_name("bfloat16") == kBFloat16);
  CHECK_THROWS_WITH_AS(
      dtype_from_name("float8"),
      "unknown dtype 'float8'; known are float64, float32, float16, bfloat16, int64, int32, uint8, bool", DTypeError);
}

TEST_CASE("shapes broadcast from the right") {
  CHECK(broadcast_shapes({2, 1, 3}, {4, 1}) == Shape{2, 4, 3});
  CHECK(broadcast_shapes({}, {2, 3}) == Shape{2, 3});
  CHECK(broadcast_shapes({0, 1}, {1, 5}) == Shape{0, 5});
  CHECK_THROWS_AS(broadcast_shapes({2, 3}, {2, 4}), ShapeError);
  CHECK(wrap_dim(-1, 3) == 2);
  CHECK_THROWS_AS(wrap_dim(3, 3), IndexError);
  CHECK_THROWS_AS(Shape::filled(65, 1), ShapeError);
}

TEST_CASE("views share memory and the version counter") {
  const Tensor x = tensor(std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor t = view::transpose(x, 0, 1);
  CHECK(t.sizes() == Shape{3, 2});
  CHECK_FALSE(t.is_contiguous());
  CHECK(t.to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
  t.data_ptr<float>()[1] = 10;  // element [1, 0] of t
  CHECK(x.to_vector<float>()[1] == 10);
  t.bump_version();
  CHECK(x.version() == 1);
  const Tensor s = view::slice(x, 1, 0, 3, 2);
  CHECK(s.to_vector<float>() == std::vector<float>{0, 2, 3, 5});
  CHECK(view::select(s, 0, -1).to_vector<float>() == std::vector<float>{3, 5});
  CHECK(view::expand(view::slice(x, 0, 0, 1), {2, 2, 3}).numel() == 12);
  CHECK_THROWS_AS(view::as_strided(x, {3, 3}, {3, 1}, 0), IndexError);
  CHECK_THROWS_AS(view::expand(x, {4, 3}), ShapeError);
}

TEST_CASE("reshape finds strides where there are some and says so where there are none") {
  const Tensor x = tensor(std::vector<float>(24), {2, 3, 4});
  const Tensor t = view::transpose(x, 0, 1);  // [3, 2, 4], strides 4, 12, 1
  CHECK(view::reshape_strides(t, {3, 2, 2, 2}) == std::optional(Shape{4, 12, 2, 1}));
  CHECK_FALSE(view::reshape_strides(t, {6, 4}).has_value());
  CHECK(view::reshape_strides(view::expand(tensor<float>({1, 2}), {3, 2}), {3, 2, 1}).has_value());
  CHECK(view::infer_sizes({4, -1}, 24) == Shape{4, 6});
  CHECK_THROWS_AS(view::infer_sizes({5, -1}, 24), ShapeError);
  CHECK_THROWS_AS(view::infer_sizes({-1, -1}, 24), ShapeError);
}

TEST_CASE("the caching allocator gives aligned memory back and counts") {
  const AllocatorStats before = cpu_allocator_stats();
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1000}, size_t{5} << 20}) {
    const Allocation a = cpu_allocate(bytes);
    CHECK(reinterpret_cast<uintptr_t>(a.data) % 64 == 0);
    std::memset(a.data, 1, bytes);
    CHECK(cpu_allocator_stats().bytes_in_use >= before.bytes_in_use + bytes);
    a.deleter(a.data, a.context, bytes);
  }
  CHECK(cpu_allocator_stats().bytes_in_use == before.bytes_in_use);
  const char* mode = std::getenv("BRIGADE_CPU_ALLOC");
  if (mode && std::string(mode) == "system") return;
  // The same size again makes no system call, even when another thread freed the block.
  const Allocation a = cpu_allocate(3 << 20);
  std::thread([&] { a.deleter(a.data, a.context, 3 << 20); }).join();
  const uint64_t calls = cpu_allocator_stats().system_calls;
  const Allocation b = cpu_allocate(3 << 20);
  CHECK(b.data == a.data);
  CHECK(cpu_allocator_stats().system_calls == calls);
  b.deleter(b.data, b.context, 3 << 20);
}

TEST_CASE("a thread keeps small blocks, and leaves them to the others when it ends") {
  const char* mode = std::getenv("BRIGADE_CPU_ALLOC");
  if (mode && std::string(mode) == "system") return;
  constexpr size_t kBytes = 20000;
  constexpr int kBlocks = 40;  // more than a thread caches
  const AllocatorStats before = cpu_allocator_stats();
  std::set<void*> of_first, of_second;
  const auto take_and_free = [](std::set<void*>& seen) {
    std::vector<Allocation> blocks;
    for (int i = 0; i < kBlocks; ++i) {
      blocks.push_back(cpu_allocate(kBytes));
      std::memset(blocks.back().data, 1, kBytes);
      seen.insert(blocks.back().data);
    }
    CHECK(cpu_allocator_stats().bytes_in_use >= kBlocks * kBytes);
    for (const Allocation& block : blocks)
      block.deleter(block.data, block.context, kBytes);
  };
  std::thread([&] {
    take_and_free(of_first);
    std::set<void*> again;
    take_and_free(again);
    CHECK(again == of_first);
  }).join();
  CHECK(of_first.size() == kBlocks);
  const uint64_t calls = cpu_allocator_stats().system_calls;
  std::thread([&] { take_and_free(of_second); }).join();
  CHECK(of_second == of_first);
  CHECK(cpu_allocator_stats().system_calls == calls);
  CHECK(cpu_allocator_stats().bytes_in_use == before.bytes_in_use);
  // The thread caches 256 KiB of a block size plus one block; the other blocks are available to other threads at once.
  std::thread([&] {
    for (int i = 0; i < 3; ++i)
      take_and_free(of_first);
    std::set<void*> of_other;
    const uint64_t so_far = cpu_allocator_stats().system_calls;
    std::thread([&] { take_and_free(of_other); }).join();
    CHECK(cpu_allocator_stats().system_calls - so_far == (256 << 10) / (20 << 10) + 1);
  }).join();
  CHECK(of_first.size() == kBlocks);
  // One thread only frees a block that another one allocated; the other only allocates.
  std::vector<Allocation> blocks;
  std::thread([&] { blocks.push_back(cpu_allocate(kBytes)); }).join();
  CHECK(cpu_allocator_stats().bytes_in_use >= before.bytes_in_use + kBytes);
  std::thread([&] { blocks[0].deleter(blocks[0].data, blocks[0].context, kBytes); }).join();
  CHECK(cpu_allocator_stats().bytes_in_use == before.bytes_in_use);
}

TEST_CASE("bad factories are refused with a reason") {
  CHECK_THROWS_AS(empty({-1}), ShapeError);
  CHECK_THROWS_AS(empty({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  CHECK_THROWS_AS(empty({int64_t{1} << 50}), OutOfMemoryError);
  CHECK_THROWS_AS(empty({2}, {kFloat32, Device(kCUDA)}), DeviceError);
  CHECK_THROWS_AS(tensor(std::vector<float>{1, 2}, {3}), ShapeError);
  CHECK_THROWS_AS(empty({2}).data_ptr<double>(), DTypeError);
  bool released = false;
  float memory[2] = {1, 2};
  {
    CHECK(from_blob(memory, {2}, kFloat32, [&] { released = true; }).to_vector<float>()[1] == 2);
  }
  CHECK(released);
}

TEST_CASE("tensors print") {
  CHECK(to_string(tensor(std::vector<float>{1, 2.5, -3, 4}, {2, 2})) == "tensor([[1, 2.5], [-3, 4]])");
  CHECK(to_string(tensor<int64_t>({7})) == "tensor([7], int64)");
  CHECK(describe(tensor<bool>({true})) == "bool [1]");
  CHECK(!version().empty());
}

}  // namespace brigade::test::core_test
