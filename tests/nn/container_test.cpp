#include <brigade/autograd/tape.h>
#include <nn/models.h>

#include <doctest/doctest.h>

namespace brigade::test::container_test {
using Names = std::vector<std::string>;

namespace {
// A Linear [1, 1] without bias that multiplies by `factor`.
nn::Linear times(double factor) {
  nn::Linear linear(1, 1, false);
  nn::init::constant_(linear->weight, factor);
  return linear;
}
double run(const nn::Sequential& sequential) { return sequential(ones({1, 1})).item(); }
struct NegateImpl : nn::Module {
  Tensor forward(const Tensor& x) { return -x; }
};
BRIGADE_MODULE(Negate);
}  // namespace

TEST_CASE("Sequential runs its modules in order, named by number or by name") {
  nn::Sequential numbered(times(2), Negate(), nn::LeakyReLU(0.5));
  CHECK(run(numbered) == -1);
  CHECK(names_of(numbered->named_children()) == Names{"0", "1", "2"});
  nn::Sequential named({{"double", times(2)}, {"negate", Negate()}});
  CHECK(run(named) == -2);
  CHECK(names_of(named->named_parameters()) == Names{"double.weight"});
  named->push_back("again", times(3));
  named->push_back(times(5));
  CHECK(run(named) == -30);
  CHECK(names_of(named->named_children()) == Names{"double", "negate", "again", "3"});
  nn::Sequential nested(numbered->size() == 3 ? nn::Sequential(times(2), times(2)) : nn::Sequential());
  nested->push_back(named);
  CHECK(run(nested) == -120);
  CHECK(run(nn::Sequential()) == 1);
  CHECK((*numbered)[1](ones({1, 1})).item() == -1);
  size_t count = 0;
  for (const nn::AnyModule& module : *numbered)
    count += module ? 1 : 0;
  CHECK(count == 3);
  CHECK_THROWS_WITH_AS((*numbered)[3], doctest::Contains("there is no module 3 among its 3"), IndexError);
}

TEST_CASE("each step of a Sequential is a call with its own path, at the user's line") {
  nn::Sequential sequential(times(2), Negate());
  autograd::Tape::enable();
  run(sequential);
  const auto calls = autograd::Tape::current()->calls();
  REQUIRE(calls.size() == 3);
  CHECK(*calls[0].path == "");
  CHECK(*calls[1].path == "0");
  CHECK(std::string(calls[2].type) == "Negate");
  CHECK(calls[2].where.line() == calls[0].where.line());
  autograd::Tape::disable();
}

TEST_CASE("a Sequential runs what it lists, after replace_module too") {
  nn::Sequential sequential(times(2), times(3));
  sequential->replace_module("0", Negate());
  CHECK(run(sequential) == -3);
  CHECK(names_of(sequential->named_parameters()) == Names{"1.weight"});
  nn::Module& base = *sequential;
  base.replace_module("1", times(7));  // the same type, so it is callable as before
  CHECK(run(sequential) == -7);
  CHECK_THROWS_WITH_AS(base.replace_module("1", nn::ReLU()), doctest::Contains("'1' is a Linear"), ValueError);
  // A failed replacement changes nothing: a module that contains the Sequential, an empty handle, an unknown name.
  nn::Sequential outer(sequential);
  nn::Sequential around;
  around->push_back(sequential);
  CHECK_THROWS_AS(sequential->replace_module("1", around), ValueError);
  CHECK_THROWS_AS(sequential->replace_module("1", nn::Linear(nullptr)), ValueError);
  CHECK_THROWS_AS(sequential->replace_module("9", times(1)), ValueError);
  sequential->register_module("aside", times(1));
  CHECK_THROWS_AS(sequential->replace_module("aside", times(2)), ValueError);
  CHECK(run(sequential) == -7);
  CHECK(names_of(sequential->named_parameters()) == Names{"1.weight", "aside.weight"});
}

TEST_CASE("ModuleList and ModuleDict hold modules of one type, or of any as AnyModule") {
  nn::ModuleList<nn::Linear> list(std::vector<nn::Linear>{times(2), times(3)});
  CHECK((*list)[1](ones({1, 1})).item() == 3);
  CHECK(list->size() == 2);
  CHECK_THROWS_AS((*list)[2], IndexError);
  list->replace_module("1", times(5));
  CHECK((*list)[1](ones({1, 1})).item() == 5);
  CHECK_THROWS_WITH_AS(list->replace_module("1", Negate()), doctest::Contains("cannot be replaced by a Negate"),
                       ValueError);
  CHECK(names_of(list->named_parameters()) == Names{"0.weight", "1.weight"});

  nn::ModuleDict<nn::AnyModule> dict;
  dict->insert("z", times(2));
  dict->insert("a", Negate());
  Names order;
  double value = 1;
  for (const auto& [name, module] : *dict) {
    order.push_back(name);
    value *= module(ones({1, 1})).item();
  }
  CHECK(order == Names{"z", "a"});
  CHECK(value == -2);
  CHECK(dict->contains("a"));
  CHECK_FALSE(dict->contains("b"));
  CHECK_THROWS_WITH_AS((*dict)["b"], doctest::Contains("there is no module 'b'"), IndexError);
  CHECK_THROWS_AS(dict->insert("a", Negate()), ValueError);
  CHECK(dict->size() == 2);
  dict->replace_module("z", times(4));
  CHECK((*dict)["z"](ones({1, 1})).item() == 4);
  CHECK_THROWS_AS(dict->replace_module("z", Negate()), ValueError);
}

}  // namespace brigade::test::container_test
