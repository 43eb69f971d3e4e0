// linear_relu and linear_gelu on a device: gradients compared with the two separate steps, with and without the
// activation in the library.
#include "products.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>

namespace brigade::test::fused_linear_test {
namespace {

struct Run {
  Tensor y;
  std::vector<Tensor> gradients;
};

// Runs on leaves with the same values each time; weighted, so that each result has a different gradient.
template <class Function>
Run run(const Function& layer, DType dtype, Device device, const Shape& sizes, int64_t out, bool with_bias) {
  const auto leaf = [&](const Shape& shape, uint64_t seed) {
    const Tensor low = (numbers(shape, kFloat64, seed) * 0.25).to(dtype);
    return low.to(device == kDevice ? dtype : kFloat64).to(device).requires_grad_();
  };
  const Tensor x = leaf(sizes, 1);
  const Tensor weight = leaf({out, sizes.back()}, 2);
  const Tensor bias = with_bias ? leaf({out}, 3) : Tensor();
  Run result;
  result.y = layer(x, weight, bias);
  (result.y * leaf(result.y.sizes(), 4).detach()).sum().backward();
  result.gradients = {x.grad(), weight.grad()};
  if (with_bias) result.gradients.push_back(bias.grad());
  return result;
}

}  // namespace

TEST_CASE("results and gradients of fused linear layers are those of the two steps, and of float64 on the CPU") {
  const auto relu_fused = [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear_relu(x, w, b); };
  const auto gelu_fused = [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear_gelu(x, w, b); };
  const auto relu_steps = [](const Tensor& x, const Tensor& w, const Tensor& b) { return relu(linear(x, w, b)); };
  const auto gelu_steps = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return gelu(linear(x, w, b), GeluApproximation::Tanh);
  };
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const int64_t out : {int64_t{16}, int64_t{13}}) {
      CAPTURE(out);
      for (const bool with_bias : {true, false}) {
        const auto check = [&](const auto& fused, const auto& steps) {
          const uint64_t before = kernels::cuda::gemm_activations(0);
          const Run found = run(fused, dtype, kDevice, {2, 5, 24}, out, with_bias);
          const uint64_t by_library = kernels::cuda::gemm_activations(0) - before;
          if (dtype == kFloat64) CHECK(by_library == 0);
          if (dtype != kFloat64 && out == 16) CHECK(by_library == 1);
          const Run apart = run(steps, dtype, kDevice, {2, 5, 24}, out, with_bias);
          const Run exactly = run(steps, dtype, Device(), {2, 5, 24}, out, with_bias);
          // A few roundings: of the result, of the gradient before the products, and of the products.
          const double within = 6 * bound(dtype, 24);
          CHECK(difference(exact(found.y), exactly.y) <= within);
          CHECK(difference(exact(found.y), exact(apart.y)) <= within);
          REQUIRE(found.gradients.size() == (with_bias ? 3 : 2));
          for (size_t i = 0; i < found.gradients.size(); ++i) {
            CHECK(found.gradients[i].dtype() == dtype);
            CHECK(difference(exact(found.gradients[i]), exactly.gradients[i]) <= within);
            CHECK(difference(exact(found.gradients[i]), exact(apart.gradients[i])) <= within);
          }
        };
        check(relu_fused, relu_steps);
        check(gelu_fused, gelu_steps);
      }
    }
  }
}

// The library cannot keep GELU's input for rows of 13 elements, so whether it was used shows whether GELU's input was
// requested. Emulation only: cuBLASLt may or may not have an algorithm for such rows.
#if __has_include(<simt/runtime.h>)
TEST_CASE("what GELU was taken of is written only when a gradient is wanted") {
  const Tensor x = numbers({10, 24}, kFloat32, 1).to(kDevice);
  const Tensor weight = numbers({13, 24}, kFloat32, 2).to(kDevice).requires_grad_();
  const auto by_library = [&] {
    const uint64_t before = kernels::cuda::gemm_activations(0);
    linear_gelu(x, weight);
    return kernels::cuda::gemm_activations(0) - before;
  };
  CHECK(by_library() == 0);
  const NoGradGuard guard;
  CHECK(by_library() == 1);
}
#endif

}  // namespace brigade::test::fused_linear_test
