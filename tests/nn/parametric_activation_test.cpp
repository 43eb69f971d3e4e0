// The activations of nn/parametric_activation.h: results, printing, and rejected arguments.
#include "printed.h"

#include <brigade/brigade.h>

#include <doctest/doctest.h>

namespace brigade::test::parametric_activation_test {
namespace {

const Tensor kRow = tensor(std::vector<float>{-4, -1.5F, -0.25F, 0, 0.75F, 8}, {1, 6});

std::vector<float> floats(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("each module computes what its function does, with its options") {
  CHECK(floats(nn::ELU(0.5)(kRow)) == floats(elu(kRow, 0.5)));
  CHECK(floats(nn::ELU()(kRow)) == floats(elu(kRow)));
  CHECK(floats(nn::SELU()(kRow)) == floats(selu(kRow)));
  CHECK(floats(nn::CELU(2)(kRow)) == floats(celu(kRow, 2)));
  CHECK(floats(nn::Softplus(2, 1)(kRow)) == floats(softplus(kRow, 2, 1)));
  CHECK(floats(nn::Hardtanh(-2, 0.5)(kRow)) == std::vector<float>{-2, -1.5F, -0.25F, 0, 0.5F, 0.5F});
  CHECK(floats(nn::ReLU6()(kRow)) == std::vector<float>{0, 0, 0, 0, 0.75F, 6});
  CHECK(floats(nn::Hardsigmoid()(kRow)) == floats(hardsigmoid(kRow)));
  CHECK(floats(nn::Hardswish()(kRow)) == floats(hardswish(kRow)));
  CHECK(floats(nn::Mish()(kRow)) == floats(mish(kRow)));
  CHECK(floats(nn::Softsign()(kRow)) == floats(softsign(kRow)));
  CHECK(floats(nn::LogSigmoid()(kRow)) == floats(logsigmoid(kRow)));
  CHECK(floats(nn::Softshrink(1)(kRow)) == std::vector<float>{-3, -0.5F, 0, 0, 0, 7});
  CHECK(floats(nn::Hardshrink()(kRow)) == std::vector<float>{-4, -1.5F, 0, 0, 0.75F, 8});
  CHECK(floats(nn::GLU()(kRow)) == floats(glu(kRow)));
  CHECK(nn::GLU(1)(kRow).sizes() == Shape{1, 3});
}

TEST_CASE("each module prints as PyTorch's does") {
  CHECK(printed(nn::ELU(0.5)) == "ELU(alpha=0.5)");
  CHECK(printed(nn::SELU()) == "SELU()");
  CHECK(printed(nn::CELU(2)) == "CELU(alpha=2)");
  CHECK(printed(nn::Softplus()) == "Softplus(beta=1, threshold=20)");
  CHECK(printed(nn::Hardtanh(-2, 0.5)) == "Hardtanh(min_val=-2, max_val=0.5)");
  CHECK(printed(nn::ReLU6()) == "ReLU6()");
  CHECK(printed(nn::Softshrink()) == "Softshrink(0.5)");
  CHECK(printed(nn::Hardshrink(1)) == "Hardshrink(1)");
  CHECK(printed(nn::PReLU({.num_parameters = 3})) == "PReLU(num_parameters=3)");
  CHECK(printed(nn::GLU(1)) == "GLU(dim=1)");
  CHECK(printed(nn::LogSigmoid()) == "LogSigmoid()");
}

TEST_CASE("PReLU has a slope that is learned: one, or one per channel") {
  const nn::PReLU one;
  CHECK(floats(one(kRow)) == std::vector<float>{-1, -0.375F, -0.0625F, 0, 0.75F, 8});
  const nn::PReLU three({.num_parameters = 3, .init = 0.5});
  const Tensor x = tensor(std::vector<float>{-1, 2, -3, 4, -5, -6}, {1, 3, 2});
  const Tensor y = three(x);
  CHECK(floats(y) == std::vector<float>{-0.5F, 2, -1.5F, 4, -2.5F, -3});
  y.sum().backward();
  CHECK(floats(three->weight.grad()) == std::vector<float>{-1, -3, -11});
  CHECK(three->named_parameters()[0].first == "weight");
  CHECK_THROWS_WITH_AS(three(kRow), doctest::Contains("expected a weight of 1 or 6 elements"), ShapeError);
  CHECK_THROWS_WITH_AS(nn::PReLU({.num_parameters = 0}), doctest::Contains("at least 1, got 0"), ValueError);
}

}  // namespace brigade::test::parametric_activation_test
