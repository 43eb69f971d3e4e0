#include <optim/reference.h>

namespace brigade::test::sgd_test {

TEST_CASE("SGD agrees with its formula") {
  const std::vector<optim::SGDOptions> table = {
      {.lr = 0.1},
      {.lr = 0.1, .momentum = 0.9},
      {.lr = 0.1, .weight_decay = 0.05},
      {.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
      {.lr = 0.1, .maximize = true},
      {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .maximize = true},
  };
  for (const auto& [dtype, tolerance] : kPrecisions) {
    for (size_t row = 0; row < table.size(); ++row) {
      CAPTURE(row);
      CAPTURE(name(dtype));
      const optim::SGDOptions& o = table[row];
      const Tensor p = parameter_of(dtype);
      optim::SGD optimizer({p}, o);
      std::vector<double> buffer(3);
      const auto formula = [&](size_t i, double value, double g, int t) {
        g = (o.maximize ? -g : g) + o.weight_decay * value;
        if (o.momentum != 0) {
          buffer[i] = t == 0 ? g : o.momentum * buffer[i] + (1 - o.dampening) * g;
          g = o.nesterov ? g + o.momentum * buffer[i] : buffer[i];
        }
        return value - o.lr * g;
      };
      compare(optimizer, p, formula, tolerance);
    }
  }
}

TEST_CASE("momentum switched on later starts with the gradient of that step") {
  const Tensor p = ones({1}, kFloat64).requires_grad_();
  optim::SGD optimizer({p}, {.lr = 1});
  const auto step = [&](double g) {
    p.set_grad(full({1}, g, kFloat64));
    const double before = p.to_vector<double>()[0];
    optimizer.step();
    return before - p.to_vector<double>()[0];
  };
  CHECK(step(2) == 2);
  optimizer.options().momentum = 0.5;
  CHECK(step(4) == 4);
  CHECK(step(1) == 3);
}

TEST_CASE("SGD refuses bad options with PyTorch's words") {
  const Tensor p = parameter_of(kFloat64);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.lr = -1}), "Invalid learning rate: -1", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.lr = NAN}), "Invalid learning rate: nan", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.momentum = -0.5}), "Invalid momentum value: -0.5", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.weight_decay = -1e-5}), "Invalid weight_decay value: -1e-05", ValueError);
  const char* nesterov = "Nesterov momentum requires a momentum and zero dampening";
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.nesterov = true}), nesterov, ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), nesterov, ValueError);
}

}  // namespace brigade::test::sgd_test
