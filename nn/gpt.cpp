// Builds the parts of GPT, and runs its blocks with a residual connection around each half.
#include <brigade/nn/gpt.h>

#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/init.h>

#include <cmath>

namespace brigade::nn {

GPTBlockImpl::GPTBlockImpl(const GPTOptions& o) : options(o) {
  if (o.n_head < 1 || o.n_embd < 1 || o.n_embd % o.n_head != 0) {
    throw ValueError("GPT: n_embd must be divisible by n_head, both at least 1, got " + std::to_string(o.n_embd) +
                     " and " + std::to_string(o.n_head));
  }
  const auto linear = [&](const char* name, int64_t in, int64_t out) {
    return register_module(name, Linear({.in_features = in, .out_features = out, .bias = o.bias, .dtype = o.dtype}));
  };
  const LayerNormOptions norm{.bias = o.bias, .dtype = o.dtype};
  ln_1 = register_module("ln_1", LayerNorm(o.n_embd, norm));
  c_attn = linear("c_attn", o.n_embd, 3 * o.n_embd);
  c_proj = linear("c_proj", o.n_embd, o.n_embd);
  ln_2 = register_module("ln_2", LayerNorm(o.n_embd, norm));
  mlp_fc = linear("mlp_fc", o.n_embd, 4 * o.n_embd);
  mlp_proj = linear("mlp_proj", 4 * o.n_embd, o.n_embd);
  resid_dropout = register_module("resid_dropout", Dropout(o.dropout));
  for (const Linear& each : {c_attn, c_proj, mlp_fc, mlp_proj}) {
    const bool into_residual = each.get() == c_proj.get() || each.get() == mlp_proj.get();
    const double layers = static_cast<double>(std::max<int64_t>(o.n_layer, 1));
    init::normal_(each->weight, 0, into_residual ? 0.02 / std::sqrt(2 * layers) : 0.02);
    if (o.bias) init::zeros_(each->bias);
  }
}

Tensor GPTBlockImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  const int64_t batch = x.size(0), length = x.size(1), per_head = options.n_embd / options.n_head;
  std::vector<Tensor> qkv = chunk(c_attn(ln_1(x, where), where), 3, -1, where);
  for (Tensor& each : qkv)
    each = each.reshape({batch, length, options.n_head, per_head}, where).transpose(1, 2, where);
  const Tensor attended = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, is_training() ? options.dropout : 0,
                                                       true, {}, false, where);
  const Tensor joined = attended.transpose(1, 2, where).reshape({batch, length, options.n_embd}, where);
  const Tensor y = add(x, resid_dropout(c_proj(joined, where), where), where);
  const Tensor inner = gelu(mlp_fc(ln_2(y, where), where), GeluApproximation::Tanh, where);
  return add(y, resid_dropout(mlp_proj(inner, where), where), where);
}

GPTImpl::GPTImpl(const GPTOptions& o) : options(o) {
  wte =
      register_module("wte", Embedding({.num_embeddings = o.vocab_size, .embedding_dim = o.n_embd, .dtype = o.dtype}));
  wpe =
      register_module("wpe", Embedding({.num_embeddings = o.block_size, .embedding_dim = o.n_embd, .dtype = o.dtype}));
  drop = register_module("drop", Dropout(o.dropout));
  h = register_module("h", ModuleList<GPTBlock>());
  for (int64_t i = 0; i < o.n_layer; ++i)
    h->push_back(GPTBlock(o));
  ln_f = register_module("ln_f", LayerNorm(o.n_embd, {.bias = o.bias, .dtype = o.dtype}));
  lm_head = register_module(
      "lm_head", Linear({.in_features = o.n_embd, .out_features = o.vocab_size, .bias = false, .dtype = o.dtype}));
  init::normal_(wte->weight, 0, 0.02);
  init::normal_(wpe->weight, 0, 0.02);
  lm_head->weight = lm_head->replace_parameter("weight", wte->weight);
}

Tensor GPTImpl::forward(const Tensor& tokens, SourceLocation where) {
  const CallScope scope(*this, where);
  if (tokens.dim() != 2 || tokens.size(1) > options.block_size) {
    throw ShapeError("GPT: expected tokens [batch, length] with a length of at most " +
                         std::to_string(options.block_size) + ", got " + describe(tokens) + " (" + to_string(where) +
                         ")",
                     where);
  }
  const Tensor positions = arange(0, static_cast<double>(tokens.size(1)), 1, {kInt64, tokens.device()});
  Tensor x = drop(add(wte(tokens, where), wpe(positions, where), where), where);
  for (GPTBlock& block : *h) {
    const auto run = [block, where](const Tensor& in) { return block(in, where); };
    x = options.checkpoint_blocks ? autograd::checkpoint(run, x, where) : run(x);
  }
  return lm_head(ln_f(x, where), where);
}

}  // namespace brigade::nn
