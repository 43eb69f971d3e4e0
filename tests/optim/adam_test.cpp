#include <brigade/autograd/functional.h>
#include <brigade/core/warning.h>

#include <optim/reference.h>

namespace brigade::test::adam_test {
namespace {

template <class O, class Options>
void check_against_formula(bool decoupled, const Options& o) {
  for (const auto& [dtype, tolerance] : kPrecisions) {
    CAPTURE(name(dtype));
    const Tensor p = parameter_of(dtype);
    O optimizer({p}, o);
    std::vector<double> m(3), v(3), highest(3);
    const auto formula = [&](size_t i, double value, double g, int t) {
      if (o.maximize) g = -g;
      if (decoupled) {
        value *= 1 - o.lr * o.weight_decay;
      } else {
        g += o.weight_decay * value;
      }
      m[i] = o.betas[0] * m[i] + (1 - o.betas[0]) * g;
      v[i] = o.betas[1] * v[i] + (1 - o.betas[1]) * g * g;
      highest[i] = std::max(highest[i], v[i]);
      const double mean = m[i] / (1 - std::pow(o.betas[0], t + 1));
      const double square = (o.amsgrad ? highest[i] : v[i]) / (1 - std::pow(o.betas[1], t + 1));
      return value - o.lr * mean / (std::sqrt(square) + o.eps);
    };
    compare(optimizer, p, formula, tolerance);
  }
}

}  // namespace

TEST_CASE("Adam and AdamW agree with their formulas") {
  for (const bool amsgrad : {false, true}) {
    for (const bool maximize : {false, true}) {
      for (const double decay : {0.0, 0.1}) {
        CAPTURE(amsgrad);
        CAPTURE(maximize);
        CAPTURE(decay);
        // Betas small enough that the maximum of the second moments and the last one differ.
        check_against_formula<optim::Adam>(false, optim::AdamOptions{.lr = 0.05,
                                                                     .betas = {0.8, 0.4},
                                                                     .eps = 1e-3,
                                                                     .weight_decay = decay,
                                                                     .amsgrad = amsgrad,
                                                                     .maximize = maximize});
        check_against_formula<optim::AdamW>(true, optim::AdamWOptions{.lr = 0.05,
                                                                      .betas = {0.8, 0.4},
                                                                      .eps = 1e-3,
                                                                      .weight_decay = decay,
                                                                      .amsgrad = amsgrad,
                                                                      .maximize = maximize});
      }
    }
  }
}

TEST_CASE("the defaults are PyTorch's") {
  const optim::AdamOptions adam;
  CHECK(adam.lr == 1e-3);
  CHECK(adam.betas == std::array<double, 2>{0.9, 0.999});
  CHECK(adam.eps == 1e-8);
  CHECK(adam.weight_decay == 0);
  CHECK(optim::AdamWOptions().weight_decay == 1e-2);
}

TEST_CASE("the count of steps is each parameter's own") {
  // Adam's first step has size lr for any gradient, even if other parameters have already moved.
  const Tensor early = ones({1}, kFloat64).requires_grad_();
  const Tensor late = ones({1}, kFloat64).requires_grad_();
  optim::Adam optimizer({early, late}, {.lr = 0.1, .eps = 0});
  early.set_grad(ones({1}, kFloat64));
  optimizer.step();
  CHECK(late.version() == 0);
  late.set_grad(full({1}, 50, kFloat64));
  optimizer.step();
  CHECK(late.to_vector<double>()[0] == doctest::Approx(0.9).epsilon(1e-14));
}

TEST_CASE("Adam refuses bad options with PyTorch's words") {
  const Tensor p = parameter_of(kFloat64);
  CHECK_THROWS_WITH_AS(optim::Adam({p}, {.lr = -0.1}), "Invalid learning rate: -0.1", ValueError);
  CHECK_THROWS_WITH_AS(optim::Adam({p}, {.betas = {1.5, 0.9}}), "Invalid beta parameter at index 0: 1.5", ValueError);
  CHECK_THROWS_WITH_AS(optim::AdamW({p}, {.betas = {0.9, 1}}), "Invalid beta parameter at index 1: 1", ValueError);
  CHECK_THROWS_WITH_AS(optim::AdamW({p}, {.eps = -1}), "Invalid epsilon value: -1", ValueError);
  CHECK_THROWS_WITH_AS(optim::AdamW({p}, {.weight_decay = -1}), "Invalid weight_decay value: -1", ValueError);
}

// The numbers are those of PyTorch 2.15's AdamW with fused=True; without it the first step is -infinity.
TEST_CASE("float16 loses the second moments of small gradients: the steps are PyTorch's, and a warning says why") {
  struct Row {
    optim::AdamWOptions options;
    DType dtype;
    double gradient;
    bool is_told;
  };
  const Row rows[] = {{{.lr = 1e-3}, kFloat16, 5e-3, true},
                      {{.lr = 1e-3, .eps = 1e-4}, kFloat16, 5e-3, false},
                      {{.lr = 1e-3, .master_weights = true}, kFloat16, 5e-3, false},
                      {{.lr = 1e-3}, kFloat16, 6e-3, false},
                      {{.lr = 1e-3}, kFloat16, 0, false},
                      {{.lr = 1e-3}, kBFloat16, 5e-3, false},
                      {{.lr = 1e-3}, kFloat32, 5e-3, false}};
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    std::vector<std::string> told;
    const auto before =
        set_warning_handler([&](const Warning& warning) { told.push_back(warning.message + warning.advice); });
    const Tensor p = full({1}, 0.5, row.dtype).requires_grad_();
    optim::AdamW optimizer({p}, row.options);
    std::vector<double> values;
    for (const double gradient : {row.gradient, 1e-6, 0.0}) {
      p.set_grad(full({1}, gradient, row.dtype));
      optimizer.step();
      values.push_back(p.detach().item());
    }
    set_warning_handler(before);
    CHECK(told.size() == (row.is_told ? 1 : 0));
    if (!row.is_told) {
      CHECK(std::abs(values.back()) < 1);
      continue;
    }
    CHECK(values == std::vector<double>{0.4990234375, -2.76171875, -152.375});
    for (const char* const part :
         {"AdamW.step() at ", "adam_test.cpp:", "of 1 of 1 gradients are 0", "a g below 0.0055", "eps 1e-08",
          ".master_weights = true", "16-mixed", ".eps = 1e-4"})
      CHECK_MESSAGE(told[0].find(part) != std::string::npos, told[0]);
  }
}

namespace {

// Two parameters; the second gets gradients in some steps only.
struct Two {
  Tensor a = tensor<float>({1, -2, 3}).requires_grad_();
  Tensor b = tensor<float>({0.5, 4}).requires_grad_();
  optim::Adam optimizer;

  explicit Two(bool capturable) : optimizer({a, b}, {.lr = 0.1, .amsgrad = true, .capturable = capturable}) {}
  void step(int i, bool moves_b) {
    optimizer.zero_grad();
    Tensor loss = (a * a).sum() * (0.1 * (i + 1));
    if (moves_b) loss = loss + (b * b).sum();
    loss.backward();
    optimizer.step();
  }
  std::vector<std::vector<double>> values() const { return {a.to_vector<double>(), b.to_vector<double>()}; }
  std::vector<double> steps() const {
    std::vector<double> found;
    for (const auto& [name, number] : optimizer.state_dict().numbers) {
      if (name.ends_with(".step")) found.push_back(number);
    }
    return found;
  }
};

}  // namespace

TEST_CASE("Adam whose device counts moves as Adam whose host counts, also parameters that step at times alone") {
  Two usual(false), counted(true);
  int i = 0;
  for (const bool moves_b : {true, true, false, false, true, true, false, true}) {
    usual.step(i, moves_b);
    counted.step(i++, moves_b);
    CHECK(counted.values() == usual.values());
  }
  CHECK(usual.steps() == std::vector<double>{8, 5});
  CHECK(counted.steps() == usual.steps());
}

TEST_CASE("a state of Adam is saved by steps, whoever counts, and the count can move between host and device") {
  for (const bool first_on_device : {false, true}) {
    CAPTURE(first_on_device);
    Two usual(false), other(first_on_device);
    for (int i = 0; i < 3; ++i) {
      usual.step(i, i != 1);
      other.step(i, i != 1);
    }
    // The count moves by loading the state into another optimizer,
    Two loaded(!first_on_device);
    for (const auto& [to, from] : {std::pair(&loaded.a, &other.a), std::pair(&loaded.b, &other.b)}) {
      const NoGradGuard no_grad;
      to->copy_(*from);
    }
    loaded.optimizer.load_state_dict(other.optimizer.state_dict());
    // and by changing the option.
    other.optimizer.options().capturable = !first_on_device;
    for (int i = 3; i < 6; ++i) {
      usual.step(i, true);
      loaded.step(i, true);
      other.step(i, true);
      CHECK(loaded.values() == usual.values());
      CHECK(other.values() == usual.values());
    }
    CHECK(loaded.steps() == usual.steps());
    CHECK(other.steps() == usual.steps());
  }
}

}  // namespace brigade::test::adam_test
