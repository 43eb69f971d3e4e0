// Master weights: float32 copies of half parameters, compared with the same optimizer on float32 parameters.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/core/random.h>
#include <brigade/nn/nn.h>
#include <optim/reference.h>

#include <core/error_of.h>

#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>

namespace brigade::test::master_weights_test {
namespace {

Tensor numbers(Shape sizes, uint64_t seed) {
  RandomGenerator generator(seed);
  return randn(sizes, kFloat32, &generator);
}

Tensor half_parameter(const Tensor& values, DType dtype) { return values.to(dtype).detach().requires_grad_(); }

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.to_vector<double>() == b.to_vector<double>();
}

// Runs 30 steps on half parameters and the same gradients on a float32 twin. After each step, the half parameter must
// equal the twin's, rounded.
template <class O>
void check_like_float32(std::remove_cvref_t<decltype(std::declval<O&>().options())> options) {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(std::string(name(dtype)));
    const Tensor half = half_parameter(numbers({5, 3}, 1), dtype);
    const Tensor strided = half_parameter(numbers({4, 6}, 2), dtype);
    const Tensor transposed = strided.detach().t().requires_grad_();  // updated in place, with these strides
    const Tensor full = half.detach().to(kFloat32).requires_grad_();
    const Tensor full_transposed = transposed.detach().to(kFloat32).requires_grad_();
    options.master_weights = true;
    O optimizer({half, transposed}, options);
    options.master_weights = false;
    O twin({full, full_transposed}, options);
    for (int t = 0; t < 30; ++t) {
      CAPTURE(t);
      const Tensor gradient = numbers({5, 3}, 100 + static_cast<uint64_t>(t)).to(dtype);
      const Tensor other = numbers({6, 4}, 200 + static_cast<uint64_t>(t)).to(dtype);
      half.set_grad(gradient), full.set_grad(gradient.to(kFloat32));
      transposed.set_grad(other), full_transposed.set_grad(other.to(kFloat32));
      optimizer.step(), twin.step();
      REQUIRE(same_bits(optimizer.master_weight(half), full.detach()));
      REQUIRE(same_bits(half.detach(), full.detach().to(dtype)));
      REQUIRE(same_bits(transposed.detach(), full_transposed.detach().to(dtype)));
    }
  }
}

}  // namespace

TEST_CASE("every optimizer moves half parameters as float32 ones, and rounds") {
  check_like_float32<optim::SGD>({.lr = 0.01});
  check_like_float32<optim::SGD>({.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
  check_like_float32<optim::Adam>({.lr = 0.001, .amsgrad = true});
  check_like_float32<optim::AdamW>({.lr = 0.001});
  check_like_float32<optim::RMSprop>({.lr = 0.001, .momentum = 0.9, .centered = true});
  check_like_float32<optim::Adagrad>({.lr = 0.01, .initial_accumulator_value = 0.1});
  check_like_float32<optim::Adadelta>({.lr = 0.1});
  check_like_float32<optim::Lion>({.lr = 0.001});
  check_like_float32<optim::RAdam>({.lr = 0.001});
  check_like_float32<optim::NAdam>({.lr = 0.001});
}

TEST_CASE("steps below the spacing of a half type add up; without master weights they are lost") {
  const auto after = [](bool master_weights) {
    const Tensor p = full({1}, 1.0, kFloat16).requires_grad_();
    optim::SGD optimizer({p}, {.lr = 1e-5, .master_weights = master_weights});
    for (int i = 0; i < 1000; ++i) {
      p.set_grad(ones({1}, kFloat16));
      optimizer.step();
    }
    return p.detach().to(kFloat64).item();
  };
  CHECK(after(false) == 1.0);
  CHECK(after(true) == doctest::Approx(0.99).epsilon(5e-4));
}

TEST_CASE("what is written from outside moves its elements alone; the others keep their digits") {
  const Tensor p = half_parameter(tensor<double>({0.5, 2.0, -3.0}), kFloat16);
  optim::SGD optimizer({p}, {.lr = 1e-5, .master_weights = true});
  const auto step = [&] {
    p.set_grad(ones({3}, kFloat16));
    optimizer.step();
  };
  step();
  const double digits = optimizer.master_weight(p).to_vector<double>()[0];
  CHECK(digits == doctest::Approx(0.49999).epsilon(1e-7));
  CHECK(digits != 0.5);
  p.detach().copy_(clamp(p.detach(), -1.0, 1.0));  // rounds to 0.5, so the first element is not touched
  step();
  const std::vector<double> masters = optimizer.master_weight(p).to_vector<double>();
  CHECK(masters[0] == doctest::Approx(0.49998).epsilon(1e-7));
  CHECK(masters[1] == doctest::Approx(0.99999).epsilon(1e-7));
  CHECK(masters[2] == doctest::Approx(-1.00001).epsilon(1e-7));
  p.detach().fill_(4.0);
  step();
  for (const double each : optimizer.master_weight(p).to_vector<double>())
    CHECK(each == doctest::Approx(3.99999).epsilon(1e-7));
}

TEST_CASE("float32 parameters have no copies, and options and states do not speak of what is off") {
  const Tensor p = parameter_of(kFloat32);
  optim::Adam on({p}, {.master_weights = true}), off({p}, {});
  p.set_grad(ones({3}));
  on.step();
  CHECK_FALSE(on.master_weight(p).defined());
  CHECK(on.keeps_master_weights());
  CHECK_FALSE(off.keeps_master_weights());
  CHECK(on.options_text() == off.options_text() + ", master_weights 1");
  CHECK(on.state_dict().tensors.size() == 2);
  for (const auto& [name, number] : off.state_dict().numbers)
    CHECK(name != "group0.master_weights");
}

TEST_CASE("a state with master weights goes on bit for bit, also in an optimizer that was made without them") {
  const auto train = [](const Tensor& p, optim::Adam& optimizer, int from, int to) {
    for (int t = from; t < to; ++t) {
      set_gradient(p, t);
      optimizer.step();
    }
  };
  const Tensor through = parameter_of(kFloat16);
  optim::Adam whole({through}, {.lr = 1e-3, .master_weights = true});
  train(through, whole, 0, 8);

  for (const bool was_on : {true, false}) {
    CAPTURE(was_on);
    const Tensor first = parameter_of(kFloat16);
    optim::Adam before({first}, {.lr = 1e-3, .master_weights = true});
    train(first, before, 0, 4);
    const optim::OptimizerState state = before.state_dict();
    const Tensor second = half_parameter(first.detach(), kFloat16);
    optim::Adam after({second}, {.lr = 1e-3, .master_weights = was_on});
    after.load_state_dict(state);
    CHECK(after.options().master_weights);
    CHECK(same_bits(after.master_weight(second), before.master_weight(first)));
    CHECK_FALSE(after.master_weight(second).is_same(before.master_weight(first)));
    train(second, after, 4, 8);
    CHECK(same_bits(second.detach(), through.detach()));
    CHECK(same_bits(after.master_weight(second), whole.master_weight(through)));
  }
}

TEST_CASE("a state that was saved without master weights begins with the parameter, and its moments widen") {
  const Tensor first = parameter_of(kFloat16);
  optim::Adam before({first}, {.lr = 1e-3});
  set_gradient(first, 0);
  before.step();
  const Tensor second = half_parameter(first.detach(), kFloat16);
  optim::Adam after({second}, {.lr = 1e-3, .master_weights = true});
  after.load_state_dict(before.state_dict());
  CHECK(after.options().master_weights);
  CHECK_FALSE(after.master_weight(second).defined());
  set_gradient(second, 1);
  after.step();
  CHECK(after.master_weight(second).dtype() == kFloat32);
  for (const auto& [name, tensor] : after.state_dict().tensors)
    CHECK(tensor.dtype() == kFloat32);

  // In the other direction, float32 moments are not converted to half.
  optim::OptimizerState state = after.state_dict();
  std::erase_if(state.numbers, [](const auto& entry) { return entry.first == "group0.master_weights"; });
  optim::Adam plain({second}, {.lr = 1e-3});
  const std::string text = error_of([&] { plain.load_state_dict(state); });
  CHECK_MESSAGE(text.find("optimizer state: '0.exp_avg' is ") == 0, text);
  CHECK_MESSAGE(text.find("expected float16 [3] as its parameter is") != std::string::npos, text);
}

TEST_CASE("a checkpoint of a half model with master weights resumes bit for bit") {
  const std::string path = (std::filesystem::temp_directory_path() / "brigade-master-weights.safetensors").string();
  struct Job {
    nn::Linear net{nn::Linear(4, 3)};
    std::unique_ptr<optim::AdamW> optimizer;
    optim::Checkpoint checkpoint;
    explicit Job(uint64_t seed) {
      manual_seed(seed);
      net = nn::Linear(4, 3);
      net->to(kBFloat16);
      optimizer =
          std::make_unique<optim::AdamW>(net->parameters(), optim::AdamWOptions{.lr = 1e-4, .master_weights = true});
      checkpoint.module("model", *net).optimizer("adam", *optimizer);
    }
    void train(int from, int to) {
      for (int t = from; t < to; ++t) {
        optimizer->zero_grad();
        square(net(numbers({8, 4}, static_cast<uint64_t>(t)).to(kBFloat16)).to(kFloat32) - 1.0).mean().backward();
        optimizer->step();
      }
    }
  };
  Job through(1);
  through.train(0, 10);
  Job first(1), second(2);
  first.train(0, 5);
  first.checkpoint.save(path);
  second.checkpoint.load(path);
  second.train(5, 10);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor expected = through.net->parameters()[i], found = second.net->parameters()[i];
    CHECK(same_bits(found.detach(), expected.detach()));
    CHECK(same_bits(second.optimizer->master_weight(found), through.optimizer->master_weight(expected)));
  }
  std::filesystem::remove(path);
}

}  // namespace brigade::test::master_weights_test
