// Losses of an input and a target: CUDA kernels, compared with the CPU's.
#include "on_device.h"

#include <brigade/kernels/loss.h>

namespace brigade::test::loss_test {
using namespace brigade::kernels;

namespace {

// Allows for two implementations of exp and log, and another summation order.
double loss_tolerance(DType dtype) {
  return dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-5 : 2 * tolerance(dtype);
}

constexpr Reduction kReductions[] = {Reduction::None, Reduction::Mean, Reduction::Sum};

const std::vector<PairLoss> kLosses{
    {PairLossKind::Squared},      {PairLossKind::Absolute},           {PairLossKind::SmoothL1, 0.7},
    {PairLossKind::Huber, 0.7},   {PairLossKind::BinaryCrossEntropy}, {PairLossKind::BceWithLogits},
    {PairLossKind::KlDivergence}, {PairLossKind::KlDivergenceLog},
};

// Values in 0.05 .. 0.95 for losses of probabilities, normal numbers otherwise.
Tensor values(PairLossKind kind, const Shape& sizes, DType dtype, uint64_t seed, bool target) {
  const bool bounded = kind == PairLossKind::BinaryCrossEntropy || (kind == PairLossKind::KlDivergence && target);
  if (!bounded) return numbers(sizes, dtype, seed);
  RandomGenerator generator(seed);
  const Tensor uniform = rand(sizes, {kFloat64}, &generator);
  return cast(binary_scalar(binary_scalar(uniform, 0.9, BinaryOp::Mul, false), 0.05, BinaryOp::Add, false), dtype);
}

}  // namespace

TEST_CASE("losses and their derivatives on both sides, with odd sizes, unaligned, in any dtype") {
  for (const PairLoss& loss : kLosses) {
    CAPTURE(std::string(name(loss.kind)));
    for (const DType dtype : kFloatingDTypes) {
      CAPTURE(std::string(name(dtype)));
      for (const int64_t size : {0, 1, 5, 1024, 20'001}) {
        CAPTURE(size);
        const Tensor x = values(loss.kind, {size + 1}, dtype, 1, false);
        const Tensor z = values(loss.kind, {size + 1}, dtype, 2, true);
        const auto part = [&](const Tensor& whole, int late) { return view::slice(whole, 0, late, size + late); };
        for (const int late : {0, 1}) {
          for (const Reduction reduction : kReductions) {
            CAPTURE(static_cast<int>(reduction));
            CHECK(difference(pair_loss(part(on_device(x), late), part(on_device(z), late), loss, reduction),
                             pair_loss(part(x, late), part(z, late), loss, reduction)) <= loss_tolerance(dtype));
            const Tensor grad = numbers(reduction == Reduction::None ? Shape{size} : Shape{}, dtype, 3);
            for (const PairSide side : {PairSide::Input, PairSide::Target}) {
              CHECK(difference(pair_loss_backward(on_device(grad), part(on_device(x), late), part(on_device(z), late),
                                                  loss, side, reduction),
                               pair_loss_backward(grad, part(x, late), part(z, late), loss, side, reduction)) <=
                    loss_tolerance(dtype));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("losses of views, of NaN and of numbers that are no probabilities; errors name shapes and devices") {
  const PairLoss squared{PairLossKind::Squared};
  const Tensor x = numbers({6, 7}, kFloat32, 1);
  const Tensor z = numbers({7, 6}, kFloat32, 2);
  CHECK(difference(pair_loss(view::transpose(on_device(x), 0, 1), on_device(z), squared, Reduction::None),
                   pair_loss(view::transpose(x, 0, 1), z, squared, Reduction::None)) <= 1e-5);
  const Tensor outside = tensor(std::vector<float>{-0.5F, 1.5F, NAN}, {3});
  for (const double value : on_cpu(pair_loss(on_device(outside), on_device(full({3}, 0.5)),
                                             {PairLossKind::BinaryCrossEntropy}, Reduction::None))
                                .to_vector<double>())
    CHECK(std::isnan(value));
  CHECK_THROWS_WITH_AS(pair_loss(on_device(ones({3})), on_device(ones({4})), squared, Reduction::Sum),
                       doctest::Contains("expected a target like the input"), ShapeError);
  CHECK_THROWS_WITH_AS(pair_loss(on_device(ones({3})), ones({3}), squared, Reduction::Sum),
                       doctest::Contains("on one device, got cuda:0 and cpu"), DeviceError);
  CHECK_THROWS_WITH_AS(pair_loss_backward(on_device(ones({2})), on_device(ones({3})), on_device(ones({3})), squared,
                                          PairSide::Input, Reduction::Sum),
                       doctest::Contains("expected a gradient [] or [3]"), ShapeError);
}

}  // namespace brigade::test::loss_test
