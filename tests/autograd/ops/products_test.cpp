// Matrix products of all ranks, and einsum, compared with loops over all indices; errors.
#include "compositions.h"

#include <cmath>
#include <limits>
#include <map>
#include <sstream>

namespace brigade::test::products_test {
namespace {

Tensor normal(const Shape& sizes, uint64_t seed) { return normal_input(sizes, seed).detach(); }

// Sums over all values of all einsum letters. The operands must have no ellipsis.
Tensor by_loops(const std::string& inputs, const std::string& output, const std::vector<Tensor>& tensors) {
  std::vector<std::string> parts;
  std::stringstream stream(inputs);
  for (std::string part; std::getline(stream, part, ',');)
    parts.push_back(part);
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t d = 0; d < parts[i].size(); ++d) {
      const int64_t own = tensors[i].sizes()[static_cast<int>(d)];
      int64_t& size = sizes.emplace(parts[i][d], own).first->second;
      if (size == 1) size = own;  // broadcast, possibly to 0
    }
  }
  std::vector<std::pair<char, int64_t>> letters(sizes.begin(), sizes.end());
  Shape out_sizes;
  for (char letter : output)
    out_sizes.push_back(sizes.at(letter));
  const Tensor result = zeros(out_sizes, kFloat64);
  std::vector<std::vector<double>> values;
  for (const Tensor& each : tensors)
    values.push_back(each.to_vector<double>());
  int64_t combinations = 1;
  for (const auto& [letter, size] : letters)
    combinations *= size;
  std::map<char, int64_t> at;
  for (int64_t i = 0; i < combinations; ++i) {
    int64_t rest = i;
    for (const auto& [letter, size] : letters) {
      at[letter] = rest % size;
      rest /= size;
    }
    const auto place = [&](const std::string& subscripts, const Shape& shape) {
      int64_t offset = 0;
      for (size_t d = 0; d < subscripts.size(); ++d) {
        const int64_t size = shape[static_cast<int>(d)];
        offset = offset * size + (size == 1 ? 0 : at[subscripts[d]]);
      }
      return offset;
    };
    double product = 1;
    for (size_t k = 0; k < parts.size(); ++k)
      product *= values[k][static_cast<size_t>(place(parts[k], tensors[k].sizes()))];
    result.data_ptr<double>()[place(output, out_sizes)] += product;
  }
  return result;
}

double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return a.numel() == 0 ? 0 : largest_difference(a, b);
}

}  // namespace

TEST_CASE("matmul in all combinations of ranks") {
  struct Row {
    Shape a, b;
    const char *inputs, *output;
  };
  for (const Row& row : std::vector<Row>{{{3}, {3}, "k,k", ""},
                                         {{2, 3}, {3}, "ik,k", "i"},
                                         {{3}, {3, 2}, "k,kj", "j"},
                                         {{2, 3}, {3, 4}, "ik,kj", "ij"},
                                         {{5, 2, 3}, {3}, "bik,k", "bi"},
                                         {{3}, {5, 3, 2}, "k,bkj", "bj"},
                                         {{5, 2, 3}, {3, 4}, "bik,kj", "bij"},
                                         {{2, 3}, {5, 3, 4}, "ik,bkj", "bij"},
                                         {{5, 2, 3}, {5, 3, 4}, "bik,bkj", "bij"},
                                         {{1, 2, 3}, {5, 3, 4}, "bik,bkj", "bij"},
                                         {{4, 1, 2, 3}, {5, 3, 2}, "abik,bkj", "abij"},
                                         {{4, 1, 2, 3}, {1, 5, 3, 2}, "abik,abkj", "abij"},
                                         {{4, 5, 2, 3}, {3}, "abik,k", "abi"},
                                         {{3}, {4, 5, 3, 2}, "k,abkj", "abj"},
                                         {{0}, {0}, "k,k", ""},
                                         {{2, 0}, {0}, "ik,k", "i"},
                                         {{2, 0}, {0, 3}, "ik,kj", "ij"},
                                         {{0, 3}, {3, 2}, "ik,kj", "ij"},
                                         {{0, 2, 3}, {3, 4}, "bik,kj", "bij"},
                                         {{0, 2, 3}, {1, 3, 4}, "bik,bkj", "bij"},
                                         {{2, 2, 0}, {2, 0, 2}, "bik,bkj", "bij"}}) {
    CAPTURE(to_string(row.a));
    CAPTURE(to_string(row.b));
    const Tensor a = normal_input(row.a, 1), b = normal_input(row.b, 2);
    const Tensor y = matmul(a, b);
    CHECK(difference(y, by_loops(row.inputs, row.output, {a, b})) <= 1e-14);
    // The gradients are products of the same kind.
    const Tensor grad = normal(y.sizes(), 3);
    y.backward({.gradient = grad});
    CHECK(a.grad().sizes() == a.sizes());
    CHECK(b.grad().sizes() == b.sizes());
    if (a.numel() == 0 || b.numel() == 0) continue;
    const double along = sum(a.grad() * a).item();
    CHECK(along == doctest::Approx(sum(y.detach() * grad).item()).epsilon(1e-12));
    CHECK(sum(b.grad() * b).item() == doctest::Approx(along).epsilon(1e-12));
  }
  CHECK_THROWS_AS(matmul(ones({}), ones({2})), ShapeError);
  CHECK_THROWS_AS(matmul(ones({2, 3}), ones({2})), ShapeError);
  CHECK_THROWS_AS(matmul(ones({2, 2, 3}), ones({3, 3, 2})), ShapeError);
}

TEST_CASE("einsum of one, two and three operands") {
  struct Row {
    const char *inputs, *output;
    std::vector<Shape> sizes;
  };
  for (const Row& row : std::vector<Row>{{"ij", "ji", {{2, 3}}},
                                         {"ij", "", {{2, 3}}},
                                         {"ij", "j", {{2, 3}}},
                                         {"ii", "i", {{3, 3}}},
                                         {"ii", "", {{3, 3}}},
                                         {"iji", "ji", {{3, 2, 3}}},
                                         {"iijj", "ji", {{3, 3, 2, 2}}},
                                         {"iii", "i", {{3, 3, 3}}},
                                         {"ij,jk", "ik", {{2, 3}, {3, 4}}},
                                         {"ij,jk", "kij", {{2, 3}, {3, 4}}},
                                         {"ij,ij", "", {{2, 3}, {2, 3}}},
                                         {"i,j", "ji", {{2}, {3}}},
                                         {"ij,ij", "ij", {{2, 3}, {2, 3}}},
                                         {"bij,bjk", "bik", {{5, 2, 3}, {5, 3, 4}}},
                                         {"bij,bjk", "ki", {{5, 2, 3}, {5, 3, 4}}},
                                         {"ijk,jil", "kl", {{2, 3, 4}, {3, 2, 5}}},
                                         {"ij,kl", "ik", {{2, 3}, {4, 5}}},
                                         {"iij,jk", "ik", {{3, 3, 2}, {2, 4}}},
                                         {"ij,jk", "ik", {{2, 1}, {3, 4}}},
                                         {"ij,ij", "ij", {{2, 1}, {1, 3}}},
                                         {"ij,ij", "i", {{2, 1}, {2, 3}}},
                                         {"ij,ij", "j", {{1, 1}, {1, 1}}},
                                         {"ij,jk", "ik", {{2, 0}, {0, 4}}},
                                         {"ij,jk", "ik", {{0, 3}, {3, 4}}},
                                         {"Ab,bA", "A", {{2, 3}, {3, 2}}},
                                         {"ij,jk,kl", "il", {{2, 3}, {3, 4}, {4, 2}}},
                                         {"i,i,i", "i", {{3}, {3}, {3}}},
                                         {"i,ij,j", "", {{3}, {3, 2}, {2}}}}) {
    CAPTURE(row.inputs);
    CAPTURE(row.output);
    std::vector<Tensor> tensors;
    for (const Shape& sizes : row.sizes)
      tensors.push_back(normal(sizes, tensors.size() + 1));
    const Tensor found = einsum(std::string(row.inputs) + " -> " + row.output, tensors);
    CHECK(difference(found, by_loops(row.inputs, row.output, tensors)) <= 1e-13);
  }
}

TEST_CASE("einsum without an output, and with an ellipsis") {
  const Tensor a = normal({2, 3}, 1), b = normal({3, 4}, 2), c = normal({5, 3, 2, 3}, 3), d = normal({3, 3, 4}, 4);
  CHECK(difference(einsum("ba", {a}), a.t()) == 0);
  CHECK(difference(einsum("bA", {a}), a.t()) == 0);  // uppercase letters sort first
  CHECK(difference(einsum("ij,jk", {a, b}), matmul(a, b)) <= 1e-14);
  CHECK(difference(einsum("ij,jh", {a, b}), matmul(a, b).t()) <= 1e-14);
  CHECK(difference(einsum("ii", {b.narrow(1, 0, 3)}), trace(b)) <= 1e-14);
  CHECK(difference(einsum("...ij,...jk->...ik", {c, d}), matmul(c, d)) <= 1e-14);
  CHECK(difference(einsum("...ij,jk->k...i", {c, b}), matmul(c, b).permute({3, 0, 1, 2})) <= 1e-14);
  CHECK(difference(einsum("i...", {c}), c.permute({1, 2, 3, 0})) == 0);
  CHECK(difference(einsum("...ij->ij", {c}), sum(c, {0, 1})) <= 1e-14);
  CHECK(difference(einsum("...,...", {a, a}), a * a) == 0);
  CHECK(einsum("i,i->i", {tensor<int64_t>({1, 2}), tensor<int64_t>({3, 4})}).to_vector<int64_t>() ==
        std::vector<int64_t>{3, 8});
  CHECK(einsum("ij,jk->i", {ones({2, 1}, kUInt8), ones({1, 1}, kUInt8)}).dtype() == kUInt8);  // no sums
}

TEST_CASE("errors of einsum name the subscript") {
  const auto message = [](const std::string& equation, const std::vector<Shape>& sizes) {
    std::vector<Tensor> tensors;
    for (const Shape& each : sizes)
      tensors.push_back(ones(each));
    try {
      einsum(equation, tensors);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto says = [&](const std::string& equation, const std::vector<Shape>& sizes, const std::string& part) {
    const std::string text = message(equation, sizes);
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
    CHECK(text.find("products_test.cpp:") != std::string::npos);
  };
  says("ij,jk", {{2, 3}, {4, 5}}, "subscript 'j' has size 4 for operand 1 which does not broadcast with the size 3");
  says("ii", {{2, 3}}, "subscript 'i' is repeated for operand 0 but the sizes don't match, 2 and 3");
  says("i->j", {{2}}, "output subscript 'j' does not appear for any operand in \"i->j\"");
  says("ij->ii", {{2, 2}}, "output subscript 'i' appears more than once");
  says("ijk", {{2, 2}}, "(3) does not match the number of dimensions (2) for operand 0 and no ellipsis was given");
  says("ijk...", {{2, 2}}, "(3) does not match the number of dimensions (2) for operand 0");
  says("i,j", {{2}}, "expected as many operands as the equation has, 2, got 1");
  says("i->", {{2}, {3}}, "expected as many operands as the equation has, 1, got 2");
  says("i1", {{2, 2}}, "found '1' for operand 0, expected subscripts in a-z and A-Z");
  says("i.j", {{2, 2}}, "found '.' for operand 0");
  says("...i...", {{2, 2}}, "found '...' twice for operand 0");
  says("...i,...i", {{2, 3}, {4, 3}}, "subscript '...' (dimension -1 under it) has size 4 for operand 1");
  says("i->i>", {{2}}, "found '>' for the output");
}

TEST_CASE("products by their own names") {
  const Tensor a = normal({2, 3}, 1), b = normal({3, 4}, 2), v = normal({3}, 3), w = normal({4}, 4);
  CHECK(difference(dot(v, v), sum(v * v)) <= 1e-14);
  CHECK(difference(mv(a, v), matmul(a, v)) == 0);
  CHECK(difference(outer(v, w), matmul(v.unsqueeze(1), w.unsqueeze(0))) <= 1e-15);
  CHECK(difference(addmm(w, a, b, 0.5, 2), w * 0.5 + matmul(a, b) * 2.0) <= 1e-14);
  const Tensor nan = full({2, 4}, std::numeric_limits<double>::quiet_NaN(), kFloat64);
  CHECK(difference(addmm(nan, a, b, 0), matmul(a, b)) == 0);
  CHECK(difference(addmv(w, b.t(), v, 2, 3), w * 2.0 + matmul(b.t(), v) * 3.0) <= 1e-14);
  const Tensor x = normal({5, 2, 3}, 5), y = normal({5, 3, 4}, 6);
  CHECK(difference(baddbmm(w, x, y, 2, 3), w * 2.0 + bmm(x, y) * 3.0) <= 1e-14);
  CHECK(difference(addbmm(w, x, y, 2, 3), w * 2.0 + sum(bmm(x, y), {0}) * 3.0) <= 1e-13);
  CHECK(difference(kron(a, b), by_loops("ij,kl", "ikjl", {a, b}).reshape({6, 12})) == 0);
  CHECK(difference(kron(v, b), by_loops("j,kl", "kjl", {v, b}).reshape({3, 12})) == 0);
  CHECK(kron(tensor<int64_t>({1, 2}), tensor<int64_t>({3, 4})).to_vector<int64_t>() ==
        std::vector<int64_t>{3, 4, 6, 8});
  CHECK(difference(trace(b), by_loops("ii", "", {b.narrow(1, 0, 3)})) <= 1e-15);
  CHECK(trace(ones({2, 3}, kInt32)).dtype() == kInt64);
  CHECK(trace(ones({0, 3})).item() == 0);
  const Tensor weight = normal({5, 3, 4}, 7), p = normal({2, 3}, 8), q = normal({2, 4}, 9), bias = normal({5}, 10);
  CHECK(difference(bilinear(p, q, weight, bias), by_loops("bn,onm,bm", "bo", {p, weight, q}) + bias) <= 1e-14);
}

TEST_CASE("linear by a weight without outputs is a product with a vector") {
  const Tensor x = tensor<double>({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_();
  const Tensor weight = tensor<double>({1, 0, -2}).requires_grad_();
  const Tensor bias = tensor<double>({10}).reshape({}).requires_grad_();
  const Tensor y = linear(x, weight, bias);
  CHECK(y.sizes() == Shape{2});
  CHECK(y.to_vector<double>() == std::vector<double>{5, 2});
  (y * tensor<double>({1, 3})).sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{1, 0, -2, 3, 0, -6});
  CHECK(weight.grad().to_vector<double>() == std::vector<double>{13, 17, 21});
  CHECK(bias.grad().item<double>() == 4);
  CHECK(linear(x[0], weight).item<double>() == -5);
  CHECK(linear_relu(x, weight).to_vector<double>() == std::vector<double>{0, 0});
  CHECK(linear_gelu(x, weight, bias).to_vector<double>() ==
        gelu(linear(x, weight, bias), GeluApproximation::Tanh).to_vector<double>());
  CHECK_THROWS_WITH_AS(linear(x, tensor<double>({1, 2})),
                       doctest::Contains("weight [out, in] or [in], got input [2, 3]"), ShapeError);
  for (const Tensor& wide : {ones({1}), ones({2}), ones({4, 2})})
    CHECK_THROWS_WITH_AS(linear(x, weight, wide), doctest::Contains("expected a bias [] for a weight [3]"), ShapeError);
}

TEST_CASE("errors of products say what was expected, and where they were called") {
  CHECK_THROWS_WITH_AS(dot(ones({2}), ones({3})),
                       doctest::Contains("dot: expected two vectors of equal length, got [2] and [3] (called at"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(mv(ones({2, 3}), ones({2})), doctest::Contains("products_test.cpp:"), ShapeError);
  CHECK_THROWS_AS(outer(ones({2, 2}), ones({2})), ShapeError);
  CHECK_THROWS_WITH_AS(addmm(ones({3, 2, 4}), ones({2, 3}), ones({3, 4})),
                       doctest::Contains("broadcasts to the product's shape"), ShapeError);
  CHECK_THROWS_AS(addmm(ones({5}), ones({2, 3}), ones({3, 4})), ShapeError);
  CHECK_THROWS_AS(addbmm(ones({2}), ones({2, 3, 4}), ones({3, 4, 2})), ShapeError);
  CHECK_THROWS_AS(bilinear(ones({2, 3}), ones({2, 4}), ones({5, 4, 3})), ShapeError);
  CHECK_THROWS_AS(bilinear(ones({2, 3}), ones({3, 4}), ones({5, 3, 4})), ShapeError);
  for (const Shape& sizes : {Shape{}, Shape{1}, Shape{4}})
    CHECK_THROWS_WITH_AS(bilinear(ones({2, 3}), ones({2, 4}), ones({5, 3, 4}), ones(sizes)),
                         doctest::Contains("expected a bias [5]"), ShapeError);
  CHECK_THROWS_AS(kron(ones(Shape::filled(33, 1)), ones({2})), ShapeError);
  CHECK_THROWS_AS(trace(ones({2})), ShapeError);
}

TEST_CASE("products of long vectors of float32 are as exact as PyTorch's") {
  constexpr int64_t kLength = 1 << 22;
  manual_seed(7);
  const Tensor a = rand({kLength});
  const Tensor b = rand({kLength});
  const double expected = dot(a.to(kFloat64), b.to(kFloat64)).item();
  const auto error_of = [&](const Tensor& found) { return std::abs(found.to(kFloat64).item() / expected - 1); };
  // The relative error of PyTorch's own products at this length.
  constexpr double kBound = 1.5e-6;
  CHECK(error_of(dot(a, b)) < kBound);
  CHECK(error_of(mv(a.view({1, kLength}), b)) < kBound);
  CHECK(error_of(matmul(a, b)) < kBound);
  CHECK(error_of(einsum("i,i->", {a, b})) < kBound);
}

}  // namespace brigade::test::products_test
