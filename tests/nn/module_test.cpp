#include <brigade/autograd/listener.h>
#include <nn/models.h>

#include <doctest/doctest.h>

#include <sstream>

namespace brigade::test::module_test {
using Names = std::vector<std::string>;

namespace {
// A shared module that is registered twice.
struct TiedImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  TiedImpl() {
    a = register_module("a", nn::Linear(2, 2, false));
    b = register_module("b", a);
  }
};
BRIGADE_MODULE(Tied);
}  // namespace

TEST_CASE("names are full paths, depth first in registration order") {
  Net net;
  CHECK(names_of(net->named_parameters()) == Names{"scale", "blocks.0.fc.weight", "blocks.0.fc.bias",
                                                   "blocks.1.fc.weight", "blocks.1.fc.bias", "head.weight"});
  CHECK(names_of(net->named_parameters(false)) == Names{"scale"});
  CHECK(names_of(net->named_buffers()) == Names{"steps"});
  CHECK(names_of(net->named_children()) == Names{"blocks", "head"});
  CHECK(net->children()[1] == net->head.ptr());
  const Names modules{"", "blocks", "blocks.0", "blocks.0.fc", "blocks.1", "blocks.1.fc", "head"};
  CHECK(names_of(net->named_modules()) == modules);
  CHECK(names_of(net->named_modules("net"))[3] == "net.blocks.0.fc");
  CHECK(net->modules().size() == modules.size());
  CHECK(net->modules()[0] == net.get());
  CHECK(net->parameters().size() == 6);
  CHECK(net->parameters()[5].is_same(net->head->weight));
}

TEST_CASE("a module knows its path, also when the tree above it changes") {
  Block block;
  CHECK(block->path() == "");
  CHECK(block->fc->path() == "fc");
  {
    nn::Sequential inner;
    inner->push_back("part", block);
    CHECK(block->fc->path() == "part.fc");
    nn::Sequential outer;
    outer->push_back(inner);
    CHECK(block->fc->path() == "0.part.fc");
    CHECK(inner->path() == "0");
  }
  CHECK(block->path() == "");
  CHECK(block->fc->path() == "fc");
}

TEST_CASE("a tied tensor or module is listed once, under its first name, and saved under both") {
  Tied tied;
  CHECK(names_of(tied->named_parameters()) == Names{"a.weight"});
  CHECK(names_of(tied->named_modules()) == Names{"", "a"});
  CHECK(names_of(tied->state_dict()) == Names{"a.weight", "b.weight"});
  CHECK(tied->a->path() == "a");

  nn::Module by_tensor;
  const Tensor shared = ones({2});
  by_tensor.register_parameter("first", shared);
  by_tensor.register_parameter("second", shared);
  CHECK(names_of(by_tensor.named_parameters()) == Names{"first"});
}

TEST_CASE("replace_module changes the tree and the paths") {
  Tied tied;
  nn::Linear old = tied->a;
  tied->a = tied->replace_module("a", nn::Linear(2, 5));
  CHECK(names_of(tied->named_parameters()) == Names{"a.weight", "a.bias", "b.weight"});
  CHECK(tied->a->path() == "a");
  CHECK(old->path() == "b");  // it is still registered as b
  tied->replace_module("b", nn::Identity());
  CHECK(old->path() == "");
  CHECK_THROWS_WITH_AS(tied->replace_module("c", nn::Identity()), doctest::Contains("'c' is not defined"), ValueError);
}

TEST_CASE("what cannot be registered is refused with a name and a reason") {
  Net net;
  const auto refuse = [](const std::function<void()>& call, const char* words) {
    CAPTURE(words);
    CHECK_THROWS_WITH_AS(call(), doctest::Contains(words), ValueError);
  };
  refuse([&] { net->register_parameter("scale", ones({1})); }, "Parameter 'scale' already defined, as a parameter");
  refuse([&] { net->register_buffer("head", ones({1})); }, "Buffer 'head' already defined, as a submodule");
  refuse([&] { net->register_module("steps", nn::ReLU()); }, "Submodule 'steps' already defined, as a buffer");
  refuse([&] { net->register_parameter("a.b", ones({1})); }, "must not contain a dot (got 'a.b') (in module Net)");
  refuse([&] { net->register_buffer("", ones({1})); }, "Buffer name must not be empty (in module Net)");
  refuse([&] { net->register_module("empty", nn::Linear(nullptr)); }, "'empty' is an empty handle");
  refuse([&] { net->blocks->register_module("up", net); }, "cannot be its own descendant");
  refuse([&] { net->register_module("self", net); }, "cannot be its own descendant");
  CHECK_THROWS_WITH_AS(net->register_parameter("result", net->scale * 2.0), doctest::Contains("non-leaf"),
                       AutogradError);
  CHECK(names_of(net->named_children()) == Names{"blocks", "head"});
  CHECK(net->path() == "");
}

TEST_CASE("register_parameter sets requires_grad; an undefined one is none") {
  nn::Module module;
  CHECK(module.register_parameter("w", ones({1})).requires_grad());
  CHECK_FALSE(module.register_parameter("frozen", ones({1}).requires_grad_(), false).requires_grad());
  CHECK_FALSE(module.register_parameter("none", Tensor()).defined());
  CHECK(names_of(module.named_parameters()) == Names{"w", "frozen"});
}

TEST_CASE("train, eval, apply, requires_grad_ and zero_grad reach the whole tree") {
  Net net;
  net->eval();
  for (const auto& module : net->modules())
    CHECK_FALSE(module->is_training());
  net->train();
  CHECK((*net->blocks)[1]->fc->is_training());
  Names order;
  net->apply([&](nn::Module& module) { order.push_back(module.path()); });
  CHECK(order == Names{"blocks.0.fc", "blocks.0", "blocks.1.fc", "blocks.1", "blocks", "head", ""});
  Tied tied;
  int visits = 0;
  tied->apply([&](nn::Module&) { ++visits; });
  CHECK(visits == 2);

  net(ones({1, 3})).sum().backward();
  net->zero_grad(false);
  CHECK(floats(net->scale.grad()) == std::vector<float>{0});
  net->zero_grad();
  for (const Tensor& parameter : net->parameters())
    CHECK_FALSE(parameter.grad().defined());
  net->requires_grad_(false);
  CHECK_FALSE(net(ones({1, 3})).requires_grad());
}

TEST_CASE("to() converts floating tensors in place and keeps their identity") {
  Net net;
  const Tensor same = net->scale;
  const uint64_t id = same.id();
  const auto before = floats(net->head->weight);
  net(ones({1, 3})).sum().backward();
  net->to(kFloat64);
  CHECK(same.dtype() == kFloat64);
  CHECK(same.id() == id);
  CHECK(net->scale.is_same(same));
  CHECK_FALSE(same.grad().defined());
  CHECK(floats(net->head->weight) == before);
  CHECK(net->steps.dtype() == kInt64);
  net(ones({1, 3}, kFloat64)).sum().backward();
  CHECK(same.grad().dtype() == kFloat64);
  CHECK_THROWS_AS(net->to(kInt64), DTypeError);
  // A gradient that is a view of a bucket has the bucket's dtype.
  autograd::set_grad_target(net->head->weight, zeros({2, 3}, kFloat64));
  CHECK_THROWS_WITH_AS(net->to(kFloat32), doctest::Contains("its gradient lives in a bucket"), AutogradError);
  CHECK(same.dtype() == kFloat64);
}

TEST_CASE("a tree prints as PyTorch prints it") {
  std::ostringstream text;
  text << *nn::Sequential(
      {{"norm", nn::BatchNorm1d(3)}, {"body", nn::Sequential(nn::Linear(3, 2, false), nn::ReLU())}});
  CHECK(text.str() ==
        "Sequential(\n"
        "  (norm): BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)\n"
        "  (body): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=2, bias=false)\n"
        "    (1): ReLU()\n"
        "  )\n"
        ")");
}

}  // namespace brigade::test::module_test
