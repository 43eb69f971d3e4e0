// Scale labels of gradients: how labels combine, and that gradients get no label when no scaler exists.
#include <brigade/autograd/functional.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::gradient_scale_test {
using autograd::ScaleKnown;
using autograd::ScaleLabel;
using autograd::ScaleMark;

namespace {

ScaleLabel plain() { return {.known = ScaleKnown::One}; }
ScaleLabel scaled(uint64_t scaler, double scale) {
  const ScaleMark mark{.scaler = scaler, .scale = scale};
  return plain().through(&mark);
}
ScaleLabel sum(ScaleLabel a, const ScaleLabel& b) {
  a.join(b);
  return a;
}

struct Scaler {
  bool only_reads = false;
  uint64_t number = autograd::begin_scaler(only_reads);
  ~Scaler() { autograd::end_scaler(only_reads); }
};

// Multiplies a leaf's loss by 8 in a node that carries a scaler's mark.
struct ScaledLoss final : autograd::Node {
  ScaleMark mark;
  void backward(autograd::BackwardContext& context) override { context.set(0, mul(context.grad(), 8)); }
  const ScaleMark* scale_mark() const noexcept override { return &mark; }
};
void scaled_backward(const Tensor& leaf, const Scaler& scaler, double slope) {
  const Tensor loss = (leaf * slope).sum();
  const Tensor scaled = loss.detach() * 8;
  if (auto* const node = autograd::record<ScaledLoss>({.op = "scale", .where = {}}, {loss}, scaled))
    node->mark = {.scaler = scaler.number, .scale = 8};
  scaled.backward();
}

}  // namespace

TEST_CASE("labels that agree stay one, others become a mixture, and what is untold stays so") {
  CHECK(sum(plain(), plain()) == ScaleKnown::One);
  CHECK(sum(scaled(1, 8), scaled(1, 8)).first.scale == 8);
  CHECK(sum(ScaleLabel(), scaled(1, 8)).first.scaler == 1);
  CHECK(sum(plain(), scaled(1, 1)).first.scaler == 1);  // a scale of 1 means unscaled
  for (const ScaleLabel& other : {plain(), scaled(1, 16), scaled(2, 8)}) {
    const ScaleLabel mixture = sum(scaled(1, 8), other);
    CHECK(mixture == ScaleKnown::Mixed);
    CHECK(mixture.first.scale == 8);
    CHECK(mixture.second.scale == other.first.scale);
    CHECK(sum(other, mixture) == ScaleKnown::Mixed);
  }
  ScaleLabel untold;
  untold.known = ScaleKnown::Unknown;
  CHECK(sum(untold, scaled(1, 8)) == ScaleKnown::Unknown);
  CHECK(sum(scaled(1, 8), untold) == ScaleKnown::Unknown);
}

TEST_CASE("a mark multiplies, once more behind another one; a product with 0 leaves nothing") {
  const ScaleMark mark{.scaler = 3, .scale = 4};
  CHECK(scaled(1, 8).through(&mark).first.scale == 32);
  CHECK(scaled(1, 8).through(&mark).first.scaler == 3);
  CHECK(scaled(1, 8).through(nullptr).first.scale == 8);
  CHECK(scaled(1, 8).through(autograd::mark_of_number(0)) == ScaleKnown::Nothing);
  CHECK(autograd::mark_of_number(0.5) == nullptr);
  autograd::note_reported_scale(0.5);
  CHECK(scaled(1, 8).through(autograd::mark_of_number(0.5)) == ScaleKnown::Unknown);
  CHECK(autograd::mark_of_number(1) == nullptr);
}

TEST_CASE("gradients get a label while a scaler lives, and none else") {
  const Tensor leaf = ones({2}).requires_grad_();
  const auto label = [&] { return autograd::meta(leaf)->stamp.scale.label; };
  leaf.sum().backward();
  CHECK(label() == ScaleKnown::Nothing);
  {
    const Scaler scaler;
    leaf.sum().backward();
    CHECK(label() == ScaleKnown::One);
    CHECK(label().first.scaler == 0);
    CHECK(label().first.backward_at.line() == __LINE__ - 3);
    leaf.sum().backward({.gradient = full({}, 3.0)});
    CHECK(label() == ScaleKnown::Unknown);
    leaf.set_grad(Tensor());
    const Tensor outer = ones({2}).requires_grad_(), inner = leaf.sum();
    outer.register_hook([&](const Tensor& gradient) { return inner.backward(), gradient; });
    outer.sum().backward();
    CHECK(label() == ScaleKnown::Unknown);  // of a backward within another one
  }
  leaf.set_grad(Tensor());
  leaf.sum().backward();
  CHECK(label() == ScaleKnown::Nothing);
}

TEST_CASE("a scaler that only reads gradients lets backward look whether they are finite; a write makes that void") {
  const Tensor leaf = ones({2}).requires_grad_();
  const auto is_known = [&] { return autograd::meta(leaf)->stamp.scale.is_known_finite(leaf.grad()); };
  {
    const Scaler writes{.only_reads = false};
    scaled_backward(leaf, writes, 1);
    CHECK_FALSE(is_known());
  }
  leaf.set_grad(Tensor());
  const Scaler scaler{.only_reads = true};
  scaled_backward(leaf, scaler, 1);
  CHECK(is_known());
  scaled_backward(leaf, scaler, 2);  // accumulates
  CHECK(is_known());
  CHECK(leaf.grad().to_vector<double>() == std::vector<double>{24, 24});
  {
    const NoGradGuard no_grad;
    leaf.grad().mul_(2);
  }
  CHECK_FALSE(is_known());
  scaled_backward(leaf, scaler, 1);
  CHECK(is_known());
  leaf.grad().bump_version();  // written through data_ptr()
  CHECK_FALSE(is_known());
  scaled_backward(leaf, scaler, INFINITY);
  CHECK_FALSE(is_known());
  leaf.set_grad(ones({2}));
  CHECK_FALSE(is_known());
  leaf.set_grad(Tensor());
  leaf.sum().backward();  // the loss is unscaled, so no scaler step follows
  CHECK_FALSE(is_known());
}

TEST_CASE("a backward of several roots hands down the label of each") {
  const Scaler scaler;
  const Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_(), both = ones({2}).requires_grad_();
  const Tensor roots[] = {(a * both).sum(), (b * both).sum()};
  const Tensor gradients[] = {Tensor(), full({}, 8.0)};
  autograd::backward(roots, gradients);
  CHECK(autograd::meta(a)->stamp.scale.label == ScaleKnown::One);
  CHECK(autograd::meta(b)->stamp.scale.label == ScaleKnown::Unknown);
  CHECK(autograd::meta(both)->stamp.scale.label == ScaleKnown::Unknown);
}

}  // namespace brigade::test::gradient_scale_test
