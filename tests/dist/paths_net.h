// A network whose middle part is supplied by each test.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>

#include <functional>
#include <utility>

namespace brigade::test {

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
