// Classification losses: CUDA kernels, compared with the CPU's. Invalid targets are reported late
// (device_error_test.cpp).
#include "on_device.h"

#include <brigade/core/cuda/stream.h>
#include <brigade/kernels/loss.h>

#include <limits>

namespace brigade::test::cross_entropy_test {
using namespace brigade::kernels;

namespace {

// Allows for two implementations of exp and log, and another summation order.
double loss_tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : 2 * tolerance(dtype);
}

Tensor classes(const Shape& sizes, int64_t count, int64_t ignore_index) {
  Tensor target = empty(sizes, kInt64);
  for (int64_t i = 0; i < target.numel(); ++i)
    target.data_ptr<int64_t>()[i] = i % 5 == 3 ? ignore_index : i * 7919 % count;
  return target;
}

constexpr Reduction kReductions[] = {Reduction::None, Reduction::Mean, Reduction::Sum};

}  // namespace

TEST_CASE(
    "cross entropy and nll: rows shorter and longer than a warp and a block, columns, ignored targets, in any dtype") {
  for (const DType dtype : kFloatingDTypes) {
    CAPTURE(name(dtype));
    for (const Shape& sizes : std::vector<Shape>{{7},
                                                 {1, 1},
                                                 {6, 32},
                                                 {5, 33},
                                                 {3, 1024},
                                                 {2, 1025},
                                                 {2, 2056},
                                                 {1, 16'392},
                                                 {3, 5, 4, 6},
                                                 {2, 3, 7, 5},
                                                 {2, 4, 130},
                                                 {0, 4},
                                                 {2, 3, 0}}) {
      CAPTURE(to_string(sizes));
      const Tensor logits = numbers(sizes, dtype, 1);
      Shape target_sizes = sizes;
      target_sizes.erase(sizes.size() == 1 ? 0 : 1);
      const Tensor target = classes(target_sizes, sizes[sizes.size() == 1 ? 0 : 1], -100);
      const int64_t count = sizes[sizes.size() == 1 ? 0 : 1];
      const Tensor weight = unary(numbers({count}, dtype, 3), UnaryOp::Abs);
      for (const Reduction reduction : kReductions) {
        CAPTURE(static_cast<int>(reduction));
        // Plain, with weights, with label smoothing, with both.
        for (const int kind : {0, 1, 2, 3}) {
          CAPTURE(kind);
          ClassLossOptions options{reduction, -100, kind % 2 == 1 ? weight : Tensor(), kind >= 2 ? 0.3 : 0.0};
          ClassLossOptions options_there = options;
          if (options.weight.defined()) options_there.weight = on_device(weight);
          const CrossEntropy here = cross_entropy(logits, target, options);
          const CrossEntropy there = cross_entropy(on_device(logits), on_device(target), options_there);
          CHECK(difference(there.loss, here.loss) <= loss_tolerance(dtype));
          CHECK(difference(there.log_sums, here.log_sums) <= 1e-5);
          REQUIRE(there.denominator.defined() == here.denominator.defined());
          if (here.denominator.defined()) CHECK(difference(there.denominator, here.denominator) <= 1e-12);
          const Tensor grad = reduction == Reduction::None ? numbers(target_sizes, dtype, 2) : numbers({}, dtype, 2);
          CHECK(difference(cross_entropy_backward(on_device(grad), on_device(logits), on_device(target),
                                                  on_device(here.log_sums), there.denominator, options_there),
                           cross_entropy_backward(grad, logits, target, here.log_sums, here.denominator, options)) <=
                loss_tolerance(dtype));
          if (kind >= 2) continue;
          const NllLoss near = nll_loss(logits, target, options);
          const NllLoss far = nll_loss(on_device(logits), on_device(target), options_there);
          CHECK(difference(far.loss, near.loss) <= loss_tolerance(dtype));
          REQUIRE(far.denominator.defined() == near.denominator.defined());
          if (near.denominator.defined()) CHECK(difference(far.denominator, near.denominator) <= 1e-12);
          CHECK(difference(nll_loss_backward(on_device(grad), sizes, on_device(target), far.denominator, options_there),
                           nll_loss_backward(grad, sizes, target, near.denominator, options)) <= loss_tolerance(dtype));
        }
      }
    }
  }
}

TEST_CASE("cross entropy of many rows, of views, of infinities, and where every target is ignored") {
  // More losses than one block sums.
  const Tensor logits = numbers({20'003, 3}, kFloat32, 1);
  const Tensor target = classes({20'003}, 3, 2);
  for (const Reduction reduction : {Reduction::Mean, Reduction::Sum}) {
    const CrossEntropy there = cross_entropy(on_device(logits), on_device(target), {reduction, 2});
    const CrossEntropy here = cross_entropy(logits, target, {reduction, 2});
    CHECK(difference(there.loss, here.loss) <= 1e-5);
    // The result has the same bits on each run.
    const CrossEntropy again = cross_entropy(on_device(logits), on_device(target), {reduction, 2});
    CHECK(difference(again.loss, on_cpu(there.loss)) == 0);
  }
  // Strided and unaligned logits, strided targets.
  const Tensor wide = numbers({4, 9, 8}, kFloat32, 3);
  const Tensor wanted = classes({8, 2}, 3, -1);
  const auto turned = [](const Tensor& x) { return view::transpose(view::slice(x, 1, 1, 9), 1, 2); };
  const auto every_other = [](const Tensor& x) { return view::slice(view::transpose(x, 0, 1), 0, 0, 1); };
  CHECK(
      difference(cross_entropy(view::slice(turned(on_device(wide)), 0, 0, 1), every_other(on_device(wanted)),
                               {Reduction::None, -1})
                     .loss,
                 cross_entropy(view::slice(turned(wide), 0, 0, 1), every_other(wanted), {Reduction::None, -1}).loss) <=
      1e-5);
  const Tensor rows = numbers({1 + 2 * 32}, kFloat32, 4);
  const auto late = [](const Tensor& x) {
    return view::as_strided(view::slice(x, 0, 1, 65), {2, 32}, {32, 1}, x.storage_offset() + 1);
  };
  CHECK(difference(cross_entropy(late(on_device(rows)), on_device(classes({2}, 32, -1)), {Reduction::None, -1}).loss,
                   cross_entropy(late(rows), classes({2}, 32, -1), {Reduction::None, -1}).loss) <= 1e-5);

  const float inf = std::numeric_limits<float>::infinity();
  const Tensor special =
      tensor(std::vector<float>{-inf, 0, 1, 1e30F, 0, 0, inf, 0, 0, -inf, -inf, -inf, NAN, 0, 0}, {5, 3});
  for (const int64_t at : {0, 1, 2}) {
    const Tensor same = full({5}, static_cast<double>(at), kInt64);
    CHECK(difference(cross_entropy(on_device(special), on_device(same), {Reduction::None, -1}).loss,
                     cross_entropy(special, same, {Reduction::None, -1}).loss) <= 1e-6);
    // The same along strided columns.
    const auto columns = [](const Tensor& x) { return view::unsqueeze(view::transpose(x, 0, 1), 0); };
    const Tensor position = full({1, 5}, static_cast<double>(at), kInt64);
    CHECK(difference(cross_entropy(columns(on_device(special)), on_device(position), {Reduction::None, -1}).loss,
                     cross_entropy(columns(special), position, {Reduction::None, -1}).loss) <= 1e-6);
  }
  const Tensor none = full({20'003}, -100, kInt64);
  const CrossEntropy ignored = cross_entropy(on_device(logits), on_device(none), {Reduction::Mean, -100});
  CHECK(std::isnan(on_cpu(ignored.loss).to_vector<float>()[0]));
  CHECK(difference(cross_entropy_backward(on_device(ones({})), on_device(logits), on_device(none), ignored.log_sums,
                                          ignored.denominator, {}),
                   zeros({20'003, 3})) == 0);
}

TEST_CASE("errors name devices, dtypes and shapes") {
  CHECK_THROWS_AS(cross_entropy(on_device(ones({2, 3})), zeros({2}, kInt64), {Reduction::Sum, -1}), DeviceError);
  CHECK_THROWS_AS(cross_entropy(on_device(ones({2, 3})), on_device(ones({2})), {Reduction::Sum, -1}), DTypeError);
  CHECK_THROWS_AS(cross_entropy(on_device(ones({2, 3})), on_device(zeros({3}, kInt64)), {Reduction::Sum, -1}),
                  ShapeError);
  CHECK_THROWS_AS(cross_entropy(on_device(ones({2, 3})), on_device(zeros({2}, kInt64)), {.weight = ones({3})}),
                  DeviceError);
}

}  // namespace brigade::test::cross_entropy_test
