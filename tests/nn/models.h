// Models shared by several tests.
#pragma once

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <string>
#include <vector>

namespace brigade::test {

struct BlockImpl : nn::Module {
  nn::Linear fc{nullptr};
  BlockImpl() { fc = register_module("fc", nn::Linear(3, 3)); }
  Tensor forward(const Tensor& x) { return relu(fc(x)); }
};
BRIGADE_MODULE(Block);

// [N, 3] -> [N, 2]; has its own parameter and buffer.
struct NetImpl : nn::Module {
  nn::ModuleList<Block> blocks{nullptr};
  nn::Linear head{nullptr};
  Tensor scale, steps;
  NetImpl() {
    blocks = register_module("blocks", nn::ModuleList<Block>());
    blocks->push_back(Block());
    blocks->push_back(Block());
    head = register_module("head", nn::Linear(3, 2, false));
    scale = register_parameter("scale", ones({1}));
    steps = register_buffer("steps", zeros({}, kInt64));
  }
  Tensor forward(Tensor x) {
    for (Block& block : *blocks)
      x = block(x);
    return head(x) * scale;
  }
};
BRIGADE_MODULE(Net);

template <class T>
std::vector<std::string> names_of(const nn::Named<T>& named) {
  std::vector<std::string> names;
  for (const auto& [name, value] : named)
    names.push_back(name);
  return names;
}

inline std::vector<float> floats(const Tensor& tensor) { return tensor.to_vector<float>(); }
inline std::vector<double> doubles(const Tensor& tensor) { return tensor.to_vector<double>(); }

}  // namespace brigade::test
