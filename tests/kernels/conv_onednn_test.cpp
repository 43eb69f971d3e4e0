// bfloat16 convolutions: results are within one rounding of float64, and go through oneDNN where the processor
// multiplies bfloat16.
#include <brigade/core/view.h>
#include <brigade/kernels/conv.h>
#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/kernel.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace brigade::test::conv_onednn_test {
using namespace brigade::kernels;
using test::at;
using test::random;

namespace {

Tensor wide(const Tensor& x) { return cast(x, kFloat64); }
Tensor magnitude(const Tensor& x) { return unary(wide(x), UnaryOp::Abs); }
Tensor plus(const Tensor& a, const Tensor& b) { return binary(a, b, BinaryOp::Add); }

// `found` is a sum of `terms` products, `exact` the same sum in float64, and `size` the sum of the products'
// magnitudes. A product of two bfloat16 numbers (8 digits each) is exact in float32 (24), so the only errors are those
// of the float32 additions, 2^-24 of at most `size` each, in any order, and one final rounding, 2^-8 of the sum. The
// first bound is doubled to cover their combination and the float64 sum. Rounding a sum before adding to it,
// multiplying rounded numbers, or accumulating in bfloat16 exceeds this bound.
void check_rounded_once(const Tensor& found, const Tensor& exact, const Tensor& size, int64_t terms) {
  REQUIRE(found.dtype() == kBFloat16);
  REQUIRE(found.sizes() == exact.sizes());
  double worst = 0;
  for (int64_t i = 0; i < exact.numel(); ++i) {
    const double bound = std::ldexp(std::abs(at(exact, i)), -8) + std::ldexp(at(size, i), -23) * double(terms + 1);
    worst = worse(worst, std::abs(at(found, i) - at(exact, i)) / (bound + 1e-30));
  }
  CHECK(worst <= 1);
}

// The passes for which oneDNN has bfloat16 convolutions, from version 2.6 and 3.2 to those of 2026: all three, none
// (except on processors with AMX), or some in some versions. For the remaining passes oneDNN would use column products,
// which are refused.
enum class Has { All, Some, None };

struct Row {
  std::string what;
  Shape x, w;
  Conv2dParams p;
  Has has = Has::All;
};
const std::vector<Row> kRows = {
    {"no padding", {2, 16, 9, 10}, {32, 16, 3, 3}, {}},
    {"padding", {2, 64, 14, 14}, {64, 64, 3, 3}, {.padding = {1, 1}}},
    {"stride and uneven padding", {2, 16, 11, 8}, {24, 16, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}}},
    {"dilation", {1, 16, 13, 12}, {16, 16, 3, 3}, {.stride = {1, 2}, .padding = {2, 1}, .dilation = {2, 3}}, Has::Some},
    {"groups", {2, 32, 8, 7}, {64, 16, 3, 3}, {.padding = {1, 1}, .groups = 2}},
    {"groups of odd size", {2, 6, 8, 7}, {9, 2, 3, 3}, {.padding = {1, 1}, .groups = 3}, Has::None},
    {"depthwise", {3, 32, 9, 9}, {32, 1, 3, 3}, {.padding = {1, 1}, .groups = 32}},
    {"depthwise, two of a channel", {2, 5, 6, 7}, {10, 1, 3, 3}, {.stride = {2, 2}, .groups = 5}, Has::Some},
    {"1x1 on large planes", {2, 32, 24, 23}, {17, 32, 1, 1}, {}},
    {"1x1 on small planes", {3, 64, 7, 7}, {32, 64, 1, 1}, {}},
    {"1x1 with a stride", {2, 16, 9, 8}, {16, 16, 1, 1}, {.stride = {2, 2}}},
    {"colours of one image", {1, 3, 33, 31}, {16, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}},
    {"odd sizes", {3, 7, 5, 11}, {13, 7, 2, 3}, {.padding = {1, 2}}, Has::Some},
    {"one dimension", {2, 16, 1, 50}, {24, 16, 1, 5}, {.padding = {0, 2}}},
    {"one number", {1, 1, 1, 1}, {1, 1, 1, 1}, {}},
};

// What the processor and the environment support, determined without oneDNN.
bool must_multiply_bfloat16() {
#if defined(__x86_64__) && defined(__GNUC__)
  for (const char* limit : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (std::getenv(limit)) return false;
  }
  return cpu::onednn_conv_takes(kFloat32) && instruction_set() == "x86-64-v4" &&
         __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool has_amx() {
#if defined(__x86_64__) && defined(__GNUC__)
  // Read from CPUID leaf 7, since clang 16 does not know the name amx-bf16.
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx >> 22 & 1) != 0;
#else
  return false;
#endif
}

}  // namespace

TEST_CASE("convolutions of bfloat16 and their gradients are rounded once") {
  for (const Row& row : kRows) {
    CAPTURE(row.what);
    const Tensor x = random(row.x, 1, kBFloat16), w = random(row.w, 2, kBFloat16),
                 bias = random({row.w[0]}, 3, kBFloat16);
    const Tensor y = conv2d(x, w, bias, row.p);
    check_rounded_once(y, conv2d(wide(x), wide(w), wide(bias), row.p),
                       conv2d(magnitude(x), magnitude(w), magnitude(bias), row.p), row.w.numel() / row.w[0] + 1);
    check_rounded_once(conv2d(x, w, {}, row.p), conv2d(wide(x), wide(w), {}, row.p),
                       conv2d(magnitude(x), magnitude(w), {}, row.p), row.w.numel() / row.w[0]);
    const Tensor g = random(y.sizes(), 4, kBFloat16);
    check_rounded_once(
        conv2d_backward_input(g, w, {}, row.x, row.p), conv2d_backward_input(wide(g), wide(w), {}, row.x, row.p),
        conv2d_backward_input(magnitude(g), magnitude(w), {}, row.x, row.p), row.w.numel() / row.w[1] / row.p.groups);
    const Tensor shift = random({row.x[1]}, 6, kBFloat16);
    check_rounded_once(conv2d_backward_input(g, w, shift, row.x, row.p),
                       conv2d_backward_input(wide(g), wide(w), wide(shift), row.x, row.p),
                       conv2d_backward_input(magnitude(g), magnitude(w), magnitude(shift), row.x, row.p),
                       row.w.numel() / row.w[1] / row.p.groups + 1);
    const int64_t pixels = g.numel() / row.w[0];
    const Tensor exact = conv2d_backward_weight(wide(g), wide(x), row.w, row.p, {}, false);
    const Tensor size = conv2d_backward_weight(magnitude(g), magnitude(x), row.w, row.p, {}, false);
    check_rounded_once(conv2d_backward_weight(g, x, row.w, row.p, {}, false), exact, size, pixels);
    // Accumulates into existing values before the rounding.
    const Tensor held = random(row.w, 5, kBFloat16), out = clone(held);
    CHECK(conv2d_backward_weight(g, x, row.w, row.p, out, true).is_same(out));
    check_rounded_once(out, plus(exact, wide(held)), plus(size, magnitude(held)), pixels + 1);
    conv2d_backward_weight(g, x, row.w, row.p, out, false);
    check_rounded_once(out, exact, size, pixels);
  }
}

TEST_CASE("convolutions of bfloat16 go to oneDNN where the processor multiplies it, through float32 elsewhere") {
  const bool takes = cpu::onednn_conv_takes(kBFloat16);
  if (must_multiply_bfloat16()) CHECK(takes);
  if (instruction_set() != "x86-64-v4") CHECK_FALSE(takes);
  for (const DType dtype : {kFloat16, kFloat64, kInt64})
    CHECK_FALSE(cpu::onednn_conv_takes(dtype));
  for (const Row& row : kRows) {
    CAPTURE(row.what);
    const Tensor x = random(row.x, 1, kBFloat16), w = random(row.w, 2, kBFloat16);
    Tensor y;
    const std::function<void()> passes[] = {
        [&] { y = conv2d(x, w, {}, row.p); }, [&] { conv2d_backward_input(y, w, {}, row.x, row.p); },
        [&] { conv2d_backward_input(y, w, random({row.x[1]}, 3, kBFloat16), row.x, row.p); },
        [&] { conv2d_backward_weight(y, x, row.w, row.p, {}, false); }};
    for (const auto& pass : passes) {
      const int64_t floats_before = cpu::onednn_conv_passes(kFloat32);
      const int64_t halves_before = cpu::onednn_conv_passes(kBFloat16);
      pass();
      const int64_t floats = cpu::onednn_conv_passes(kFloat32) - floats_before;
      const int64_t halves = cpu::onednn_conv_passes(kBFloat16) - halves_before;
      CHECK(floats + halves <= 1);
      CHECK(halves <= takes);
      if (row.has == Has::All) CHECK(halves == takes);
      if (row.has == Has::None && !has_amx()) CHECK(halves == 0);
    }
  }
}

TEST_CASE("a convolution of bfloat16 takes tensors of any layout, and makes a primitive for each dtype and shape") {
  const Row& row = kRows[1];
  const Tensor w = random(row.w, 2, kBFloat16);
  // Channels last, and strided rows.
  const Tensor last = view::permute(random({2, 14, 14, 64}, 1, kBFloat16), {0, 3, 1, 2});
  const Tensor gaps = view::slice(random({2, 64, 14, 28}, 6, kBFloat16), 3, 0, 28, 2);
  const Tensor turned = view::transpose(w, 0, 1);
  const auto bits = [](const Tensor& x) { return x.to_vector<float>(); };
  for (const Tensor& x : {last, gaps}) {
    REQUIRE_FALSE(x.is_contiguous());
    const Tensor y = conv2d(x, turned, {}, row.p);
    CHECK(bits(y) == bits(conv2d(contiguous(x), contiguous(turned), {}, row.p)));
    CHECK(bits(conv2d_backward_input(x, turned, {}, row.x, row.p)) ==
          bits(conv2d_backward_input(contiguous(x), contiguous(turned), {}, row.x, row.p)));
    CHECK(bits(conv2d_backward_weight(x, x, row.w, row.p, {}, false)) ==
          bits(conv2d_backward_weight(contiguous(x), contiguous(x), row.w, row.p, {}, false)));
  }
  // A strided bias.
  const Tensor bias = view::slice(random({128}, 3, kBFloat16), 0, 0, 128, 2);
  CHECK(bits(conv2d(gaps, w, bias, row.p)) == bits(conv2d(gaps, w, contiguous(bias), row.p)));
  // The same shape in both dtypes and with alternating parameters. Whole numbers, so both results are exact.
  const Tensor x = numbers(row.x, kBFloat16), filter = numbers(row.w, kBFloat16, 2);
  for (const int64_t padding : {1, 2, 1}) {
    for (const int64_t dilation : {1, 2}) {
      const Conv2dParams p{.padding = {padding, padding}, .dilation = {dilation, dilation}};
      const Tensor in_float = conv2d(cast(x, kFloat32), cast(filter, kFloat32), {}, p);
      CHECK(bits(conv2d(x, filter, {}, p)) == bits(cast(in_float, kBFloat16)));
    }
  }
}

TEST_CASE("a convolution of bfloat16 without an image, and one of numbers that are not finite") {
  const Tensor w = random({4, 3, 3, 3}, 1, kBFloat16), bias = random({4}, 2, kBFloat16);
  const Tensor none = zeros({0, 3, 6, 6}, kBFloat16), no_grad = zeros({0, 4, 4, 4}, kBFloat16);
  CHECK(conv2d(none, w, bias, {}).sizes() == Shape{0, 4, 4, 4});
  CHECK(conv2d_backward_input(no_grad, w, {}, {0, 3, 6, 6}, {}).sizes() == Shape{0, 3, 6, 6});
  CHECK(conv2d_backward_weight(no_grad, none, {4, 3, 3, 3}, {}, {}, false).to_vector<float>() ==
        std::vector<float>(108, 0));
  // Non-finite values must propagate: the gradient scaler checks gradients for them.
  for (const double bad : {INFINITY, NAN}) {
    const Tensor x = full({1, 3, 6, 6}, 1, kBFloat16), g = full({1, 4, 4, 4}, bad, kBFloat16);
    const auto spoilt = [](const Tensor& found) {
      for (const float value : found.to_vector<float>())
        CHECK_FALSE(std::isfinite(value));
    };
    spoilt(conv2d_backward_weight(g, x, {4, 3, 3, 3}, {}, {}, false));
    spoilt(conv2d_backward_input(g, w, {}, {1, 3, 6, 6}, {}));
    spoilt(conv2d(full({1, 3, 6, 6}, bad, kBFloat16), w, bias, {}));
  }
}

}  // namespace brigade::test::conv_onednn_test
