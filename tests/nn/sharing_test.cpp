// One tensor under several names: tied weights.
#include <nn/models.h>

#include <doctest/doctest.h>

namespace brigade::test::sharing_test {
using doctest::Contains;

namespace {

// An embedding that shares its weight with the head.
struct TiedImpl : nn::Module {
  nn::Embedding table{nullptr};
  nn::Linear head{nullptr};
  TiedImpl() {
    table = register_module("table", nn::Embedding(5, 3));
    head = register_module("head", nn::Linear(3, 5));
    head->weight = head->replace_parameter("weight", table->weight);
  }
  Tensor forward(const Tensor& words) { return head(table(words)); }
};
BRIGADE_MODULE(Tied);

}  // namespace

TEST_CASE("a shared parameter is listed once, under its first name, and saved under each") {
  Tied net;
  CHECK(names_of(net->named_parameters()) == std::vector<std::string>{"table.weight", "head.bias"});
  CHECK(net->parameters().size() == 2);
  CHECK(names_of(net->state_dict()) == std::vector<std::string>{"table.weight", "head.weight", "head.bias"});
  CHECK(names_of(net->head->named_parameters(true, "head")) == std::vector<std::string>{"head.weight", "head.bias"});
  CHECK(names_of(net->named_parameters(false, "net")).empty());
  CHECK(names_of(Net()->named_buffers(true, "net")) == std::vector<std::string>{"net.steps"});
}

TEST_CASE("both uses of a shared parameter add to its gradient") {
  Tied net;
  const Tensor words = tensor(std::vector<int64_t>{1, 1, 4}, {3});
  net(words).sum().backward();
  nn::Embedding table(5, 3);
  nn::Linear head(3, 5);
  table->weight.detach().copy_(net->table->weight.detach());
  head->weight.detach().copy_(net->table->weight.detach());
  head->bias.detach().copy_(net->head->bias.detach());
  head(table(words)).sum().backward();
  CHECK(floats(net->table->weight.grad()) == floats(table->weight.grad() + head->weight.grad()));
}

TEST_CASE("a tie outlives conversion, loading, training and evaluation") {
  Tied net, other;
  net->to(kFloat64);
  CHECK(net->head->weight.is_same(net->table->weight));
  CHECK(net->head->weight.dtype() == kFloat64);
  CHECK(net->parameters().size() == 2);
  net->load_state_dict(other->state_dict());
  CHECK(net->head->weight.is_same(net->table->weight));
  CHECK(floats(net->head->weight) == floats(other->table->weight));
  net->train();
  net->eval();
  net->zero_grad();
  net->requires_grad_(false);
  CHECK_FALSE(net->table->weight.requires_grad());
}

TEST_CASE("conflicting values for one shared tensor are named, and nothing is loaded then") {
  Tied net;
  const auto before = floats(net->table->weight);
  auto state = Tied()->state_dict();
  state[1].second = state[1].second.clone();
  CHECK(net->load_state_dict(state).missing.empty());  // equal values in separate tensors
  const auto loaded = floats(net->table->weight);
  CHECK(loaded != before);
  state[1].second.fill_(2);
  CHECK_THROWS_WITH_AS(net->load_state_dict(state), Contains("conflicting values for table.weight and head.weight"),
                       ValueError);
  CHECK_THROWS_AS(net->load_state_dict(state, false), ValueError);
  CHECK(floats(net->table->weight) == loaded);
  // With strict = false, one of the names is enough.
  state.erase(state.begin());
  CHECK(net->load_state_dict(state, false).missing == std::vector<std::string>{"table.weight"});
  CHECK(floats(net->table->weight) == std::vector<float>(15, 2));
}

TEST_CASE("what replace_parameter refuses") {
  Tied net;
  CHECK_THROWS_WITH_AS(net->head->replace_parameter("wait", net->table->weight),
                       Contains("Parameter with name 'wait' is not defined (in module Linear)"), ValueError);
  CHECK_THROWS_WITH_AS(net->head->replace_parameter("weight", ones({3, 5})),
                       Contains("is float32 [5, 3] and cannot become float32 [3, 5]"), ShapeError);
  CHECK_THROWS_AS(net->head->replace_parameter("weight", Tensor()), ShapeError);
  CHECK_THROWS_AS(net->head->replace_parameter("weight", net->table->weight * 2.0), AutogradError);
  CHECK(net->head->weight.is_same(net->table->weight));
}

TEST_CASE("lists and dictionaries of parameters") {
  nn::ParameterList list(std::vector<Tensor>{ones({2}), zeros({3})});
  list->push_back(ones({1}));
  CHECK(names_of(list->named_parameters()) == std::vector<std::string>{"0", "1", "2"});
  CHECK((*list)[1].numel() == 3);
  CHECK((*list)[2].requires_grad());
  CHECK(list->size() == 3);
  CHECK_FALSE(list->empty());
  int64_t elements = 0;
  for (const Tensor& item : *list)
    elements += item.numel();
  CHECK(elements == 6);
  CHECK_THROWS_WITH_AS((*list)[3], "ParameterList: there is no parameter 3 among its 3", IndexError);
  CHECK_THROWS_AS(list->push_back(Tensor()), ValueError);

  nn::ParameterDict dict(nn::Named<Tensor>{{"scale", ones({1})}});
  dict->insert("shift", zeros({2}));
  CHECK(names_of(dict->named_parameters()) == std::vector<std::string>{"scale", "shift"});
  CHECK((*dict)["shift"].numel() == 2);
  CHECK(dict->contains("scale"));
  CHECK_FALSE(dict->contains("slope"));
  CHECK(dict->size() == 2);
  CHECK_FALSE(dict->empty());
  CHECK(dict->begin()->first == "scale");
  CHECK_THROWS_WITH_AS((*dict)["slope"], "ParameterDict: there is no parameter 'slope' among its 2", IndexError);
  CHECK_THROWS_WITH_AS(dict->insert("scale", ones({1})), Contains("'scale' already defined"), ValueError);
  CHECK_THROWS_AS(dict->insert("other", Tensor()), ValueError);
}

TEST_CASE("Unflatten splits a dimension, and undoes Flatten") {
  const Tensor x = arange(0, 24).to(kFloat32).reshape({2, 12});
  CHECK(nn::Unflatten(1, Shape{3, -1})(x).sizes() == Shape{2, 3, 4});
  CHECK(nn::Unflatten(-1, Shape{2, 2, 3})(x).sizes() == Shape{2, 2, 2, 3});
  CHECK(nn::Unflatten(0, Shape{2, 1})(x).sizes() == Shape{2, 1, 12});
  CHECK(floats(nn::Flatten()(nn::Unflatten(1, Shape{3, 4})(x))) == floats(x));
  for (const Shape& sizes : {Shape{5, 2}, Shape{5, -1}, Shape{-1, -1}, Shape{}}) {
    CHECK_THROWS_WITH_AS(nn::Unflatten(1, sizes)(x), Contains("don't multiply up to the size of dim 1 (12)"),
                         ShapeError);
  }
}

}  // namespace brigade::test::sharing_test
