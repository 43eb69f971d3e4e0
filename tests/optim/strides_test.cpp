// Parameters of any strides are updated like contiguous ones.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>

#include <functional>
#include <memory>

namespace brigade::test::strides_test {

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

template <class Optimizer, class Options>
Make maker(const Options& options) {
  return
      [options](std::vector<Tensor> parameters) { return std::make_unique<Optimizer>(std::move(parameters), options); };
}

Tensor start() {
  RandomGenerator generator(7);
  return randn({3, 4}, kFloat64, &generator);
}

// The same values: contiguous, transposed, and as every second column of a wider tensor.
std::vector<Tensor> layouts() {
  const Tensor x = start();
  const Tensor transposed = x.transpose(0, 1).clone().transpose(0, 1).detach();
  const Tensor wide = zeros({3, 8}, kFloat64);
  const Tensor columns = wide.slice(1, 0, 8, 2).detach();
  columns.copy_(x);
  return {x.clone(), transposed, columns};
}

std::vector<double> train(const Make& make, const Tensor& parameter, const Tensor& beside) {
  parameter.requires_grad_();
  beside.requires_grad_();
  const auto optimizer = make({parameter, beside});
  const Tensor weights = start() + 2.0;
  for (int step = 0; step < 4; ++step) {
    optimizer->zero_grad();
    (sum(square(parameter * weights)) + sum(square(beside))).backward();
    const auto version = parameter.version();
    optimizer->step();
    CHECK(parameter.version() > version);
    // Save and load in between: the state has the parameter's shape.
    if (step == 1) optimizer->load_state_dict(optimizer->state_dict());
  }
  std::vector<double> values = parameter.to_vector<double>();
  for (const double value : beside.to_vector<double>())
    values.push_back(value);
  return values;
}

TEST_CASE("a parameter of any strides moves as a contiguous one does, with every optimizer") {
  const std::vector<Make> makers{
      maker<optim::SGD>(optim::SGDOptions{.lr = 0.01}),
      maker<optim::SGD>(optim::SGDOptions{.lr = 0.01, .momentum = 0.9, .nesterov = true}),
      maker<optim::Adam>(optim::AdamOptions{.lr = 0.01, .amsgrad = true}),
      maker<optim::AdamW>(optim::AdamWOptions{.lr = 0.01}),
      maker<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.01}),
      maker<optim::Adagrad>(optim::AdagradOptions{.lr = 0.01}),
      maker<optim::Adadelta>(optim::AdadeltaOptions{.lr = 0.01}),
      maker<optim::Lion>(optim::LionOptions{.lr = 0.01}),
      maker<optim::RAdam>(optim::RAdamOptions{.lr = 0.01}),
      maker<optim::NAdam>(optim::NAdamOptions{.lr = 0.01}),
  };
  for (size_t i = 0; i < makers.size(); ++i) {
    CAPTURE(i);
    const std::vector<double> expected = train(makers[i], layouts()[0], ones({2}, kFloat64));
    for (size_t k = 1; k < layouts().size(); ++k) {
      CAPTURE(k);
      const Tensor parameter = layouts()[k];
      REQUIRE_FALSE(parameter.is_contiguous());
      CHECK(train(makers[i], parameter, ones({2}, kFloat64)) == expected);
    }
  }
}

TEST_CASE("a parameter whose elements share memory is refused") {
  const Tensor expanded = ones({1, 3}).expand({2, 3}).detach();
  expanded.requires_grad_();
  CHECK_THROWS_WITH_AS(optim::SGD({expanded}, {.lr = 0.1}), doctest::Contains("share memory"), ShapeError);
  const Tensor one = ones({1, 3}).expand({1, 3}).detach();
  one.requires_grad_();
  CHECK_NOTHROW(optim::SGD({one}, {.lr = 0.1}));
}

}  // namespace brigade::test::strides_test
