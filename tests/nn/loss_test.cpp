// Losses as modules: checks that each passes its inputs and options to its function.
#include <near.h>
#include <nn/models.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::loss_test {
namespace {

Tensor numbers(const Shape& sizes, uint64_t seed) {
  RandomGenerator generator(seed);
  return randn(sizes, kFloat64, &generator);
}

}  // namespace

TEST_CASE("losses against classes take weights, an ignored class and smoothing") {
  const Tensor logits = numbers({4, 3}, 1);
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor weight = tensor<double>({1, 2, 3});
  const CrossEntropyLossOptions options{.weight = weight, .ignore_index = 1, .label_smoothing = 0.1};
  const nn::CrossEntropyLoss loss(options);
  CHECK(loss(logits, classes).item() == cross_entropy(logits, classes, options).item());
  CHECK(loss(logits, classes).item() != cross_entropy(logits, classes).item());
  CHECK(names_of(loss->named_buffers()) == std::vector<std::string>{"weight"});
  CHECK(nn::CrossEntropyLoss()->named_buffers().empty());
  // The module's weight is converted with it; the user's tensor is not.
  loss->to(kFloat32);
  CHECK(loss->options.weight.dtype() == kFloat32);
  CHECK(weight.dtype() == kFloat64);
  CHECK(nn::NLLLoss(NLLLossOptions{.weight = weight})(logits, classes).item() ==
        nll_loss(logits, classes, NLLLossOptions{.weight = weight}).item());
  CHECK(nn::NLLLoss(Reduction::None)(logits, classes).sizes() == Shape{4});
}

TEST_CASE("losses of an input and a target hand over their numbers") {
  const Tensor x = numbers({3, 4}, 1), z = numbers({3, 4}, 2);
  const Tensor p = sigmoid(x), q = sigmoid(z);
  const Tensor weight = numbers({4}, 3);
  CHECK(nn::BCELoss(BCELossOptions{.weight = weight})(p, q).item() ==
        binary_cross_entropy(p, q, {.weight = weight}).item());
  CHECK(nn::BCELoss(Reduction::Sum)(p, q).item() == binary_cross_entropy(p, q, Reduction::Sum).item());
  const BCEWithLogitsLossOptions options{.weight = weight, .pos_weight = exp(weight)};
  const nn::BCEWithLogitsLoss with_logits(options);
  CHECK(with_logits(x, q).item() == binary_cross_entropy_with_logits(x, q, options).item());
  CHECK(names_of(with_logits->named_buffers()) == std::vector<std::string>{"weight", "pos_weight"});
  CHECK(nn::SmoothL1Loss(Reduction::Sum, 0.5)(x, z).item() == smooth_l1_loss(x, z, Reduction::Sum, 0.5).item());
  CHECK(nn::HuberLoss(Reduction::Mean, 0.5)(x, z).item() == huber_loss(x, z, Reduction::Mean, 0.5).item());
  CHECK(nn::KLDivLoss(KLDivReduction::BatchMean)(x, q).item() ==
        doctest::Approx(nn::KLDivLoss(KLDivReduction::Sum)(x, q).item() / 3));
  CHECK(nn::KLDivLoss(KLDivReduction::Mean, true)(x, z).item() == kl_div(x, z, KLDivReduction::Mean, true).item());
  CHECK_THROWS_AS(nn::HuberLoss(Reduction::Mean, 0.0)(x, z), ValueError);
  CHECK_THROWS_AS(nn::SmoothL1Loss(Reduction::Mean, -1.0)(x, z), ValueError);
}

TEST_CASE("losses with a margin, by hand") {
  const Tensor x = tensor<double>({0.5, 0.25, 2});
  const Tensor labels = tensor<double>({1, -1, -1});
  CHECK(doubles(nn::HingeEmbeddingLoss(1.0, Reduction::None)(x, labels)) == std::vector<double>{0.5, 0.75, 0});
  CHECK(doubles(nn::MarginRankingLoss(0.5, Reduction::None)(x, ones_like(x), labels)) ==
        std::vector<double>{1, 0, 1.5});
  CHECK(nn::SoftMarginLoss(Reduction::Sum)(x, labels).item() ==
        doctest::Approx(std::log1p(std::exp(-0.5)) + std::log1p(std::exp(0.25)) + std::log1p(std::exp(2))));
  CHECK(nn::SoftMarginLoss()(tensor<double>({1000}), tensor<double>({-1})).item() == 1000);
  const Tensor a = tensor(std::vector<double>{3, 4, 1, 0}, {2, 2}), b = tensor(std::vector<double>{4, 3, 1, 1}, {2, 2});
  const nn::CosineEmbeddingLoss cosine(0.5, Reduction::None);
  check_near(cosine(a, b, tensor<double>({1, -1})), {1 - 24.0 / 25, std::sqrt(0.5) - 0.5}, 1e-9);
  const Tensor far = tensor(std::vector<double>{3, 0, 1, 0}, {2, 2});
  // Distances sqrt(2) and 4, then 1 and 0.
  const nn::TripletMarginLoss triplet(TripletMarginLossOptions{.margin = 3, .reduction = Reduction::None});
  check_near(triplet(a, b, far), {std::sqrt(2) - 4 + 3, 1 + 3}, 1e-5);
  // With swap, the positive is closer to the negative than the anchor is: sqrt(1 + 9) < 4.
  CHECK(
      doubles(nn::TripletMarginLoss(TripletMarginLossOptions{.margin = 3, .swap = true, .reduction = Reduction::None})(
          a, b, far))[0] == doctest::Approx(std::sqrt(2) - std::sqrt(10) + 3).epsilon(1e-5));
  // With p = 3: (1 + 1)^(1/3) and 4, then 1 and 0.
  CHECK(triplet_margin_loss(a, b, far, {.margin = 3, .p = 3, .reduction = Reduction::Sum}).item() ==
        doctest::Approx(std::cbrt(2) - 4 + 3 + 1 + 3).epsilon(1e-5));
  CHECK_THROWS_AS(triplet_margin_loss(a, b, far, {.p = 0}), ValueError);
  CHECK_THROWS_AS(triplet_margin_loss(a, b, far, {.margin = 0}), ValueError);
}

TEST_CASE("labels of cosine_embedding_loss, and rows of its inputs, broadcast") {
  const Tensor a = tensor(std::vector<double>{3, 4, 1, 0}, {2, 2}).requires_grad_();
  const Tensor b = tensor(std::vector<double>{4, 3, 0, 1}, {2, 2}), row = a.narrow(0, 1, 1);
  const nn::CosineEmbeddingLoss loss(0.5, Reduction::None);
  check_near(loss(a, b, tensor<double>({1})), {1 - 0.96, 1}, 1e-9);
  check_near(loss(a, b, tensor<double>({-1}).to(kFloat16)), {0.96 - 0.5, 0}, 1e-9);
  check_near(loss(row, b.narrow(0, 0, 1), tensor<double>({1, -1, 1})), {1 - 0.8, 0.8 - 0.5, 1 - 0.8}, 1e-9);
  check_near(loss(a[0], b[0], ones({})), {1 - 0.96}, 1e-9);
  CHECK(loss(zeros({0, 2}), zeros({0, 2}), ones({1})).sizes() == Shape{0});
  loss(row, b, tensor<double>({1})).sum().backward();
  check_near(a.grad(), {0, 0, 0, -0.6 - 1}, 1e-9);
  const Tensor x = ones({3, 2});
  for (const Shape& labels : {Shape{2}, Shape{}, Shape{3, 1}})
    CHECK_THROWS_WITH_AS(loss(x, x, ones(labels)), doctest::Contains("where an N may be 1, or [D] with"), ShapeError);
  for (const Tensor& other : {a, x.narrow(1, 0, 1), x[0]})
    CHECK_THROWS_AS(loss(x, other, ones({3})), ShapeError);
  CHECK_THROWS_AS(loss(x[0], x[0], ones({1})), ShapeError);
}

TEST_CASE("likelihoods, by hand") {
  const Tensor x = tensor<double>({1, 0.5, 2}), z = tensor<double>({1, 3, 0});
  check_near(poisson_nll_loss(x, z, {.full = true, .reduction = Reduction::None}),
             {std::exp(1) - 1, 1.9128, std::exp(2)}, 2e-5);
  const std::vector<double> rates = doubles(poisson_nll_loss(x, z, {.log_input = false, .reduction = Reduction::None}));
  CHECK(rates[1] == doctest::Approx(0.5 + 3 * std::log(2)));

  const Tensor var = tensor<double>({0.5, 0, 2}).requires_grad_();
  const Tensor losses = gaussian_nll_loss(x, z, var, {.eps = 1e-2, .reduction = Reduction::None});
  check_near(losses, {std::log(0.5) / 2, (std::log(0.01) + 625) / 2, (std::log(2) + 2) / 2}, 1e-12);
  sum(losses).backward();
  CHECK(doubles(var.grad())[1] == doctest::Approx((100 - 62500) / 2.0));  // not clamped by eps
  CHECK_THROWS_WITH_AS(gaussian_nll_loss(x, z, neg(var)), doctest::Contains("negative"), ValueError);
  CHECK_THROWS_AS(gaussian_nll_loss(x, z, ones({2}, kFloat64)), ShapeError);
  CHECK(gaussian_nll_loss(ones({2, 3}), ones({2, 3}), ones({2})).item() == 0);
  check_near(gaussian_nll_loss(x, x, zeros({1}, kUInt8), {.eps = 1e-2}), {std::log(0.01) / 2}, 1e-7);
}

}  // namespace brigade::test::loss_test
