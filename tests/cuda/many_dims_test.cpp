// Tensors of more than eight dimensions that cannot be merged, compared with the CPU.
#include "on_device.h"

#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/indexing.h>
#include <brigade/kernels/reduce.h>

namespace brigade::test::many_dims_test {
using namespace brigade::kernels;

namespace {

// A view of 11 dimensions in an order other than that of memory.
Tensor turned(const Tensor& x) {
  Shape order;
  for (int d = x.dim() - 1; d >= 0; --d)
    order.push_back(d);
  return view::permute(x, order);
}

}  // namespace

TEST_CASE("eleven dimensions: copies, element by element, broadcast, reduced, nonzero") {
  const Shape sizes{2, 3, 2, 2, 2, 2, 2, 2, 2, 3, 2};
  for (const DType dtype : {kFloat32, kBFloat16, kInt64, kUInt8}) {
    CAPTURE(name(dtype));
    const Tensor a = numbers(sizes, dtype, 1);
    const Tensor b = numbers(turned(a).sizes(), dtype, 2);
    const Tensor there = on_device(a);
    CHECK(difference(clone(turned(there)), clone(turned(a))) == 0);
    CHECK(difference(binary(turned(there), on_device(b), BinaryOp::Add), binary(turned(a), b, BinaryOp::Add)) == 0);
    CHECK(difference(cast(turned(there), kFloat64), cast(turned(a), kFloat64)) == 0);
    Shape ones_between = turned(a).sizes();
    for (int d = 0; d < 11; d += 2)
      ones_between[d] = 1;
    const Tensor narrow = numbers(ones_between, dtype, 3);
    CHECK(difference(binary(turned(there), on_device(narrow), BinaryOp::Mul),
                     binary(turned(a), narrow, BinaryOp::Mul)) == 0);
    const Tensor less = compare(turned(a), b, CompareOp::Less);
    CHECK(difference(kernels::where(on_device(less), turned(there), on_device(b)),
                     kernels::where(less, turned(a), b)) == 0);
    const Tensor filled = empty(sizes, {dtype, kDevice});
    fill(filled, 0.0);
    fill(view::slice(turned(filled), 4, 0, 2, 2), 1.0);
    CHECK(on_cpu(filled).to_vector<double>()[0] == 1);
    CHECK(sum(cast(on_cpu(filled), kFloat64), {}).item<double>() == static_cast<double>(a.numel() / 2));
    CHECK(difference(nonzero(turned(there)), nonzero(turned(a))) == 0);
    CHECK(difference(amax(turned(there), {0, 3, 9}, false), amax(turned(a), {0, 3, 9}, false)) == 0);
  }
}

}  // namespace brigade::test::many_dims_test
