#include <brigade/autograd/functional.h>
#include <brigade/autograd/tape.h>
#include <optim/reference.h>

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>

namespace brigade::test::optimizer_test {
namespace {
double first(const Tensor& tensor) { return tensor.to_vector<double>()[0]; }
template <class O>
void train(O& optimizer, const Tensor& p, int from, int to) {
  for (int t = from; t < to; ++t) {
    set_gradient(p, t);
    optimizer.step();
  }
}
// An optimizer that a user could write from plain operations.
struct PlainDescent final : optim::Optimizer {
  std::vector<Tensor> all;
  size_t groups() const noexcept override { return 1; }
  const std::vector<Tensor>& group_parameters(size_t) const override { return all; }
  void do_step() override {
    for (const Tensor& p : all)
      p.add_(p.grad(), -1);
  }
  optim::OptimizerState state_dict() const override { return {}; }
  void load_state_dict(const optim::OptimizerState&, SourceLocation) override {}
};
}  // namespace

TEST_CASE("an optimizer of one's own steps without recording") {
  PlainDescent optimizer;
  optimizer.all = {parameter_of(kFloat64)};
  optimizer.all[0].set_grad(ones({3}, kFloat64));
  optimizer.step();
  CHECK(first(optimizer.all[0]) == -0.5);
  CHECK(optimizer.all[0].is_leaf());
}

TEST_CASE("groups have options of their own; a parameter without gradient is left alone") {
  const Tensor a = parameter_of(kFloat64);
  const Tensor b = parameter_of(kFloat64);
  const Tensor idle = parameter_of(kFloat64);
  const Tensor later = parameter_of(kFloat64);
  optim::SGD optimizer({{{a, idle}, {.lr = 1}}, {{b}, {.lr = 0.5}}});
  optimizer.add_param_group({later});  // with the options of the first group
  CHECK(optimizer.groups() == 3);
  CHECK(optimizer.parameters().size() == 4);
  for (const Tensor& p : {a, b, later})
    p.set_grad(ones({3}, kFloat64));
  optimizer.step();
  CHECK(first(a) == -0.5);
  CHECK(first(b) == 0.0);
  CHECK(first(later) == -0.5);
  CHECK(first(idle) == 0.5);
  CHECK(idle.version() == 0);
  optimizer.options(1).lr = 0;
  optimizer.step();
  CHECK(first(b) == 0.0);
  CHECK(first(a) == -1.5);
  optimizer.add_param_group({parameter_of(kFloat64)}, {.lr = 7});
  CHECK(optimizer.options(3).lr == 7);
}

TEST_CASE_TEMPLATE("parameters of several dtypes and of several ages move as each would alone", O, optim::SGD,
                   optim::Adam, optim::AdamW, optim::RMSprop, optim::Adagrad, optim::Adadelta, optim::Lion,
                   optim::RAdam, optim::NAdam) {
  const std::vector<DType> dtypes{kFloat32, kFloat64, kBFloat16, kFloat32, kFloat64};
  typename std::remove_cvref_t<decltype(std::declval<O&>().options())> options;
  options.lr = 0.1;
  if constexpr (requires { options.momentum; }) options.momentum = 0.9;
  std::vector<Tensor> together, alone;
  for (const DType dtype : dtypes) {
    together.push_back(parameter_of(dtype));
    alone.push_back(parameter_of(dtype));
  }
  O all(together, options);
  std::vector<std::unique_ptr<O>> each;
  for (const Tensor& p : alone)
    each.push_back(std::make_unique<O>(std::vector<Tensor>{p}, options));
  for (int t = 0; t < 4; ++t) {
    for (size_t i = 0; i < dtypes.size(); ++i) {
      // Parameter i has no gradient in step i.
      const bool rests = t == static_cast<int>(i);
      for (const Tensor& p : {together[i], alone[i]}) {
        set_gradient(p, t + static_cast<int>(i));
        if (rests) p.set_grad(Tensor());
      }
      each[i]->step();
    }
    all.step();
    for (size_t i = 0; i < dtypes.size(); ++i)
      CHECK(together[i].template to_vector<double>() == alone[i].template to_vector<double>());
  }
}

TEST_CASE("zero_grad forgets gradients or fills them with zeros") {
  const Tensor p = parameter_of(kFloat64);
  optim::SGD optimizer({p}, {});
  p.set_grad(ones({3}, kFloat64));
  optimizer.zero_grad(false);
  CHECK(first(p.grad()) == 0);
  optimizer.zero_grad();
  CHECK_FALSE(p.grad().defined());
}

TEST_CASE("parameters that cannot be optimized are refused with PyTorch's words") {
  const Tensor p = parameter_of(kFloat64);
  const auto make = [](std::vector<Tensor> parameters) { optim::SGD(std::move(parameters), {}); };
  CHECK_THROWS_WITH_AS(make({}), "optimizer got an empty parameter list", ValueError);
  CHECK_THROWS_WITH_AS(optim::SGD(std::vector<optim::SGD::Group>{}), "optimizer got an empty parameter list",
                       ValueError);
  CHECK_THROWS_WITH_AS(make({p * 2.0}), doctest::Contains("can't optimize a non-leaf Tensor"), AutogradError);
  CHECK_THROWS_WITH_AS(make({p, p}), doctest::Contains("some parameters appear in more than one parameter group"),
                       ValueError);
  CHECK_THROWS_WITH_AS(make({p, Tensor()}), doctest::Contains("parameter 1 is undefined"), ValueError);
  CHECK_THROWS_AS(make({zeros({2}, kInt64)}), DTypeError);
  CHECK_THROWS_AS(make({ones({1, 3}).expand({2, 3}).detach()}), ShapeError);
  optim::SGD optimizer({p}, {});
  CHECK_THROWS_AS(optimizer.add_param_group({parameter_of(kFloat32), p}), ValueError);
  CHECK_THROWS_AS(optimizer.add_param_group({parameter_of(kFloat32)}, {.lr = -1}), ValueError);
  CHECK(optimizer.groups() == 1);
}

TEST_CASE("a step is not recorded, and a graph made before it notices") {
  const Tensor p = parameter_of(kFloat64);
  optim::SGD optimizer({p}, {.lr = 1});
  const Tensor loss = (p * p).sum();
  p.set_grad(ones({3}, kFloat64));
  autograd::Tape::enable();
  optimizer.step();
  optimizer.zero_grad(false);
  CHECK(autograd::Tape::current()->records().empty());
  autograd::Tape::disable();
  CHECK(p.is_leaf());
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("modified by an inplace operation"), AutogradError);
}

TEST_CASE_TEMPLATE("the state goes round bit for bit", O, optim::SGD, optim::Adam, optim::AdamW, optim::RMSprop,
                   optim::Adagrad, optim::Adadelta, optim::Lion, optim::RAdam, optim::NAdam) {
  for (const DType dtype : {kFloat32, kFloat64}) {
    const Tensor p = parameter_of(dtype);
    const Tensor idle = parameter_of(dtype);
    O one({p, idle}, {.lr = 0.1});
    if constexpr (requires { one.options().momentum; }) one.options().momentum = 0.9;
    if constexpr (requires { one.options().amsgrad; }) one.options().amsgrad = true;
    if constexpr (requires { one.options().centered; }) one.options().centered = true;
    train(one, p, 0, 3);
    const Tensor copy = p.detach().clone().requires_grad_();
    const Tensor idle_copy = idle.detach().clone().requires_grad_();
    O two({copy, idle_copy}, {.lr = 0.7, .maximize = true});
    two.load_state_dict(one.state_dict());
    CHECK(two.options().lr == 0.1);
    CHECK_FALSE(two.options().maximize);
    // The state was copied: further steps of one optimizer do not affect the other.
    train(one, p, 3, 6);
    train(two, copy, 3, 6);
    CHECK(copy.template to_vector<double>() == p.template to_vector<double>());
    const auto a = one.state_dict(), b = two.state_dict();
    CHECK(a.numbers == b.numbers);
    REQUIRE(a.tensors.size() == b.tensors.size());
    CHECK(!a.tensors.empty());
    for (size_t i = 0; i < a.tensors.size(); ++i) {
      CHECK(a.tensors[i].first == b.tensors[i].first);
      CHECK(a.tensors[i].second.template to_vector<double>() == b.tensors[i].second.template to_vector<double>());
    }
    for (const auto& [name, number] : a.numbers)
      CHECK_FALSE(name.starts_with("1."));  // no state for a parameter that never moved
  }
}

TEST_CASE("a state that does not fit is refused, and nothing has changed then") {
  const Tensor p = parameter_of(kFloat64);
  optim::Adam optimizer({p}, {.lr = 0.1});
  train(optimizer, p, 0, 2);
  const auto saved = optimizer.state_dict();

  using State = optim::OptimizerState;
  struct Case {
    const char* words;
    std::function<void(State&)> spoil;
  };
  const auto number = [](State& state, const std::string& name) -> double& {
    const auto matches = [&](const auto& entry) { return entry.first == name; };
    return std::find_if(state.numbers.begin(), state.numbers.end(), matches)->second;
  };
  const std::vector<Case> cases = {
      {"saved from SGD, this is Adam", [](State& s) { s.optimizer = "SGD"; }},
      {"'group0.parameters' is missing", [](State& s) { s.numbers.erase(s.numbers.begin()); }},
      {"doesn't match the size of optimizer's group: group 0 was saved with 4 parameters, this one has 1",
       [&](State& s) { number(s, "group0.parameters") = 4; }},
      {"Invalid learning rate: -1", [&](State& s) { number(s, "group0.lr") = -1; }},
      {"'0.exp_avg' is missing", [](State& s) { s.tensors.erase(s.tensors.begin()); }},
      {"'0.exp_avg_sq' is float64 [4], expected float64 [3]",
       [](State& s) { s.tensors[1].second = ones({4}, kFloat64); }},
      {"'0.exp_avg' is float32 [3], expected float64 [3]", [](State& s) { s.tensors[0].second = ones({3}); }},
      {"different number of parameter groups or parameters: nothing here takes its 1 entries 'group1.lr'",
       [](State& s) { s.numbers.emplace_back("group1.lr", 1); }},
      {"1 entries '1.exp_avg'", [](State& s) { s.tensors.emplace_back("1.exp_avg", ones({3}, kFloat64)); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.words);
    State state = saved;
    number(state, "group0.lr") = 0.5;
    c.spoil(state);
    CHECK_THROWS_WITH_AS(optimizer.load_state_dict(state), doctest::Contains(c.words), ValueError);
    CHECK(optimizer.options().lr == 0.1);
    CHECK(optimizer.state_dict().tensors[0].second.is_same(saved.tensors[0].second));
  }
  optimizer.load_state_dict(saved);
}

TEST_CASE("hooks run around a step with the caller's line, and can prevent it or remove themselves") {
  const Tensor p = parameter_of(kFloat64);
  p.set_grad(ones({3}, kFloat64));
  optim::SGD optimizer({p}, {.lr = 1});
  std::vector<std::string> events;
  uint64_t once = 0;
  once = optimizer.register_step_pre_hook([&](optim::Optimizer& self, SourceLocation where) {
    events.push_back("pre " + to_string(where) + " " + std::to_string(first(p)));
    self.remove_hook(once);
  });
  optimizer.register_step_pre_hook([&](optim::Optimizer&, SourceLocation) { events.emplace_back("second"); });
  optimizer.register_step_post_hook(
      [&](optim::Optimizer&, SourceLocation) { events.push_back("post " + std::to_string(first(p))); });
  optimizer.step();
  const std::string line = std::to_string(__LINE__ - 1);
  CHECK(events ==
        std::vector<std::string>{"pre optim/optimizer_test.cpp:" + line + " 0.500000", "second", "post -0.500000"});
  events.clear();
  optimizer.step();
  CHECK(events == std::vector<std::string>{"second", "post -1.500000"});
  optimizer.register_step_pre_hook([](optim::Optimizer&, SourceLocation) { throw std::runtime_error("not yet"); });
  const uint32_t version = p.version();
  CHECK_THROWS_WITH(optimizer.step(), "not yet");
  CHECK(first(p) == -1.5);
  CHECK(p.version() == version);
  CHECK(optimizer.name() == "SGD");
}

}  // namespace brigade::test::optimizer_test
