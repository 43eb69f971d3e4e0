// Benchmarks the memory bandwidth that the memory-bound kernels reach: a copy, addition, softmax, layer norm, a sum, a
// step of AdamW, and the kernels of a bucket of gradients (64 tensors and a flat buffer), at sizes from 1 to 256 MiB
// per tensor or bucket.
//
// The reference is the device's own copy (cudaMemcpyAsync) of the same size in the same run. The bandwidth counts the
// bytes that an operation must read and write. Times are between events around one call, medians of repeats; before
// each repeat a large buffer is read, so that the L2 cache holds no data of the benchmark and nothing to write back.
//
// Usage: bench_cuda_kernels [--json] [--smoke] [REPEATS]
#include "cuda_timing.h"

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/error.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/bucket.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>
#include <brigade/kernels/normalization.h>
#include <brigade/kernels/optimizer.h>
#include <brigade/kernels/reduce.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

using namespace brigade;

namespace {

constexpr int64_t kRow = 1024;  // elements per row of softmax and layer norm
constexpr int64_t kSlots = 64;  // tensors of a bucket
constexpr int64_t kMiB = int64_t{1} << 20;
const Device kGpu(kCUDA, 0);

struct Row {
  std::string op;
  DType dtype;
  int64_t bytes;  // of one tensor
  double us;
  double gb_per_s;
};

std::vector<Row> measure(DType dtype, int64_t bytes, const bench::Timing& timing) {
  const int64_t count = bytes / static_cast<int64_t>(itemsize(dtype));
  const auto make = [&] { return randn({count / kRow, kRow}, {dtype, kGpu}); };
  const Tensor a = make(), b = make(), out = make();
  const Tensor exp_avg = zeros_like(a), exp_avg_sq = zeros_like(a);
  const kernels::AdamParams adam{1e-3, 0.9, 0.999, 1e-8, 1e-2, 10, true, false};
  const Tensor weight = ones({kRow}, {dtype, kGpu}), bias = zeros({kRow}, {dtype, kGpu});
  // Parts of `a`, and their offsets in a flat `out`.
  const int64_t slots = std::min(kSlots, count / kRow), slot_rows = count / kRow / slots;
  std::vector<Tensor> parts;
  std::vector<int64_t> offsets, numels(static_cast<size_t>(slots), slot_rows * kRow);
  for (int64_t i = 0; i < slots; ++i) {
    parts.push_back(view::slice(a, 0, i * slot_rows, (i + 1) * slot_rows));
    offsets.push_back(i * slot_rows * kRow);
  }
  const Tensor flat = view::flat(out);
  const Tensor sums = zeros({slots}, {kFloat64, kGpu});

  std::vector<Row> rows;
  const auto add = [&](const char* op, double tensors, const std::function<void()>& call) {
    const double us = bench::device_times(call, timing).median;
    rows.push_back({op, dtype, bytes, us, tensors * static_cast<double>(bytes) / us / 1e3});
  };
  add("memcpy", 2, [&] {
    cuda::check(cudaMemcpyAsync(out.raw_data(), a.raw_data(), static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                                cuda::current_stream().get()),
                "cudaMemcpyAsync");
  });
  add("copy", 2, [&] { kernels::copy(out, a); });
  add("add", 3, [&] { kernels::binary(a, b, kernels::BinaryOp::Add); });
  add("softmax", 2, [&] { kernels::softmax(a, 1); });
  add("layer_norm", 2, [&] { kernels::layer_norm(a, {kRow}, weight, bias, 1e-5); });
  add("sum", 1, [&] { kernels::sum(a, {}); });
  add("adamw", 7, [&] { kernels::adam_step(out, b, exp_avg, exp_avg_sq, Tensor(), adam); });
  add("bucket_flatten", 2, [&] { kernels::bucket_flatten(flat, parts, offsets, 0.5); });
  add("bucket_unflatten", 2, [&] { kernels::bucket_unflatten(flat, Tensor(), parts, offsets, 1); });
  add("bucket_norms", 1, [&] { kernels::bucket_sums_of_squares(flat, offsets, numels, sums); });
  return rows;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("| op | dtype | MiB per tensor | µs | GB/s | share of memcpy |\n|---|---|---|---|---|---|\n");
  double memcpy_rate = 0;
  for (const Row& row : rows) {
    if (row.op == "memcpy") memcpy_rate = row.gb_per_s;
    fmt::print("| {} | {} | {} | {:.1f} | {:.0f} | {:.0f} % |\n", row.op, name(row.dtype), row.bytes / kMiB, row.us,
               row.gb_per_s, 100 * row.gb_per_s / memcpy_rate);
  }
}

void print_json(const std::vector<Row>& rows) {
  fmt::print("[\n");
  for (const Row& row : rows) {
    fmt::print(R"(  {{"op": "{}", "dtype": "{}", "bytes": {}, "us": {:.3f}, "gb_per_s": {:.1f}}}{})", row.op,
               name(row.dtype), row.bytes, row.us, row.gb_per_s, &row == &rows.back() ? "\n" : ",\n");
  }
  fmt::print("]\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, 50);
  if (cuda::device_count() == 0) {
    fmt::print(stderr, "bench_cuda_kernels: {}\n", cuda::why_not_available());
    return 77;
  }
  const Tensor flush = zeros({arguments.smoke ? 1000 : 128 * kMiB}, {kFloat32, kGpu});  // 512 MiB, except for --smoke
  bench::Timing timing{.repeats = arguments.repeats, .before = [&] { kernels::sum(flush, {}); }};
  if (arguments.smoke) timing.warm_up = 1;
  const int64_t unit = arguments.smoke ? 8 << 10 : kMiB;
  std::vector<Row> rows;
  for (const DType dtype : {kFloat32, kBFloat16}) {
    for (const int64_t size : {1, 4, 16, 64, 256}) {
      if (arguments.smoke && size > 4) break;
      for (Row& row : measure(dtype, size * unit, timing))
        rows.push_back(std::move(row));
    }
  }
  if (arguments.json) {
    print_json(rows);
  } else {
    fmt::print("{}, medians of {}, L2 flushed\n\n", cuda::properties(0).name, arguments.repeats);
    print_table(rows);
  }
  return 0;
}
