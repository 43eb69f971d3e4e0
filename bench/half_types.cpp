// What half types cost per element: each operation in float16 and bfloat16 beside float32, and casts
// beside a copy, in turns.
//
//   bench_half_types [ROUNDS] [ELEMENTS]     31 rounds, 4194304 elements
//
// Prints the least time per element, and its ratio to that of float32. For a cast it is the
// bandwidth (bytes read and written) beside that of a copy of float32, which is to be high. (What
// else the machine does only adds to a time.)
#include "number_in.h"

#include <brigade/autograd/functional.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

using namespace brigade;

namespace {

constexpr int64_t kRow = 1024;

struct Operation {
  const char* name;
  std::function<Tensor(const Tensor&)> run;
};

std::vector<Operation> operations() {
  return {
      {"add", [](const Tensor& x) { return x + x; }},
      {"mul by a number", [](const Tensor& x) { return x * 1.5; }},
      {"exp", [](const Tensor& x) { return exp(x); }},
      {"relu", [](const Tensor& x) { return relu(x); }},
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"tanh", [](const Tensor& x) { return tanh(x); }},
      {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {kRow}); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, {kRow}); }},
      {"sum", [](const Tensor& x) { return sum(x); }},
      {"sum of rows", [](const Tensor& x) { return sum(x, {1}); }},
      {"sum of columns", [](const Tensor& x) { return sum(x, {0}); }},
      {"mean", [](const Tensor& x) { return mean(x); }},
      {"amax of rows", [](const Tensor& x) { return amax(x, {1}); }},
  };
}

double nanoseconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

// The least time of each, in turns.
std::vector<double> least(const std::vector<std::function<void()>>& bodies, int rounds) {
  std::vector<double> times(bodies.size(), std::numeric_limits<double>::infinity());
  for (int round = -2; round < rounds; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const double time = nanoseconds(bodies[i]);
      if (round >= 0) times[i] = std::min(times[i], time);
    }
  }
  return times;
}

int usage(std::FILE* out, const char* program, int status) {
  std::fprintf(out, "usage: %s [ROUNDS] [ELEMENTS]\nExample:\n  OMP_NUM_THREADS=1 %s 31 4194304\n", program, program);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string_view("--help")) return usage(stdout, argv[0], 0);
  const int rounds = argc > 1 ? number_in(argv[1]) : 31;
  const int64_t asked = argc > 2 ? number_in<int64_t>(argv[2]) : 1 << 22;
  if (argc > 3 || rounds == 0 || asked == 0) return usage(stderr, argv[0], 2);
  const NoGradGuard no_grad;
  const int64_t rows = std::max<int64_t>(1, asked / kRow);
  const auto elements = static_cast<double>(rows * kRow);
  const std::vector<DType> dtypes{kFloat32, kFloat16, kBFloat16};
  std::vector<Tensor> in;
  for (const DType dtype : dtypes)
    in.push_back(randn({rows, kRow}).to(dtype));

  std::printf("%-22s %10s %18s %18s\n", "ns per 1000 elements", "float32", "float16 (ratio)", "bfloat16 (ratio)");
  for (const Operation& operation : operations()) {
    std::vector<std::function<void()>> bodies;
    for (const Tensor& each : in)
      bodies.emplace_back([&operation, &each] { operation.run(each); });
    const std::vector<double> times = least(bodies, rounds);
    std::printf("%-22s %10.1f %10.1f (%5.2f) %10.1f (%5.2f)\n", operation.name, times[0] / elements * 1e3,
                times[1] / elements * 1e3, times[1] / times[0], times[2] / elements * 1e3, times[2] / times[0]);
  }

  // Into memory that is there.
  std::vector<std::function<void()>> bodies;
  struct Cast {
    size_t from, to;
  };
  const std::vector<Cast> casts{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {1, 2}, {2, 1}};
  std::vector<Tensor> out;
  for (const Cast& cast : casts)
    out.push_back(zeros({rows, kRow}, dtypes[cast.to]));
  for (size_t i = 0; i < casts.size(); ++i)
    bodies.emplace_back([&, i] { kernels::copy(out[i], in[casts[i].from]); });
  const std::vector<double> times = least(bodies, rounds);
  const auto bytes = [&](const Cast& cast) {
    return elements * static_cast<double>(itemsize(dtypes[cast.from]) + itemsize(dtypes[cast.to]));
  };
  std::printf("\n%-22s %10s %18s\n", "cast", "GB/s", "of a copy's");
  for (size_t i = 0; i < casts.size(); ++i) {
    const double bandwidth = bytes(casts[i]) / times[i];
    std::printf("%-8s to %-10s %10.2f %18.2f\n", name(dtypes[casts[i].from]), name(dtypes[casts[i].to]), bandwidth,
                bandwidth / (bytes(casts[0]) / times[0]));
  }
}
