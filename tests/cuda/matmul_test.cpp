// Matrix products through cuBLASLt (its stand-in in the emulation), compared with the CPU in float64.
#include "products.h"

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/kernels/matmul.h>

#include <thread>

namespace brigade::test::matmul_test {
using namespace brigade::kernels;
namespace device = brigade::cuda;
namespace library = brigade::kernels::cuda;

namespace {

// Checks the product of a and b, and the product written to `out`, against the CPU in float64.
void check_product(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  CAPTURE(to_string(a.sizes()));
  CAPTURE(to_string(b.sizes()));
  CAPTURE(ta);
  CAPTURE(tb);
  const DType dtype = a.dtype();
  const int64_t k = a.sizes()[a.dim() - (ta ? 2 : 1)];
  const Tensor expected = matmul(exact(a), exact(b), {.transpose_a = ta, .transpose_b = tb});
  const Tensor found = matmul(a, b, {.transpose_a = ta, .transpose_b = tb});
  CHECK(found.dtype() == dtype);
  CHECK(difference(exact(found), expected) <= bound(dtype, k));
  // Writes to unaligned memory: accumulating and overwriting.
  const Tensor out = shifted(on_device(numbers(expected.sizes(), dtype, 7)), 3);
  const Tensor sum = binary(exact(out), expected, BinaryOp::Add);
  CHECK(matmul(a, b, {.transpose_a = ta, .transpose_b = tb, .out = out, .accumulate = true}).is_same(out));
  CHECK(difference(exact(out), sum) <= bound(dtype, k));
  matmul(a, b, {.transpose_a = ta, .transpose_b = tb, .out = out});
  CHECK(difference(exact(out), expected) <= bound(dtype, k));
}

}  // namespace

TEST_CASE("products of all dtypes, sizes and transposes, and what is added to") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {5, 7, 3}, {33, 1, 65}, {1, 40, 70}, {64, 48, 96}, {17, 31, 129}}) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          const Tensor a = on_device(numbers(ta ? Shape{k, m} : Shape{m, k}, dtype, 1));
          const Tensor b = on_device(numbers(tb ? Shape{n, k} : Shape{k, n}, dtype, 2));
          check_product(a, b, ta, tb);
          check_product(shifted(a, 1), shifted(b, 5), ta, tb);
        }
      }
    }
  }
}

TEST_CASE("leading dimensions broadcast, in as few calls as strides allow") {
  struct Row {
    Shape a, b;
    uint64_t calls;
  };
  for (const Row& row : std::vector<Row>{{{2, 3, 4}, {4, 5}, 1},           // one matrix of 6 rows
                                         {{2, 3, 1, 4}, {4, 5}, 1},        // also one of 6 rows
                                         {{4, 5}, {3, 5, 2}, 1},           // three products with the same left operand
                                         {{3, 2, 4, 5}, {3, 2, 5, 6}, 1},  // six products
                                         {{3, 2, 4, 5}, {2, 5, 6}, 3},
                                         {{2, 1, 3, 4}, {1, 5, 4, 2}, 2},
                                         {{2, 1, 3, 2, 4}, {5, 1, 4, 3}, 10},
                                         {{1, 3, 4}, {1, 4, 2}, 1},
                                         {{0, 3, 4}, {4, 2}, 0}}) {
    for (const DType dtype : {kFloat32, kBFloat16}) {
      const Tensor a = on_device(numbers(row.a, dtype, 1));
      const Tensor b = on_device(numbers(row.b, dtype, 2));
      check_product(a, b, false, false);
      check_product(view::transpose(a, -1, -2), b, true, false);
      check_product(a, clone(view::transpose(b, -1, -2)), false, true);
      check_product(clone(view::transpose(a, -1, -2)), b, true, false);
      const uint64_t before = library_calls();
      matmul(a, b, {});
      CHECK(library_calls() - before == row.calls);
    }
  }
  // More products than a grid can hold.
  const Tensor a = on_device(numbers({40000, 1, 2}, kFloat32, 1));
  const Tensor b = on_device(numbers({40000, 2, 1}, kFloat32, 2));
  const uint64_t before = library_calls();
  CHECK(difference(exact(matmul(a, b, {})), matmul(exact(a), exact(b), {})) <= bound(kFloat32, 2));
  CHECK(library_calls() - before == 2);
}

TEST_CASE("views: rows apart, no stride of 1, repeated rows, transposed batches") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const Tensor wide = on_device(numbers({2, 9, 24}, dtype, 1));
    const Tensor b = on_device(numbers({7, 11}, dtype, 2));
    const Tensor cut = view::slice(wide, 2, 1, 8);
    check_product(cut, b, false, false);
    check_product(view::slice(wide, 2, 3, 24, 3), b, false, false);
    check_product(view::select(cut, 0, 1), b, false, false);
    check_product(view::slice(cut, 1, 0, 7), view::slice(cut, 1, 1, 8), true, true);
    check_product(view::expand(view::slice(cut, 1, 2, 3), {2, 5, 7}), b, false, false);
    check_product(view::transpose(view::slice(wide, 2, 0, 7), 0, 1), b, false, false);
    check_product(view::expand(view::slice(cut, 0, 0, 1), {4, 9, 7}), b, false, false);
    check_product(view::slice(view::transpose(cut, 0, 1), 1, 0, 1), b, false, false);
    check_product(view::slice(b, 1, 4, 5), view::slice(b, 1, 5, 6), true, false);
  }
}

TEST_CASE("without anything to add up, products are zeros and the library is not asked") {
  const uint64_t before = library_calls();
  for (const DType dtype : {kFloat64, kFloat32, kFloat16}) {
    const auto made = [&](const Shape& sizes) { return on_device(numbers(sizes, dtype, 1)); };
    CHECK(difference(matmul(made({3, 0}), made({0, 2}), {}), zeros({3, 2}, dtype)) == 0);
    CHECK(matmul(made({0, 4}), made({4, 2}), {}).sizes() == Shape{0, 2});
    CHECK(matmul(made({5, 0, 4}), made({4, 2}), {}).sizes() == Shape{5, 0, 2});
    const Tensor out = made({3, 2});
    matmul(made({3, 0}), made({0, 2}), {.out = out, .accumulate = true});
    CHECK(difference(out, numbers({3, 2}, dtype, 1)) == 0);
    matmul(made({3, 0}), made({0, 2}), {.out = out});
    CHECK(difference(out, zeros({3, 2}, dtype)) == 0);
    const Tensor bias = numbers({2}, dtype, 3);
    CHECK(difference(kernels::linear(made({3, 0}), made({2, 0}), on_device(bias)), clone(view::expand(bias, {3, 2}))) ==
          0);
    CHECK(difference(kernels::linear(made({2, 3, 0}), made({4, 0}), {}), zeros({2, 3, 4}, dtype)) == 0);
    CHECK(kernels::linear(made({0, 3}), made({2, 3}), on_device(bias)).sizes() == Shape{0, 2});
    CHECK(kernels::linear(made({5, 3}), made({0, 3}), {}).sizes() == Shape{5, 0});
  }
  CHECK(library_calls() == before);
}

TEST_CASE("linear keeps leading dimensions and adds the bias in the same call") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const auto check_linear = [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      CAPTURE(to_string(x.sizes()));
      const uint64_t before = library_calls();
      const Tensor found = kernels::linear(x, weight, bias);
      CHECK(library_calls() - before == 1);
      CHECK(found.dtype() == dtype);
      CHECK(difference(exact(found), kernels::linear(exact(x), exact(weight), exact(bias))) <=
            bound(dtype, weight.sizes()[1]));
    };
    const Tensor weight = on_device(numbers({14, 70}, dtype, 2));
    const Tensor biases = on_device(numbers({14, 3}, dtype, 3));
    for (const Tensor& bias : {Tensor(), clone(view::select(biases, 1, 0)), shifted(view::select(biases, 1, 0), 1),
                               view::select(biases, 1, 2)}) {
      for (const Shape& sizes : std::vector<Shape>{{70}, {1, 70}, {5, 70}, {2, 3, 70}})
        check_linear(on_device(numbers(sizes, dtype, 1)), weight, bias);
      const Tensor x = on_device(numbers({4, 6, 72}, dtype, 4));
      check_linear(view::slice(x, 2, 0, 70), weight, bias);
      check_linear(view::transpose(view::slice(x, 2, 1, 71), 0, 1), weight, bias);
      check_linear(view::select(view::slice(x, 2, 0, 70), 1, 2),
                   view::transpose(clone(view::transpose(weight, 0, 1)), 0, 1), bias);
    }
  }
}

TEST_CASE("linear adds its product to the bias where the library has no algorithm that adds one") {
  // The stand-in has no such algorithm for a single column, nor for half operands whose row size is not a multiple of 4
  // bytes. cuBLASLt may or may not have one.
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {5, 1, 70}, {9, 1, 71}, {6, 8, 71}, {7, 13, 129}, {6, 8, 72}}) {
      CAPTURE(n);
      CAPTURE(k);
      const Tensor x = on_device(numbers({m, k}, dtype, 1));
      const Tensor weight = on_device(numbers({n, k}, dtype, 2));
      const Tensor bias = on_device(numbers({n}, dtype, 3));
      const Tensor expected = kernels::linear(exact(x), exact(weight), exact(bias));
      for (const bool again : {false, true}) {
        const library::PlanStats before = library::gemm_plan_stats(0);
        const Tensor found = kernels::linear(x, weight, bias);
        CHECK(difference(exact(found), expected) <= bound(dtype, k));
        const library::PlanStats after = library::gemm_plan_stats(0);
        const uint64_t calls = after.made + after.found - before.made - before.found;
        if (kEmulated) {
          CHECK(calls == (n == 1 || (is_half(dtype) && k % 2 == 1) ? 2 : 1));
        } else {
          CHECK((calls == 1 || calls == 2));
        }
        if (again) CHECK(after.made == before.made);
      }
      // Unaligned operands and bias.
      CHECK(difference(exact(kernels::linear(shifted(x, 1), shifted(weight, 3), shifted(bias, 1))), expected) <=
            bound(dtype, k));
    }
  }
}

TEST_CASE("float32 stays float32 unless TF32 is allowed") {
  // 1 + 2^-12 is representable in float32 but not in TF32.
  const int64_t size = 128;
  const Tensor a = on_device(full({size, size}, 1.0 + 1.0 / 4096));
  const Tensor b = on_device(full({size, size}, 1.0));
  const auto first = [&] { return on_cpu(matmul(a, b, {})).to_vector<float>()[0]; };
  REQUIRE_FALSE(device::allow_tf32());
  CHECK(first() == size + size / 4096.0F);
  const uint64_t made = library::gemm_plan_stats(0).made;
  device::set_allow_tf32(true);
  if (device::properties(0).major >= 8) CHECK(first() == static_cast<float>(size));
  const Tensor wide = on_device(full({size, size}, 1.0 + 1.0 / 4096, kFloat64));
  CHECK(difference(matmul(wide, wide, {}), matmul(on_cpu(wide), on_cpu(wide), {})) < 1e-14);
  device::set_allow_tf32(false);
  CHECK(library::gemm_plan_stats(0).made > made);
  CHECK(first() == size + size / 4096.0F);
}

TEST_CASE("a problem is planned once, for its sizes, layout, dtype and alignment") {
  const Tensor a = on_device(numbers({6, 19}, kFloat32, 1));
  const Tensor b = on_device(numbers({19, 8}, kFloat32, 2));
  const auto plans_made = [](auto call) {
    const uint64_t before = library::gemm_plan_stats(0).made;
    call();
    return library::gemm_plan_stats(0).made - before;
  };
  CHECK(plans_made([&] { matmul(a, b, {}); }) == 1);
  CHECK(plans_made([&] { matmul(a, b, {}); }) == 0);
  CHECK(plans_made([&] { matmul(clone(a), clone(b), {}); }) == 0);
  CHECK(plans_made([&] { matmul(shifted(a, 1), b, {}); }) == 1);
  CHECK(plans_made([&] { matmul(shifted(a, 1), b, {}); }) == 0);
  CHECK(plans_made([&] { matmul(cast(a, kFloat16), cast(b, kFloat16), {}); }) == 1);
  CHECK(plans_made([&] { matmul(a, clone(view::transpose(b, 0, 1)), {.transpose_b = true}); }) == 1);
  CHECK(plans_made([&] { kernels::linear(a, clone(view::transpose(b, 0, 1)), on_device(zeros({8}))); }) == 1);
  // Plans made by one thread are reused by the next.
  uint64_t made = 0;
  const auto in_thread = [&] { made = plans_made([&] { matmul(a, b, {}); }); };
  std::thread(in_thread).join();
  std::thread(in_thread).join();
  CHECK(made == 0);
}

TEST_CASE("a cache of plans does not grow without end") {
  library::PlanCache<int, int> cache;
  const auto make = [](int problem) { return std::make_unique<int>(10 * problem); };
  const auto most = static_cast<int>(decltype(cache)::kMost);
  for (int i = 0; i < most; ++i)
    CHECK(cache.get(i, make) == 10 * i);
  CHECK(cache.size() == static_cast<size_t>(most));
  CHECK(cache.get(3, make) == 30);
  CHECK(cache.stats().found == 1);
  CHECK(cache.get(most, make) == 10 * most);
  CHECK(cache.size() == 1);
  CHECK(cache.stats().made == static_cast<uint64_t>(most) + 1);
  CHECK_THROWS_AS(cache.get(-1, [](int) -> std::unique_ptr<int> { throw DeviceError("no plan"); }), DeviceError);
  CHECK(cache.get(-1, make) == -10);
}

TEST_CASE("products run on the current stream, in its order") {
  const Tensor a = numbers({40, 70}, kFloat32, 1);
  const Tensor b = numbers({70, 30}, kFloat32, 2);
  const Tensor expected = matmul(exact(a), exact(b), {});
  const Tensor x = on_device(zeros(a.sizes()));
  const Tensor y = on_device(b);
  const Tensor source = on_device(a);
  for (int round = 0; round < 20; ++round) {
    const device::Stream first = device::Stream::create();
    const device::Stream second = device::Stream::create();
    device::Event start;
    start.record(device::current_stream());
    start.block(first);
    device::Event filled;
    {
      const device::StreamGuard guard(first);
      copy(x, source);
      filled.record(first);
    }
    Tensor found;
    Tensor twice;
    {
      const device::StreamGuard guard(second);
      filled.block(second);
      found = matmul(x, y, {});
      twice = matmul(x, y, {});
      add_inplace(found, twice, 1.0);
      scale_inplace(found, 0.5);
      second.synchronize();
    }
    CHECK(difference(exact(found), expected) <= bound(kFloat32, 70));
    fill(x, 0);
  }
}

TEST_CASE("a captured product runs with each launch of its graph") {
  const Tensor a = numbers({24, 96}, kFloat32, 1);
  const Tensor b = numbers({96, 16}, kFloat32, 2);
  const Tensor x = on_device(a);
  const Tensor y = on_device(b);
  const Tensor out = on_device(zeros({24, 16}));
  const device::Stream stream = device::Stream::create();
  device::synchronize();
  const device::StreamGuard guard(stream);
  const auto product = [&] { matmul(x, y, {.out = out, .accumulate = true}); };
  product();
  stream.synchronize();
  device::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  product();
  // A handle that is created only now allocates memory.
  struct Handle {
    cudaError_t code = cudaMalloc(&memory, 256);
    void* memory;
  };
  CHECK(library::of_this_thread<Handle>(0).code == cudaSuccess);
  cudaGraph_t graph = nullptr;
  device::check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  device::check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 3; ++i)
    device::check(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch");
  stream.synchronize();
  const Tensor expected = binary_scalar(matmul(exact(a), exact(b), {}), 4, BinaryOp::Mul, false);
  CHECK(difference(exact(out), expected) <= 4 * bound(kFloat32, 96));
  device::check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  device::check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  device::check(cudaFree(library::of_this_thread<Handle>(0).memory), "cudaFree");
}

TEST_CASE("products on another device than the current one") {
  if (device::device_count() < 2) return;
  const Device second(kCUDA, 1);
  const Tensor a = numbers({9, 66}, kFloat32, 1);
  const Tensor b = numbers({66, 5}, kFloat32, 2);
  const Tensor x = empty(a.sizes(), {kFloat32, second});
  const Tensor y = empty(b.sizes(), {kFloat32, second});
  copy(x, a);
  copy(y, b);
  const Tensor found = matmul(x, y, {});
  CHECK(device::current_device() == 0);
  CHECK(found.device() == second);
  CHECK(difference(exact(found), matmul(exact(a), exact(b), {})) <= bound(kFloat32, 66));
  CHECK_THROWS_WITH_AS(matmul(x, on_device(b), {}), "matmul: all tensors must be on one device, got cuda:1 and cuda:0",
                       DeviceError);
}

TEST_CASE("what does not fit together is refused before the library sees it") {
  const Tensor a = on_device(zeros({2, 3}));
  const Tensor b = on_device(zeros({3, 4}));
  const uint64_t before = library_calls();
  CHECK_THROWS_WITH_AS(matmul(a, on_device(zeros({4, 5})), {}),
                       doctest::Contains("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"), ShapeError);
  CHECK_THROWS_AS(matmul(a, on_device(zeros({3, 4}, kFloat64)), {}), DTypeError);
  CHECK_THROWS_AS(matmul(on_device(zeros({2, 3}, kInt64)), on_device(zeros({3, 4}, kInt64)), {}), DTypeError);
  CHECK_THROWS_AS(matmul(a, zeros({3, 4}), {}), DeviceError);
  CHECK_THROWS_AS(matmul(a, b, {.out = zeros({2, 4})}), DeviceError);
  CHECK_THROWS_AS(matmul(a, b, {.out = on_device(zeros({4, 2}))}), ShapeError);
  CHECK_THROWS_AS(kernels::linear(a, on_device(zeros({5, 4})), {}), ShapeError);
  CHECK_THROWS_AS(kernels::linear(a, on_device(zeros({5, 3})), on_device(zeros({4}))), ShapeError);
  CHECK_THROWS_AS(kernels::linear(a, on_device(zeros({5, 3})), zeros({5})), DeviceError);
  CHECK(library_calls() == before);
  CHECK(library::describe({.dtype = kFloat16, .transpose_b = true, .m = 3, .n = 5, .k = 4, .batches = 2}, true) ==
        "float16 [3, 4] x [5, 4]^T + bias, 2 batches");
  CHECK(library::describe({.m = 3, .n = 5, .k = 4, .activation = FusedActivation::GeluTanh}, false) ==
        "float32 [3, 4] x [4, 5], gelu");
}

}  // namespace brigade::test::matmul_test
