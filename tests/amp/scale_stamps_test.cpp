// Faults that PyTorch does not detect: each raises an error that names both lines, before a weight changes.
#include <brigade/nn/nn.h>

#include <amp/training.h>

namespace brigade::test::scale_stamps_test {
using test::at;
using test::error_of;
using test::OneWeight;
using test::says_all;

TEST_CASE("a plain backward before the first scale() keeps PyTorch's words and names its line") {
  OneWeight model;
  amp::GradScaler scaler;
  model.loss().backward();
  const std::string error = error_of([&] { scaler.unscale_(model.optimizer); });
  CHECK(
      error.starts_with("Attempted unscale_ but _scale is None.  This may indicate your script did not use "
                        "scaler.scale(loss or outputs) earlier in the iteration."));
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"the backward at " + at(checked - 5), "scaler.scale(loss).backward()", at(checked - 4)}));
  CHECK(error_of([&] { scaler.step(model.optimizer); }).starts_with("Attempted step but _scale is None."));
  CHECK(model.value() == 0);
}

TEST_CASE("a backward that bypasses the scaler in a later step is an error") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss()).backward();
  scaler.step(model.optimizer);
  scaler.update();
  CHECK(model.value() == -1);
  model.optimizer.zero_grad();
  model.loss().backward();
  const std::string error = error_of([&] { scaler.step(model.optimizer); });
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"the gradient of parameter 0, for SGD at ", "the backward at " + at(checked - 2) + " bypassed",
                         "1024 times too small", "scaler.scale(loss).backward()", at(checked - 1)}));
  CHECK(model.value() == -1);
}

TEST_CASE("an optimizer that steps by scaled gradients without the scaler is an error") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss()).backward();
  const std::string error = error_of([&] { model.optimizer.step(); });
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"the gradient of parameter 0, for SGD.step() at ", "1024 times too large",
                         "scale() at " + at(checked - 2), "scaler.step(optimizer)", at(checked - 1),
                         "under a Fabric, step() of what fabric.setup() has returned"}));
  CHECK(model.value() == 0);
}

TEST_CASE("a part of a step is checked as a whole one") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss()).backward();
  CHECK(says_all(error_of([&] { model.optimizer.step_part(std::vector{model.weight}); }), {"1024 times too large"}));
  CHECK(model.value() == 0);
}

TEST_CASE("errors call a parameter by its name in the module") {
  nn::Linear layer(2, 1);
  optim::SGD optimizer(layer->parameters(), {.lr = 1});
  amp::GradScaler scaler;
  scaler.scale(layer(ones({1, 2})).sum()).backward();
  CHECK(says_all(error_of([&] { optimizer.step(); }), {"'weight' and 1 more"}));
}

TEST_CASE("update() between the optimizers of one iteration is an error when it changes the scale") {
  OneWeight first, second;
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  scaler.scale(first.loss() + second.loss()).backward();
  scaler.step(first.optimizer);
  scaler.update();
  const std::string error = error_of([&] { scaler.step(second.optimizer); });
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"was made at another scale: scale 1024 (scale() at " + at(checked - 4), "unscaled by 2048",
                         "update() at " + at(checked - 2), "after the steps of all its optimizers"}));
  CHECK(second.value() == 0);
}

TEST_CASE("update() within an accumulation is an error when it changes the scale") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss()).backward();
  scaler.update(512);
  scaler.scale(model.loss()).backward();
  const std::string error = error_of([&] { scaler.step(model.optimizer); });
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"parts of two scales: scale 1024 (scale() at " + at(checked - 4),
                         "and scale 512 (scale() at " + at(checked - 2), "update(new_scale) at " + at(checked - 3),
                         "not within"}));
  CHECK(model.value() == 0);
}

TEST_CASE("unscale_() within an accumulation is an error") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss()).backward();
  scaler.unscale_(model.optimizer);
  scaler.scale(model.loss()).backward();
  const std::string error = error_of([&] { scaler.step(model.optimizer); });
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"the gradient of parameter 0, for SGD.step() at ", "unscaled (backward at " + at(checked - 4),
                         "unscale_() at " + at(checked - 3), "and scale 1024 (scale() at " + at(checked - 2),
                         "after the last backward of an accumulation"}));
  CHECK(model.value() == 0);
}

TEST_CASE("gradients of a step that were not cleared do not mix with scaled ones") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  for (int i = 0; i < 2; ++i) {
    scaler.scale(model.loss()).backward();
    if (i == 1) break;
    scaler.step(model.optimizer);
    scaler.update();
  }
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }),
                 {"parts of two scales", "zero_grad() before the next one"}));
}

TEST_CASE("gradients that were cleared in place are followed on") {
  OneWeight model;
  nn::Linear layer(1, 1);
  optim::SGD of_layer(layer->parameters(), {.lr = 1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int i = 0; i < 2; ++i) {
    scaler.scale(model.loss() + layer(ones({1, 1})).sum()).backward();
    if (i == 1) break;
    scaler.step(model.optimizer);
    scaler.step(of_layer);
    scaler.update();
    model.weight.grad().zero_();
    layer->zero_grad(false);
  }
  CHECK(says_all(error_of([&] { model.optimizer.step(); }), {"1024 times too large"}));
  CHECK(says_all(error_of([&] { of_layer.step(); }), {"1024 times too large"}));
}

TEST_CASE("one of two losses scaled is an error, in one backward or in two") {
  amp::GradScaler scaler({.init_scale = 1024});
  OneWeight sum;
  (scaler.scale(sum.loss()) + sum.loss()).backward();
  unsigned checked = __LINE__;
  CHECK(says_all(error_of([&] { scaler.step(sum.optimizer); }),
                 {"scale 1024 (scale() at " + at(checked - 1), "not scaled (backward at " + at(checked - 1),
                  "scale the sum of the two losses", "scaler.scale(a + b)"}));
  OneWeight twice;
  scaler.scale(twice.loss()).backward();
  twice.loss().backward();
  checked = __LINE__;
  CHECK(says_all(
      error_of([&] { scaler.unscale_(twice.optimizer); }),
      {"scale 1024 (scale() at " + at(checked - 2), "not scaled (backward at " + at(checked - 1), "scale both"}));
  CHECK(twice.gradient() == 1025);
}

TEST_CASE("gradients of another scaler are an error, and so are sums of two scalers' losses") {
  OneWeight model;
  amp::GradScaler one({.init_scale = 1024}), other({.init_scale = 1024});
  other.scale(model.loss());
  one.scale(model.loss()).backward();
  unsigned checked = __LINE__;
  CHECK(says_all(error_of([&] { other.step(model.optimizer); }),
                 {"was scaled by another scaler: scale 1024 (scale() at " + at(checked - 1)}));
  model.optimizer.zero_grad();
  (one.scale(model.loss()) + other.scale(model.loss())).backward();
  CHECK(says_all(error_of([&] { one.step(model.optimizer); }), {"parts of two scales", "one scaler for all losses"}));
  CHECK(model.value() == 0);
}

TEST_CASE("a loss that is scaled twice is an error") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(scaler.scale(model.loss())).backward();
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }), {"was scaled twice", "scale 1048576"}));
}

TEST_CASE("scaled twice is what came through scale() twice, not what is a square") {
  for (const auto& [made_at, stepped_at] : {std::pair(4.0, 2.0), std::pair(16.0, 4.0), std::pair(0.25, 0.5)}) {
    OneWeight model;
    amp::GradScaler scaler({.init_scale = made_at});
    scaler.scale(model.loss()).backward();
    scaler.update(stepped_at);
    const std::string error = error_of([&] { scaler.step(model.optimizer); });
    CHECK(says_all(error, {"was made at another scale", "unscaled by"}));
    CHECK(error.find("twice") == std::string::npos);
  }
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8});
  scaler.scale(scaler.scale(scaler.scale(model.loss()))).backward();
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }), {"was scaled 3 times", "scale 512"}));
}

TEST_CASE("gradients that were unscaled already are not unscaled again") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss()).backward();
  scaler.unscale_(model.optimizer);
  scaler.update();
  unsigned checked = __LINE__;
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }), {"was unscaled already, at " + at(checked - 2)}));
  optim::SGD second({model.weight}, {.lr = 1});
  CHECK(says_all(error_of([&] { scaler.step(second); }), {"a parameter belongs to one optimizer"}));
  CHECK(model.gradient() == 1);
}

TEST_CASE("clipping before unscale_ gives the norm that was seen and the true one") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss(3)).backward();
  const std::string error = error_of([&] { optim::clip_grad_norm_({model.weight}, 1.5); });
  unsigned checked = __LINE__;
  CHECK(says_all(error, {"clip_grad_norm_ at ", "limits scaled gradients by max_norm 1.5",
                         "the norm seen is 3072, the true norm is 3", "scale() at " + at(checked - 2),
                         "unscale_(optimizer) before clipping"}));
  CHECK(says_all(error_of([&] { optim::clip_grad_value_({model.weight}, 2); }),
                 {"largest element seen is 3072, the true largest element is 3"}));
  const Tensor total = optim::get_total_norm({model.weight.grad()});
  CHECK(total.item() == 3072);
  CHECK(says_all(error_of([&] { optim::clip_grads_with_norm_({model.weight}, 1.5, total); }),
                 {"clip_grads_with_norm_ at ", "limits scaled gradients", "call scaler.unscale_(optimizer) before"}));
  CHECK(model.gradient() == 3072);
  scaler.unscale_(model.optimizer);
  CHECK(optim::clip_grad_norm_({model.weight}, 1.5) == doctest::Approx(3));
  scaler.step(model.optimizer);
  CHECK(model.value() == doctest::Approx(-1.5));
}

TEST_CASE("clipping does not hide that a backward came after unscale_") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss(3)).backward();
  scaler.unscale_(model.optimizer);
  optim::clip_grad_norm_({model.weight}, 1.5);
  scaler.scale(model.loss()).backward();
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }), {"parts of two scales", "unscaled (backward at "}));
}

TEST_CASE("a schedule that moves on after a skipped step is reported once, and nothing is said of one that waits") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8});
  optim::StepLR schedule(model.optimizer, 1, 0.5);
  test::Warnings warnings;
  for (const double slope : {double(INFINITY), 1.0, double(INFINITY), 1.0}) {
    model.optimizer.zero_grad();
    scaler.scale(model.loss(slope)).backward();
    const bool stepped = scaler.step(model.optimizer);
    scaler.update();
    CHECK(stepped == (slope == 1));
    schedule.step();
  }
  REQUIRE(warnings.texts.size() == 1);
  unsigned checked = __LINE__;
  CHECK(says_all(warnings.texts[0],
                 {"StepLR.step() at " + at(checked - 3), "the step of SGD at " + at(checked - 6), "was skipped"}));
}

}  // namespace brigade::test::scale_stamps_test
