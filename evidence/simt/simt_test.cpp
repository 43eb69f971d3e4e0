// Common kinds of kernels give the right result in every order, on one OS thread and on two.
#include <doctest/doctest.h>
#include <simt/error.h>
#include <simt/launch.h>
#include <simt/options.h>
#include <simt/runtime.h>

#include <cmath>
#include <vector>

#include "kernels.h"

namespace {

void synchronize() { REQUIRE(cudaDeviceSynchronize() == cudaSuccess); }

template <class Test>
void in_all_orders(Test test) {
  constexpr simt::Options kSchedules[] = {
      {.order = simt::Order::Forward, .seed = 1}, {.order = simt::Order::Forward, .seed = 1, .workers = 2},
      {.order = simt::Order::Reverse, .seed = 1}, {.order = simt::Order::Random, .seed = 1},
      {.order = simt::Order::Random, .seed = 2},  {.order = simt::Order::Random, .seed = 3, .workers = 2},
      {.order = simt::Order::Warps, .seed = 1},   {.order = simt::Order::Warps, .seed = 2, .workers = 2}};
  for (const simt::Options& schedule : kSchedules) {
    CAPTURE(static_cast<int>(schedule.order));
    CAPTURE(schedule.seed);
    CAPTURE(schedule.workers);
    const simt::ScopedOptions scope(schedule);
    test();
  }
}

}  // namespace

TEST_CASE("a sum over blocks of 32 to 1024 threads, through shuffles and shared memory") {
  in_all_orders([] {
    for (const unsigned threads : {32, 64, 256, 1024}) {
      const int n = 5003;
      std::vector<float> x(n);
      float expected = 0;
      for (int i = 0; i < n; ++i)
        expected += x[i] = static_cast<float>(i * 37 % 101) / 16;  // every partial sum is exact
      float sum = 0;
      simt::launch("block_sum", block_sum<float>, 7, threads, 0, nullptr, x.data(), &sum, n);
      CHECK(sum == 0);  // nothing runs before the host waits
      synchronize();
      CHECK(sum == expected);
    }
  });
}

TEST_CASE("shuffles keep to their segments") {
  in_all_orders([] {
    std::vector<int> x(64);
    for (int i = 0; i < 64; ++i)
      x[i] = i * i % 17;
    std::vector<int> eight(64), whole(64);
    simt::launch("scan", scan<8>, 1, 64, 0, nullptr, x.data(), eight.data());
    simt::launch("scan", scan<32>, 1, 64, 0, nullptr, x.data(), whole.data());
    synchronize();
    int sum_of_eight = 0, sum_of_warp = 0;
    for (int i = 0; i < 64; ++i) {
      if (i % 8 == 0) sum_of_eight = 0;
      if (i % 32 == 0) sum_of_warp = 0;
      CHECK(eight[i] == (sum_of_eight += x[i]));
      CHECK(whole[i] == (sum_of_warp += x[i]));
    }
  });
}

TEST_CASE("every kind of shuffle reads the lane that CUDA reads, in every width") {
  struct Reads {
    static void kernel(int width, int* indexed, int* up, int* down, int* across) {
      const int t = static_cast<int>(threadIdx.x);
      indexed[t] = __shfl_sync(~0u, t, 5, width);
      up[t] = __shfl_up_sync(~0u, t, 3, width);
      down[t] = __shfl_down_sync(~0u, t, 3, width);
      across[t] = __shfl_xor_sync(~0u, t, 6, width);
    }
  };
  for (const int width : {1, 2, 4, 8, 16, 32}) {
    CAPTURE(width);
    int indexed[32], up[32], down[32], across[32];
    simt::launch("reads", Reads::kernel, 1, 32, 0, nullptr, width, indexed, up, down, across);
    synchronize();
    for (int t = 0; t < 32; ++t) {
      const int begin = t / width * width;
      CHECK(indexed[t] == begin + 5 % width);
      CHECK(up[t] == (t - 3 >= begin ? t - 3 : t));
      CHECK(down[t] == (t + 3 < begin + width ? t + 3 : t));
      CHECK(across[t] == ((t ^ 6) < begin + width ? t ^ 6 : t));
    }
  }
}

TEST_CASE("votes of warps and of the block") {
  in_all_orders([] {
    std::vector<int> x(96);
    for (int i = 0; i < 96; ++i)
      x[i] = i < 32 ? 0 : i < 64 ? 1 : i % 3;
    unsigned ballots[3];
    int any[3], all[3], count = -1;
    simt::launch("votes", votes, 1, 96, 0, nullptr, x.data(), ballots, any, all, &count);
    synchronize();
    unsigned expected = 0;
    int positive = 32;
    for (int i = 64; i < 96; ++i) {
      if (x[i] == 0) continue;
      expected |= 1u << (i - 64);
      ++positive;
    }
    CHECK(ballots[0] == 0u);
    CHECK(ballots[1] == 0xffffffffu);
    CHECK(ballots[2] == expected);
    for (int warp = 0; warp < 3; ++warp) {
      CHECK(any[warp] == (warp > 0 ? 1 : 0));
      CHECK(all[warp] == (warp == 1 ? 1 : 0));
    }
    CHECK(count == positive);
  });
}

TEST_CASE("pairs of halves: multiply and add with one rounding") {
  in_all_orders([] {
    const int n = 1000;
    std::vector<__half> x(n), y(n);
    for (int i = 0; i < n; ++i) {
      x[i] = __float2half(static_cast<float>(i % 9 - 4));
      y[i] = __float2half(static_cast<float>(i % 7) / 2);
    }
    const std::vector<__half> before = y;
    simt::launch("axpy_pairs", axpy_pairs, 4, 96, 0, nullptr, __float2half(2.0f), reinterpret_cast<__half2*>(x.data()),
                 reinterpret_cast<__half2*>(y.data()), n / 2);
    synchronize();
    for (int i = 0; i < n; ++i)
      CHECK(__half2float(y[i]) == 2 * __half2float(x[i]) + __half2float(before[i]));
  });
  // (1 + 2^-10)^2 - (1 + 2^-9) is 2^-20 with one rounding, and 0 with two.
  const __half one_and = __float2half(1.0f + 0x1p-10f);
  CHECK(__half2float(__hfma(one_and, one_and, __float2half(-1.0f - 0x1p-9f))) == 0x1p-20f);
}

TEST_CASE_TEMPLATE("functions of both half types", T, __half, __nv_bfloat16) {
  const double tolerance = std::is_same_v<T, __half> ? 3e-3 : 2e-2;
  std::vector<T> x(100), y(100);
  for (int i = 0; i < 100; ++i)
    x[i] = static_cast<T>(static_cast<float>(i + 1) / 16);
  simt::launch("half_functions", half_functions<T>, 4, 32, 0, nullptr, x.data(), y.data(), 100);
  synchronize();
  for (int i = 0; i < 100; ++i) {
    const double value = static_cast<float>(x[i]);
    CHECK(static_cast<float>(y[i]) == doctest::Approx(std::exp(value) / std::sqrt(value)).epsilon(tolerance));
  }
}

TEST_CASE_TEMPLATE("vectors of 16 bytes", T, float, __half, __nv_bfloat16, double) {
  const int n = 512;
  // No more alignment is needed than malloc guarantees: 16 bytes.
  std::vector<T> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = static_cast<T>(static_cast<float>(i % 13));
    b[i] = static_cast<T>(static_cast<float>(i % 7));
  }
  simt::launch("add_vectors", add_vectors<T>, 2, 32, 0, nullptr, a.data(), b.data(), c.data(), n);
  synchronize();
  for (int i = 0; i < n; ++i)
    CHECK(static_cast<float>(c[i]) == static_cast<float>(i % 13 + i % 7));
}

TEST_CASE_TEMPLATE("layer norm with the row in dynamic shared memory", T, float, __half, __nv_bfloat16) {
  in_all_orders([] {
    const int rows = 5, columns = 770;
    std::vector<T> x(rows * columns), y(rows * columns);
    std::vector<float> weight(columns), bias(columns);
    for (int i = 0; i < rows * columns; ++i)
      x[i] = static_cast<T>(static_cast<float>(i * 31 % 97) / 10);
    for (int i = 0; i < columns; ++i) {
      weight[i] = static_cast<float>(1 + i % 3);
      bias[i] = static_cast<float>(i % 5);
    }
    simt::launch("layer_norm", layer_norm<T>, rows, 128, columns * sizeof(float), nullptr, x.data(), weight.data(),
                 bias.data(), y.data(), columns, 1e-5f);
    synchronize();
    double worst = 0;
    for (int row = 0; row < rows; ++row) {
      double mean = 0, variance = 0;
      for (int i = 0; i < columns; ++i)
        mean += static_cast<float>(x[row * columns + i]) / static_cast<double>(columns);
      for (int i = 0; i < columns; ++i)
        variance += std::pow(static_cast<float>(x[row * columns + i]) - mean, 2) / columns;
      for (int i = 0; i < columns; ++i) {
        const double centered = static_cast<float>(x[row * columns + i]) - mean;
        const double expected = centered / std::sqrt(variance + 1e-5) * weight[i] + bias[i];
        // A NaN from uninitialized shared memory must fail the check.
        const double error = std::abs(static_cast<float>(y[row * columns + i]) - expected);
        worst = error <= worst ? worst : error;
      }
    }
    CHECK(worst < (sizeof(T) == 4 ? 1e-4 : 0.06));
  });
}

TEST_CASE("a tiled matrix product with ragged edges") {
  in_all_orders([] {
    const int m = 37, n = 50, k = 45;
    std::vector<float> a(m * k), b(k * n), c(m * n);
    for (int i = 0; i < m * k; ++i)
      a[i] = static_cast<float>(i % 7 - 3);
    for (int i = 0; i < k * n; ++i)
      b[i] = static_cast<float>(i % 5 - 2);
    simt::launch("tiled_matmul", tiled_matmul<float, 16>, dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16), 0, nullptr,
                 a.data(), b.data(), c.data(), m, n, k);
    synchronize();
    int wrong = 0;
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        float expected = 0;
        for (int l = 0; l < k; ++l)
          expected += a[i * k + l] * b[l * n + j];
        wrong += c[i * n + j] == expected ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("a histogram through atomics in shared and in global memory") {
  in_all_orders([] {
    const int n = 8000;
    std::vector<int> x(n);
    std::vector<unsigned> counts(64), expected(64);
    for (int i = 0; i < n; ++i)
      ++expected[(x[i] = i * i) & 63];
    simt::launch("histogram", histogram, 5, 128, 0, nullptr, x.data(), counts.data(), n);
    synchronize();
    CHECK(counts == expected);
  });
}

TEST_CASE("atomics of every size count every thread") {
  struct Counts {
    static void kernel(double* wide, float* single, __half* half, unsigned* wrapped, int* largest, int* owner) {
      atomicAdd(wide, 0.5);
      atomicAdd(single, 0.5f);
      atomicAdd(half, __float2half(0.5f));
      atomicInc(wrapped, 9);
      atomicMax(largest, static_cast<int>(threadIdx.x));
      atomicCAS(owner, -1, static_cast<int>(threadIdx.x));
    }
  };
  in_all_orders([] {
    double wide = 0;
    float single = 0;
    __half half = __float2half(0);
    unsigned wrapped = 0;
    int largest = -5, owner = -1;
    simt::launch("counts", Counts::kernel, 4, 32, 0, nullptr, &wide, &single, &half, &wrapped, &largest, &owner);
    synchronize();
    CHECK(wide == 64);
    CHECK(single == 64);
    CHECK(__half2float(half) == 64);
    CHECK(wrapped == 8);
    CHECK(largest == 31);
    CHECK(owner >= 0);
  });
}

TEST_CASE("every thread and block of a three-dimensional launch runs once") {
  struct Visits {
    static void kernel(int* visits) {
      const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      ++visits[block * (blockDim.x * blockDim.y * blockDim.z) + thread];
    }
  };
  in_all_orders([] {
    std::vector<int> visits(2 * 3 * 4 * 5 * 6 * 7, 0);
    simt::launch("visits", Visits::kernel, dim3(2, 3, 4), dim3(5, 6, 7), 0, nullptr, visits.data());
    synchronize();
    CHECK(visits == std::vector<int>(visits.size(), 1));
  });
}

TEST_CASE("bit operations and conversions agree with the device's definition") {
  CHECK(__popc(0xf0f0u) == 8);
  CHECK(__clz(1) == 31);
  CHECK(__clz(0) == 32);
  CHECK(__ffs(0) == 0);
  CHECK(__ffs(8) == 4);
  CHECK(__brev(1u) == 0x80000000u);
  CHECK(__umulhi(0xffffffffu, 0xffffffffu) == 0xfffffffeu);
  CHECK(__mulhi(-1, 5) == -1);
  CHECK(__umul64hi(~0ull, ~0ull) == ~1ull);
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rn(3.5f) == 4);
  CHECK(__float_as_uint(1.0f) == 0x3f800000u);
  CHECK(min(2.0f, NAN) == 2.0f);
  CHECK(max(NAN, 2.0f) == 2.0f);
  CHECK(max(3, -4) == 3);
  CHECK(rsqrtf(4.0f) == 0.5f);
}
