// Small models of several tests: with a branch, with a cut, with a part that each test supplies.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>

#include <functional>
#include <utility>

namespace brigade::test {

// --- Three layers, the middle one of which can be skipped.

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

// --- A network with a switch that detaches its first layer.

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

// --- A network whose middle part is supplied by each test.

// c(path(h)) with h from `a`; `path` may use `b`.
struct PathsImpl : nn::Module {
  using Path = std::function<Tensor(PathsImpl&, const Tensor&)>;
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  Path path;
  explicit PathsImpl(Path taken) : path(std::move(taken)) {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 8));
    c = register_module("c", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return c(path(*this, brigade::tanh(a(x)))); }
};
BRIGADE_MODULE(Paths);

}  // namespace brigade::test
