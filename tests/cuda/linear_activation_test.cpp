// Linear layers with an activation in cuBLASLt's epilogue (in the emulation, its stand-in's) and, where the library's
// rules forbid that, without it; compared with the CPU in float64.
#include "products.h"

#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/kernels/matmul.h>

#include <limits>

namespace brigade::test::linear_activation_test {
using namespace brigade::kernels;
namespace device = brigade::cuda;
namespace library = brigade::kernels::cuda;

namespace {

struct Form {
  FusedActivation activation;
  bool keep_pre;
};
constexpr Form kForms[] = {
    {FusedActivation::Relu, false}, {FusedActivation::GeluTanh, false}, {FusedActivation::GeluTanh, true}};

// LibrarysChoice: the stand-in has no algorithm (for odd operands of half types, and for a bias of a single column),
// while cuBLASLt may or may not have one.
enum class Fused : uint8_t { Yes, No, LibrarysChoice };

// Compares with the CPU in float64, and checks whether the library applied the activation.
void check_form(const Tensor& x, const Tensor& weight, const Tensor& bias, const Form& form, Fused fused) {
  CAPTURE(to_string(x.sizes()));
  CAPTURE(to_string(weight.sizes()));
  CAPTURE(static_cast<int>(form.activation));
  CAPTURE(form.keep_pre);
  const DType dtype = x.dtype();
  const LinearActivation expected =
      linear_activation(exact(x), exact(weight), exact(bias), form.activation, form.keep_pre);
  const uint64_t before = library::gemm_activations(0);
  const LinearActivation found = linear_activation(x, weight, bias, form.activation, form.keep_pre);
  const uint64_t by_library = library::gemm_activations(0) - before;
  if (fused == Fused::LibrarysChoice) {
    CHECK(by_library <= (kEmulated ? 0 : 1));
  } else {
    CHECK(by_library == (fused == Fused::Yes ? 1 : 0));
  }
  CHECK(found.y.dtype() == dtype);
  CHECK(found.y.is_contiguous());
  // If not fused, a half type is also rounded before the activation, whose derivative is at most 1.13.
  CHECK(difference(exact(found.y), expected.y) <= 2.2 * bound(dtype, weight.sizes()[1]));
  CHECK(found.pre.defined() == form.keep_pre);
  if (form.keep_pre) {
    CHECK(found.pre.is_contiguous());
    CHECK(found.pre.dtype() == dtype);
    CHECK(difference(exact(found.pre), expected.pre) <= bound(dtype, weight.sizes()[1]));
  }
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, Fused fused) {
  for (const Form& form : kForms)
    check_form(x, weight, bias, form, fused);
}

}  // namespace

TEST_CASE("one call of the library computes product, bias and activation") {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 8, 8}, {5, 16, 72}, {33, 40, 136}}) {
      const Tensor x = on_device(numbers({m, k}, dtype, 1));
      const Tensor weight = on_device(numbers({n, k}, dtype, 2));
      const Tensor bias = on_device(numbers({n}, dtype, 3));
      check(x, weight, bias, Fused::Yes);
      check(x, weight, {}, Fused::Yes);
      const uint64_t before = library_calls();
      linear_activation(x, weight, bias, FusedActivation::GeluTanh, true);
      CHECK(library_calls() - before == 1);
    }
  }
}

TEST_CASE("in float64 the activation has a pass of its own") {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {5, 16, 72}, {7, 11, 13}}) {
    const Tensor x = on_device(numbers({m, k}, kFloat64, 1));
    const Tensor weight = on_device(numbers({n, k}, kFloat64, 2));
    check(x, weight, on_device(numbers({n}, kFloat64, 3)), Fused::No);
    check(x, weight, {}, Fused::No);
  }
}

TEST_CASE("what GELU was taken of is kept by the library when its rows are multiples of 8 elements") {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    for (const int64_t n : {int64_t{1}, int64_t{4}, int64_t{13}, int64_t{20}, int64_t{24}}) {
      const Tensor x = on_device(numbers({6, 32}, dtype, 1));
      const Tensor weight = on_device(numbers({n, 32}, dtype, 2));
      const Tensor bias = on_device(numbers({n}, dtype, 3));
      for (const Tensor& added : {bias, Tensor()}) {
        check_form(x, weight, added, {FusedActivation::GeluTanh, true}, n % 8 == 0 ? Fused::Yes : Fused::No);
        // Without a kept pre-activation, this rule does not apply.
        const bool has_one = kEmulated && (n > 1 || !added.defined());
        const Fused alone = has_one || n % 8 == 0 ? Fused::Yes : Fused::LibrarysChoice;
        check_form(x, weight, added, {FusedActivation::GeluTanh, false}, alone);
        check_form(x, weight, added, {FusedActivation::Relu, false}, alone);
      }
    }
  }
}

TEST_CASE("odd sizes and operands that start anywhere") {
  for (const DType dtype : {kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    // The stand-in takes float32 operands of any alignment.
    const Fused odd = kEmulated && dtype == kFloat32 ? Fused::Yes : Fused::LibrarysChoice;
    for (const int64_t k : {int64_t{1}, int64_t{35}, int64_t{129}}) {
      const Tensor x = on_device(numbers({9, k}, dtype, 1));
      const Tensor weight = on_device(numbers({8, k}, dtype, 2));
      const Tensor bias = on_device(numbers({8}, dtype, 3));
      check(x, weight, bias, odd);
      check(shifted(x, 1), shifted(weight, 3), shifted(bias, 1), odd);
    }
    const Tensor x = on_device(numbers({9, 64}, dtype, 1));
    const Tensor weight = on_device(numbers({8, 64}, dtype, 2));
    check(shifted(x, 1), weight, {}, odd);
    check(x, shifted(weight, 1), {}, odd);
  }
}

TEST_CASE("leading dimensions, views, a bias with a stride") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    const Fused fused = dtype == kFloat64 ? Fused::No : Fused::Yes;
    const Tensor weight = on_device(numbers({16, 72}, dtype, 2));
    const Tensor bias = view::select(on_device(numbers({16, 3}, dtype, 3)), 1, 1);
    for (const Shape& sizes : std::vector<Shape>{{72}, {1, 72}, {2, 3, 72}, {2, 1, 3, 72}})
      check(on_device(numbers(sizes, dtype, 1)), weight, bias, fused);
    const Tensor x = on_device(numbers({4, 6, 80}, dtype, 4));
    check(view::slice(x, 2, 0, 72), weight, bias, fused);
    check(view::transpose(view::slice(x, 2, 8, 80), 0, 1), weight, {}, fused);
    check(view::select(view::slice(x, 2, 0, 72), 1, 2), view::transpose(clone(view::transpose(weight, 0, 1)), 0, 1),
          bias, fused);
  }
}

TEST_CASE("without a product the activation of the bias is left") {
  const uint64_t before = library_calls();
  for (const DType dtype : kFloatingDTypes) {
    const auto made = [&](const Shape& sizes) { return on_device(numbers(sizes, dtype, 1)); };
    check(made({2, 3, 0}), made({8, 0}), made({8}), Fused::No);
    check(made({3, 0}), made({8, 0}), {}, Fused::No);
    check(made({0, 16}), made({8, 16}), made({8}), Fused::No);
    check(made({5, 16}), made({0, 16}), {}, Fused::No);
  }
  CHECK(library_calls() == before);
}

TEST_CASE("each form is planned once, also one that the library has no algorithm for") {
  const auto plans_made = [](const Tensor& x, const Tensor& weight, const Tensor& bias, const Form& form) {
    const uint64_t before = library::gemm_plan_stats(0).made;
    linear_activation(x, weight, bias, form.activation, form.keep_pre);
    return library::gemm_plan_stats(0).made - before;
  };
  const Tensor x = on_device(numbers({10, 48}, kFloat16, 1));
  const Tensor weight = on_device(numbers({24, 48}, kFloat16, 2));
  const Tensor bias = on_device(zeros({24}, kFloat16));
  linear(x, weight, bias);
  linear(x, weight, {});
  for (const Tensor& added : {bias, Tensor()}) {
    for (const Form& form : kForms)
      CHECK(plans_made(x, weight, added, form) == 1);
    for (const Form& form : kForms)
      CHECK(plans_made(x, weight, added, form) == 0);
  }
  // Rows of 47 elements: one plan for the query, and in the emulation those of linear instead, with and without the
  // bias.
  const Tensor odd = on_device(numbers({10, 47}, kFloat16, 1));
  const Tensor odd_weight = on_device(numbers({24, 47}, kFloat16, 2));
  CHECK(plans_made(odd, odd_weight, bias, kForms[0]) >= (kEmulated ? 3 : 1));
  CHECK(plans_made(odd, odd_weight, bias, kForms[0]) == 0);
}

TEST_CASE("TF32 goes with activations, too") {
  const Tensor x = on_device(full({64, 128}, 1.0 + 1.0 / 4096));
  const Tensor weight = on_device(full({64, 128}, 1.0));
  const auto first = [&] {
    return on_cpu(linear_activation(x, weight, {}, FusedActivation::Relu, false).y).to_vector<float>()[0];
  };
  CHECK(first() == 128 + 128 / 4096.0F);
  device::set_allow_tf32(true);
  if (device::properties(0).major >= 8) CHECK(first() == 128);
  device::set_allow_tf32(false);
}

TEST_CASE("far out GELU is 0 or the identity, and a NaN stays one") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = empty({4, 8});
  fill(x, 0);
  auto* values = static_cast<float*>(x.raw_data());
  values[0] = -40;
  values[8] = 40;
  values[16] = nan;
  const Tensor weight = full({8, 8}, 1.0);
  const uint64_t before = library::gemm_activations(0);
  const LinearActivation found =
      linear_activation(on_device(x), on_device(weight), on_device(zeros({8})), FusedActivation::GeluTanh, true);
  CHECK(library::gemm_activations(0) - before == 1);
  const auto y = on_cpu(found.y).to_vector<float>();
  CHECK(std::abs(y[0]) < 1e-6);
  CHECK(y[8] == 40);
  CHECK(std::isnan(y[16]));
  CHECK(y[24] == 0);
  const auto pre = on_cpu(found.pre).to_vector<float>();
  CHECK(pre[0] == -40);
  CHECK(std::isnan(pre[16]));
  // ReLU: the library does not document its result for a NaN.
  const Tensor relu = linear_activation(on_device(x), on_device(weight), {}, FusedActivation::Relu, false).y;
  const float of_nan = on_cpu(relu).to_vector<float>()[16];
  CHECK((std::isnan(of_nan) || of_nan == 0));
}

TEST_CASE("a captured linear layer with GELU runs with each replay") {
  const Tensor first = numbers({24, 64}, kFloat32, 1);
  const Tensor x = on_device(zeros({24, 64}));
  const Tensor weight = on_device(numbers({40, 64}, kFloat32, 2));
  const Tensor odd_weight = on_device(numbers({13, 40}, kFloat32, 3));
  const Tensor bias = on_device(numbers({40}, kFloat32, 4));
  LinearActivation hidden, out;
  // The second layer is not fused, and no plan was made before the capture.
  const auto step = [&] {
    hidden = linear_activation(x, weight, bias, FusedActivation::GeluTanh, true);
    out = linear_activation(hidden.y, odd_weight, {}, FusedActivation::GeluTanh, true);
  };
  device::synchronize();
  device::Graph graph;
  graph.capture(step);
  for (int replay = 0; replay < 3; ++replay) {
    const Tensor input = binary_scalar(first, 1.0 - 0.25 * replay, BinaryOp::Mul, false);
    copy(x, input);
    graph.replay();
    const LinearActivation expected =
        linear_activation(exact(input), exact(weight), exact(bias), FusedActivation::GeluTanh, true);
    CHECK(difference(exact(hidden.y), expected.y) <= bound(kFloat32, 64));
    CHECK(difference(exact(hidden.pre), expected.pre) <= bound(kFloat32, 64));
    const Tensor second = linear_activation(exact(hidden.y), exact(odd_weight), {}, FusedActivation::GeluTanh, false).y;
    CHECK(difference(exact(out.y), second) <= 2 * bound(kFloat32, 40));
  }
}

TEST_CASE("on a stream of its own, in its order") {
  const Tensor x = on_device(zeros({16, 32}));
  const Tensor source = on_device(numbers({16, 32}, kFloat32, 1));
  const Tensor weight = on_device(numbers({8, 32}, kFloat32, 2));
  const Tensor expected = linear_activation(exact(source), exact(weight), {}, FusedActivation::Relu, false).y;
  const device::Stream stream = device::Stream::create();
  for (int round = 0; round < 10; ++round) {
    device::Event ready;
    ready.record(device::current_stream());
    const device::StreamGuard guard(stream);
    ready.block(stream);
    copy(x, source);
    const Tensor y = linear_activation(x, weight, {}, FusedActivation::Relu, false).y;
    fill(x, 0);
    stream.synchronize();
    CHECK(difference(exact(y), expected) <= bound(kFloat32, 32));
  }
}

TEST_CASE("what does not fit together is refused as by linear") {
  const Tensor x = on_device(zeros({2, 8}));
  const uint64_t before = library_calls();
  const auto call = [&](const Tensor& weight, const Tensor& bias) {
    return linear_activation(x, weight, bias, FusedActivation::Relu, false);
  };
  CHECK_THROWS_AS(call(on_device(zeros({8, 4})), {}), ShapeError);
  CHECK_THROWS_AS(call(on_device(zeros({8, 8})), on_device(zeros({4}))), ShapeError);
  CHECK_THROWS_AS(call(on_device(zeros({8, 8}, kFloat16)), {}), DTypeError);
  CHECK_THROWS_AS(call(zeros({8, 8}), {}), DeviceError);
  CHECK_THROWS_AS(call(on_device(zeros({8, 8})), zeros({8})), DeviceError);
  CHECK(library_calls() == before);
}

}  // namespace brigade::test::linear_activation_test
