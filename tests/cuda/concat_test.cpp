// Concatenation and row selection: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/core/cuda/device.h>
#include <brigade/kernels/indexing.h>

namespace brigade::test::concat_test {
using namespace brigade::kernels;

namespace {

Tensor joined(const std::vector<Tensor>& tensors, int dim) { return cat(std::span<const Tensor>(tensors), dim); }

std::vector<Tensor> all_on_device(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors)
    result.push_back(on_device(tensor));
  return result;
}

}  // namespace

TEST_CASE("cat along any dimension, in any dtype, of lengths that fit vectors and that do not") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (int dim = 0; dim < 3; ++dim) {
      CAPTURE(dim);
      for (const std::vector<int64_t>& lengths :
           std::vector<std::vector<int64_t>>{{4}, {16, 16}, {1, 2, 3}, {0, 5, 0, 32}, {0, 0}, {700, 1}}) {
        CAPTURE(lengths.size());
        for (const int64_t inner : {1, 16}) {
          std::vector<Tensor> tensors;
          for (const int64_t length : lengths) {
            Shape sizes{3, 2, inner};
            sizes[dim] = length;
            tensors.push_back(numbers(sizes, dtype, tensors.size() + 1));
          }
          CHECK(difference(joined(all_on_device(tensors), dim), joined(tensors, dim)) == 0);
        }
      }
    }
  }
}

TEST_CASE("cat of more tensors than one launch takes, of views, and of several dtypes") {
  std::vector<Tensor> tensors;
  for (uint64_t i = 0; i < 150; ++i)
    tensors.push_back(numbers({2, static_cast<int64_t>(i % 5), 4}, kFloat32, i));
  CHECK(difference(joined(all_on_device(tensors), 1), joined(tensors, 1)) == 0);

  const Tensor base = numbers({6, 9}, kFloat32, 1);
  const Tensor flat = numbers({25}, kFloat32, 2);
  const auto views = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{view::transpose(view::slice(x, 1, 0, 6), 0, 1), view::slice(x, 1, 2, 8),
                               view::as_strided(y, {4, 6}, {6, 1}, 1), view::slice(x, 1, 1, 7)};
  };
  for (int dim = 0; dim < 2; ++dim) {
    std::vector<Tensor> here = views(base, flat);
    std::vector<Tensor> there = views(on_device(base), on_device(flat));
    if (dim == 1) {
      here.erase(here.begin() + 2);
      there.erase(there.begin() + 2);
    }
    CHECK(difference(joined(there, dim), joined(here, dim)) == 0);
  }
  // Including a tensor with an unaligned start, although its length and the result's are whole vectors.
  for (const std::vector<Tensor>& mixed :
       {std::vector<Tensor>{numbers({3}, kFloat16, 1), numbers({2}, kInt32, 2), numbers({4}, kFloat32, 3)},
        std::vector<Tensor>{numbers({9}, kInt32, 1), numbers({3}, kInt32, 2), numbers({12}, kFloat32, 3)},
        std::vector<Tensor>{numbers({9}, kInt32, 1), numbers({12}, kFloat32, 2), numbers({3}, kInt32, 3)}})
    CHECK(difference(joined(all_on_device(mixed), 0), joined(mixed, 0)) == 0);

  CHECK_THROWS_WITH_AS(joined({on_device(ones({2, 1})), on_device(ones({3, 1}))}, 1),
                       doctest::Contains("tensor 1 has shape [3, 1]"), ShapeError);
  CHECK_THROWS_WITH_AS(joined({on_device(ones({2})), ones({2})}, 0), doctest::Contains("tensor 1 on cpu"), DeviceError);
}

TEST_CASE("rows by index and their gradients") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{7}, {7, 1}, {7, 3, 5}, {7, 64}, {7, 0}}) {
      CAPTURE(to_string(sizes));
      const Tensor x = numbers(sizes, dtype);
      for (const int64_t count : {0, 1, 300}) {
        const Tensor chosen = empty({count}, kInt64);
        for (int64_t i = 0; i < count; ++i)
          chosen.data_ptr<int64_t>()[i] = i * i % 7;
        CHECK(difference(index_rows(on_device(x), on_device(chosen)), index_rows(x, chosen)) == 0);
        if (!is_floating_point(dtype)) continue;
        Shape grad_sizes = sizes;
        grad_sizes[0] = count;
        const Tensor grad = numbers(grad_sizes, dtype, 2);
        CHECK(difference(index_rows_backward(on_device(grad), on_device(chosen), sizes),
                         index_rows_backward(grad, chosen, sizes)) <= (is_half(dtype) ? tolerance(dtype) : 1e-5));
      }
    }
  }
  const Tensor x = numbers({6, 5}, kFloat32);
  const Tensor chosen = tensor<int64_t>({4, 0, 4, 2});
  const auto turned = [](const Tensor& t) { return view::transpose(t, 0, 1); };
  CHECK(difference(index_rows(turned(on_device(x)), view::slice(on_device(chosen), 0, 0, 4, 2)),
                   index_rows(turned(x), view::slice(chosen, 0, 0, 4, 2))) == 0);
  CHECK(difference(index_rows_backward(turned(on_device(numbers({6, 4}, kFloat32))), on_device(chosen), {5, 6}),
                   index_rows_backward(turned(numbers({6, 4}, kFloat32)), chosen, {5, 6})) <= 1e-6);

  const Tensor y =
      index_rows(on_device(tensor(std::vector<int64_t>{1, 2, 3, 4, 5, 6}, {3, 2})), on_device(tensor<int64_t>({2, 3})));
  CHECK_THROWS_WITH_AS(cuda::synchronize(), doctest::Contains("index_select: index 3 at position 1 is not a row 0..2"),
                       IndexError);
  CHECK(difference(y, tensor(std::vector<int64_t>{5, 6, 0, 0}, {2, 2})) == 0);
  CHECK_THROWS_AS(index_rows(on_device(x), chosen), DeviceError);
  CHECK_THROWS_AS(index_rows(on_device(x), on_device(zeros({2}))), DTypeError);
  CHECK_THROWS_AS(index_rows(on_device(x), on_device(zeros({2, 2}, kInt64))), ShapeError);
  CHECK_THROWS_AS(index_rows_backward(on_device(ones({3, 2})), on_device(chosen), {6, 2}), ShapeError);
}

TEST_CASE("classes as zeros and ones") {
  for (const Shape& sizes : std::vector<Shape>{{}, {0}, {3, 5}, {700}}) {
    const Tensor classes = empty(sizes, kInt64);
    for (int64_t i = 0; i < classes.numel(); ++i)
      classes.data_ptr<int64_t>()[i] = i * 5 % 7;
    CHECK(difference(one_hot(on_device(classes), 7), one_hot(classes, 7)) == 0);
    if (sizes.size() != 2) continue;
    CHECK(difference(one_hot(view::transpose(on_device(classes), 0, 1), 7),
                     one_hot(view::transpose(classes, 0, 1), 7)) == 0);
  }
  const Tensor y = one_hot(on_device(tensor<int64_t>({1, 3, -1})), 3);
  CHECK_THROWS_WITH_AS(cuda::synchronize(), doctest::Contains("is not a class 0..2"), IndexError);
  CHECK(difference(y, tensor(std::vector<int64_t>{0, 1, 0, 0, 0, 0, 0, 0, 0}, {3, 3})) == 0);
  CHECK_THROWS_AS(one_hot(on_device(ones({2})), 3), DTypeError);
  CHECK_THROWS_AS(one_hot(on_device(zeros({2}, kInt64)), 0), ValueError);
}

}  // namespace brigade::test::concat_test
