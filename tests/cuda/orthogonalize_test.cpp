// Orthonormalization of columns: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/matmul.h>

namespace brigade::test::orthogonalize_test {
using namespace brigade::kernels;

TEST_CASE("columns become orthonormal on the device as on the CPU; fresh ones take the place of what vanishes") {
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{1, 1}, {7, 3}, {600, 4}, {1300, 2}, {3, 3}, {0, 2}, {2, 0}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = numbers(sizes, dtype);
      if (sizes.size() == 2 && x.numel() > 1 && x.size(0) > x.size(1)) fill(view::slice(x, 1, 0, 1), 0);
      for (const bool with_fresh : {false, true}) {
        const Tensor fresh = with_fresh ? numbers(sizes, dtype, 2) : Tensor();
        const Tensor expected = clone(x);
        orthogonalize(expected, fresh);
        const Tensor found = on_device(x);
        orthogonalize(found, with_fresh ? on_device(fresh) : fresh);
        // Elements of unit columns are rounded a few times each.
        CHECK(difference(found, expected) <= 4 * tolerance(dtype));
      }
    }
  }
  CHECK_THROWS_AS(orthogonalize(on_device(ones({3, 2})), ones({3, 2})), ShapeError);
}

}  // namespace brigade::test::orthogonalize_test
