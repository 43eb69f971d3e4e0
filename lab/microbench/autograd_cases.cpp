// The overhead of an operation, recorded, not recorded and run backward, on tensors so small that the arithmetic is
// negligible. Times are per operation in a chain.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/microbench/micro_case.h>

#include <chrono>

namespace brigade::lab {
namespace {

constexpr int kChain = 1000;

struct Operation {
  std::string name;
  Shape sizes;
  std::function<Tensor(const Tensor& x, const Tensor& constant)> apply;
};

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kChain;
}

std::vector<MicroCase> cases() {
  const std::vector<Operation> operations = {
      {"add 1", {1}, [](const Tensor& x, const Tensor& c) { return add(x, c); }},
      {"mul 1", {1}, [](const Tensor& x, const Tensor& c) { return mul(x, c); }},
      {"relu 1", {1}, [](const Tensor& x, const Tensor&) { return relu(x); }},
      {"add 1024", {1024}, [](const Tensor& x, const Tensor& c) { return add(x, c); }},
      {"matmul 16x16", {16, 16}, [](const Tensor& x, const Tensor& c) { return matmul(x, c); }},
  };
  std::vector<MicroCase> all;
  for (const Operation& op : operations) {
    const auto chain = [op](const Tensor& first, const Tensor& constant) {
      Tensor y = first;
      for (int i = 0; i < kChain; ++i)
        y = op.apply(y, constant);
      return y;
    };
    const auto inputs = [op](bool requires_grad) {
      return std::pair(full(op.sizes, 1.0).requires_grad_(requires_grad),
                       full(op.sizes, op.sizes.size() == 2 ? 0.0625 : 1.0));
    };
    all.push_back({.suite = "autograd", .name = op.name + " forward", .prepare = [=]() -> std::function<double()> {
                     return [=, in = inputs(true)] {
                       const auto begin = std::chrono::steady_clock::now();
                       const Tensor y = chain(in.first, in.second);
                       return since(begin);
                     };
                   }});
    all.push_back({.suite = "autograd", .name = op.name + " no_grad", .prepare = [=]() -> std::function<double()> {
                     return [=, in = inputs(false)] {
                       const NoGradGuard no_grad;
                       const auto begin = std::chrono::steady_clock::now();
                       const Tensor y = chain(in.first, in.second);
                       return since(begin);
                     };
                   }});
    all.push_back({.suite = "autograd", .name = op.name + " backward", .prepare = [=]() -> std::function<double()> {
                     return [=, in = inputs(true), gradient = full(op.sizes, 1.0)] {
                       in.first.set_grad(Tensor());
                       const Tensor y = chain(in.first, in.second);
                       const auto begin = std::chrono::steady_clock::now();
                       y.backward({.gradient = gradient});
                       return since(begin);
                     };
                   }});
  }
  return all;
}

const AddMicroCases add_autograd_cases(&cases);

}  // namespace
}  // namespace brigade::lab
