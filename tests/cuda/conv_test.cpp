// Convolutions through cuDNN (its stand-in in the emulation), compared with the CPU in float64.
#include "on_device.h"

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/kernels/conv.h>
#include <brigade/kernels/cuda/detail/conv_library.h>

namespace brigade::test::conv_test {
using namespace brigade::kernels;
namespace device = brigade::cuda;
namespace library = brigade::kernels::cuda;

namespace {

// For sums of `terms` products of numbers around 3. The error of some algorithms (Winograd, FFT) is relative to the
// largest of them; half types are rounded at most twice.
double bound(DType dtype, int64_t terms) {
  return (is_half(dtype) ? 30 : 100) * tolerance(dtype) * std::sqrt(static_cast<double>(terms) + 1);
}

struct Case {
  Shape x, weight;
  Conv2dParams params;
};
const std::vector<Case> kCases{{{2, 3, 7, 6}, {4, 3, 3, 3}, {}},
                               {{1, 16, 9, 9}, {8, 16, 3, 3}, {.padding = {1, 1}}},
                               {{2, 4, 8, 5}, {6, 2, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}},
                               {{1, 2, 9, 9}, {2, 2, 3, 3}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}}},
                               {{3, 8, 4, 4}, {8, 1, 3, 3}, {.padding = {1, 1}, .groups = 8}},
                               {{5, 7, 1, 1}, {3, 7, 1, 1}, {}},
                               {{1, 1, 1, 1}, {1, 1, 1, 1}, {}}};

uint64_t plans_made() { return library::convolution_plan_stats(0).made; }
uint64_t library_calls() { return plans_made() + library::convolution_plan_stats(0).found; }

// Checks all three passes of x, weight, bias against the CPU.
void check_passes(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dParams& params) {
  const DType dtype = x.dtype();
  CAPTURE(name(dtype));
  CAPTURE(to_string(x.sizes()));
  CAPTURE(to_string(weight.sizes()));
  const int64_t depth = weight.numel() / weight.sizes()[0];
  const Tensor y = conv2d(exact(x), exact(weight), exact(bias), params);
  const Tensor found = conv2d(x, weight, bias, params);
  CHECK(found.dtype() == dtype);
  CHECK(difference(exact(found), y) <= bound(dtype, depth));
  const Tensor grad = on_device(numbers(y.sizes(), dtype, 9));
  CHECK(difference(exact(conv2d_backward_input(grad, weight, {}, x.sizes(), params)),
                   conv2d_backward_input(exact(grad), exact(weight), {}, x.sizes(), params)) <=
        bound(dtype, depth * weight.sizes()[0] / x.sizes()[1] * params.groups));
  const Tensor dweight = conv2d_backward_weight(exact(grad), exact(x), weight.sizes(), params, {}, false);
  const double weight_bound = bound(dtype, y.numel() / y.sizes()[1]);
  CHECK(difference(exact(conv2d_backward_weight(grad, x, weight.sizes(), params, {}, false)), dweight) <= weight_bound);
  // Writes to a given gradient, aligned or not: overwriting and accumulating.
  for (const int64_t shift : {0, 1}) {
    const Tensor out = shifted(on_device(numbers(weight.sizes(), dtype, 7)), shift);
    const Tensor sum = binary(exact(out), dweight, BinaryOp::Add);
    CHECK(conv2d_backward_weight(grad, x, weight.sizes(), params, out, true).is_same(out));
    CHECK(difference(exact(out), sum) <= 2 * weight_bound);
    conv2d_backward_weight(grad, x, weight.sizes(), params, out, false);
    CHECK(difference(exact(out), dweight) <= weight_bound);
  }
}

}  // namespace

TEST_CASE("convolution forward and backward: strides, padding, dilation, groups, all dtypes") {
  for (const DType dtype : kFloatingDTypes) {
    for (const Case& c : kCases) {
      const Tensor x = on_device(numbers(c.x, dtype, 1));
      const Tensor weight = on_device(numbers(c.weight, dtype, 2));
      const Tensor bias = on_device(numbers({c.weight[0]}, dtype, 3));
      check_passes(x, weight, bias, c.params);
      check_passes(shifted(x, 1), shifted(weight, 3), {}, c.params);
      check_passes(x, weight, shifted(bias, 1), c.params);
    }
  }
}

TEST_CASE("views that are not dense are copied first") {
  const Tensor x = on_device(numbers({2, 9, 8, 3}, kFloat32, 1));
  const Tensor weight = on_device(numbers({3, 3, 5, 6}, kFloat32, 2));
  const Tensor biases = on_device(numbers({5, 2}, kFloat32, 3));
  // Channels last, and every second kernel row.
  check_passes(view::permute(x, {0, 3, 1, 2}), view::slice(view::permute(weight, {2, 1, 3, 0}), 2, 0, 6, 2),
               view::select(biases, 1, 1), {});
  check_passes(view::slice(view::permute(x, {0, 3, 1, 2}), 2, 1, 7), view::permute(weight, {2, 1, 0, 3}), {},
               {.stride = {2, 2}, .padding = {0, 2}});
}

TEST_CASE("empty batches, channels and kernels give what nothing adds up to; the library is not asked") {
  const uint64_t before = library_calls();
  const Tensor bias = numbers({2}, kFloat32, 3);
  const auto made = [](const Shape& sizes) { return on_device(numbers(sizes, kFloat32, 1)); };
  CHECK(conv2d(made({0, 1, 4, 4}), made({2, 1, 3, 3}), {}, {}).sizes() == Shape{0, 2, 2, 2});
  CHECK(conv2d_backward_input(made({0, 2, 2, 2}), made({2, 1, 3, 3}), {}, {0, 1, 4, 4}, {}).sizes() ==
        Shape{0, 1, 4, 4});
  CHECK(difference(conv2d(made({1, 0, 4, 4}), made({2, 0, 3, 3}), on_device(bias), {}),
                   clone(view::expand(view::as_strided(bias, {2, 1, 1}, {1, 0, 0}, 0), {1, 2, 2, 2}))) == 0);
  CHECK(difference(conv2d_backward_input(made({3, 0, 2, 2}), made({0, 1, 3, 3}), {}, {3, 1, 4, 4}, {}),
                   zeros({3, 1, 4, 4})) == 0);
  CHECK(difference(conv2d_backward_weight(made({0, 2, 2, 2}), made({0, 1, 4, 4}), {2, 1, 3, 3}, {}, {}, false),
                   zeros({2, 1, 3, 3})) == 0);
  const Tensor out = made({2, 1, 3, 3});
  conv2d_backward_weight(made({0, 2, 2, 2}), made({0, 1, 4, 4}), {2, 1, 3, 3}, {}, out, true);
  CHECK(difference(out, numbers({2, 1, 3, 3}, kFloat32, 1)) == 0);
  conv2d_backward_weight(made({0, 2, 2, 2}), made({0, 1, 4, 4}), {2, 1, 3, 3}, {}, out, false);
  CHECK(difference(out, zeros({2, 1, 3, 3})) == 0);
  CHECK(library_calls() == before);
}

TEST_CASE("a convolution is planned once for its pass, shape, dtype and the settings") {
  const auto tensors = [](DType dtype) {
    return std::pair(on_device(numbers({2, 3, 10, 11}, dtype, 1)), on_device(numbers({4, 3, 3, 3}, dtype, 2)));
  };
  const auto [x, weight] = tensors(kFloat32);
  const auto [wide_x, wide_weight] = tensors(kFloat64);
  const Tensor expected = conv2d(exact(x), exact(weight), {}, {});
  const auto run = [&, x = x, weight = weight] {
    const uint64_t before = plans_made();
    CHECK(difference(exact(conv2d(x, weight, {}, {})), expected) <= 1e-2);
    return plans_made() - before;
  };
  const auto run_wide = [x = wide_x, weight = wide_weight] {
    const uint64_t before = plans_made();
    conv2d(x, weight, {}, {});
    return plans_made() - before;
  };
  CHECK(run() == 1);
  CHECK(run() == 0);
  CHECK(run_wide() == 1);
  device::set_allow_tf32(true);
  CHECK(run() == 1);
  CHECK(run() == 0);
  CHECK(run_wide() == 0);
  device::set_allow_tf32(false);
  CHECK(run() == 0);
  device::set_deterministic_convolution(false);
  CHECK(run() == 1);
  device::set_deterministic_convolution(true);
  const size_t limit = device::convolution_workspace_limit();
  CHECK(limit == size_t{256} << 20);
  device::set_convolution_workspace_limit(0);
  CHECK(run() == 1);
  device::set_convolution_workspace_limit(limit);
  CHECK(run() == 0);
  const uint64_t before = plans_made();
  conv2d_backward_input(on_device(expected), wide_weight, {}, {2, 3, 10, 11}, {});
  conv2d(wide_x, wide_weight, {}, {.stride = {2, 2}});
  CHECK(plans_made() - before == 2);
}

TEST_CASE("convolutions run on the current stream, in its order, on any device") {
  const Tensor x = numbers({2, 3, 8, 8}, kFloat32, 1);
  const Tensor weight = numbers({4, 3, 3, 3}, kFloat32, 2);
  const Tensor bias = numbers({4}, kFloat32, 3);
  const Tensor expected = conv2d(exact(x), exact(weight), exact(bias), {});
  const Tensor source = on_device(x);
  const Tensor filter = on_device(weight);
  const Tensor shift = on_device(bias);
  const Tensor input = on_device(zeros(x.sizes()));
  for (int round = 0; round < 20; ++round) {
    const device::Stream first = device::Stream::create();
    const device::Stream second = device::Stream::create();
    device::Event start;
    start.record(device::current_stream());
    start.block(first);
    device::Event filled;
    {
      const device::StreamGuard guard(first);
      copy(input, source);
      filled.record(first);
    }
    Tensor found;
    {
      const device::StreamGuard guard(second);
      filled.block(second);
      found = conv2d(input, filter, shift, {});
      add_inplace(found, conv2d(input, filter, shift, {}), 1.0);
      scale_inplace(found, 0.5);
      second.synchronize();
    }
    CHECK(difference(exact(found), expected) <= bound(kFloat32, 27));
    fill(input, 0);
  }
  if (device::device_count() < 2) return;
  const Device other(kCUDA, 1);
  const auto on_other = [&](const Tensor& t) {
    const Tensor result = empty(t.sizes(), {t.dtype(), other});
    copy(result, t);
    return result;
  };
  CHECK(difference(exact(conv2d(on_other(x), on_other(weight), on_other(bias), {})), expected) <= bound(kFloat32, 27));
}

TEST_CASE("what is no convolution is refused before the library sees it") {
  const uint64_t before = library_calls();
  const auto made = [](const Shape& sizes) { return on_device(zeros(sizes)); };
  const Tensor x = made({1, 3, 4, 4});
  const Tensor weight = made({2, 3, 3, 3});
  CHECK_THROWS_AS(conv2d(x, made({2, 2, 3, 3}), {}, {}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, made({2, 3, 5, 5}), {}, {}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, weight, made({3}), {}), ShapeError);
  CHECK_THROWS_AS(conv2d(x, weight, {}, {.stride = {0, 1}}), ValueError);
  CHECK_THROWS_AS(conv2d(x, on_device(zeros({2, 3, 3, 3}, kFloat64)), {}, {}), DTypeError);
  CHECK_THROWS_AS(conv2d(x, zeros({2, 3, 3, 3}), {}, {}), DeviceError);
  CHECK_THROWS_AS(conv2d(x, weight, zeros({2}), {}), DeviceError);
  CHECK_THROWS_WITH_AS(conv2d_backward_input(made({1, 2, 3, 2}), weight, {}, {1, 3, 4, 4}, {}),
                       "conv2d backward: expected a gradient [1, 2, 2, 2], got float32 [1, 2, 3, 2] on cuda:0",
                       ShapeError);
  CHECK_THROWS_AS(conv2d_backward_weight(made({1, 2, 2, 2}), x, {2, 3, 3, 3}, {}, made({2, 3, 3, 2}), false),
                  ShapeError);
  CHECK_THROWS_AS(conv2d_backward_weight(made({1, 2, 2, 2}), x, {2, 3, 3, 3}, {}, zeros({2, 3, 3, 3}), true),
                  DeviceError);
  // Too large for cuDNN and for any memory: only planned, never accessed.
  library::ConvolutionCall huge;
  huge.shape = {.batch = 1 << 20,
                .channels = 1,
                .height = 64,
                .width = 64,
                .out_channels = 1,
                .kernel_h = 1,
                .kernel_w = 1,
                .out_h = 64,
                .out_w = 64,
                .params = {}};
  CHECK_THROWS_WITH_AS(library::convolution(huge, kDevice), doctest::Contains("has 2^31 elements or more"), ShapeError);
  CHECK(library_calls() == before);
  CHECK(library::describe({library::ConvolutionPass::BackwardWeight, kFloat16, false, true, 0, huge.shape}) ==
        "conv2d backward (weight) of float16 [1048576, 1, 64, 64] with weight [1, 1, 1, 1], stride [1, 1], padding "
        "[0, 0], dilation [1, 1], groups 1");
}

}  // namespace brigade::test::conv_test
