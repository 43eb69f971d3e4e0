// Each check of the emulation catches its planted bug and reports the place.
#include <doctest/doctest.h>
#include <simt/error.h>
#include <simt/launch.h>
#include <simt/options.h>
#include <simt/runtime.h>

#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "../../tests/in_child.h"
#include "kernels_planted.h"

#if SIMT_TSAN
namespace {
int races = 0;
}
// Called by the thread sanitizer for each report.
extern "C" void __tsan_on_report(void*) { ++races; }
#endif

namespace {

constexpr std::array kOrders = {simt::Order::Forward, simt::Order::Reverse, simt::Order::Random, simt::Order::Warps};

// Runs the kernel and returns the error that was thrown.
template <class... Parameters, class... Arguments>
std::string error_of(const char* name, void (*kernel)(Parameters...), dim3 block, Arguments... arguments) {
  try {
    simt::launch(name, kernel, 1, block, 0, nullptr, arguments...);
    cudaDeviceSynchronize();
  } catch (const simt::Error& error) {
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaSuccess);
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  INFO("\"", text, "\" should say \"", part, "\"");
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

// Checks that in every order the error names the kernel, a thread, the block, the line, and the problem.
template <class... Parameters, class... Arguments>
void expect_error(const char* name, void (*kernel)(Parameters...), dim3 block, const std::string& part,
                  Arguments... arguments) {
  for (const simt::Order order : kOrders) {
    CAPTURE(static_cast<int>(order));
    const simt::ScopedOptions scope({.order = order});
    const std::string text = error_of(name, kernel, block, arguments...);
    contains(text, std::string("kernel ") + name);
    contains(text, "thread (");
    contains(text, "of block (0,0,0)");
    contains(text, "kernels_planted.h:");
    contains(text, part);
  }
}

std::vector<float> counting(size_t n) {
  std::vector<float> x(n);
  std::iota(x.begin(), x.end(), 1.0f);
  return x;
}

struct Race {
  const char* name;
  void (*missing)(float*);
  void (*right)(float*);
  size_t n;
};
constexpr Race kRaces[] = {{"neighbours", neighbours<false>, neighbours<true>, 256},
                           {"rounds", rounds<false>, rounds<true>, 64},
                           {"lanes", lanes<false>, lanes<true>, 32},
                           {"warp_sums", warp_sums<false>, warp_sums<true>, 64}};

std::vector<float> result(void (*kernel)(float*), size_t n) {
  std::vector<float> x = counting(n);
  simt::launch("kernel", kernel, 1, static_cast<unsigned>(n), 0, nullptr, x.data());
  cudaDeviceSynchronize();
  return x;
}

}  // namespace

TEST_CASE("barriers: two that differ, and one that some threads never reach") {
  std::vector<float> x(64);
  expect_error("divergent_barrier", divergent_barrier, 32, "divergent barrier", x.data());
  expect_error("exit_before_barrier", exit_before_barrier, 64, "exited", x.data(), 40);
}

TEST_CASE("what hardware tolerates is allowed when it is asked for") {
  for (const simt::Order order : kOrders) {
    const simt::ScopedOptions scope({.order = order, .strict = false});
    std::vector<float> x(64);
    CHECK(error_of("divergent_barrier", divergent_barrier, 32, x.data()) == "no error");
    CHECK(x[15] == 1);
    CHECK(x[16] == 2);
    CHECK(error_of("exit_before_barrier", exit_before_barrier, 64, x.data(), 40) == "no error");
    CHECK(error_of("shuffle_with_exited_lanes", shuffle_with_exited_lanes, 32, x.data()) == "no error");
  }
}

TEST_CASE("masks: of lanes that are absent or have exited, without the caller, of others than the neighbours'") {
  std::vector<float> x(64);
  expect_error("shuffle_with_exited_lanes", shuffle_with_exited_lanes, 32, "exited", x.data());
  expect_error("shuffle_with_exited_lanes", shuffle_with_exited_lanes, 16, "which the block does not have", x.data());
  expect_error("shuffle_without_the_caller", shuffle_without_the_caller, 32, "does not name the calling lane",
               x.data());
  expect_error("shuffle_outside_of_the_mask", shuffle_outside_of_the_mask, 16, "which the mask does not name",
               x.data());
  expect_error("different_masks", different_masks, 32, "another mask", x.data());
  expect_error("shuffle_of_odd_width", shuffle_of_odd_width, 32, "width 12", x.data());
}

TEST_CASE("a deadlock names who waits where") {
  std::vector<float> x(32);
  expect_error("waits_in_circle", waits_in_circle, 32, "deadlock", x.data());
  const std::string text = error_of("waits_in_circle", waits_in_circle, 32, x.data());
  contains(text, "thread (0,0,0) of block (0,0,0) waits for the block");
  contains(text, "thread (16,0,0) of block (0,0,0) waits for its warp");
}

TEST_CASE("misaligned vectors") {
  alignas(16) float x[40] = {}, y[32] = {};
  expect_error("misaligned_load", misaligned_load, 32, "misaligned access: 16 bytes", static_cast<const float*>(x),
               static_cast<float*>(y));
  expect_error("misaligned_store", misaligned_store, 1, "4 past a multiple of 16", static_cast<float*>(x));
}

TEST_CASE("a trap, and shared memory beyond the device's") {
  int one = 1;
  expect_error("traps", traps, 1, "__trap()", &one);
  std::vector<float> x(32);
  expect_error("shared_memory_of_64_kib", shared_memory_of_64_kib, 32, "exceeds 48 KiB with array large", x.data());
}

TEST_CASE("shared memory that nobody wrote is NaN in every block") {
  for (int launch = 0; launch < 3; ++launch) {
    std::vector<float> x(32, 1.0f);
    simt::launch("reads_unwritten_shared", reads_unwritten_shared, 4, 32, 32 * sizeof(float), nullptr, x.data());
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    for (const float value : x)
      CHECK(std::isnan(value));
  }
}

TEST_CASE("launch configurations that no device accepts are refused at once") {
  struct Refused {
    dim3 grid, block;
    size_t shared_bytes;
    const char* why;
  };
  const Refused table[] = {{1, 0, 0, "no threads"},
                           {1, 1025, 0, "exceeds 1024 threads"},
                           {1, dim3(32, 33), 0, "exceeds 1024 threads"},
                           {1, dim3(1, 1, 65), 0, "(1024,1024,64)"},
                           {0, 32, 0, "no blocks"},
                           {dim3(1, 65536), 32, 0, "exceeds (2147483647,65535,65535)"},
                           {dim3(1, 1, 65536), 32, 0, "exceeds (2147483647,65535,65535)"},
                           {0x80000000u, 32, 0, "exceeds (2147483647,65535,65535)"},
                           {1, 32, (227 << 10) + 1, "at most 227 KiB"},
                           {1, 32, (48 << 10) + 1, "cudaFuncSetAttribute"}};
  float x[32] = {};
  for (const Refused& refused : table) {
    CAPTURE(refused.why);
    std::string text = "no error";
    try {
      simt::launch("dynamic_row", dynamic_row, refused.grid, refused.block, refused.shared_bytes, nullptr, x);
    } catch (const simt::Error& error) {
      text = error.what();
    }
    contains(text, "kernel dynamic_row: launch configuration");
    contains(text, refused.why);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  }
}

TEST_CASE("a kernel that asked for it gets 227 KiB of dynamic shared memory") {
  std::vector<float> x = counting(32);
  const void* const kernel = reinterpret_cast<const void*>(dynamic_row);
  REQUIRE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10) == cudaSuccess);
  simt::launch("dynamic_row", dynamic_row, 1, 32, 227 << 10, nullptr, x.data());
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 << 10) == cudaSuccess);
}

TEST_CASE("what a kernel asked for on one device it has there only") {
  std::vector<float> x = counting(32);
  const void* const kernel = reinterpret_cast<const void*>(dynamic_row);
  const auto launch = [&] { simt::launch("dynamic_row", dynamic_row, 1, 32, 100 << 10, nullptr, x.data()); };
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  REQUIRE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10) == cudaSuccess);
  launch();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK_THROWS_AS(launch(), simt::Error);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
}

TEST_CASE("after a failed kernel the next one runs, on the same stacks") {
  std::vector<float> x = counting(256);
  CHECK(error_of("divergent_barrier", divergent_barrier, 32, x.data()) != "no error");
  x = counting(256);
  CHECK(result(neighbours<true>, 256)[1] == 1);
}

TEST_CASE("threads that wait when their block fails unwind their stacks") {
  static std::atomic<int> destroyed = 0;
  struct Holds {
    static void kernel(int) {
      struct Counted {
        ~Counted() { ++destroyed; }
      } counted;
      if (threadIdx.x == 20) __trap();
      __syncthreads();
    }
  };
  for (const simt::Order order : {simt::Order::Forward, simt::Order::Reverse}) {
    const simt::ScopedOptions scope({.order = order});
    destroyed = 0;
    contains(error_of("holds", Holds::kernel, 32, 0), "__trap()");
    CHECK(destroyed == (order == simt::Order::Forward ? 21 : 12));
  }
}

// Without a sanitizer, a race shows in the result, through the NaN fill of fresh shared memory or another order.
#if !SIMT_TSAN
namespace {
// The number of orders in which the result differs from the expected one.
int wrong_orders(void (*kernel)(float*), size_t n, const std::vector<float>& expected) {
  int wrong = 0;
  for (const simt::Order order : kOrders) {
    const simt::ScopedOptions scope({.order = order});
    std::vector<float> x = counting(n);
    simt::launch("kernel", kernel, 1, static_cast<unsigned>(n), 0, nullptr, x.data());
    cudaDeviceSynchronize();
    wrong += x == expected ? 0 : 1;
  }
  return wrong;
}
}  // namespace

TEST_CASE("a missing barrier gives a wrong result in some order, and the right kernel in none") {
  for (const Race& race : kRaces) {
    CAPTURE(race.name);
    const std::vector<float> expected = result(race.right, race.n);
    CHECK(wrong_orders(race.right, race.n, expected) == 0);
    CHECK(wrong_orders(race.missing, race.n, expected) > 0);
  }
}
#else
TEST_CASE("the thread sanitizer finds a missing barrier in any order, and no race where there is none") {
  for (const Race& race : kRaces) {
    for (const simt::Order order : kOrders) {
      CAPTURE(race.name);
      CAPTURE(static_cast<int>(order));
      const auto run = [&](void (*kernel)(float*)) {
        return brigade::test::in_child([&] {
          races = 0;
          const simt::ScopedOptions scope({.order = order});
          result(kernel, race.n);
          _exit(races > 0 ? 66 : 0);
        });
      };
      const brigade::test::ChildOutcome missing = run(race.missing);
      CHECK(missing.status != 0);
      contains(missing.output, "data race");
      contains(missing.output, race.name);
      CHECK(run(race.right).status == 0);
    }
  }
}
#endif

#if SIMT_ASAN
TEST_CASE("the address sanitizer finds an access one past the end, and names the kernel's line") {
  const auto expect_found = [](auto launch) {
    const brigade::test::ChildOutcome outcome = brigade::test::in_child([&] {
      launch();
      cudaDeviceSynchronize();
    });
    CHECK(outcome.status != 0);
    contains(outcome.output, "heap-buffer-overflow");
    contains(outcome.output, "kernels_planted.h");
  };
  float* x = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&x), 31 * sizeof(float)) == cudaSuccess);
  expect_found([=] { simt::launch("one_past_global", one_past_global, 1, 32, 0, nullptr, x, 31); });
  expect_found([=] { simt::launch("one_past_shared", one_past_shared, 1, 32, 0, nullptr, x); });
  expect_found([=] { simt::launch("one_past_dynamic", one_past_dynamic, 1, 32, 31 * 4, nullptr, x, 31); });
  CHECK(cudaFree(x) == cudaSuccess);
}
#endif

TEST_CASE("a stack overflow hits a guard page") {
  std::vector<int> x(32, 1);
  const simt::ScopedOptions scope({.stack_bytes = 64 << 10});
  CHECK(brigade::test::in_child([&] {
          simt::launch("stack_overflow", stack_overflow, 1, 32, 0, nullptr, x.data());
          cudaDeviceSynchronize();
        }).status != 0);
#if !SIMT_TSAN  // deep recursion is too slow under TSan instrumentation
  // With enough stack it does not overflow.
  const simt::ScopedOptions roomy({.stack_bytes = 16 << 20});
  const brigade::test::ChildOutcome outcome = brigade::test::in_child([&] {
    simt::launch("stack_overflow", stack_overflow, 1, 32, 0, nullptr, x.data());
    cudaDeviceSynchronize();
  });
  INFO(outcome.output);
  CHECK(outcome.status == 0);
#endif
}
