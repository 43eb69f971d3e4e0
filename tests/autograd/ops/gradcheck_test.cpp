// Every differentiable operation against central differences in float64. The names in the table are the names on the
// graph: the last test case fails when an operation of autograd/ops is not covered.
#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/autograd/meta.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

using namespace brigade;

namespace {

using Inputs = std::vector<Tensor>;

// Values away from 0, where abs, relu, sqrt and the like have kinks or poles: 0.3 .. 1.5, with either sign unless
// `positive`.
Tensor input(const Shape& sizes, uint64_t seed, bool positive = false) {
  Generator generator(seed);
  const Tensor x = rand(sizes, {kFloat64}, &generator) * 1.2 + 0.3;
  const Tensor signs =
      positive ? ones(sizes, {kFloat64}) : gt(rand(sizes, {kFloat64}, &generator), 0.5).to(kFloat64) * 2.0 - 1.0;
  return (x * signs).detach().clone().requires_grad_();
}

Tensor fixed(const Shape& sizes, uint64_t seed) {
  Generator generator(seed);
  return rand(sizes, {kFloat64}, &generator);
}

struct Case {
  std::string name;
  std::function<Tensor(const Inputs&)> function;
  Inputs inputs;
};

std::vector<Case> table() {
  const auto x = [](const Shape& sizes, uint64_t seed = 1, bool positive = false) {
    return input(sizes, seed, positive);
  };
  const Tensor classes = tensor<int64_t>({2, 0, 1, 2});
  const Tensor ignored = tensor<int64_t>({2, -100, 1, 2});
  const Tensor dense = tensor(std::vector<int64_t>{0, 2, 1, 1, 0, 2, 2, 1}, {2, 2, 2});
  std::vector<Case> cases{
      {"add", [](const Inputs& i) { return i[0] + i[1]; }, {x({2, 3}), x({2, 3}, 2)}},
      {"add broadcast", [](const Inputs& i) { return i[0] + i[1]; }, {x({2, 1, 3}), x({4, 1}, 2)}},
      {"add number", [](const Inputs& i) { return 2.5 + i[0]; }, {x({3})}},
      {"sub", [](const Inputs& i) { return i[0] - i[1]; }, {x({2, 3}), x({3}, 2)}},
      {"sub number", [](const Inputs& i) { return (1.5 - i[0]) * 2.0 - (i[0] - 3.0); }, {x({3})}},
      {"mul", [](const Inputs& i) { return i[0] * i[1]; }, {x({2, 3}), x({2, 1}, 2)}},
      {"mul itself", [](const Inputs& i) { return i[0] * i[0]; }, {x({3})}},
      {"div", [](const Inputs& i) { return i[0] / i[1]; }, {x({2, 3}), x({3}, 2)}},
      {"div number", [](const Inputs& i) { return i[0] / 3.0 + 2.0 / i[0]; }, {x({4})}},
      {"maximum", [](const Inputs& i) { return maximum(i[0], i[1]); }, {x({2, 3}), x({3}, 2)}},
      {"minimum", [](const Inputs& i) { return minimum(i[0], i[1]); }, {x({2, 3}), x({3}, 2)}},
      {"neg", [](const Inputs& i) { return -i[0]; }, {x({3})}},
      {"abs", [](const Inputs& i) { return abs(i[0]); }, {x({5})}},
      {"exp", [](const Inputs& i) { return exp(i[0]); }, {x({5})}},
      {"log", [](const Inputs& i) { return log(i[0]); }, {x({5}, 1, true)}},
      {"sqrt", [](const Inputs& i) { return sqrt(i[0]); }, {x({5}, 1, true)}},
      {"reciprocal", [](const Inputs& i) { return reciprocal(i[0]); }, {x({5})}},
      {"square", [](const Inputs& i) { return square(i[0]); }, {x({5})}},
      {"sum", [](const Inputs& i) { return sum(i[0]); }, {x({2, 3})}},
      {"sum dims",
       [](const Inputs& i) {
         return sum(i[0], {0, 2});
       },
       {x({2, 3, 4})}},
      {"sum keepdim", [](const Inputs& i) { return sum(i[0], {-1}, true); }, {x({2, 3})}},
      {"mean", [](const Inputs& i) { return mean(i[0], {1}); }, {x({2, 3})}},
      {"max", [](const Inputs& i) { return max(i[0], 1).values; }, {x({3, 4})}},
      {"min", [](const Inputs& i) { return min(i[0], 0, true).values; }, {x({3, 4})}},
      {"sum_to",
       [](const Inputs& i) {
         return sum_to(i[0], {1, 3});
       },
       {x({2, 4, 3})}},
      {"matmul", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({2, 3}), x({3, 4}, 2)}},
      {"matmul batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({2, 1, 2, 3}), x({4, 3, 2}, 2)}},
      {"matmul vectors", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({3}), x({3}, 2)}},
      {"matmul matrix vector", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({2, 3}), x({3}, 2)}},
      {"matmul vector batch", [](const Inputs& i) { return matmul(i[0], i[1]); }, {x({3}), x({2, 3, 2}, 2)}},
      {"matmul transposed", [](const Inputs& i) { return matmul(i[0].t(), i[1].t()); }, {x({3, 2}), x({4, 3}, 2)}},
      {"matmul itself", [](const Inputs& i) { return matmul(i[0], i[0]); }, {x({3, 3})}},
      {"mm", [](const Inputs& i) { return mm(i[0], i[1]); }, {x({2, 3}), x({3, 2}, 2)}},
      {"bmm", [](const Inputs& i) { return bmm(i[0], i[1]); }, {x({2, 2, 3}), x({2, 3, 2}, 2)}},
      {"linear", [](const Inputs& i) { return linear(i[0], i[1], i[2]); }, {x({2, 2, 3}), x({4, 3}, 2), x({4}, 3)}},
      {"linear without bias", [](const Inputs& i) { return linear(i[0], i[1]); }, {x({3}), x({4, 3}, 2)}},
      {"linear_relu",
       [](const Inputs& i) { return linear_relu(i[0], i[1], i[2]); },
       {x({2, 2, 3}), x({4, 3}, 2), x({4}, 3)}},
      {"linear_relu without bias", [](const Inputs& i) { return linear_relu(i[0], i[1]); }, {x({3}), x({4, 3}, 2)}},
      {"linear_gelu",
       [](const Inputs& i) { return linear_gelu(i[0], i[1], i[2]); },
       {x({2, 2, 3}), x({4, 3}, 2), x({4}, 3)}},
      {"linear_gelu without bias", [](const Inputs& i) { return linear_gelu(i[0], i[1]); }, {x({3}), x({4, 3}, 2)}},
      {"relu", [](const Inputs& i) { return relu(i[0]); }, {x({7})}},
      {"leaky_relu", [](const Inputs& i) { return leaky_relu(i[0], 0.2); }, {x({7})}},
      {"gelu", [](const Inputs& i) { return gelu(i[0]); }, {x({7})}},
      {"gelu tanh", [](const Inputs& i) { return gelu(i[0], GeluApproximation::Tanh); }, {x({7})}},
      {"tanh", [](const Inputs& i) { return brigade::tanh(i[0]); }, {x({7})}},
      {"sigmoid", [](const Inputs& i) { return sigmoid(i[0]); }, {x({7})}},
      {"softmax", [](const Inputs& i) { return softmax(i[0], -1); }, {x({2, 5})}},
      {"softmax inner", [](const Inputs& i) { return softmax(i[0], 1); }, {x({2, 3, 2})}},
      {"log_softmax", [](const Inputs& i) { return log_softmax(i[0], 0); }, {x({4, 2})}},
      {"scaled_dot_product_attention",
       [](const Inputs& i) {
         return scaled_dot_product_attention(i[0], i[1], i[2]) * fixed({2, 3, 2}, 1);
       },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 2}, 3)}},
      {"scaled_dot_product_attention causal",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[1].transpose(0, 1), i[2], {}, 0, true, 0.7); },
       {x({2, 5, 4}), x({4, 2, 4}, 2), x({2, 4, 4}, 3)}},
      {"scaled_dot_product_attention bool mask",
       [=](const Inputs& i) {
         return scaled_dot_product_attention(i[0], i[1], i[2], gt(fixed({3, 5}, 6), 0.4));
       },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 4}, 3)}},
      {"scaled_dot_product_attention added mask",
       [](const Inputs& i) {
         return scaled_dot_product_attention(i[0], i[1], i[2], fixed({2, 1, 5}, 6));
       },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 4}, 3)}},
      {"scaled_dot_product_attention dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return scaled_dot_product_attention(i[0], i[1], i[2], {}, 0.4);
       },
       {x({2, 3, 4}), x({2, 5, 4}, 2), x({2, 5, 4}, 3)}},
      {"scaled_dot_product_attention itself",
       [](const Inputs& i) { return scaled_dot_product_attention(i[0], i[0], i[0]); },
       {x({3, 4})}},
      {"embedding", [=](const Inputs& i) { return embedding(classes, i[0]); }, {x({4, 3})}},
      {"embedding dense", [=](const Inputs& i) { return embedding(dense, i[0]); }, {x({3, 2})}},
      {"cross_entropy", [=](const Inputs& i) { return cross_entropy(i[0], classes); }, {x({4, 3})}},
      {"cross_entropy ignored", [=](const Inputs& i) { return cross_entropy(i[0], ignored); }, {x({4, 3})}},
      {"cross_entropy none",
       [=](const Inputs& i) { return cross_entropy(i[0], classes, Reduction::None); },
       {x({4, 3})}},
      {"cross_entropy dense",
       [=](const Inputs& i) { return cross_entropy(i[0], dense, Reduction::Sum); },
       {x({2, 3, 2, 2})}},
      {"binary_cross_entropy_with_logits",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], i[1]); },
       {x({5}), x({5}, 2, true)}},
      {"binary_cross_entropy_with_logits none",
       [](const Inputs& i) { return binary_cross_entropy_with_logits(i[0], fixed({5}, 3), Reduction::None); },
       {x({5})}},
      {"mse_loss", [](const Inputs& i) { return mse_loss(i[0], i[1]); }, {x({2, 3}), x({2, 3}, 2)}},
      {"mse_loss sum",
       [](const Inputs& i) {
         return mse_loss(i[0], fixed({2, 3}, 3), Reduction::Sum);
       },
       {x({2, 3})}},
      {"l1_loss", [](const Inputs& i) { return l1_loss(i[0], i[1]); }, {x({2, 3}), x({2, 3}, 2)}},
      {"conv2d",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2]); },
       {x({2, 2, 4, 5}), x({3, 2, 3, 2}, 2), x({3}, 3)}},
      {"conv2d strided",
       [](const Inputs& i) {
         return conv2d(i[0], i[1], {}, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
       },
       {x({1, 2, 5, 5}), x({2, 2, 3, 2}, 2)}},
      {"conv2d groups",
       [](const Inputs& i) { return conv2d(i[0], i[1], i[2], {.groups = 2}); },
       {x({2, 4, 3, 3}), x({2, 2, 2, 2}, 2), x({2}, 3)}},
      {"max_pool2d",
       [](const Inputs& i) {
         return max_pool2d(i[0], {{2, 3}, {1, 2}, {1, 1}});
       },
       {x({2, 2, 4, 5})}},
      {"avg_pool2d",
       [](const Inputs& i) {
         return avg_pool2d(i[0], {{2, 3}, {1, 2}, {1, 1}, true, false});
       },
       {x({2, 2, 4, 5})}},
      {"interpolate nearest",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{5, 2}}});
       },
       {x({2, 2, 3, 4})}},
      {"interpolate bilinear",
       [](const Inputs& i) {
         return interpolate(i[0], {.scale_factor = {{2.3, 0.7}}, .mode = InterpolateMode::Bilinear});
       },
       {x({2, 1, 3, 4})}},
      {"interpolate aligned",
       [](const Inputs& i) {
         return interpolate(i[0], {.size = {{1, 7}}, .mode = InterpolateMode::Bilinear, .align_corners = true});
       },
       {x({1, 2, 4, 3})}},
      {"batch_norm",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], {}, {}, true); },
       {x({3, 2, 2, 2}), x({2}, 2), x({2}, 3)}},
      {"batch_norm eval",
       [](const Inputs& i) { return batch_norm(i[0], i[1], i[2], fixed({2}, 4), fixed({2}, 5) + 0.5, false); },
       {x({3, 2, 2}), x({2}, 2), x({2}, 3)}},
      {"layer_norm",
       [](const Inputs& i) {
         return layer_norm(i[0], {4}, i[1], i[2], 1e-3) * fixed({2, 3, 4}, 4);
       },
       {x({2, 3, 4}), x({4}, 2), x({4}, 3)}},
      {"layer_norm over two dimensions, plain",
       [](const Inputs& i) {
         return layer_norm(i[0], {3, 4}) * fixed({2, 3, 4}, 4);
       },
       {x({2, 3, 4})}},
      {"rms_norm",
       [](const Inputs& i) {
         return rms_norm(i[0], {4}, i[1], 1e-3) * fixed({3, 4}, 4);
       },
       {x({3, 4}), x({4}, 2)}},
      {"rms_norm plain",
       [](const Inputs& i) {
         return rms_norm(i[0], {2, 2}) * fixed({3, 2, 2}, 4);
       },
       {x({3, 2, 2})}},
      {"dropout",
       [](const Inputs& i) {
         default_generator().manual_seed(3);
         return dropout(i[0], 0.4);
       },
       {x({20})}},
      {"reshape",
       [](const Inputs& i) {
         return i[0].t().reshape({2, 3}) * fixed({2, 3}, 1);
       },
       {x({2, 3})}},
      {"view",
       [](const Inputs& i) {
         return i[0].view({3, -1}) * fixed({3, 2}, 1);
       },
       {x({2, 3})}},
      {"flatten",
       [](const Inputs& i) {
         return i[0].flatten(1) * fixed({2, 6}, 1);
       },
       {x({2, 3, 2})}},
      {"permute",
       [](const Inputs& i) {
         return i[0].permute({2, 0, 1}) * fixed({4, 2, 3}, 1);
       },
       {x({2, 3, 4})}},
      {"transpose",
       [](const Inputs& i) {
         return i[0].transpose(0, 2) * fixed({4, 3, 2}, 1);
       },
       {x({2, 3, 4})}},
      {"expand",
       [](const Inputs& i) {
         return i[0].expand({4, 2, 3}) * fixed({4, 2, 3}, 1);
       },
       {x({2, 1})}},
      {"unsqueeze",
       [](const Inputs& i) {
         return i[0].unsqueeze(1) * fixed({2, 1, 3}, 1);
       },
       {x({2, 3})}},
      {"squeeze",
       [](const Inputs& i) {
         return i[0].squeeze(1) * fixed({2, 3}, 1);
       },
       {x({2, 1, 3})}},
      {"slice",
       [](const Inputs& i) {
         return i[0].slice(1, 1, 6, 2) * fixed({2, 3}, 1);
       },
       {x({2, 7})}},
      {"select", [](const Inputs& i) { return i[0].select(0, -1) * fixed({3}, 1); }, {x({2, 3})}},
      {"clone",
       [](const Inputs& i) {
         return i[0].t().contiguous() * fixed({3, 2}, 1);
       },
       {x({2, 3})}},
      {"to", [](const Inputs& i) { return i[0].to(kFloat64) * 2.0; }, {x({3})}},
      {"cat",
       [](const Inputs& i) {
         return cat({i[0], i[1]}, 1) * fixed({2, 5}, 1);
       },
       {x({2, 3}), x({2, 2}, 2)}},
      {"stack",
       [](const Inputs& i) {
         return stack({i[0], i[1], i[0]}, 1) * fixed({2, 3, 3}, 1);
       },
       {x({2, 3}), x({2, 3}, 2)}},
      {"split",
       [](const Inputs& i) { return split(i[0], 2, 1)[1] * split(i[0], 2, 1)[0].slice(1, 0, 1); },
       {x({2, 3})}},
      {"chunk", [](const Inputs& i) { return chunk(i[0], 2)[1] * 3.0; }, {x({4, 2})}},
      {"index_select",
       [](const Inputs& i) {
         return index_select(i[0], 0, tensor<int64_t>({1, 1, 0})) * fixed({3, 2}, 1);
       },
       {x({3, 2})}},
      {"index_select inner",
       [](const Inputs& i) {
         return index_select(i[0], 1, tensor<int64_t>({2, 0})) * fixed({3, 2}, 1);
       },
       {x({3, 3})}},
      {"add_", [](const Inputs& i) { return (i[0] * 1.0).add_(i[1], 0.5) * 2.0; }, {x({2, 3}), x({3}, 2)}},
      {"mul_", [](const Inputs& i) { return (i[0] * 1.0).mul_(i[1]) * 2.0; }, {x({2, 3}), x({3}, 2)}},
      {"mul_ number", [](const Inputs& i) { return (i[0] * 1.0).mul_(-1.5); }, {x({3})}},
      {"copy_", [](const Inputs& i) { return (i[0] * 1.0).copy_(i[1]) * i[0]; }, {x({2, 3}), x({3}, 2)}},
      {"fill_", [](const Inputs& i) { return (i[0] * 1.0).fill_(2) * i[0]; }, {x({3})}},
  };
  return cases;
}

// Names of the nodes behind a tensor.
void collect_ops(const autograd::Node* node, std::set<const autograd::Node*>& seen, std::set<std::string>& names) {
  if (!node || !seen.insert(node).second) return;
  names.insert(node->op);
  for (const autograd::Edge& edge : node->edges)
    collect_ops(edge.node.get(), seen, names);
}

}  // namespace

TEST_CASE("the gradient of every operation agrees with central differences") {
  for (const Case& each : table()) {
    CAPTURE(each.name);
    const autograd::GradcheckResult result = autograd::gradcheck(each.function, each.inputs);
    CHECK_MESSAGE(result.ok, each.name << ": " << result.report);
  }
}

TEST_CASE("the gradient of a transposed input agrees with central differences") {
  const Tensor base = input({4, 3}, 5);
  const autograd::GradcheckResult result = autograd::gradcheck(
      [](const Inputs& i) {
        return softmax(matmul(i[0].t(), i[0]), 1) + sum(i[0].t(), {1}, true).expand({3, 3});
      },
      {base});
  CHECK_MESSAGE(result.ok, result.report);
}

TEST_CASE("gradcheck finds a wrong gradient") {
  const Tensor x = input({3}, 1);
  // detach() hides half of the derivative of x * x.
  const autograd::GradcheckResult result =
      autograd::gradcheck([](const Inputs& i) { return i[0] * i[0].detach(); }, {x});
  CHECK_FALSE(result.ok);
  CHECK(result.worst > 0.1);
}

TEST_CASE("no differentiable operation is missing from the table") {
  std::set<std::string> covered;
  for (const Case& each : table()) {
    const Tensor result = each.function(each.inputs);
    std::set<const autograd::Node*> seen;
    collect_ops(autograd::meta(result)->grad_fn.get(), seen, covered);
  }
  covered.insert("to");  // a cast from float64 is checked by value in shape_test.cpp
  // Every literal `.op = "name"` and every name passed to a helper that makes nodes.
  const std::filesystem::path sources =
      std::filesystem::path(__FILE__).parent_path().parent_path().parent_path().parent_path() / "autograd/ops";
  REQUIRE(std::filesystem::exists(sources));
  int names = 0;
  for (const auto& entry : std::filesystem::directory_iterator(sources)) {
    if (entry.path().extension() != ".cpp") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.find(".differentiable = false") != std::string::npos || line.find("compare(") != std::string::npos)
        continue;
      static const std::regex literal(
          "(?:\\.op = "
          "|unary<\\w+>\\(|with_number\\(|reduce\\(|extremum\\(|apply\\(|pair_loss<\\w+>\\(|viewed\\(|matmul_at_least_"
          "2d\\()\"(\\w+)\"");
      for (std::sregex_iterator match(line.begin(), line.end(), literal), end; match != end; ++match) {
        ++names;
        CHECK_MESSAGE(covered.contains((*match)[1]), "operation '" << (*match)[1] << "' of " << entry.path().filename()
                                                                   << " is not in the gradcheck table");
      }
    }
  }
  CHECK(names > 40);
}
