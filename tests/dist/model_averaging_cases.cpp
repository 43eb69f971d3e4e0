#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::test::model_averaging_cases {
// Two layers, in float64 and float32.
struct NetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  NetImpl() {
    a = register_module("a", nn::Linear(4, 5));
    b = register_module("b", nn::Linear(5, 2));
    a->to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return b(brigade::tanh(a(x)).to(kFloat32)); }
};
BRIGADE_MODULE(Net);

void local_step(Net& net, optim::SGD& optimizer, int rank, int step) {
  RandomGenerator generator(10 + static_cast<uint64_t>(rank) + 50 * static_cast<uint64_t>(step));
  optimizer.zero_grad();
  mean(square(net(randn({6, 4}, kFloat64, &generator)) - 1.0)).backward();
  optimizer.step();
}

std::vector<double> values_of(const std::vector<Tensor>& tensors) {
  std::vector<double> values;
  for (const Tensor& tensor : tensors) {
    for (const double v : tensor.to_vector<double>())
      values.push_back(v);
  }
  return values;
}

std::string check_average(const dist::ProcessGroupPtr& group) {
  const int ranks = group->size();
  const double own = group->rank();
  const double middle = (ranks - 1) / 2.0;
  const std::vector<Tensor> tensors{full({2}, own),
                                    full({3}, own, kFloat64),
                                    (full({2, 3}, own) + tensor<float>({1, 2, 3})).t(),
                                    full({2}, own, kFloat16),
                                    zeros({0}),
                                    full({}, own, kFloat64)};
  std::vector<uint32_t> versions;
  for (const Tensor& each : tensors)
    versions.push_back(each.version());
  const size_t before = group->flight_recorder().entries().size();
  dist::average_parameters(*group, tensors);
  const auto entries = group->flight_recorder().entries();
  if (entries.size() - before != 3) return fmt::format("{} collectives for 3 dtypes", entries.size() - before);
  if (describe(entries.back()) != "model averaging") return "description " + describe(entries.back());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].version() != versions[i] + 1) return fmt::format("the version of tensor {}", i);
  }
  const std::vector<double> m{middle + 1, middle + 1, middle + 2, middle + 2, middle + 3, middle + 3};
  if (values_of({tensors[2]}) != m) return "a tensor that is not contiguous";
  if (values_of({tensors[0], tensors[1], tensors[3], tensors[5]}) != std::vector<double>(8, middle)) return "a mean";
  // Refused before anything is sent.
  const Tensor whole = full({2}, own);
  for (const Tensor& unfit : {ones({2}, kInt64), Tensor()}) {
    std::string text;
    try {
      dist::average_parameters(*group, {whole, unfit});
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (text.find("average_parameters: parameter 1 is ") != 0) return "not refused: " + text;
  }
  if (values_of({whole}) != std::vector<double>(2, own)) return "a refused call changed something";
  return "";
}
const AddRankCase add_average("average_parameters: the mean over the ranks, one all-reduce per dtype", &check_average);

void check_local_sgd(const std::string& backend, int ranks) {
  constexpr int kSteps = 7;
  // The same in one process: a net per rank, averaged after steps 2 and 5.
  std::vector<Net> nets;
  std::vector<std::unique_ptr<optim::SGD>> optimizers;
  for (int r = 0; r < ranks; ++r) {
    manual_seed(3);
    nets.emplace_back();
    nets.back()->b->bias.requires_grad_(false);
    optimizers.push_back(
        std::make_unique<optim::SGD>(nets.back()->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9}));
  }
  std::vector<std::vector<double>> expected(static_cast<size_t>(ranks));
  for (int s = 0; s < kSteps; ++s) {
    for (size_t r = 0; r < nets.size(); ++r)
      local_step(nets[r], *optimizers[r], static_cast<int>(r), s);
    if (s != 2 && s != 5) continue;
    const NoGradGuard no_grad;
    for (size_t p = 0; p < 3; ++p) {
      Tensor sum = nets[0]->parameters()[p].clone();
      for (size_t r = 1; r < nets.size(); ++r)
        sum.add_(nets[r]->parameters()[p]);
      for (Net& net : nets)
        net->parameters()[p].copy_(sum * (1.0 / ranks));
    }
  }
  for (size_t r = 0; r < nets.size(); ++r)
    expected[r] = values_of(nets[r]->parameters());
  CHECK(expected[0] != expected[1]);  // two local steps have passed since
  expect_well(backend, ranks, [&expected](const dist::ProcessGroupPtr& group) -> std::string {
    manual_seed(3);
    Net net;
    net->b->bias.requires_grad_(false);
    const uint32_t frozen = net->b->bias.version();
    optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    dist::PeriodicModelAverager averager(group, 3, 2);
    std::string pattern;
    for (int s = 0; s < kSteps; ++s) {
      local_step(net, optimizer, group->rank(), s);
      pattern += averager.average_parameters(net) ? '1' : '0';
    }
    if (pattern != "0010010" || averager.step() != kSteps) return "averaged at " + pattern;
    if (net->b->bias.version() != frozen) return "a frozen parameter was written";
    const std::vector<double> found = values_of(net->parameters());
    for (size_t i = 0; i < found.size(); ++i) {
      const double wanted = expected[static_cast<size_t>(group->rank())][i];
      if (std::abs(found[i] - wanted) > 2e-6) return fmt::format("value {} is {}, expected {}", i, found[i], wanted);
    }
    // A checkpoint keeps the count.
    dist::PeriodicModelAverager resumed(group, 3, 2);
    resumed.set_step(averager.step());
    if (resumed.average_parameters(net) || !resumed.average_parameters(net)) return "the count of calls";
    std::string wrong = expect_error<ValueError>([&] { dist::PeriodicModelAverager(group, 0); }, {"period"});
    if (wrong.empty())
      wrong =
          expect_error<ValueError>([&] { dist::PeriodicModelAverager(nullptr, 1); }, {"the process group is empty"});
    return wrong;
  });
}
const AddRankCase add_local_sgd("PeriodicModelAverager: local SGD equals the same computed in one process",
                                &check_local_sgd);

}  // namespace brigade::test::model_averaging_cases
