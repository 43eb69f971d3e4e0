// The model of the DDP benchmarks: attention and MLP blocks with residuals, four heads.
#pragma once

#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>

#include <cmath>

namespace brigade::lab::bench {

struct BlockImpl : nn::Module {
  int64_t heads, width;
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  BlockImpl(int64_t w, int64_t h) : heads(h), width(w) {
    qkv = register_module("qkv", nn::Linear(w, 3 * w));
    out = register_module("out", nn::Linear(w, w));
    up = register_module("up", nn::Linear(w, 4 * w));
    down = register_module("down", nn::Linear(4 * w, w));
  }
  // Input and result are [batch, length, width].
  Tensor forward(const Tensor& x) {
    const int64_t batch = x.size(0);
    const int64_t length = x.size(1);
    const int64_t each = width / heads;
    const Tensor all = qkv(x);
    const auto part = [&](int64_t i) {
      return all.narrow(2, i * width, width)
          .reshape({batch, length, heads, each})
          .permute({0, 2, 1, 3})
          .reshape({batch * heads, length, each});
    };
    const Tensor scores =
        softmax(bmm(part(0), part(1).transpose(1, 2)) * (1 / std::sqrt(static_cast<double>(each))), -1);
    const Tensor mixed = bmm(scores, part(2))
                             .reshape({batch, heads, length, each})
                             .permute({0, 2, 1, 3})
                             .reshape({batch, length, width});
    const Tensor y = x + out(mixed);
    return y + down(gelu(up(y)));
  }
};
BRIGADE_MODULE(Block);

struct TransformerImpl : nn::Module {
  nn::ModuleList<Block> blocks;
  bool checkpoint = false;  // run each block again in backward
  TransformerImpl(int count, int64_t width) {
    register_module("blocks", blocks);
    for (int i = 0; i < count; ++i)
      blocks->push_back(Block(width, 4));
  }
  Tensor forward(Tensor x) {
    for (Block& block : *blocks)
      x = checkpoint ? autograd::checkpoint([&](const Tensor& in) { return block(in); }, x) : block(x);
    return x;
  }
};
BRIGADE_MODULE(Transformer);

}  // namespace brigade::lab::bench
