// CUDA kernels of attention.h, compared with the CPU's: sizes around a tile, widths around each padded width, masks,
// dropout, strides.
#include "on_device.h"

#include <brigade/core/cuda/device.h>
#include <brigade/kernels/attention.h>

#include <array>

namespace brigade::test::attention_test {
using namespace brigade::kernels;

namespace {

// Allows for other summation orders and another exp.
double attention_tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-13 : dtype == kFloat32 ? 5e-6 : 2 * tolerance(dtype);
}

// Small, because gradients are sums of products of four of them.
Tensor small_numbers(const Shape& sizes, DType dtype, uint64_t seed) {
  const Tensor x = numbers(sizes, dtype, seed);
  scale_inplace(x, 0.25);
  return x;
}

struct Operands {
  Tensor q, k, v, grad;
};
// [batch..., queries, width] etc.
Operands operands(const Shape& batch, std::array<int64_t, 4> sizes, DType dtype) {
  const auto make = [&](int64_t rows, int64_t columns, uint64_t seed) {
    Shape all = batch;
    all.push_back(rows);
    all.push_back(columns);
    return small_numbers(all, dtype, seed);
  };
  const auto [queries, keys, width, value_width] = sizes;
  return {make(queries, width, 1), make(keys, width, 2), make(keys, value_width, 3), make(queries, value_width, 4)};
}

// `there`: the operands on the device, in the layout chosen by the caller.
void agree(const Operands& here, const Operands& there, const AttentionOptions& options) {
  const double bound = attention_tolerance(here.q.dtype());
  AttentionOptions on_the_device = options;
  if (options.mask.defined()) on_the_device.mask = on_device(options.mask);
  const Attention expected = attention(here.q, here.k, here.v, options);
  const Attention found = attention(there.q, there.k, there.v, on_the_device);
  CHECK(difference(found.out, expected.out) <= bound);
  CHECK(difference(found.logsumexp, expected.logsumexp) <= (here.q.dtype() == kFloat64 ? 1e-13 : 2e-6));
  // Both backwards start from the same result, so that its rounding does not count twice.
  const Attention given{on_device(expected.out), on_device(expected.logsumexp)};
  const AttentionWanted wanted{.mask = options.mask.defined() && options.mask.dtype() != kBool};
  const AttentionGradients a = attention_backward(here.grad, here.q, here.k, here.v, expected, options, wanted);
  const AttentionGradients b = attention_backward(there.grad, there.q, there.k, there.v, given, on_the_device, wanted);
  CHECK(difference(b.q, a.q) <= 4 * bound);
  CHECK(difference(b.k, a.k) <= 4 * bound);
  CHECK(difference(b.v, a.v) <= 4 * bound);
  if (!wanted.mask) return;
  CHECK(b.mask.sizes() == options.mask.sizes());
  CHECK(b.mask.dtype() == options.mask.dtype());
  CHECK(difference(b.mask, a.mask) <= 4 * bound);
}

void agree(const Operands& here, const AttentionOptions& options) {
  agree(here, {on_device(here.q), on_device(here.k), on_device(here.v), on_device(here.grad)}, options);
}

}  // namespace

TEST_CASE("attention: dtypes, lengths and widths") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& sizes : std::vector<std::array<int64_t, 4>>{{1, 1, 1, 1},
                                                                 {1, 70, 20, 20},
                                                                 {65, 33, 64, 64},
                                                                 {17, 130, 80, 24},
                                                                 {33, 17, 128, 128},
                                                                 {18, 35, 20, 256},
                                                                 {5, 3, 129, 7}}) {
      CAPTURE(sizes[0]);
      CAPTURE(sizes[2]);
      agree(operands({2}, sizes, dtype), {.scale = 0.5});
    }
  }
}

TEST_CASE("causal attention over more than a tile, with as many keys as queries, more, and fewer") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& [queries, keys] : std::vector<std::array<int64_t, 2>>{{70, 70}, {130, 40}, {40, 130}}) {
      CAPTURE(queries);
      agree(operands({2}, {queries, keys, 8, 8}, dtype), {.is_causal = true, .scale = 0.3});
    }
    agree(operands({1}, {50, 50, 65, 65}, dtype), {.is_causal = true, .scale = 0.5});
    agree(operands({1}, {36, 36, 130, 130}, dtype), {.is_causal = true, .scale = 0.5});
  }
}

TEST_CASE("attention with masks that broadcast, and rows in which nothing counts") {
  for (const DType dtype : {kFloat32, kFloat16, kFloat64}) {
    CAPTURE(name(dtype));
    const Operands here = operands({2, 3}, {5, 70, 8, 8}, dtype);
    for (const Shape& sizes : {Shape{2, 3, 5, 70}, Shape{2, 1, 5, 70}, Shape{3, 1, 70}, Shape{5, 1}, Shape{}}) {
      CAPTURE(to_string(sizes));
      const Tensor bias = numbers(sizes, dtype, 5);
      agree(here, {.mask = bias, .scale = 0.2});
      agree(here, {.mask = compare_scalar(bias, 0.5, CompareOp::Greater), .scale = 0.2});
    }
    const Tensor some = numbers({5, 70}, dtype, 6);
    fill(view::select(some, 0, 2), -INFINITY);
    agree(here, {.mask = some});
    agree(here, {.mask = cast(some, kFloat32)});
  }
  // A NaN and an infinite score: the row is NaN, the others are not.
  for (const double odd : {double{NAN}, double{INFINITY}}) {
    const Operands here = operands({}, {4, 70, 8, 8}, kFloat32);
    const Tensor bias = zeros({4, 70});
    fill(view::select(view::select(bias, 0, 1), 0, 68), odd);
    const Tensor out =
        attention(on_device(here.q), on_device(here.k), on_device(here.v), {.mask = on_device(bias)}).out;
    const auto values = on_cpu(out).to_vector<float>();
    for (size_t i = 0; i < values.size(); ++i)
      CHECK(std::isnan(values[i]) == (i / 8 == 1));
  }
}

TEST_CASE("attention's dropout masks are the CPU's") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const auto& sizes : std::vector<std::array<int64_t, 4>>{{66, 67, 8, 8}, {17, 70, 72, 72}, {18, 33, 140, 140}})
      agree(operands({2}, sizes, dtype), {.scale = 0.5, .dropout_p = 0.4, .state = {3, 5}});
  }
  const Operands here = operands({2}, {40, 70, 8, 8}, kFloat32);
  agree(here, {.is_causal = true, .scale = 0.5, .dropout_p = 0.4, .state = {3, uint64_t{1} << 40}});
  agree(here, {.scale = 0.5, .dropout_p = 1});
}

TEST_CASE("attention takes heads from inside of rows, expanded, unaligned and transposed operands") {
  const auto same = [](const Tensor& x) { return Operands{x, x, x, x}; };
  for (const DType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    // [batch, length, which, heads, width]: q, k, and v of a projection, viewed as [batch, heads, length, width].
    const auto parts = [](const Tensor& base, const Tensor& grad) {
      const auto part = [&](int64_t which) { return view::transpose(view::select(base, 2, which), 1, 2); };
      return Operands{part(0), part(1), part(2), view::transpose(grad, 1, 2)};
    };
    for (const int64_t width : {16, 15}) {
      const Tensor base = small_numbers({2, 40, 3, 2, width}, dtype, 1),
                   grad = small_numbers({2, 40, 2, width}, dtype, 2);
      agree(parts(base, grad), parts(on_device(base), on_device(grad)), {.is_causal = true, .scale = 0.5});
    }
    // Unaligned at the first element, the second row, or the second head; and rows whose length is not a multiple of
    // the vector length.
    for (const auto& [columns, row, head, offset] : std::vector<std::array<int64_t, 4>>{
             {16, 24, 1000, 1}, {16, 18, 1000, 0}, {16, 16, 649, 0}, {15, 16, 1000, 0}}) {
      CAPTURE(columns);
      CAPTURE(row);
      const Tensor flat = small_numbers({2000}, dtype, 3);
      const auto seen = [&](const Tensor& x) { return view::as_strided(x, {2, 40, columns}, {head, row, 1}, offset); };
      agree(same(seen(flat)), same(seen(on_device(flat))), {.scale = 0.5});
    }
    // Transposed rows; a single row expanded to all.
    const Tensor turned = small_numbers({2, 16, 40}, dtype, 4), one = small_numbers({2, 1, 16}, dtype, 5);
    const auto rows = [](const Tensor& x) { return view::transpose(x, 1, 2); };
    const auto repeated = [](const Tensor& x) { return view::expand(x, {2, 40, 16}); };
    agree({rows(turned), repeated(one), rows(turned), repeated(one)},
          {rows(on_device(turned)), repeated(on_device(one)), rows(on_device(turned)), repeated(on_device(one))},
          {.scale = 0.5});
  }
  // The maximum number of leading dimensions, in an order that two strides cannot describe.
  const Tensor base = small_numbers({2, 1, 3, 2, 2, 1, 5, 4}, kFloat32, 6);
  const auto moved = [](const Tensor& x) { return view::permute(x, {4, 5, 2, 1, 3, 0, 6, 7}); };
  agree(same(moved(base)), same(moved(on_device(base))), {.scale = 0.3});
}

TEST_CASE("attention with heads of key and value that several heads of the query share") {
  for (const DType dtype : {kFloat32, kBFloat16}) {
    CAPTURE(name(dtype));
    const Operands whole = operands({2, 6}, {20, 40, 8, 8}, dtype);
    Operands here = whole;
    here.k = view::slice(whole.k, 1, 0, 2);
    here.v = view::slice(whole.v, 1, 0, 3);
    agree(here, {.is_causal = true, .scale = 0.5, .dropout_p = 0.25, .state = {3, 5}, .enable_gqa = true});
  }
}

TEST_CASE("attention that needs much shared memory runs on another device than the current one") {
  if (cuda::device_count() < 2) return;
  const Operands here = operands({2}, {20, 30, 200, 200}, kFloat64);
  const auto there = [](const Tensor& x) {
    const Tensor result = empty(x.sizes(), {x.dtype(), Device(kCUDA, 1)});
    copy(result, x);
    return result;
  };
  const Tensor q = there(here.q), k = there(here.k), v = there(here.v);
  const Attention expected = attention(here.q, here.k, here.v, {});
  const Attention found = attention(q, k, v, {});
  CHECK(cuda::current_device() == 0);
  CHECK(difference(found.out, expected.out) <= attention_tolerance(kFloat64));
  const AttentionGradients slopes = attention_backward(here.grad, here.q, here.k, here.v, expected, {}, {});
  const AttentionGradients got = attention_backward(there(here.grad), q, k, v, found, {}, {});
  CHECK(difference(got.q, slopes.q) <= 4 * attention_tolerance(kFloat64));
  CHECK(difference(got.v, slopes.v) <= 4 * attention_tolerance(kFloat64));
}

TEST_CASE("attention of nothing") {
  for (const auto& sizes : std::vector<std::array<int64_t, 4>>{{4, 0, 8, 8}, {0, 5, 8, 8}, {4, 5, 0, 3}, {4, 5, 3, 0}})
    agree(operands({2}, sizes, kFloat32), {});
  agree(operands({2, 0}, {4, 5, 8, 8}, kFloat32), {});
}

TEST_CASE("attention's backward on the device computes what is wanted, and the same bits each time") {
  const Operands here = operands({2}, {70, 80, 8, 8}, kFloat32);
  const Tensor q = on_device(here.q), k = on_device(here.k), v = on_device(here.v), grad = on_device(here.grad);
  const Attention result = attention(q, k, v, {});
  const AttentionGradients all = attention_backward(grad, q, k, v, result, {}, {});
  for (int which = 0; which < 8; ++which) {
    const AttentionWanted wanted{(which & 1) != 0, (which & 2) != 0, (which & 4) != 0};
    const AttentionGradients some = attention_backward(grad, q, k, v, result, {}, wanted);
    CHECK(some.q.defined() == wanted.q);
    CHECK(some.k.defined() == wanted.k);
    CHECK(some.v.defined() == wanted.v);
    if (wanted.q) CHECK(difference(some.q, on_cpu(all.q)) == 0);
    if (wanted.k) CHECK(difference(some.k, on_cpu(all.k)) == 0);
    if (wanted.v) CHECK(difference(some.v, on_cpu(all.v)) == 0);
  }
}

TEST_CASE("attention on the device says what does not fit") {
  const Tensor x = on_device(ones({2, 3, 4}));
  CHECK_THROWS_WITH_AS(attention(x, ones({2, 3, 4}), x, {}),
                       doctest::Contains("query, key and value must be on one device, got cuda:0, cpu and cuda:0"),
                       DeviceError);
  CHECK_THROWS_WITH_AS(attention(x, x, x, {.mask = ones({3, 3})}), doctest::Contains("attn_mask must be on the device"),
                       DeviceError);
  const Tensor wide = on_device(ones({3, 257}));
  CHECK_THROWS_WITH_AS(attention(wide, wide, wide, {}), doctest::Contains("widths up to 256 on CUDA, got 257"),
                       ShapeError);
  CHECK_THROWS_AS(attention(x, x, on_device(ones({2, 5, 4})), {}), ShapeError);
}

}  // namespace brigade::test::attention_test
