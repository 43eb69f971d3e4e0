// A step of an optimizer over ten million parameters, in one tensor or in a hundred.
#include <brigade/kernels/factory.h>
#include <brigade/lab/microbench/micro_case.h>
#include <brigade/optim/optim.h>

#include <memory>

namespace brigade::lab {
namespace {

constexpr int64_t kNumel = 10'000'000;

std::vector<Tensor> parameters(int count) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(full({kNumel / count}, 1.0).requires_grad_());
    all.back().set_grad(full({kNumel / count}, 0.01));
  }
  return all;
}

template <class O, class Options>
std::function<double()> steps(int count, const Options& options) {
  const auto optimizer = std::make_shared<O>(parameters(count), options);
  return repeated([optimizer] { optimizer->step(); });
}

std::vector<MicroCase> cases() {
  std::vector<MicroCase> all;
  for (const int count : {1, 100}) {
    const std::string name = " 10M in " + std::to_string(count);
    const auto add = [&](const std::string& optimizer, double bytes, std::function<std::function<double()>()> prepare) {
      all.push_back(
          {.suite = "optim", .name = optimizer + name, .bytes = bytes * kNumel, .prepare = std::move(prepare)});
    };
    add("AdamW", 28, [=] { return steps<optim::AdamW>(count, optim::AdamWOptions{}); });
    add("Adam", 28, [=] { return steps<optim::Adam>(count, optim::AdamOptions{}); });
    add("SGD", 12, [=] { return steps<optim::SGD>(count, optim::SGDOptions{.lr = 1e-4}); });
    add("SGD momentum", 20, [=] { return steps<optim::SGD>(count, optim::SGDOptions{.lr = 1e-4, .momentum = 0.9}); });
  }
  return all;
}

const AddMicroCases add_optim_cases(&cases);

}  // namespace
}  // namespace brigade::lab
