// A scaler over float16 parameters: refused without master weights, right with them.
#include <amp/training.h>
#include <brigade/autograd/listener.h>

namespace brigade::test::master_weights_test {
using test::error_of;
using test::says_all;

namespace {

struct HalfWeight {
  Tensor weight = full({4}, 1.0, kFloat16).requires_grad_();
  Tensor loss(double slope) const { return (weight * slope).to(kFloat32).sum(); }
};

}  // namespace

TEST_CASE("scaled float16 gradients below float16's range move the master weights") {
  // 2e-8 is 0 in float16; times 65536 it is not.
  constexpr double kSlope = 2e-8, kScale = 65536;
  const auto after = [&](bool scales) {
    HalfWeight model;
    optim::SGD optimizer({model.weight}, {.lr = 1000, .master_weights = true});
    amp::GradScaler scaler({.init_scale = kScale, .enabled = scales});
    for (int i = 0; i < 5; ++i) {
      optimizer.zero_grad();
      scaler.scale((model.weight.to(kFloat32) * kSlope).sum()).backward();
      CHECK(scaler.step(optimizer));
      scaler.update();
    }
    return optimizer.master_weight(model.weight).to_vector<double>()[0];
  };
  CHECK(after(true) == doctest::Approx(1 - 5 * 1000 * kSlope).epsilon(1e-6));
  CHECK(after(false) != doctest::Approx(1 - 5 * 1000 * kSlope).epsilon(1e-6));
}

TEST_CASE("an overflow skips the step of master weights, and the scale falls") {
  HalfWeight model;
  optim::Adam optimizer({model.weight}, {.lr = 0.1, .master_weights = true});
  amp::GradScaler scaler({.init_scale = 65536});
  scaler.scale(model.loss(2)).backward();  // 131072
  CHECK_FALSE(scaler.step(optimizer));
  scaler.update();
  CHECK(scaler.get_scale() == 32768);
  CHECK_FALSE(optimizer.master_weight(model.weight).defined());
  CHECK(model.weight.detach().to_vector<double>() == std::vector<double>(4, 1.0));
}

TEST_CASE("what has no master weights is refused, with the way that there is") {
  HalfWeight model;
  const auto refused = [&](optim::Optimizer& optimizer) {
    amp::GradScaler scaler({.init_scale = 8});
    optimizer.zero_grad();
    scaler.scale(model.loss(1)).backward();
    return error_of([&] { scaler.step(optimizer); });
  };
  const std::vector<std::string> parts{"Attempting to unscale FP16 gradients.", ".master_weights = true"};
  optim::SGD plain({model.weight}, {.lr = 0.1});
  CHECK(says_all(refused(plain), parts));
  optim::RMSprop divides_nothing({model.weight}, {.master_weights = true});
  CHECK(says_all(refused(divides_nothing), parts));
  optim::SGD hooked({model.weight}, {.lr = 0.1, .master_weights = true});
  hooked.register_step_pre_hook([](optim::Optimizer&, SourceLocation) {});
  CHECK(says_all(refused(hooked), parts));
  // An explicit unscale_() is refused: in float16 it would lose what the scale has saved.
  optim::SGD master({model.weight}, {.lr = 0.1, .master_weights = true});
  amp::GradScaler scaler({.init_scale = 8});
  master.zero_grad();
  scaler.scale(model.loss(1)).backward();
  CHECK(says_all(error_of([&] { scaler.unscale_(master); }), parts));
  CHECK(scaler.step(master));
  CHECK(model.weight.detach().to(kFloat64).to_vector<double>()[0] == doctest::Approx(0.9).epsilon(1e-3));
  // float32 gradients are unscaled as usual.
  const Tensor full = zeros({1}).requires_grad_();
  optim::SGD of_floats({full}, {.lr = 1, .master_weights = true});
  amp::GradScaler other({.init_scale = 8});
  other.scale((full * 3.0).sum()).backward();
  CHECK(other.step(of_floats));
  CHECK(full.grad().item() == 3);
}

TEST_CASE("float16 gradients are clipped at their scale") {
  HalfWeight model;
  optim::SGD optimizer({model.weight}, {.lr = 1, .master_weights = true});
  amp::GradScaler scaler({.init_scale = 1024});
  scaler.scale(model.loss(1)).backward();  // a norm of 2
  CHECK(says_all(
      error_of([&] { optim::clip_grad_norm_({model.weight}, 0.5); }),
      {"the true norm is 2", "clip float16 gradients by the limit times scaler.get_scale(): they cannot be unscaled"}));
  optim::clip_grad_norm_({model.weight}, 0.5 * scaler.get_scale());
  CHECK(scaler.step(optimizer));
  CHECK(optimizer.master_weight(model.weight).to_vector<double>()[0] == doctest::Approx(0.75).epsilon(1e-3));
}

TEST_CASE("what only this rank has found lowers the scale when the others have heard of it") {
  // Simulates a DDP wrapper whose ranks agree about one optimizer only.
  struct Wrapper final : autograd::Listener {
    void on_plan(const autograd::Plan&) override {}
    void on_grad_ready(uint32_t, bool) override {}
    void on_finish(const autograd::Plan&) override {}
    void on_error(const autograd::Plan*, std::exception_ptr) noexcept override {}
    void on_update(const autograd::Update& update) override {
      if (update.optimizer != reduced) return;
      told.push_back(update.scaled->found_elsewhere);
      update.scaled->is_agreed = true;
    }
    const void* reduced = nullptr;
    std::vector<bool> told;
  };
  test::OneWeight reduced, own;
  const auto wrapper = std::make_shared<Wrapper>();
  wrapper->reduced = &reduced.optimizer;
  autograd::add_listener(wrapper);
  amp::GradScaler scaler({.init_scale = 1024});
  const auto iteration = [&](double slope, bool own_first) {
    reduced.optimizer.zero_grad(), own.optimizer.zero_grad();
    scaler.scale(reduced.loss() + own.loss(slope)).backward();
    if (own_first) scaler.step(own.optimizer);
    CHECK(scaler.step(reduced.optimizer));
    if (!own_first) scaler.step(own.optimizer);
    scaler.update();
    return scaler.get_scale();
  };
  CHECK(iteration(INFINITY, true) == 512);   // reported in the same iteration
  CHECK(iteration(INFINITY, false) == 512);  // too late for this one
  CHECK(iteration(1, false) == 256);
  CHECK(iteration(1, false) == 256);
  CHECK(wrapper->told == std::vector<bool>{true, false, true, false});
  CHECK(own.optimizer.steps_skipped() == 2);
}

}  // namespace brigade::test::master_weights_test
