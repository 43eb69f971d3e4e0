// A fused step unscales gradients as it reads them: the weights match those of a step after unscale_, and the gradients
// are left unchanged.
#include <amp/training.h>

#include <memory>

namespace brigade::test::fused_step_test {

using test::error_of;
using test::OneWeight;
using test::says_all;

using Make = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

struct Run {
  std::vector<double> weights;
  double scale;
  uint64_t skipped;
};

// Eight steps, one of them skipped; the scale grows and falls by powers of 2.
Run run(const Make& make, bool is_fused, DType dtype) {
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2, .fused_step = is_fused});
  const Tensor a = full({3}, 0.7, dtype).requires_grad_(), b = full({2, 2}, -0.3, dtype).requires_grad_();
  const auto optimizer = make({a, b});
  for (int i = 0; i < 8; ++i) {
    optimizer->zero_grad();
    const double slope = i == 4 ? INFINITY : 0.1 * (i + 1);
    scaler.scale((a * a * slope).sum() + (b * 0.3).sum()).backward();
    scaler.step(*optimizer);
    scaler.update();
  }
  std::vector<double> weights = a.to_vector<double>();
  for (const double each : b.to_vector<double>())
    weights.push_back(each);
  return {weights, scaler.get_scale(), optimizer->steps_skipped()};
}

template <class O>
Make make(std::remove_cvref_t<decltype(std::declval<O&>().options())> options) {
  return [options](const std::vector<Tensor>& parameters) { return std::make_unique<O>(parameters, options); };
}

TEST_CASE("a fused step moves the weights as one after unscale_, to the bit") {
  const std::vector<Make> optimizers{make<optim::SGD>({.lr = 0.1, .weight_decay = 0.01}),
                                     make<optim::SGD>({.lr = 0.1, .momentum = 0.9, .maximize = true}),
                                     make<optim::Adam>({.lr = 0.1, .weight_decay = 0.01}),
                                     make<optim::AdamW>({.lr = 0.1, .amsgrad = true}),
                                     make<optim::RMSprop>({.lr = 0.1})};  // has no fused step: falls back
  for (const DType dtype : {kFloat32, kFloat64, kBFloat16}) {
    for (size_t i = 0; i < optimizers.size(); ++i) {
      CAPTURE(i);
      const Run fused = run(optimizers[i], true, dtype), plain = run(optimizers[i], false, dtype);
      CHECK(fused.weights == plain.weights);
      CHECK(fused.scale == plain.scale);
      CHECK(fused.skipped == 1);
      CHECK(plain.skipped == 1);
    }
  }
}

TEST_CASE("after a fused step the gradients are as they were, and know it") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8, .fused_step = true});
  scaler.scale(model.loss()).backward();
  scaler.step(model.optimizer);
  CHECK(model.value() == -1);
  CHECK(model.gradient() == 8);
  CHECK(says_all(error_of([&] { model.optimizer.step(); }), {"8 times too large"}));
}

TEST_CASE("a fused step is skipped by an infinity of any backward, and by one that was written afterwards") {
  using Change = std::function<void(OneWeight&, amp::GradScaler&)>;
  const auto backward = [](double slope) -> Change {
    return [slope](OneWeight& model, amp::GradScaler& scaler) { scaler.scale(model.loss(slope)).backward(); };
  };
  const std::pair<std::vector<Change>, bool> rows[] = {
      {{backward(1)}, false},
      {{backward(1), backward(2)}, false},
      {{backward(INFINITY)}, true},
      {{backward(1), backward(INFINITY)}, true},
      {{backward(INFINITY), backward(1)}, true},
      {{backward(1), [](OneWeight& model, amp::GradScaler&) { model.weight.grad().fill_(INFINITY); }}, true},
      {{backward(1), [](OneWeight& model, amp::GradScaler&) { model.weight.set_grad(full({1}, INFINITY)); }}, true},
      {{backward(1),
        [](OneWeight& model, amp::GradScaler&) {
          model.weight.grad().data_ptr<float>()[0] = INFINITY;
          model.weight.grad().bump_version();
        }},
       true},
  };
  for (const auto& [changes, is_skipped] : rows) {
    CAPTURE(&changes - &rows[0].first);
    OneWeight model;
    amp::GradScaler scaler({.init_scale = 8, .fused_step = true});
    for (const Change& change : changes)
      change(model, scaler);
    CHECK(scaler.step(model.optimizer) == !is_skipped);
    CHECK(scaler.found_inf(model.optimizer) == is_skipped);
    CHECK((model.value() == 0) == is_skipped);
    scaler.update();
    CHECK(scaler.get_scale() == (is_skipped ? 4 : 8));
  }
}

TEST_CASE("a fused scaler checks the scale of gradients as another") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8, .fused_step = true});
  scaler.scale(model.loss()).backward();
  scaler.update(16);
  CHECK(says_all(error_of([&] { scaler.step(model.optimizer); }), {"was made at another scale: scale 8"}));
  CHECK(model.value() == 0);
}

TEST_CASE("hooks of an optimizer see unscaled gradients: then the step is not fused") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8, .fused_step = true});
  std::vector<double> seen;
  const auto look = [&](optim::Optimizer&, SourceLocation) { seen.push_back(model.gradient()); };
  model.optimizer.register_step_pre_hook(look);
  model.optimizer.register_step_post_hook(look);
  scaler.scale(model.loss()).backward();
  scaler.step(model.optimizer);
  CHECK(seen == std::vector<double>{1, 1});
  CHECK(model.value() == -1);
}

TEST_CASE("a fused step after unscale_ does not divide again") {
  OneWeight model;
  amp::GradScaler scaler({.init_scale = 8, .fused_step = true});
  scaler.scale(model.loss()).backward();
  scaler.unscale_(model.optimizer);
  scaler.step(model.optimizer);
  CHECK(model.value() == -1);
}

}  // namespace brigade::test::fused_step_test
