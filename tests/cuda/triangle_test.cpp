// Triangles, and copies of reversed views: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::test::triangle_test {
using namespace brigade::kernels;

TEST_CASE("triangles of any dtype, of rows that are whole vectors and that are not") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{3, 5}, {2, 7, 32}, {40, 16}, {0, 4}, {4, 0}, {2, 300, 33}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = numbers(sizes, dtype);
      for (const int64_t diagonal : {-500, -3, 0, 1, 17, 500}) {
        for (const Triangle part : {Triangle::Lower, Triangle::Upper})
          CHECK(difference(triangle(on_device(x), part, diagonal), triangle(x, part, diagonal)) == 0);
      }
    }
    const Tensor x = numbers({32, 64}, dtype);
    CHECK(difference(triangle(shifted(on_device(x), 1), Triangle::Upper, 2), triangle(x, Triangle::Upper, 2)) == 0);
    CHECK(difference(triangle(view::transpose(on_device(x), 0, 1), Triangle::Lower, 2),
                     triangle(view::transpose(x, 0, 1), Triangle::Lower, 2)) == 0);
  }
  CHECK_THROWS_AS(triangle(on_device(ones({3})), Triangle::Lower, 0), ShapeError);
}

TEST_CASE("views that run backwards are copied from and into") {
  for (const DType dtype : {kFloat64, kFloat32, kBFloat16, kBool}) {
    CAPTURE(name(dtype));
    const Tensor x = numbers({3, 40, 70}, dtype);
    for (int dim = 0; dim < 3; ++dim) {
      const Tensor there = reversed(on_device(x), dim);
      CHECK(difference(clone(there), clone(reversed(x, dim))) == 0);
      CHECK(difference(clone(view::transpose(there, 1, 2)), clone(view::transpose(reversed(x, dim), 1, 2))) == 0);
      const Tensor target = on_device(x);
      copy(reversed(target, dim), on_device(x));
      CHECK(difference(target, clone(reversed(x, dim))) == 0);
    }
  }
}

}  // namespace brigade::test::triangle_test
