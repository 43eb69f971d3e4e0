// A network with a switch that detaches its first layer.
#pragma once

#include <brigade/nn/nn.h>

namespace brigade::test {

struct CuttableImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool cut = false;
  CuttableImpl() {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(a(x));
    return b(cut ? features.detach() : features);
  }
};
BRIGADE_MODULE(Cuttable);

}  // namespace brigade::test
