// CUDA kernels of the activations with parameters, compared with the CPU's: every kind, dtype, and layout.
#include "on_device.h"

#include <brigade/kernels/activation.h>

namespace brigade::test::parametric_activation_test {
using namespace brigade::kernels;

TEST_CASE("activations by kind and their gradients") {
  for (int i = 0; i < kActivations; ++i) {
    const auto kind = Activation(i);
    // Ordered bounds for Hardtanh, a positive width for the shrink functions.
    const ActivationParams params =
        kind == Activation::Hardtanh ? ActivationParams{-1, 2, 0} : ActivationParams{0.5, 1.5, 1.25};
    CAPTURE(i);
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(dtype));
      const double bound = dtype == kFloat32 ? 3e-6 : dtype == kFloat64 ? 1e-13 : tolerance(dtype);
      for (const int64_t size : {0, 1, 7, 5001}) {
        CAPTURE(size);
        const Tensor x = numbers({size}, dtype, 1);
        const Tensor grad = numbers({size}, dtype, 2);
        CHECK(difference(parametric_activation(on_device(x), kind, params), parametric_activation(x, kind, params)) <=
              bound);
        CHECK(difference(parametric_activation_backward(on_device(grad), on_device(x), kind, params),
                         parametric_activation_backward(grad, x, kind, params)) <= 4 * bound);
      }
      const Tensor wide = numbers({9, 65}, dtype, 1);
      const Tensor turned = view::transpose(wide, 0, 1);
      const Tensor grad = numbers({65, 9}, dtype, 2);
      CHECK(difference(parametric_activation(view::transpose(on_device(wide), 0, 1), kind, params),
                       parametric_activation(turned, kind, params)) <= bound);
      CHECK(difference(
                parametric_activation_backward(on_device(grad), view::transpose(on_device(wide), 0, 1), kind, params),
                parametric_activation_backward(grad, turned, kind, params)) <= 4 * bound);
    }
    CHECK_THROWS_AS(parametric_activation(on_device(zeros({2}, kInt64)), kind, params), DTypeError);
    CHECK_THROWS_AS(parametric_activation_backward(on_device(ones({3})), on_device(ones({4})), kind, params),
                    ShapeError);
  }
}

}  // namespace brigade::test::parametric_activation_test
