#include <brigade/autograd/tape.h>
#include <nn/models.h>

#include <doctest/doctest.h>

#include <memory>
#include <type_traits>

namespace brigade::test::module_holder_test {
using autograd::Tape;

namespace {

// Enables the tape of this thread for one test.
struct OnTape {
  OnTape() { Tape::enable(); }
  ~OnTape() { Tape::disable(); }
  const Tape* operator->() const { return Tape::current(); }
};

// forward overloads with various argument and result types.
struct ArgumentsImpl : nn::Module {
  int forward(int a) { return a; }
  std::string forward(const std::string& a, int b) { return a + std::to_string(b); }
  std::unique_ptr<int> forward(std::unique_ptr<int> a, int b, int c) {
    *a += b + c;
    return a;
  }
  int& forward(int& a, int b, int c, int d) {
    a += b + c + d;
    return a;
  }
};
BRIGADE_MODULE(Arguments);

// Returns the source line that it received.
struct WhereImpl : nn::Module {
  uint32_t forward(int, SourceLocation where = SourceLocation::current()) { return where.line(); }
  uint32_t forward(int, int, int, int, SourceLocation where = SourceLocation::current()) { return where.line(); }
};
BRIGADE_MODULE(Where);

struct CallsForwardImpl : nn::Module {
  nn::Linear fc{nullptr};
  CallsForwardImpl() { fc = register_module("fc", nn::Linear(2, 2)); }
  Tensor forward(const Tensor& x) { return relu(fc->forward(x)); }
};
BRIGADE_MODULE(CallsForward);

struct WiderImpl : nn::LinearImpl {
  WiderImpl() : LinearImpl(2, 2) {}
  Tensor forward(const Tensor& x) { return LinearImpl::forward(x) * 2.0; }
};
BRIGADE_MODULE(Wider);

template <class T>
struct TemplatedImpl : nn::Module {};

// Assigning to a temporary handle would have no effect, so it does not compile: `block.fc() = other`, `p.grad() = t`.
static_assert(std::is_assignable_v<Tensor&, Tensor> && !std::is_assignable_v<Tensor, Tensor>);
static_assert(!std::is_assignable_v<Tensor, const Tensor&>);
static_assert(std::is_assignable_v<nn::Linear&, nn::Linear> && !std::is_assignable_v<nn::Linear, nn::Linear>);
static_assert(!std::is_assignable_v<nn::Linear, const nn::Linear&>);

}  // namespace

TEST_CASE("a call passes one to four arguments of any type, and returns what forward returns") {
  Arguments call;
  CHECK(call(3) == 3);
  CHECK(call(std::string("a"), 4) == "a4");
  CHECK(*call(std::make_unique<int>(1), 2, 3) == 6);
  int value = 1;
  call(value, 2, 3, 4) += 1;
  CHECK(value == 11);
}

TEST_CASE("forward gets the caller's line when it asks for it") {
  Where where;
  CHECK(where(1) == __LINE__);
  CHECK(where(1, 2, 3, 4) == __LINE__);
  const SourceLocation here = SourceLocation::current();
  CHECK(where(1, here) == here.line());
}

TEST_CASE("options come after the sizes of a layer, or have them") {
  const nn::Linear fc(6, 10, {.bias = false});
  CHECK(fc->weight.sizes() == Shape{10, 6});
  CHECK_FALSE(fc->bias.defined());
  CHECK_FALSE(nn::Linear(6, 10, false)->bias.defined());
  CHECK(nn::Linear(6, 10, {.in_features = 6, .dtype = kFloat64})->bias.dtype() == kFloat64);
  CHECK_THROWS_WITH_AS(nn::Linear(6, 10, {.in_features = 7}),
                       "Linear: in_features is 6 before the options and 7 among them; give it once", ValueError);
  const nn::Embedding words(5, 3, {.padding_idx = 1});
  CHECK(words->weight.sizes() == Shape{5, 3});
  CHECK(words->weight[1].to_vector<float>() == std::vector<float>{0, 0, 0});
  const nn::MultiheadAttention attention(8, 2, {.bias = false, .kdim = 4});
  CHECK(attention->k_proj_weight.sizes() == Shape{8, 4});
  CHECK_THROWS_WITH_AS(nn::MultiheadAttention(8, 2, {.num_heads = 4}), doctest::Contains("num_heads is 2 before"),
                       ValueError);
  const nn::TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0});
  CHECK(layer->linear1->weight.sizes() == Shape{16, 8});
  CHECK(layer->self_attn->options.num_heads == 2);
}

TEST_CASE("handles share their module, may be empty, and then say so") {
  nn::Linear a(2, 3);
  nn::Linear b = a;
  CHECK(a.ptr() == b.ptr());
  CHECK(&*a == b.get());
  nn::Linear nothing{nullptr};
  CHECK_FALSE(nothing);
  CHECK_THROWS_WITH_AS(nothing(ones({1, 2})), doctest::Contains("an empty handle of type Linear"), ValueError);
  nothing = a;
  CHECK(nothing(ones({1, 2})).sizes() == Shape{1, 3});
}

TEST_CASE("a call is on the tape with its path, its type and the user's line") {
  Net net;
  const OnTape tape;
  net(ones({2, 3}));
  const auto line = static_cast<uint32_t>(__LINE__ - 1);
  const auto calls = tape->calls();
  REQUIRE(calls.size() == 6);  // the net, two blocks with one Linear each, the head
  CHECK(*calls[0].path == "");
  CHECK(std::string(calls[0].type) == "Net");
  CHECK(calls[0].where.line() == line);
  CHECK(*calls[2].path == "blocks.0.fc");
  CHECK(std::string(calls[2].type) == "Linear");
  CHECK(*tape->call(calls[2].parent).path == "blocks.0");
  const Tape::Record& linear = tape->records()[0];
  CHECK(std::string(linear.op) == "linear");
  CHECK(to_string(linear.where).starts_with("nn/models.h:"));  // not nn/linear.cpp
  CHECK(*tape->call(linear.call).path == "blocks.0.fc");
  CHECK(*tape->call(tape->records()[1].call).path == "blocks.0");  // relu
}

TEST_CASE("a built-in layer opens its scope once, whether it is called or its forward is") {
  CallsForward net;
  const Tensor x = ones({1, 2});
  const OnTape tape;
  net(x);
  REQUIRE(tape->calls().size() == 2);
  CHECK(*tape->calls()[1].path == "fc");
  CHECK(*tape->call(tape->records()[0].call).path == "fc");
  CHECK(*tape->call(tape->records()[1].call).path == "");
  net->fc(x);
  net->fc->forward(x);
  CHECK(tape->calls().size() == 4);
  CHECK(tape->calls()[3].where.line() == __LINE__ - 2);
  CHECK(tape->calls()[3].parent == 0);
}

TEST_CASE("every built-in layer opens its scope when its forward is called") {
  const OnTape tape;
  const Tensor x = ones({2, 1, 2, 2});
  const Tensor rows = ones({2, 2});
  nn::Linear(2, 2)->forward(x);
  nn::Conv2d(1, 1, 1)->forward(x);
  nn::BatchNorm2d(1)->forward(x);
  nn::BatchNorm1d(2)->forward(rows);
  nn::Dropout()->forward(x);
  nn::ReLU()->forward(x);
  nn::LeakyReLU()->forward(x);
  nn::GELU()->forward(x);
  nn::Tanh()->forward(x);
  nn::Sigmoid()->forward(x);
  nn::Softmax(1)->forward(x);
  nn::LogSoftmax(1)->forward(x);
  nn::MaxPool2d(2)->forward(x);
  nn::AvgPool2d(2)->forward(x);
  nn::Flatten()->forward(x);
  nn::Sequential()->forward(x);
  nn::CrossEntropyLoss()->forward(rows, zeros({2}, kInt64));
  nn::BCEWithLogitsLoss()->forward(rows, rows);
  nn::MSELoss()->forward(rows, rows);
  nn::L1Loss()->forward(rows, rows);
  std::vector<std::string> types;
  for (const auto& call : tape->calls())
    types.emplace_back(call.type);
  CHECK(types == std::vector<std::string>{
                     "Linear",    "Conv2d",    "BatchNorm2d", "BatchNorm1d", "Dropout",          "ReLU",
                     "LeakyReLU", "GELU",      "Tanh",        "Sigmoid",     "Softmax",          "LogSoftmax",
                     "MaxPool2d", "AvgPool2d", "Flatten",     "Sequential",  "CrossEntropyLoss", "BCEWithLogitsLoss",
                     "MSELoss",   "L1Loss"});
}

TEST_CASE("a layer that extends a built-in one is one call") {
  Wider wider;
  const OnTape tape;
  wider(ones({1, 2}));
  REQUIRE(tape->calls().size() == 1);
  CHECK(std::string(tape->calls()[0].type) == "Wider");
  CHECK(tape->records()[0].call == tape->records()[1].call);
}

TEST_CASE("a scope ends with its call, also by an exception") {
  Block block;
  const OnTape tape;
  CHECK_THROWS_AS(block(ones({1, 7})), ShapeError);
  ones({1}) + ones({1});
  CHECK(tape->records().back().call == 0);
  block->fc(ones({1, 3}));  // and a new scope opens
  CHECK(*tape->calls().back().path == "fc");
}

TEST_CASE("type names are readable") {
  struct LocalImpl : nn::Module {};
  CHECK(LocalImpl().name() == "Local");
  CHECK(Net()->name() == "Net");
  CHECK(nn::Linear(1, 1)->name() == "Linear");
  CHECK(nn::ModuleList<nn::ModuleList<nn::Linear>>()->name() == "ModuleList");
  CHECK(TemplatedImpl<std::vector<int>>().name() == "Templated");
}

}  // namespace brigade::test::module_holder_test
