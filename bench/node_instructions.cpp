// Runs a chain of tiny operations forward, or forward and backward, for scripts/count-instructions.py, which counts
// instructions with callgrind.
//
//   bench_node_instructions OPERATION PHASE COUNT ROUNDS     add | mul | relu | matmul, forward | both
#include "number_in.h"

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <cstdio>
#include <map>
#include <string>

using namespace brigade;

namespace {

int usage(std::FILE* out, const char* program, int status) {
  std::fprintf(out,
               "usage: %s add|mul|relu|matmul forward|both COUNT ROUNDS\n"
               "Runs a chain of COUNT operations forward, or forward and backward, ROUNDS times.\n"
               "Example:\n  valgrind --tool=callgrind %s mul both 1000 3\n",
               program, program);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Tensor (*)(const Tensor&, const Tensor&)> operations = {
      {"add", [](const Tensor& x, const Tensor& c) { return add(x, c); }},
      {"mul", [](const Tensor& x, const Tensor& c) { return mul(x, c); }},
      {"relu", [](const Tensor& x, const Tensor&) { return relu(x); }},
      {"matmul", [](const Tensor& x, const Tensor& c) { return matmul(x, c); }},
  };
  if (argc == 2 && (argv[1] == std::string("--help") || argv[1] == std::string("-h"))) return usage(stdout, argv[0], 0);
  if (argc != 5 || !operations.contains(argv[1])) return usage(stderr, argv[0], 2);
  const auto apply = operations.at(argv[1]);
  const bool backward = argv[2] == std::string("both");
  const int count = number_in(argv[3]);
  const int rounds = number_in(argv[4]);
  if ((!backward && argv[2] != std::string("forward")) || count == 0 || rounds == 0) return usage(stderr, argv[0], 2);
  // In float64 the product uses Brigade's native code, with and without oneDNN.
  const bool product = argv[1] == std::string("matmul");
  const Shape sizes = product ? Shape{4, 4} : Shape{1};
  const DType dtype = product ? kFloat64 : kFloat32;
  const Tensor x = full(sizes, 1.0, dtype).requires_grad_();
  const Tensor constant = full(sizes, 0.25, dtype);
  const Tensor gradient = full(sizes, 1.0, dtype);
  for (int round = 0; round < rounds; ++round) {
    Tensor y = x;
    for (int i = 0; i < count; ++i)
      y = apply(y, constant);
    x.set_grad(Tensor());
    if (backward) y.backward({.gradient = gradient});
  }
}
