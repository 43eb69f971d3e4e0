// The model of several tests: three layers, the middle one of which can be skipped.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>

namespace brigade::test {

struct BranchingNetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  bool skip_b = false;
  BranchingNetImpl() {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 8));
    c = register_module("c", nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(a(x));
    return c(skip_b ? features : brigade::tanh(b(features)));
  }
};
BRIGADE_MODULE(BranchingNet);

}  // namespace brigade::test
