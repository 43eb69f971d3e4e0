// In-place writes: how the graph records them, and which ones are rejected.
#include <brigade/autograd/backward.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <vector>

namespace brigade::test::inplace_test {
namespace {

using Values = std::vector<double>;
Tensor leaf(const Values& values) { return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_(); }
Values values(const Tensor& x) { return x.to_vector<double>(); }

using Write = const Tensor& (*)(const Tensor& x, const Tensor& other);
struct Operation {
  const char* name;
  Write write;
  Values slopes;  // d(sum of result)/d(other) at other = {1, 2, 4}, with x = {3, 3, 3}
};
const Operation kOperations[] = {
    {"add_", [](const Tensor& x, const Tensor& b) -> const Tensor& { return x.add_(b, 2); }, {2, 2, 2}},
    {"sub_", [](const Tensor& x, const Tensor& b) -> const Tensor& { return sub_(x, b); }, {-1, -1, -1}},
    {"mul_", [](const Tensor& x, const Tensor& b) -> const Tensor& { return x.mul_(b); }, {3, 3, 3}},
    {"div_", [](const Tensor& x, const Tensor& b) -> const Tensor& { return div_(x, b); }, {-3, -0.75, -0.1875}},
    {"copy_", [](const Tensor& x, const Tensor& b) -> const Tensor& { return x.copy_(b); }, {1, 1, 1}},
};

}  // namespace

TEST_CASE("a plain tensor that is combined in place with one that requires grad becomes a result of it") {
  for (const Operation& operation : kOperations) {
    CAPTURE(operation.name);
    const Tensor plain = full({3}, 3, kFloat64);
    const Tensor b = leaf({1, 2, 4});
    operation.write(plain, b);
    CHECK(plain.requires_grad());
    plain.sum().backward();
    CHECK(values(b.grad()) == operation.slopes);
  }
}

TEST_CASE("the same through a view of a plain tensor") {
  for (const Operation& operation : kOperations) {
    CAPTURE(operation.name);
    const Tensor plain = full({5}, 3, kFloat64);
    const Tensor b = leaf({1, 2, 4});
    operation.write(plain.slice(0, 1, 4), b);
    (plain * 2).sum().backward();
    for (size_t i = 0; i < 3; ++i)
      CHECK(values(b.grad())[i] == 2 * operation.slopes[i]);
  }
}

TEST_CASE("a leaf written into its own detached memory gets its gradient") {
  struct Row {
    const char* name;
    Write write;
    Values slopes;
  };
  for (const Row& row :
       {Row{"add_", kOperations[0].write, {2, 2, 2}}, Row{"sub_", kOperations[1].write, {-1, -1, -1}},
        Row{"mul_", kOperations[2].write, {1, 2, 4}}, Row{"div_", kOperations[3].write, {-1, -0.5, -0.25}},
        Row{"copy_", kOperations[4].write, {1, 1, 1}}}) {
    CAPTURE(row.name);
    const Tensor x = leaf({1, 2, 4});
    const Tensor y = x.detach();
    row.write(y, x);
    y.sum().backward();
    REQUIRE(x.grad().defined());
    CHECK(values(x.grad()) == row.slopes);
  }
}

TEST_CASE("a result written into its own detached memory hands the gradient on") {
  const Tensor x = leaf({1, 2, 4});
  const Tensor z = x * 2;
  const Tensor y = z.detach();
  y.mul_(z);
  (y + z).sum().backward();
  CHECK(values(x.grad()) == Values{2 * 2 + 2, 2 * 4 + 2, 2 * 8 + 2});
}

TEST_CASE("an integer tensor has no history, whatever is written to it or to a view of it") {
  const Tensor f = leaf({7.9, -8.9});
  const Tensor whole = tensor<int64_t>({1, 2, 3});
  const Tensor part = whole.slice(0, 0, 2);
  part.copy_(f);
  CHECK(whole.to_vector<int64_t>() == std::vector<int64_t>{7, -8, 3});
  CHECK_FALSE(whole.requires_grad());
  CHECK_FALSE(part.requires_grad());
  whole.select(0, 2).copy_(f.select(0, 0));
  CHECK(whole.to_vector<int64_t>() == std::vector<int64_t>{7, -8, 7});
  CHECK_THROWS_WITH_AS(whole.slice(0, 0, 2).add_(f),
                       doctest::Contains("result type Double can't be cast to the desired output type Long"),
                       DTypeError);
  CHECK(whole.to_vector<int64_t>() == std::vector<int64_t>{7, -8, 7});
}

TEST_CASE("what a dtype cannot hold is refused in place, and leaves the tensor as it was") {
  struct Row {
    const char* what;
    DType dtype;
    std::function<void(const Tensor&)> write;
    const char* error;
  };
  const Tensor halves = tensor<float>({0.5F, 0.5F});
  const Tensor whole = tensor<int64_t>({1, 1});
  const char* const to_long = "result type Float can't be cast to the desired output type Long";
  const Row rows[] = {
      {"mul_(0.5)", kInt64, [](const Tensor& x) { x.mul_(0.5); }, to_long},
      {"mul_(0.5) of int32", kInt32, [](const Tensor& x) { x.mul_(0.5); }, "desired output type Int"},
      {"mul_(0.5) of uint8", kUInt8, [](const Tensor& x) { x.mul_(0.5); }, "desired output type Byte"},
      {"mul_(0.5) of bool", kBool, [](const Tensor& x) { x.mul_(0.5); },
       "result type Float can't be cast to the desired output type Bool"},
      {"mul_(2) of bool", kBool, [](const Tensor& x) { x.mul_(2); },
       "result type Long can't be cast to the desired output type Bool"},
      {"mul_ of halves", kInt64, [&](const Tensor& x) { x.mul_(halves); }, to_long},
      {"mul_ of a half without dimensions", kInt64, [](const Tensor& x) { x.mul_(scalar_tensor(0.5F)); }, to_long},
      {"add_ of halves", kInt64, [&](const Tensor& x) { x.add_(halves); }, to_long},
      {"sub_ of halves", kInt64, [&](const Tensor& x) { sub_(x, halves); }, to_long},
      {"add_ of int64 to bool", kBool, [&](const Tensor& x) { x.add_(whole); }, "output type Bool"},
      {"add_ with half of an alpha", kInt64, [&](const Tensor& x) { x.add_(whole, 0.5); },
       "argument alpha must not be a floating point number"},
      {"div_(2)", kInt64, [](const Tensor& x) { div_(x, 2); }, to_long},
      {"div_", kInt64, [&](const Tensor& x) { div_(x, whole); }, to_long},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const Tensor x = tensor<int64_t>({1, 1}).to(row.dtype);
    CHECK_THROWS_WITH_AS(row.write(x), doctest::Contains(row.error), Error);
    CHECK_THROWS_WITH_AS(row.write(x), doctest::Contains("inplace_test.cpp"), Error);
    CHECK(values(x) == Values{1, 1});
  }
}

TEST_CASE("in place, integers wrap around in their own dtype, and halves meet wider numbers in theirs") {
  const auto bytes = [](std::initializer_list<uint8_t> numbers) { return tensor<uint8_t>(numbers); };
  CHECK(values(bytes({1, 2, 3}).mul_(300)) == Values{44, 88, 132});
  CHECK(values(bytes({1, 2, 3}).mul_(-2)) == Values{254, 252, 250});
  CHECK(values(bytes({1, 2, 3}).mul_(tensor<int64_t>({1, 2, 300}))) == Values{1, 4, 132});
  CHECK(values(sub_(bytes({1, 2, 3}), bytes({2, 2, 2}))) == Values{255, 0, 1});
  CHECK(values(tensor<int32_t>({1, 2}).add_(tensor<int64_t>({5, 6}))) == Values{6, 8});
  CHECK(values(tensor<bool>({true, false}).add_(tensor<bool>({true, true}))) == Values{1, 1});
  CHECK(values(tensor<bool>({true, false}).mul_(tensor<bool>({true, true}))) == Values{1, 0});
  CHECK(values(neg_(tensor<int64_t>({1, 2}))) == Values{-1, -2});
  CHECK(values(tensor<int64_t>({1, 2}).fill_(0.5)) == Values{0, 0});
  CHECK(values(tensor<float>({1, -60000}).to(kFloat16).add_(tensor<double>({1, 1e5}))) == Values{2, 40000});
  CHECK(values(tensor<float>({32768}).to(kFloat16).mul_(tensor<double>({1.0 / (1 << 26)}))) == Values{1.0 / 2048});
}

TEST_CASE("the result of a number divided by a tensor may be written to, and so may the tensor") {
  const Tensor x = leaf({1, 2});
  const Tensor y = 2 / x;
  y.add_(ones({2}, kFloat64));
  y.sum().backward();
  CHECK(values(x.grad()) == Values{-2, -0.5});
  const Tensor z = leaf({1, 2});
  const Tensor w = z * 1.0;
  const Tensor q = 2 / w;
  w.add_(ones({2}, kFloat64));
  q.sum().backward();
  CHECK(values(z.grad()) == Values{-2, -0.5});
}

TEST_CASE("what was overwritten has a gradient of zeros, whatever the gradient that comes") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Write kWrites[] = {[](const Tensor& x, const Tensor&) -> const Tensor& { return x.fill_(2); },
                           [](const Tensor& x, const Tensor& b) -> const Tensor& { return x.copy_(b); }};
  for (const Write& write : kWrites) {
    const Tensor x = leaf({1, 2, 3});
    const Tensor y = x * 1.0;
    write(y, tensor<double>({4, 5, 6}));
    const std::vector<Tensor> outputs{y}, inputs{x};
    const Tensor incoming = tensor<double>({infinity, -infinity, std::nan("")});
    const Tensor gradient = autograd::grad(outputs, inputs, {.grad_outputs = {incoming}, .create_graph = true})[0];
    CHECK(values(gradient) == Values{0, 0, 0});
    CHECK(!gradient.requires_grad());
  }
}

TEST_CASE("an expanded tensor without elements may be written: nothing is written twice") {
  const Tensor x = zeros({1, 0}, kFloat64).expand({3, 0});
  x.fill_(1);
  CHECK(x.numel() == 0);
  CHECK_THROWS_AS(ones({1, 2}).expand({3, 2}).add_(ones({3, 2})), ValueError);
}

TEST_CASE("an expanded tensor may be filled, since all that is written to one place is alike") {
  const Tensor x = tensor<double>({1, 2});
  x.expand({3, 2}).fill_(7);
  CHECK(values(x) == Values{7, 7});
  x.expand({3, 2}).zero_();
  CHECK(values(x) == Values{0, 0});
  const Tensor y = leaf({1, 2}) * 1.0;
  CHECK_THROWS_AS(y.expand({3, 2}).mul_(2), ValueError);
}

TEST_CASE("indices that were given away, and weights of classes, may not be written to before backward") {
  const Tensor x = leaf({3, 1, 2, 5, 4, 6}), rows = x.reshape({2, 3}), classes = tensor<int64_t>({0, 2});
  const Tensor weight = ones({6}, x.dtype()).reshape({3, 2}).select(1, 0);  // strided
  struct Chosen {
    const char* op;
    Tensor values, indices;
  };
  const auto by = [](const char* op, const auto& both) { return Chosen{op, both.values, both.indices}; };
  for (const Chosen& chosen :
       {by("max_pool2d", max_pool2d_with_indices(x.reshape({1, 2, 3}), {1, 3})),
        by("max_pool1d", max_pool1d_with_indices(x.reshape({1, 6}), 2)), by("max", max(x, 0)), by("sort", sort(x)),
        by("topk", topk(x, 2)), Chosen{"cross_entropy", cross_entropy(rows, classes, {.weight = weight}), weight},
        Chosen{"nll_loss", nll_loss(rows, classes, {.weight = weight}), weight}}) {
    CAPTURE(chosen.op);
    neg_(chosen.indices);
    CHECK_THROWS_WITH_AS(chosen.values.sum().backward(), doctest::Contains("modified by an inplace operation"),
                         AutogradError);
  }
}

}  // namespace brigade::test::inplace_test
