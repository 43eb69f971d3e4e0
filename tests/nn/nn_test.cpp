#include <brigade/autograd/functional.h>
#include <brigade/autograd/tape_query.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

using namespace brigade;

namespace {

struct BlockImpl : nn::Module {
  nn::Linear fc{nullptr};
  BlockImpl() { fc = register_module("fc", nn::Linear(3, 3)); }
  Tensor forward(const Tensor& x) { return relu(fc(x)); }
};
BRIGADE_MODULE(Block);

struct NetImpl : nn::Module {
  nn::ModuleList<Block> blocks{nullptr};
  nn::Linear head{nullptr};
  Tensor scale, steps;
  NetImpl() {
    blocks = register_module("blocks", nn::ModuleList<Block>());
    blocks->push_back(Block());
    blocks->push_back(Block());
    head = register_module("head", nn::Linear(3, 2, false));
    scale = register_parameter("scale", ones({1}));
    steps = register_buffer("steps", zeros({}, kInt64));
  }
  Tensor forward(Tensor x) {
    for (Block& block : *blocks)
      x = block(x);
    return head(x) * scale;
  }
};
BRIGADE_MODULE(Net);

std::vector<std::string> names_of(const nn::Named<Tensor>& named) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named)
    names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("names are full paths in registration order, and modules know theirs") {
  Net net;
  CHECK(names_of(net->named_parameters()) == std::vector<std::string>{"scale", "blocks.0.fc.weight", "blocks.0.fc.bias",
                                                                      "blocks.1.fc.weight", "blocks.1.fc.bias",
                                                                      "head.weight"});
  CHECK(names_of(net->named_buffers()) == std::vector<std::string>{"steps"});
  CHECK(*(*net->blocks)[1]->fc->path() == "blocks.1.fc");
  CHECK(net->name() == "Net");
  CHECK(net->named_modules().size() == 7);
  // A root that becomes a child changes the paths below it; a child whose parent dies is a root again.
  Block kept;
  CHECK(*kept->fc->path() == "fc");
  {
    nn::Sequential outer;
    outer->push_back("part", kept);
    CHECK(*kept->fc->path() == "part.fc");
  }
  CHECK(*kept->fc->path() == "fc");
}

TEST_CASE("a tied parameter is listed once, under its first name") {
  struct TiedImpl : nn::Module {
    nn::Linear a{nullptr}, b{nullptr};
    TiedImpl() {
      a = register_module("a", nn::Linear(2, 2, false));
      b = register_module("b", a);
    }
  } tied;
  CHECK(names_of(tied.named_parameters()) == std::vector<std::string>{"a.weight"});
}

TEST_CASE("bad names and empty handles are refused") {
  Net net;
  CHECK_THROWS_AS(net->register_parameter("scale", ones({1})), ValueError);
  CHECK_THROWS_AS(net->register_parameter("a.b", ones({1})), ValueError);
  CHECK_THROWS_AS(net->register_buffer("", ones({1})), ValueError);
  CHECK_THROWS_AS(net->register_parameter("result", (net->scale * 2.0)), AutogradError);
  CHECK_THROWS_AS(net->replace_module("nothing", Block().ptr()), ValueError);
  nn::Linear nothing{nullptr};
  CHECK_THROWS_AS(nothing(ones({1})), ValueError);
}

TEST_CASE("a call is on the tape with its path, its type and the user's line") {
  autograd::Tape::enable();
  Net net;
  net(ones({2, 3}));
  const auto line = static_cast<uint32_t>(__LINE__ - 1);
  const auto calls = autograd::Tape::current()->calls();
  REQUIRE(calls.size() == 6);
  CHECK(*calls[0].path == "");
  CHECK(std::string(calls[0].type) == "Net");
  CHECK(calls[0].where.line() == line);
  CHECK(*calls[2].path == "blocks.0.fc");
  CHECK(std::string(calls[2].type) == "Linear");
  const auto& record = autograd::Tape::current()->records()[0];
  CHECK(std::string(record.op) == "linear");
  CHECK(to_string(record.where).starts_with("nn/nn_test.cpp:"));
  autograd::Tape::disable();
}

TEST_CASE("state_dict goes round, and load_state_dict names everything that does not fit and changes nothing then") {
  manual_seed(1);
  Net a;
  manual_seed(2);
  Net b;
  b->load_state_dict(a->state_dict());
  CHECK(b->head->weight.to_vector<float>() == a->head->weight.to_vector<float>());
  auto state = a->state_dict();
  state[0].first = "other";
  state[1].second = zeros({4, 4});
  const auto before = b->scale.to_vector<float>();
  std::string text;
  try {
    b->load_state_dict(state);
  } catch (const ValueError& error) {
    text = error.what();
  }
  CHECK(text.find("missing: scale") != std::string::npos);
  CHECK(text.find("unexpected: other") != std::string::npos);
  CHECK(text.find("size mismatch for ") != std::string::npos);
  CHECK(b->scale.to_vector<float>() == before);
  auto fewer = a->state_dict();
  fewer.pop_back();
  CHECK(b->load_state_dict(fewer, false).missing.size() == 1);
}

TEST_CASE("train, eval, requires_grad_, zero_grad and to() reach the whole tree") {
  Net net;
  net->eval();
  CHECK_FALSE((*net->blocks)[0]->fc->is_training());
  net->train();
  net(ones({1, 3})).sum().backward();
  net->zero_grad(false);
  CHECK(net->scale.grad().to_vector<float>() == std::vector<float>{0});
  net->zero_grad();
  CHECK_FALSE(net->scale.grad().defined());
  const Tensor same = net->scale;
  net->to(kFloat64);
  CHECK(same.dtype() == kFloat64);
  CHECK(net->steps.dtype() == kInt64);
  CHECK(net(ones({1, 3}, kFloat64)).dtype() == kFloat64);
  net->requires_grad_(false);
  CHECK_FALSE(net(ones({1, 3}, kFloat64)).requires_grad());
}

TEST_CASE("layers compute what their definitions say") {
  nn::Linear linear(2, 1);
  {
    const NoGradGuard no_grad;
    linear->weight.copy_(tensor(std::vector<float>{2, 3}, {1, 2}));
    linear->bias.fill_(1);
  }
  CHECK(linear(tensor(std::vector<float>{1, 1, 0, 2}, {2, 2})).to_vector<float>() == std::vector<float>{6, 7});
  CHECK(nn::Sequential(nn::Flatten(), nn::ReLU())(tensor(std::vector<float>{-1, 2}, {1, 1, 2})).to_vector<float>() ==
        std::vector<float>{0, 2});
  CHECK(nn::Conv2d(1, 4, 3, Conv2dParams{.stride = {2, 2}, .padding = {1, 1}})(ones({2, 1, 8, 8})).sizes() ==
        Shape{2, 4, 4, 4});
  nn::Dropout dropout(0.5);
  dropout->eval();
  CHECK(dropout(ones({4})).to_vector<float>() == std::vector<float>(4, 1));
  nn::BatchNorm2d norm(2);
  Generator generator(1);
  const Tensor x = randn({4, 2, 3, 3}, kFloat32, &generator);
  norm(x);
  CHECK(norm->num_batches_tracked.item<int64_t>() == 1);
  CHECK(norm->running_mean.to_vector<float>()[0] != 0);
  const auto before = norm->running_mean.to_vector<float>();
  norm->eval();
  norm(x);
  CHECK(norm->running_mean.to_vector<float>() == before);
  CHECK_THROWS_AS(norm(ones({2, 2})), ShapeError);
  CHECK(nn::CrossEntropyLoss()(zeros({1, 4}), tensor<int64_t>({2})).item() == doctest::Approx(std::log(4.0)));
  nn::ModuleDict<nn::Linear> dict;
  dict->insert("x", nn::Linear(1, 1));
  CHECK(dict->contains("x"));
  CHECK_THROWS_AS((*dict)["y"], IndexError);
  std::ostringstream text;
  text << *nn::Sequential(nn::Linear(2, 3), nn::ReLU());
  CHECK(text.str() == "Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=true)\n  (1): ReLU()\n)");
}

TEST_CASE("initialisation has PyTorch's bounds and moments, the same for the same seed") {
  manual_seed(4);
  nn::Linear a(400, 300);
  manual_seed(4);
  nn::Linear b(400, 300);
  CHECK(a->weight.to_vector<float>() == b->weight.to_vector<float>());
  double largest = 0;
  double square = 0;
  for (const float v : a->weight.to_vector<float>()) {
    largest = std::max<double>(largest, std::abs(v));
    square += static_cast<double>(v) * v;
  }
  CHECK(largest <= 1 / std::sqrt(400.0));
  CHECK(largest > 0.99 / std::sqrt(400.0));
  CHECK(square / 120000 == doctest::Approx(1 / 400.0 / 3).epsilon(0.02));
  const Tensor w = empty({100, 50, 3, 3});
  nn::init::xavier_normal_(w);
  square = 0;
  for (const float v : w.to_vector<float>())
    square += static_cast<double>(v) * v;
  CHECK(square / 45000 == doctest::Approx(2.0 / (450 + 900)).epsilon(0.05));
  CHECK_THROWS_AS(nn::init::kaiming_uniform_(empty({3})), ShapeError);
}
