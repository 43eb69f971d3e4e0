// Runs a chain of tiny operations forward, or forward and backward, for scripts/count-instructions.py, which counts
// what callgrind sees.
//
//   bench_node_instructions OPERATION PHASE COUNT ROUNDS     add | mul | relu | matmul, forward | both
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

using namespace brigade;

int main(int argc, char** argv) {
  const std::map<std::string, Tensor (*)(const Tensor&, const Tensor&)> operations = {
      {"add", [](const Tensor& x, const Tensor& c) { return add(x, c); }},
      {"mul", [](const Tensor& x, const Tensor& c) { return mul(x, c); }},
      {"relu", [](const Tensor& x, const Tensor&) { return relu(x); }},
      {"matmul", [](const Tensor& x, const Tensor& c) { return matmul(x, c); }},
  };
  if (argc != 5 || !operations.contains(argv[1])) {
    std::fprintf(stderr, "usage: %s add|mul|relu|matmul forward|both COUNT ROUNDS\n", argv[0]);
    return 2;
  }
  const auto apply = operations.at(argv[1]);
  const bool backward = argv[2] == std::string("both");
  const int count = std::atoi(argv[3]);
  const int rounds = std::atoi(argv[4]);
  const Shape sizes = argv[1] == std::string("matmul") ? Shape{16, 16} : Shape{1};
  const Tensor x = full(sizes, 1.0).requires_grad_();
  const Tensor constant = full(sizes, 0.0625);
  const Tensor gradient = full(sizes, 1.0);
  for (int round = 0; round < rounds; ++round) {
    Tensor y = x;
    for (int i = 0; i < count; ++i)
      y = apply(y, constant);
    x.set_grad(Tensor());
    if (backward) y.backward({.gradient = gradient});
  }
}
