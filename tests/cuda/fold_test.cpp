// unfold and fold: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/conv.h>

namespace brigade::test::fold_test {
using namespace brigade::kernels;

TEST_CASE("unfold and fold: padding, strides, dilation, every dtype; strided tensors") {
  struct Row {
    Shape x;
    FoldParams params;
  };
  for (const Row& row : std::vector<Row>{
           {{2, 3, 5, 6}, {.kernel_size = {2, 3}}},
           {{1, 2, 7, 4}, {.kernel_size = {3, 2}, .padding = {1, 2}, .stride = {2, 1}}},
           {{2, 1, 9, 8}, {.kernel_size = {2, 3}, .dilation = {3, 2}, .padding = {0, 3}, .stride = {1, 3}}},
           {{1, 1, 1, 1}, {.kernel_size = {3, 3}, .padding = {1, 1}}},
           {{0, 3, 4, 4}, {.kernel_size = {2, 2}}}}) {
    CAPTURE(to_string(row.x));
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(name(dtype));
      const Tensor x = numbers(row.x, dtype, 1);
      const Tensor columns = unfold2d(x, row.params);
      CHECK(difference(unfold2d(on_device(x), row.params), columns) == 0);
      const Tensor slopes = numbers(columns.sizes(), dtype, 2);
      const std::array<int64_t, 2> size{row.x[2], row.x[3]};
      CHECK(difference(fold2d(on_device(slopes), size, row.params), fold2d(slopes, size, row.params)) <=
            2 * tolerance(dtype));
    }
  }
  const auto turned = [](const Tensor& t) { return view::permute(t, {2, 3, 0, 1}); };
  const Tensor x = numbers({5, 6, 2, 3}, kFloat32, 1);
  const FoldParams params{.kernel_size = {2, 2}, .stride = {1, 2}};
  CHECK(difference(unfold2d(turned(on_device(x)), params), unfold2d(turned(x), params)) == 0);
  const auto swapped = [](const Tensor& t) { return view::transpose(t, 1, 2); };
  const Tensor columns = numbers({2, 12, 12}, kFloat32, 1);
  CHECK(difference(fold2d(swapped(on_device(columns)), {5, 6}, params), fold2d(swapped(columns), {5, 6}, params)) <=
        1e-6);
  CHECK_THROWS_AS(unfold2d(on_device(zeros({1, 1, 2, 2})), {.kernel_size = {3, 1}}), ShapeError);
  CHECK_THROWS_AS(fold2d(on_device(zeros({1, 8, 10})), {4, 4}, {.kernel_size = {2, 2}}), ShapeError);
}

}  // namespace brigade::test::fold_test
