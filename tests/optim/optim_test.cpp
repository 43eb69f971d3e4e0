#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace brigade;

namespace {

// The gradient that step t gives a parameter of value p.
double slope(double p, int t) { return 0.3 * p + std::sin(t + 1.0); }

void set_gradient(const Tensor& parameter, int t) {
  std::vector<double> values;
  for (const double p : parameter.to_vector<double>())
    values.push_back(slope(p, t));
  parameter.set_grad(tensor(values, parameter.sizes()).to(parameter.dtype()));
}

// Runs five steps and compares with `reference`, which moves one number: reference(value, gradient, t).
template <class O>
void compare(O& optimizer, const Tensor& parameter, const std::function<double(size_t, double, double, int)>& reference,
             double tolerance) {
  std::vector<double> expected = parameter.to_vector<double>();
  for (int t = 0; t < 5; ++t) {
    set_gradient(parameter, t);
    const auto gradients = parameter.grad().template to_vector<double>();
    optimizer.step();
    const auto values = parameter.to_vector<double>();
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] = reference(i, expected[i], gradients[i], t);
      REQUIRE(std::abs(values[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])));
      expected[i] = values[i];
    }
  }
}

Tensor parameter_of(DType dtype) {
  return tensor(std::vector<double>{0.5, -1.25, 2}, {3}).to(dtype).detach().requires_grad_();
}

}  // namespace

TEST_CASE("SGD with momentum, dampening, Nesterov, weight decay and maximize agrees with its formula") {
  for (const auto& [dtype, tolerance] : std::vector<std::pair<DType, double>>{{kFloat64, 1e-14}, {kFloat32, 1e-6}}) {
    for (const optim::SGDOptions& o :
         std::vector<optim::SGDOptions>{{.lr = 0.1},
                                        {.lr = 0.1, .momentum = 0.9},
                                        {.lr = 0.1, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01},
                                        {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
                                        {.lr = 0.1, .maximize = true}}) {
      const Tensor p = parameter_of(dtype);
      optim::SGD optimizer({p}, o);
      std::vector<double> buffer(3);
      compare(
          optimizer, p,
          [&](size_t i, double value, double g, int t) {
            g = (o.maximize ? -g : g) + o.weight_decay * value;
            if (o.momentum != 0) {
              buffer[i] = t == 0 ? g : o.momentum * buffer[i] + (1 - o.dampening) * g;
              g = o.nesterov ? g + o.momentum * buffer[i] : buffer[i];
            }
            return value - o.lr * g;
          },
          tolerance);
    }
  }
}

TEST_CASE("Adam and AdamW, with and without amsgrad, agree with their formulas") {
  for (const bool decoupled : {false, true}) {
    for (const bool amsgrad : {false, true}) {
      const Tensor p = parameter_of(kFloat64);
      std::vector<double> m(3), v(3), highest(3);
      const auto reference = [&](size_t i, double value, double g, int t) {
        if (decoupled) {
          value *= 1 - 0.05 * 0.1;
        } else {
          g += 0.1 * value;
        }
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.99 * v[i] + 0.01 * g * g;
        highest[i] = std::max(highest[i], v[i]);
        const double step = t + 1;
        const double corrected = (amsgrad ? highest[i] : v[i]) / (1 - std::pow(0.99, step));
        return value - 0.05 * (m[i] / (1 - std::pow(0.9, step))) / (std::sqrt(corrected) + 1e-8);
      };
      if (decoupled) {
        optim::AdamW optimizer({p}, {.lr = 0.05, .beta2 = 0.99, .weight_decay = 0.1, .amsgrad = amsgrad});
        compare(optimizer, p, reference, 1e-12);
      } else {
        optim::Adam optimizer({p}, {.lr = 0.05, .beta2 = 0.99, .weight_decay = 0.1, .amsgrad = amsgrad});
        compare(optimizer, p, reference, 1e-12);
      }
    }
  }
  CHECK(optim::AdamWOptions().weight_decay == 0.01);
}

TEST_CASE("groups have options of their own, and a parameter without gradient is left alone") {
  const Tensor a = parameter_of(kFloat64);
  const Tensor b = parameter_of(kFloat64);
  const Tensor idle = parameter_of(kFloat64);
  optim::SGD optimizer({{{a, idle}, {.lr = 1}}, {{b}, {.lr = 0.5}}});
  a.set_grad(ones({3}, kFloat64));
  b.set_grad(ones({3}, kFloat64));
  optimizer.step();
  CHECK(a.to_vector<double>()[0] == -0.5);
  CHECK(b.to_vector<double>()[0] == 0.0);
  CHECK(idle.to_vector<double>()[0] == 0.5);
  CHECK(a.version() == 1);
  CHECK(idle.version() == 0);
  optimizer.options(1).lr = 0;
  optimizer.step();
  CHECK(b.to_vector<double>()[0] == 0.0);
  optimizer.zero_grad();
  CHECK_FALSE(a.grad().defined());
}

TEST_CASE("bad arguments are refused with PyTorch's words") {
  const Tensor p = parameter_of(kFloat64);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.lr = -1}), doctest::Contains("Invalid learning rate: -1"), ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p}, {.nesterov = true}), "Nesterov momentum requires a momentum and zero dampening",
                       ValueError);
  CHECK_THROWS_WITH_AS(optim::Adam({p}, {.beta1 = 1.5}), doctest::Contains("Invalid beta parameter at index 0"),
                       ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD(std::vector<Tensor>{}, {}), "optimizer got an empty parameter list", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD({p * 2.0}, {}), doctest::Contains("can't optimize a non-leaf Tensor"), AutogradError);
  CHECK_THROWS_WITH_AS(optim::SGD({p, p}, {}),
                       doctest::Contains("some parameters appear in more than one parameter group"), ValueError);
}

TEST_CASE("the state goes round bit for bit") {
  const Tensor p = parameter_of(kFloat32);
  optim::Adam first({p}, {.lr = 0.1});
  for (int t = 0; t < 3; ++t) {
    set_gradient(p, t);
    first.step();
  }
  const Tensor copy = p.detach().clone().requires_grad_();
  optim::Adam second({copy}, {.lr = 0.7});
  second.load_state_dict(first.state_dict());
  CHECK(second.options().lr == 0.1);
  for (int t = 3; t < 6; ++t) {
    set_gradient(p, t);
    set_gradient(copy, t);
    first.step();
    second.step();
  }
  CHECK(copy.to_vector<float>() == p.to_vector<float>());
  optim::Adam other({ones({4}).requires_grad_()}, {});
  CHECK_THROWS_WITH_AS(other.load_state_dict(first.state_dict()),
                       doctest::Contains("'0.exp_avg' is float32 [3], expected float32 [4]"), ValueError);
}

TEST_CASE("hooks run around a step and can prevent it") {
  const Tensor p = parameter_of(kFloat64);
  p.set_grad(ones({3}, kFloat64));
  optim::SGD optimizer({p}, {.lr = 1});
  std::vector<std::string> events;
  const uint64_t before = optimizer.register_step_pre_hook(
      [&](optim::Optimizer&, SourceLocation where) { events.push_back("before " + to_string(where).substr(0, 20)); });
  optimizer.register_step_post_hook([&](optim::Optimizer&, SourceLocation) { events.push_back("after"); });
  optimizer.step();
  CHECK(events == std::vector<std::string>{"before optim/optim_test.cpp", "after"});
  optimizer.remove_hook(before);
  optimizer.register_step_pre_hook([](optim::Optimizer&, SourceLocation) { throw std::runtime_error("not yet"); });
  const auto value = p.to_vector<double>();
  CHECK_THROWS_WITH(optimizer.step(), "not yet");
  CHECK(p.to_vector<double>() == value);
}
