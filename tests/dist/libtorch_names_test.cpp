// Programs written with LibTorch's names compile and do the same (docs/from-libtorch.md).
#include <brigade/brigade.h>

#include <doctest/doctest.h>

#include <sstream>

namespace torch = brigade;
namespace F = torch::nn::functional;

namespace brigade::test::libtorch_names_test {
using Values = std::vector<double>;
Values values(const Tensor& x) { return x.to(kFloat64).to_vector<double>(); }

TEST_CASE("dtypes, devices and factories have LibTorch's names") {
  CHECK(torch::zeros({2}, torch::dtype(torch::kLong)).dtype() == kInt64);
  CHECK(torch::ones({2}, torch::kDouble).scalar_type() == kFloat64);
  CHECK(torch::ones({2}, torch::device("cpu")).device() == Device());
  CHECK(Device("cuda") == Device(kCUDA, 0));
  CHECK(Device("cuda:3") == Device(kCUDA, 3));
  for (const char* const wrong : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:1 ", "cuda:99999"}) {
    CAPTURE(wrong);
    CHECK_THROWS_WITH_AS(Device(std::string(wrong)), doctest::Contains("expected \"cpu\", \"cuda\" or \"cuda:1\""),
                         ValueError);
  }
  CHECK(torch::ones({3}).to("cpu", torch::kInt).dtype() == kInt32);
  torch::manual_seed(5);
  const Tensor drawn = torch::randint(3, {100});
  CHECK(drawn.min().item<int64_t>() == 0);
  CHECK(drawn.max().item<int64_t>() == 2);
  CHECK(torch::rand_like(torch::ones({2, 3}, kFloat64)).dtype() == kFloat64);
  CHECK(torch::cuda::is_available() == (torch::device_count(torch::kCUDA) > 0));
}

TEST_CASE("comparisons and assignments with an operation are operators") {
  const Tensor x = torch::tensor({-1.0, 0.0, 2.0}), y = torch::tensor({0.0, 0.0, 1.0});
  CHECK(values(x > 0) == Values{0, 0, 1});
  CHECK(values(x >= 0) == Values{0, 1, 1});
  CHECK(values(x < y) == Values{1, 0, 0});
  CHECK(values(x <= y) == Values{1, 1, 0});
  CHECK(values(x == y) == Values{0, 1, 0});
  CHECK(values(x != 2) == Values{1, 1, 0});
  CHECK(values(x != y) == Values{1, 0, 1});
  CHECK(values(torch::where(x > 0, x, x * 3)) == Values{-3, 0, 2});
  CHECK((x == x).all().item<bool>());
  CHECK(values(torch::tensor({5, 7}) % 4) == Values{1, 3});
  Tensor z = x.clone();
  z += 1;
  z *= z;
  z -= 2;
  z /= 2;
  z -= y;
  z /= torch::tensor({1.0, 2.0, 5.0});
  CHECK(values(z) == Values{-1, -0.25, 0.5});
  z.zero_().add_(3).mul_(2).sub_(1).div_(2);
  CHECK(values(z) == Values{2.5, 2.5, 2.5});
  Tensor whole = torch::tensor({1, 2});
  whole += 2;
  CHECK(whole.dtype() == kInt64);
  CHECK(values(whole) == Values{3, 4});
  CHECK_THROWS_AS(whole += 0.5, DTypeError);
  const Tensor w = torch::tensor({1.0, 2.0}).requires_grad_();
  Tensor u = w * 1.0;
  u += 3;
  u /= 2;
  u.sum().backward();
  CHECK(values(u) == Values{2, 2.5});
  CHECK(values(w.grad()) == Values{0.5, 0.5});
}

TEST_CASE("operations are methods, too, and take one dimension without braces") {
  const Tensor x = torch::tensor({{1.0, -4.0}, {9.0, 16.0}});
  CHECK(values(x.sum(1)) == Values{-3, 25});
  CHECK(values(x.sum(0, true)) == Values{10, 12});
  CHECK(x.sum(0, true).sizes() == Shape{1, 2});
  CHECK(values(x.sum({0, 1})) == Values{22});
  CHECK(values(torch::sum(x, -1)) == Values{-3, 25});
  CHECK(values(x.mean(0)) == Values{5, 6});
  CHECK(values(torch::all(x > 0, 1)) == Values{0, 1});
  CHECK(values(x.abs().sqrt()) == Values{1, 2, 3, 4});
  CHECK(values(x.pow(2).neg()) == Values{-1, -16, -81, -256});
  CHECK(values(x.clamp(0, 10)) == Values{1, 0, 9, 10});
  CHECK(values(x.clamp_min(2).clamp_max(9)) == Values{2, 2, 9, 9});
  CHECK(values(x.relu()) == Values{1, 0, 9, 16});
  CHECK(values(x.matmul(x.t())) == values(torch::mm(x, x.t())));
  CHECK(values(x.max()) == Values{16});
  const auto [largest, places] = x.max(1);
  CHECK(values(largest) == Values{1, 16});
  CHECK(values(places) == Values{0, 1});
  CHECK(values(x.argmin()) == Values{1});
  CHECK(values(torch::max(x, x.neg())) == Values{1, 4, 9, 16});
  CHECK(values(x.norm(1, 1)) == Values{5, 25});
  CHECK(x.std().item() == doctest::Approx(torch::std(x).item()));
  CHECK(values(x.prod()) == Values{-576});
  CHECK(values(x.cumsum(0)) == Values{1, -4, 10, 12});
  CHECK(values(x.sort(1).values) == Values{-4, 1, 9, 16});
  CHECK(values(x.topk(1, 0).values) == Values{9, 16});
  CHECK(values(x.gather(1, torch::tensor({{1}, {0}}))) == Values{-4, 9});
  CHECK(values(x.index_select(0, torch::tensor({1}))) == Values{9, 16});
  CHECK(values(x.masked_fill(x < 0, 0)) == Values{1, 0, 9, 16});
  CHECK(x.repeat({2, 1}).sizes() == Shape{4, 2});
  CHECK(x.chunk(2).size() == 2);
  CHECK(values(x.split(1, 1)[1]) == Values{-4, 16});
  CHECK(x.unsqueeze(0).unsqueeze(2).squeeze().sizes() == x.sizes());
  CHECK(torch::squeeze(torch::unsqueeze(x, 0), 0).sizes() == x.sizes());
  CHECK(x.softmax(1).sum().item() == doctest::Approx(2));
  CHECK(torch::allclose(x.softmax(1).log(), x.log_softmax(1)));
}

TEST_CASE("allclose, isclose and equal compare as PyTorch's") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor a = torch::tensor({1.0, infinity, -infinity, nan, 0.0}),
               b = torch::tensor({1.000005, infinity, infinity, nan, 1e-9});
  CHECK(values(torch::isclose(a, b)) == Values{1, 1, 0, 0, 1});
  CHECK(values(torch::isclose(a, b, {.rtol = 1e-6, .equal_nan = true})) == Values{0, 1, 0, 1, 1});
  CHECK_FALSE(torch::allclose(torch::ones({2}), torch::full({2}, 1.1)));
  CHECK(torch::allclose(torch::ones({2}), torch::full({2}, 1.1), 0.2));
  CHECK(torch::allclose(torch::ones({2}), torch::full({2}, 1.000001), {}));
  CHECK(torch::equal(torch::ones({2}), torch::ones({2})));
  CHECK_FALSE(torch::equal(torch::ones({2}), torch::ones({1, 2})));
  CHECK_FALSE(torch::equal(torch::ones({2}), torch::tensor({1.0, 2.0})));
}

TEST_CASE("indexing is that of torch::indexing") {
  using torch::indexing::Ellipsis;
  using torch::indexing::None;
  using torch::indexing::Slice;
  const Tensor x = torch::arange(24).reshape({2, 3, 4}).to(kFloat64);
  CHECK(x[1][2][3].item() == 23);
  CHECK(x[-1][0][0].item() == 12);
  CHECK_THROWS_AS(x[2], IndexError);
  CHECK(values(x.index({0, 1})) == Values{4, 5, 6, 7});
  CHECK(values(x.index({Ellipsis, 0})) == Values{0, 4, 8, 12, 16, 20});
  CHECK(values(x.index({1, "...", Slice(1, None, 2)})) == Values{13, 15, 17, 19, 21, 23});
  CHECK(x.index({Slice(), None, Slice(None, -1)}).sizes() == Shape{2, 1, 2, 4});
  CHECK(values(x.index({Slice(), 0, torch::tensor({-1, 0})})) == Values{3, 0, 15, 12});
  CHECK(x.index({0, torch::tensor({{0, 1}, {2, 2}}), Slice(0, 3)}).sizes() == Shape{2, 2, 3});
  CHECK(values(x.index({0, torch::tensor({{0, 1}, {2, 2}}), 1})) == Values{1, 5, 9, 9});
  CHECK(values(x.index({0, 0, torch::tensor({1, 0, 0, 1}).to(kBool)})) == Values{0, 3});
  CHECK(values(x.index({x > 21})) == Values{22, 23});
  CHECK_THROWS_WITH_AS(x.index({0, 0, 0, 0}), doctest::Contains("too many indices for tensor of dimension 3"),
                       IndexError);
  CHECK_THROWS_WITH_AS(x.index({Ellipsis, "..."}), doctest::Contains("at most one ellipsis"), IndexError);
  CHECK_THROWS_WITH_AS(x.index({"rest"}), doctest::Contains("expected \"...\""), ValueError);
  CHECK(values(x.index({torch::tensor({0, 1}), torch::tensor({2, 0})}).select(1, 1)) == Values{9, 13});
  CHECK_THROWS_WITH_AS(x.index({Slice(), torch::tensor({true, false}).to(kBool)}),
                       doctest::Contains("expected a mask whose sizes are those of dimensions 1"), ValueError);

  const Tensor y = torch::zeros({2, 3});
  y.index_put_({Slice(), 1}, 5.0);
  y.index_put_({0, Slice(1)}, torch::tensor({7.0, 8.0}));
  CHECK(values(y) == Values{0, 7, 8, 0, 5, 0});
  y.index_put_({y > 6}, -1.0);
  CHECK(values(y) == Values{0, -1, -1, 0, 5, 0});
  y.index_put_({torch::tensor({1, 0}), torch::tensor({0, 2})}, torch::tensor({3.0, 4.0}));
  CHECK(values(y) == Values{0, -1, 4, 3, 5, 0});

  // Gradients reach the elements that were read, and not those that were overwritten.
  const Tensor w = torch::ones({2, 3}).requires_grad_();
  Tensor z = w * 2.0;
  z.index_put_({0, Slice(0, 2)}, 0.0);
  (z.index({Slice(), torch::tensor({0, 0})}).sum() + z[1][2]).backward();
  CHECK(values(w.grad()) == Values{0, 0, 0, 4, 0, 2});
}

TEST_CASE("modules, losses, optimizers and utilities have LibTorch's names") {
  torch::nn::Sequential net(torch::nn::Linear(2, 3), torch::nn::ReLU(), torch::nn::Linear(3, 2));
  int linear = 0;
  net->apply([&](torch::nn::Module& module) {
    if (auto* layer = module.as<torch::nn::Linear>()) linear += static_cast<int>(layer->weight.size(1));
    CHECK((module.as<torch::nn::Conv2d>() == nullptr));
  });
  CHECK(linear == 5);
  torch::nn::ModuleList mixed;
  mixed->push_back(torch::nn::Linear(2, 2));
  CHECK((*mixed)[0]->as<torch::nn::Linear>() != nullptr);
  std::ostringstream printed;
  printed << torch::nn::Linear(2, 3);
  CHECK(printed.str() == "Linear(in_features=2, out_features=3, bias=true)");

  torch::optim::SGD sgd(net->parameters(), 0.5);
  CHECK(sgd.options(0).lr == 0.5);
  CHECK(torch::optim::SGD(net->parameters(), {}).options(0).lr == torch::optim::SGDOptions().lr);
  CHECK(torch::optim::Adam(net->parameters(), {0.25}).options(0).lr == 0.25);
  const Tensor x = torch::tensor({{1.0, 2.0}}).to(kFloat);
  const Tensor loss = F::cross_entropy(F::relu(net(x)), torch::zeros({1}, torch::kLong));
  const torch::autograd::variable_list gradients =
      torch::autograd::grad({loss}, {net->parameters()[0]}, {.retain_graph = true});
  loss.backward();
  CHECK(torch::equal(gradients[0], net->parameters()[0].grad()));
  const double total = torch::nn::utils::clip_grad_norm_(net->parameters(), 1e-3);
  CHECK(total >= 0);
  sgd.step();
  CHECK(F::mse_loss(x, x).item() == 0);
}

}  // namespace brigade::test::libtorch_names_test
