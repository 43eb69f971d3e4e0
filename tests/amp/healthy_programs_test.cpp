// Correct programs, however unusual: the scale stamps stop none of them, and the weights match those without a scaler.
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/function.h>
#include <brigade/autograd/meta.h>
#include <brigade/nn/nn.h>

#include <amp/training.h>

namespace brigade::test::healthy_programs_test {

using test::OneWeight;

const amp::GradScalerOptions kScale8{.init_scale = 8};

TEST_CASE("two models with a scaler each") {
  OneWeight a, b;
  amp::GradScaler of_a({.init_scale = 8}), of_b({.init_scale = 1024});
  for (int i = 0; i < 3; ++i) {
    a.optimizer.zero_grad(), b.optimizer.zero_grad();
    of_a.scale(a.loss()).backward(), of_b.scale(b.loss(2)).backward();
    of_a.step(a.optimizer), of_b.step(b.optimizer);
    of_a.update(), of_b.update();
  }
  CHECK(a.value() == -3);
  CHECK(b.value() == -6);
}

TEST_CASE("a generator and a discriminator with one scaler, whose scale grows every iteration") {
  OneWeight generator, discriminator;
  amp::GradScaler scaler({.init_scale = 8, .growth_interval = 1});
  for (int i = 0; i < 3; ++i) {
    discriminator.optimizer.zero_grad();
    scaler.scale(discriminator.loss() + generator.loss().detach()).backward();
    scaler.step(discriminator.optimizer);
    generator.optimizer.zero_grad();
    // This backward also reaches the discriminator, whose gradients are cleared before they are used.
    scaler.scale(generator.loss(2) + discriminator.loss()).backward();
    scaler.step(generator.optimizer);
    scaler.update();
  }
  CHECK(generator.value() == -6);
  CHECK(discriminator.value() == -3);
  CHECK(scaler.get_scale() == 64);
}

TEST_CASE("gradients are accumulated at one scale, divided before or after scale()") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  (scaler.scale(model.loss()) / 2.0).backward();
  scaler.scale(model.loss() / 2.0).backward();
  scaler.step(model.optimizer);
  CHECK(model.value() == -1);
}

TEST_CASE("update() within an accumulation that leaves the scale as it is") {
  OneWeight model, other;
  amp::GradScaler scaler(kScale8);
  for (int i = 0; i < 2; ++i) {
    scaler.scale(model.loss() + other.loss()).backward();
    scaler.step(other.optimizer);
    other.optimizer.zero_grad();
    scaler.update();
  }
  scaler.step(model.optimizer);
  CHECK(model.value() == -2);
}

TEST_CASE("a penalty on gradients of the scaled loss, which were unscaled by hand") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  const Tensor loss = (model.weight * model.weight * 0.5 + model.weight * 3.0).sum();  // slope w + 3
  const std::vector<Tensor> scaled =
      autograd::grad(std::vector{scaler.scale(loss)}, std::vector{model.weight}, {.create_graph = true});
  for (const bool divided : {true, false}) {
    const Tensor slope = divided ? scaled[0] / scaler.get_scale() : scaled[0] * (1 / scaler.get_scale());
    const Tensor penalty = (slope * slope).sum();  // its slope: 2 (w + 3)
    scaler.scale(loss + penalty).backward({.retain_graph = true});
  }
  scaler.step(model.optimizer);
  CHECK(model.value() == doctest::Approx(-18));
}

TEST_CASE("a scaler that is not enabled changes nothing and checks nothing") {
  OneWeight model;
  amp::GradScaler scaler({.enabled = false});
  const Tensor loss = model.loss();
  CHECK(scaler.scale(loss).is_same(loss));
  loss.backward();
  scaler.unscale_(model.optimizer);
  CHECK(scaler.step(model.optimizer));
  scaler.update();
  CHECK(model.value() == -1);
  CHECK(scaler.get_scale() == 1);
}

TEST_CASE("gradients that are all zero, of whatever scale") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss(0.5)).detach();
  (model.weight * zeros({1})).sum().backward();  // not scaled, and 0
  CHECK(scaler.step(model.optimizer));
  CHECK(model.value() == 0);
}

TEST_CASE("a parameter that the loss does not need is tied to it by a product with 0") {
  OneWeight model, idle;
  amp::GradScaler scaler(kScale8);
  (scaler.scale(model.loss()) + (idle.weight * 0.0 + model.weight * 0.0).sum()).backward();
  scaler.step(model.optimizer);
  scaler.step(idle.optimizer);
  CHECK(model.value() == -1);
  CHECK(idle.value() == 0);
}

TEST_CASE("gradients that are put in place by hand") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss()).backward();
  model.weight.set_grad(full({1}, 4.0));
  CHECK(scaler.step(model.optimizer));
  CHECK(model.value() == -0.5);
  scaler.scale(model.loss()).backward();  // accumulates onto the set gradient
  model.weight.set_grad(full({1}, 1.0));
  model.optimizer.step();
  CHECK(model.value() == -1.5);
}

TEST_CASE("gradients that are unscaled by hand, in place, or through a raw pointer with a new version") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss()).backward();
  model.weight.grad().mul_(1.0 / 8);
  model.optimizer.step();
  CHECK(model.value() == -1);
  model.optimizer.zero_grad();
  scaler.scale(model.loss()).backward();
  *model.weight.grad().data_ptr<float>() /= 8;
  model.weight.grad().bump_version();
  model.optimizer.step();
  CHECK(model.value() == -2);
  model.optimizer.zero_grad();
  scaler.scale(model.loss()).backward();
  CHECK(optim::clip_grad_norm_({model.weight}, INFINITY) == 8);  // only computes the norm
  model.weight.grad().mul_(1.0 / 8);
  CHECK(optim::clip_grad_norm_({model.weight}, 0.5) == 1);
  model.optimizer.step();
  CHECK(model.value() == doctest::Approx(-2.5));
}

TEST_CASE("gradients that a hook unscales, on their way or when they have come") {
  amp::GradScaler scaler(kScale8);
  OneWeight model;
  const uint64_t hook = model.weight.register_hook([](const Tensor& gradient) { return gradient * (1.0 / 8); });
  scaler.scale(model.loss()).backward();
  model.optimizer.step();
  CHECK(model.value() == -1);
  model.weight.remove_hook(hook);
  model.optimizer.zero_grad();
  model.weight.register_post_accumulate_grad_hook([](const Tensor& leaf) { leaf.grad().mul_(1.0 / 8); });
  scaler.scale(model.loss()).backward();
  model.optimizer.step();
  CHECK(model.value() == -2);
}

TEST_CASE("gradients of a plain backward that are scaled by hand, in place or as a given gradient") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss()).detach();
  model.loss().backward();
  model.weight.grad().mul_(8.0);
  scaler.step(model.optimizer);
  scaler.update();
  CHECK(model.value() == -1);
  model.optimizer.zero_grad();
  model.loss().backward({.gradient = full({}, 8.0)});
  scaler.step(model.optimizer);
  CHECK(model.value() == -2);
}

TEST_CASE("a schedule that steps after several steps, one of which was skipped") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  optim::StepLR schedule(model.optimizer, 1, 0.5);
  const test::Warnings warnings;
  for (const double slope : {1.0, double(INFINITY)}) {
    model.optimizer.zero_grad();
    scaler.scale(model.loss(slope)).backward();
    scaler.step(model.optimizer);
    scaler.update();
  }
  schedule.step();
  CHECK(warnings.texts.empty());
}

TEST_CASE("a limit for clipping that was scaled on purpose") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss(3)).backward();
  optim::clip_grad_norm_({model.weight}, 1.5 * scaler.get_scale());
  scaler.step(model.optimizer);
  CHECK(model.value() == doctest::Approx(-1.5));
  // A limit below 1, at a scale of the usual size.
  amp::GradScaler usual({.init_scale = 65536});
  model.optimizer.zero_grad();
  usual.scale(model.loss(3)).backward();
  optim::clip_grad_norm_({model.weight}, 0.1 * usual.get_scale());
  usual.step(model.optimizer);
  CHECK(model.value() == doctest::Approx(-1.6));
}

TEST_CASE("gradients are cleared in place, by the optimizer, by the module, or by hand") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  for (int i = 0; i < 4; ++i) {
    scaler.scale(model.loss()).backward();
    CHECK(scaler.step(model.optimizer));
    scaler.update();
    i % 2 ? model.optimizer.zero_grad(false) : void(model.weight.grad().zero_());
  }
  CHECK(model.value() == -4);
  nn::Linear layer(1, 1);
  optim::SGD optimizer(layer->parameters(), {.lr = 1});
  for (int i = 0; i < 2; ++i) {
    scaler.scale(layer(ones({1, 1})).sum()).backward();
    CHECK(scaler.step(optimizer));
    scaler.update();
    layer->zero_grad(false);
  }
}

TEST_CASE("a part of a gradient that was cleared in place says nothing of the rest") {
  amp::GradScaler scaler(kScale8);
  const Tensor weight = zeros({2}).requires_grad_();
  optim::SGD optimizer({weight}, {.lr = 1});
  scaler.scale(weight.sum()).backward();
  scaler.unscale_(optimizer);
  weight.grad().slice(0, 0, 1).zero_();
  scaler.scale(weight.sum()).backward();  // mixed scales, but the program has edited the gradient
  CHECK(autograd::meta(weight)->stamp.scale.label == autograd::ScaleKnown::Unknown);
  optimizer.step();
}

TEST_CASE("the first steps of training are skipped until the scale fits") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 0x1p127});
  int skipped = 0;
  for (int i = 0; i < 5; ++i) {
    model.optimizer.zero_grad();
    scaler.scale(model.loss(16)).backward();
    skipped += !scaler.step(model.optimizer);
    scaler.update();
  }
  CHECK(skipped == 4);
  CHECK(model.value() == -16);
  CHECK(model.optimizer.steps_skipped() == 4);
  CHECK(model.optimizer.steps_taken() == 1);
}

TEST_CASE("a loss that the program multiplies by the scale itself") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss()).detach();
  (model.loss() * scaler.get_scale()).backward();
  CHECK(scaler.step(model.optimizer));
  CHECK(model.value() == -1);
}

TEST_CASE("a model that is cut in two, with the gradient handed on") {
  for (const bool as_gradient : {true, false}) {
    OneWeight body, head;
    amp::GradScaler scaler(kScale8);
    const Tensor features = body.weight + 1.0;
    const Tensor cut = features.detach().requires_grad_();
    scaler.scale((cut * 3.0 + head.weight).sum()).backward();
    if (as_gradient) {
      features.backward({.gradient = cut.grad()});
    } else {
      (features * cut.grad().detach()).sum().backward();
    }
    scaler.step(body.optimizer);
    scaler.step(head.optimizer);
    scaler.update();
    CHECK(body.value() == -3);
    CHECK(head.value() == -1);
  }
}

TEST_CASE("a model that is cut in two, and whose first half has a scaled loss as well") {
  OneWeight body;
  amp::GradScaler scaler(kScale8);
  const Tensor features = body.weight + 1.0;
  const Tensor cut = features.detach().requires_grad_();
  scaler.scale((cut * 3.0).sum() + body.loss()).backward();
  (features * cut.grad().detach()).sum().backward();
  scaler.step(body.optimizer);
  CHECK(body.value() == -4);
}

TEST_CASE("a checkpointed segment hands the scale through") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  const Tensor x = ones({1}).requires_grad_();
  const Tensor y = autograd::checkpoint([&](const Tensor& in) { return in * model.weight * 2.0; }, x);
  scaler.scale(y.sum()).backward();
  CHECK(test::error_of([&] { model.optimizer.step(); }).find("8 times too large") != std::string::npos);
  scaler.step(model.optimizer);
  CHECK(model.value() == -2);
}

TEST_CASE("an auxiliary loss with an optimizer of its own that knows no scaler") {
  OneWeight main, aside;
  amp::GradScaler scaler(kScale8);
  scaler.scale(main.loss()).backward();
  aside.loss().backward();
  aside.optimizer.step();
  scaler.step(main.optimizer);
  scaler.update();
  CHECK(aside.value() == -1);
  CHECK(main.value() == -1);
}

TEST_CASE("a plain backward after unscale_ adds to unscaled gradients") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss()).backward();
  scaler.unscale_(model.optimizer);
  model.loss(2).backward();
  scaler.step(model.optimizer);
  CHECK(model.value() == -3);
}

TEST_CASE("a step that failed for its scale can be taken after it was mended") {
  OneWeight model;
  amp::GradScaler scaler(kScale8);
  scaler.scale(model.loss()).backward();
  model.loss().backward();
  CHECK_THROWS_AS(scaler.step(model.optimizer), autograd::ScalerError);
  model.optimizer.zero_grad();
  scaler.scale(model.loss()).backward();
  CHECK(scaler.step(model.optimizer));
  CHECK(model.value() == -1);
}

}  // namespace brigade::test::healthy_programs_test
