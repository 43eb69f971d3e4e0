// The cases of `brigade bench autograd` in PyTorch's C++ API, under the same names: reads one name per line and answers
// with one line. Compiled and started by bench/beside_torch.py; not part of the build, which does not need PyTorch.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using torch::Tensor;

constexpr int kChain = 1000;

struct Operation {
  std::vector<int64_t> sizes;
  std::function<Tensor(const Tensor&, const Tensor&)> apply;
};

const std::map<std::string, Operation>& operations() {
  static const std::map<std::string, Operation> all = {
      {"add 1", {{1}, [](const Tensor& x, const Tensor& c) { return at::add(x, c); }}},
      {"mul 1", {{1}, [](const Tensor& x, const Tensor& c) { return at::mul(x, c); }}},
      {"relu 1", {{1}, [](const Tensor& x, const Tensor&) { return at::relu(x); }}},
      {"add 1024", {{1024}, [](const Tensor& x, const Tensor& c) { return at::add(x, c); }}},
      {"matmul 16x16", {{16, 16}, [](const Tensor& x, const Tensor& c) { return at::mm(x, c); }}},
  };
  return all;
}

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kChain;
}

double sample(const Operation& op, const std::string& way) {
  const Tensor x = torch::ones(op.sizes, torch::requires_grad(way != "no_grad"));
  const Tensor c = torch::full(op.sizes, op.sizes.size() == 2 ? 0.0625 : 1.0);
  const auto chain = [&] {
    Tensor y = x;
    for (int i = 0; i < kChain; ++i)
      y = op.apply(y, c);
    return y;
  };
  if (way == "no_grad") {
    const torch::NoGradGuard no_grad;
    const auto begin = Clock::now();
    const Tensor y = chain();
    return since(begin);
  }
  auto begin = Clock::now();
  const Tensor y = chain();
  if (way == "forward") return since(begin);
  const Tensor gradient = torch::ones(op.sizes);
  begin = Clock::now();
  y.backward(gradient);
  return since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  at::set_num_threads(1);
  std::string name;
  while (std::getline(std::cin, name)) {
    const size_t space = name.rfind(' ');
    const Operation& op = operations().at(name.substr(0, space));
    const std::string way = name.substr(space + 1);
    const auto elapsed = [](Clock::time_point begin) {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    auto begin = Clock::now();
    do {
      sample(op, way);
    } while (elapsed(begin) < seconds / 4);
    std::string samples;
    begin = Clock::now();
    for (int i = 0; i < 3 || (elapsed(begin) < seconds && i < 10000); ++i)
      samples += (i > 0 ? ", " : "") + std::to_string(sample(op, way));
    std::printf("{\"case\": \"%s\", \"us\": [%s]}\n", name.c_str(), samples.c_str());
    std::fflush(stdout);
  }
}
