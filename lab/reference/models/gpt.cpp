// A small GPT: blocks of causal attention and a feed-forward network, and a head that shares its weight with the
// embedding.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/reference/models/model.h>
#include <brigade/nn/nn.h>

namespace brigade::lab::reference {
namespace {

// Attention and a feed-forward network, each with a layer norm before it and a residual connection around it. The
// projection to queries, keys and values has no bias, since softmax cancels the bias of the keys.
struct BlockImpl : nn::Module {
  int64_t heads;
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, proj{nullptr}, fc1{nullptr}, fc2{nullptr};
  BlockImpl(int64_t width, int64_t heads_) : heads(heads_) {
    norm1 = register_module("norm1", nn::LayerNorm(width));
    qkv = register_module("qkv", nn::Linear(width, 3 * width, false));
    proj = register_module("proj", nn::Linear(width, width));
    norm2 = register_module("norm2", nn::LayerNorm(width));
    fc1 = register_module("fc1", nn::Linear(width, 4 * width));
    fc2 = register_module("fc2", nn::Linear(4 * width, width));
  }
  Tensor forward(const Tensor& input) {
    const int64_t batch = input.size(0), length = input.size(1), width = input.size(2);
    std::vector<Tensor> parts = split(qkv(norm1(input)), width, 2);
    for (Tensor& part : parts)
      part = part.reshape({batch, length, heads, -1}).transpose(1, 2);
    const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true);
    const Tensor x = input + proj(y.transpose(1, 2).reshape({batch, length, width}));
    return x + fc2(gelu(fc1(norm2(x)), GeluApproximation::Tanh));
  }
};
BRIGADE_MODULE(Block);

// Computes logits with a weight that another module also owns.
struct TiedHeadImpl : nn::Module {
  Tensor weight;
  explicit TiedHeadImpl(const Tensor& tied) { weight = register_parameter("weight", tied); }
  Tensor forward(const Tensor& x) { return linear(x, weight); }
};
BRIGADE_MODULE(TiedHead);

struct GPTImpl : nn::Module {
  nn::Embedding tokens{nullptr}, positions{nullptr};
  nn::ModuleList<Block> blocks{nullptr};
  nn::LayerNorm norm{nullptr};
  TiedHead head{nullptr};
  GPTImpl(int64_t vocabulary, int64_t length, int64_t width, int64_t heads, int64_t depth) {
    tokens = register_module("tokens", nn::Embedding(vocabulary, width));
    positions = register_module("positions", nn::Embedding(length, width));
    blocks = register_module("blocks", nn::ModuleList<Block>());
    for (int64_t i = 0; i < depth; ++i)
      blocks->push_back(Block(width, heads));
    norm = register_module("norm", nn::LayerNorm(width));
    head = register_module("head", TiedHead(tokens->weight));
  }
  Tensor forward(const Tensor& indices) {
    const Tensor places = arange(0, static_cast<double>(indices.size(1)), 1, {kInt64, indices.device()});
    Tensor x = tokens(indices) + positions(places);
    for (Block& block : *blocks)
      x = block(x);
    return head(norm(x));
  }
};
BRIGADE_MODULE(GPT);

class GPTModel final : public Model {
 public:
  explicit GPTModel(const Arguments& args)
      : net_(args.integer("vocabulary"), args.integer("positions"), args.integer("width"), args.integer("heads"),
             args.integer("blocks")) {}
  nn::Module& module() override { return *net_; }
  Step run(int, const std::vector<Tensor>& inputs) override {
    const Tensor logits = net_(inputs.at(0));
    return {cross_entropy(logits.flatten(0, 1), inputs.at(1).flatten()), {logits}};
  }

 private:
  GPT net_;
};

const AddModel add_gpt("gpt", [](const Arguments& args) -> std::unique_ptr<Model> {
  return std::make_unique<GPTModel>(args);
});

}  // namespace
}  // namespace brigade::lab::reference
