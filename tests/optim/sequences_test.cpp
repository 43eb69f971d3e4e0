// Every optimizer, compared with PyTorch's: the values of three elements after twelve steps.
#include <optim/reference.h>

#include <memory>
#include <string>
#include <type_traits>

namespace brigade::test::sequences_test {

template <class O>
using OptionsOf = std::remove_cvref_t<decltype(std::declval<O&>().options())>;

struct Row {
  std::function<std::unique_ptr<optim::Optimizer>(const Tensor&)> make;
  std::vector<double> expected;
};
template <class O>
Row row(const OptionsOf<O>& options, std::vector<double> expected) {
  return {[options](const Tensor& p) { return std::make_unique<O>(std::vector<Tensor>{p}, options); },
          std::move(expected)};
}

// From torch.optim 2.15 in float64, with the gradients of reference.h; Lion from its authors' code.
std::vector<Row> rows() {
  return {
      row<optim::RMSprop>({}, {0.3715109291354359, -1.1212038829427085, 1.7008225967154234}),
      row<optim::RMSprop>({.lr = 0.05, .alpha = 0.7, .eps = 0.001, .weight_decay = 0.1},
                          {0.38912685103652705, -1.0058842970153932, 1.6064790432048477}),
      row<optim::RMSprop>({.lr = 0.05, .alpha = 0.8, .momentum = 0.9},
                          {-0.35665632094250077, -0.8157757908671012, 0.1346296787439314}),
      row<optim::RMSprop>({.lr = 0.02, .alpha = 0.9, .centered = true},
                          {0.4069012937429074, -1.1478989212649673, 1.7662266317924817}),
      row<optim::RMSprop>(
          {.lr = 0.02, .alpha = 0.6, .weight_decay = 0.2, .momentum = 0.5, .centered = true, .maximize = true},
          {0.6263123948018616, -1.2330086554381914, 2.2179443947784594}),
      row<optim::Adagrad>({}, {0.48503733954921946, -1.237891238609768, 1.9681982264321163}),
      row<optim::Adagrad>(
          {.lr = 0.2, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.5, .eps = 0.001},
          {0.2725625687437918, -1.0004630553319187, 1.5052856557089558}),
      row<optim::Adagrad>({.lr = 0.1, .maximize = true}, {0.6778010444630133, -1.3631044130110426, 2.34421343127175}),
      row<optim::Adadelta>({}, {0.4954274803289522, -1.2320948918791577, 1.9835852368370432}),
      row<optim::Adadelta>({.lr = 2.0, .rho = 0.6, .eps = 0.001, .weight_decay = 0.1, .maximize = true},
                           {0.5850688369481821, -1.631087701515828, 2.480838159688762}),
      row<optim::Lion>({}, {0.5, -1.2496, 1.999}),
      row<optim::Lion>({.lr = 0.03, .betas = {0.6, 0.8}, .weight_decay = 0.3},
                       {0.3943167138989415, -1.001096162753385, 1.4516737142158749}),
      row<optim::Lion>({.lr = 0.05, .betas = {0.95, 0.98}, .maximize = true},
                       {1.0000000000000004, -1.5500000000000003, 2.599999999999998}),
      row<optim::RAdam>({}, {0.49671982325671943, -1.250453699506051, 1.994352658594664}),
      row<optim::RAdam>({.lr = 0.05, .betas = {0.8, 0.7}, .eps = 0.001, .weight_decay = 0.1},
                        {0.29417565327519896, -1.075385164195866, 1.4624145333332792}),
      row<optim::RAdam>(
          {.lr = 0.05, .betas = {0.9, 0.95}, .weight_decay = 0.2, .decoupled_weight_decay = true, .maximize = true},
          {0.6220044686045295, -1.121073534746062, 2.095019323234147}),
      row<optim::NAdam>({}, {0.4955728380126912, -1.243707909309892, 1.988930412282222}),
      row<optim::NAdam>({.lr = 0.05, .betas = {0.8, 0.7}, .eps = 0.001, .weight_decay = 0.1, .momentum_decay = 0.1},
                        {0.3854250036934078, -1.0446750825319586, 1.6455729885810868}),
      row<optim::NAdam>(
          {.lr = 0.05, .betas = {0.9, 0.95}, .weight_decay = 0.2, .decoupled_weight_decay = true, .maximize = true},
          {0.5534382236518594, -1.2515800498562477, 2.0389487818072736}),
      row<optim::SGD>({.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
                      {-0.03827068829775802, 0.4293961273321186, -0.439127958837652}),
      row<optim::Adam>({.lr = 0.05, .betas = {0.8, 0.7}, .eps = 0.001, .weight_decay = 0.1, .amsgrad = true},
                       {0.28647457170613105, -1.134160919821512, 1.5984973492125274}),
      row<optim::AdamW>({.lr = 0.05, .betas = {0.8, 0.7}, .weight_decay = 0.1, .maximize = true},
                        {0.7152380278786739, -1.2393846619174602, 2.328824638290901}),
  };
}

TEST_CASE("twelve steps of every optimizer give PyTorch's numbers") {
  for (const Row& each : rows()) {
    for (const auto& [dtype, tolerance] : {std::pair(kFloat64, 1e-13), std::pair(kFloat32, 1e-5)}) {
      const Tensor p = parameter_of(dtype);
      const auto optimizer = each.make(p);
      const std::string text = optimizer->name() + " " + optimizer->options_text() + " " + name(dtype);
      CAPTURE(text);
      for (int t = 0; t < 12; ++t) {
        set_gradient(p, t);
        const uint32_t version = p.version();
        optimizer->step();
        CHECK(p.version() == version + 1);
      }
      const auto values = p.to_vector<double>();
      for (size_t i = 0; i < each.expected.size(); ++i)
        CHECK(std::abs(values[i] - each.expected[i]) <= tolerance * std::max(1.0, std::abs(each.expected[i])));
    }
  }
}

TEST_CASE("half types keep their state in their own dtype and take the step in float32") {
  for (const Row& each : rows()) {
    for (const DType dtype : {kFloat16, kBFloat16}) {
      const Tensor p = parameter_of(dtype);
      const Tensor wide = p.detach().to(kFloat32).detach().requires_grad_();
      const auto optimizer = each.make(p), beside = each.make(wide);
      const std::string text = optimizer->name() + " " + optimizer->options_text() + " " + name(dtype);
      CAPTURE(text);
      set_gradient(p, 0);
      wide.set_grad(p.grad().to(kFloat32));
      optimizer->step();
      beside->step();
      CHECK(p.to_vector<double>() == wide.detach().to(dtype).to_vector<double>());
      for (const auto& [name, tensor] : optimizer->state_dict().tensors)
        CHECK(tensor.dtype() == dtype);
    }
  }
}

TEST_CASE("RMSprop, Adagrad, Adadelta, Lion, RAdam and NAdam refuse bad options with PyTorch's words") {
  const std::vector<Tensor> p{parameter_of(kFloat64)};
  using namespace optim;
  CHECK_THROWS_WITH_AS(RMSprop(p, {.lr = -1}), "Invalid learning rate: -1", ValueError);
  CHECK_THROWS_WITH_AS(RMSprop(p, {.alpha = -1}), "Invalid alpha value: -1", ValueError);
  CHECK_THROWS_WITH_AS(RMSprop(p, {.eps = -1}), "Invalid epsilon value: -1", ValueError);
  CHECK_THROWS_WITH_AS(RMSprop(p, {.weight_decay = -1}), "Invalid weight_decay value: -1", ValueError);
  CHECK_THROWS_WITH_AS(RMSprop(p, {.momentum = -1}), "Invalid momentum value: -1", ValueError);
  CHECK_THROWS_WITH_AS(Adagrad(p, {.lr_decay = -1}), "Invalid lr_decay value: -1", ValueError);
  CHECK_THROWS_WITH_AS(Adagrad(p, {.initial_accumulator_value = -1}), "Invalid initial_accumulator_value value: -1",
                       ValueError);
  CHECK_THROWS_WITH_AS(Adadelta(p, {.rho = 1.5}), "Invalid rho value: 1.5", ValueError);
  CHECK_THROWS_WITH_AS(Lion(p, {.betas = {1, 0.9}}), "Invalid beta parameter at index 0: 1", ValueError);
  CHECK_THROWS_WITH_AS(RAdam(p, {.betas = {0.9, -0.5}}), "Invalid beta parameter at index 1: -0.5", ValueError);
  CHECK_THROWS_WITH_AS(NAdam(p, {.momentum_decay = -1}), "Invalid momentum_decay value: -1", ValueError);
}

TEST_CASE("the defaults of the others are PyTorch's, and Lion's its paper's") {
  using namespace optim;
  CHECK(RMSpropOptions().lr == 1e-2);
  CHECK(RMSpropOptions().alpha == 0.99);
  CHECK(RMSpropOptions().eps == 1e-8);
  CHECK(AdagradOptions().lr == 1e-2);
  CHECK(AdagradOptions().eps == 1e-10);
  CHECK(AdadeltaOptions().lr == 1);
  CHECK(AdadeltaOptions().rho == 0.9);
  CHECK(AdadeltaOptions().eps == 1e-6);
  CHECK(RAdamOptions().lr == 1e-3);
  CHECK(NAdamOptions().lr == 2e-3);
  CHECK(NAdamOptions().momentum_decay == 4e-3);
  CHECK(LionOptions().lr == 1e-4);
  CHECK(LionOptions().betas == std::array<double, 2>{0.9, 0.99});
}

TEST_CASE("Lion leaves a parameter where its direction is 0, and shows a gradient that is not a number") {
  const Tensor p = parameter_of(kFloat64);
  optim::Lion optimizer({p}, {.lr = 0.25});
  p.set_grad(from_values<double>(std::vector<double>{0, 3, NAN}, {3}));
  optimizer.step();
  const auto values = p.to_vector<double>();
  CHECK(values[0] == 0.5);
  CHECK(values[1] == -1.5);
  CHECK(std::isnan(values[2]));
}

TEST_CASE("NAdam's product of momenta is each parameter's own") {
  // The two parameters take turns under different betas, so they have the same step count but different momentum
  // products.
  const Tensor early = parameter_of(kFloat64), late = parameter_of(kFloat64);
  const Tensor early_alone = parameter_of(kFloat64), late_alone = parameter_of(kFloat64);
  optim::NAdam both({early, late}, {.lr = 0.1}), first({early_alone}, {.lr = 0.1}), second({late_alone}, {.lr = 0.1});
  const auto step = [](optim::NAdam& optimizer, double beta, const std::vector<Tensor>& moved,
                       const std::vector<Tensor>& resting) {
    optimizer.options().betas[0] = beta;
    for (const Tensor& p : moved)
      set_gradient(p, 1);
    for (const Tensor& p : resting)
      p.set_grad(Tensor());
    optimizer.step();
  };
  step(both, 0.5, {early}, {late});
  step(both, 0.8, {late}, {early});
  step(both, 0.9, {early, late}, {});
  step(first, 0.5, {early_alone}, {});
  step(first, 0.9, {early_alone}, {});
  step(second, 0.8, {late_alone}, {});
  step(second, 0.9, {late_alone}, {});
  CHECK(early.to_vector<double>() == early_alone.to_vector<double>());
  CHECK(late.to_vector<double>() == late_alone.to_vector<double>());
}

}  // namespace brigade::test::sequences_test
