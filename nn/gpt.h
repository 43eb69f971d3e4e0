// A small GPT (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): pre-norm blocks, learned
// positions, and a head that shares its weight with the token embedding.
#pragma once

#include <brigade/nn/activation.h>
#include <brigade/nn/container.h>
#include <brigade/nn/layer_norm.h>
#include <brigade/nn/linear.h>

namespace brigade::nn {

struct GPTOptions {
  int64_t vocab_size = 50257;
  int64_t block_size = 1024;  // the longest sequence
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  double dropout = 0;
  bool bias = true;  // in Linears and LayerNorms
  // Keep only the inputs of the blocks, and run each block again in backward (autograd/checkpoint.h).
  bool checkpoint_blocks = false;
  DType dtype = DType::Float32;
};

// x + c_proj(causal attention(c_attn(ln_1(x)))), then x + mlp_proj(gelu(mlp_fc(ln_2(x)))) with the tanh approximation
// of GELU. [batch, length, n_embd] -> the same. Throws ValueError if n_head does not divide n_embd.
struct GPTBlockImpl : Module {
  explicit GPTBlockImpl(const GPTOptions& options);
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current());

  GPTOptions options;
  LayerNorm ln_1{nullptr}, ln_2{nullptr};
  Linear c_attn{nullptr}, c_proj{nullptr}, mlp_fc{nullptr}, mlp_proj{nullptr};
  Dropout resid_dropout{nullptr};
};
BRIGADE_MODULE(GPTBlock);

// Tokens int64 [batch, length] -> logits [batch, length, vocab_size]. Children: wte (tokens), wpe
// (positions), drop, h (blocks), ln_f, lm_head, whose weight is wte's. Weights start normal with
// deviation 0.02, those of projections into the residual stream divided by sqrt(2 n_layer); biases
// at 0. Throws ShapeError for a sequence longer than block_size.
struct GPTImpl : Module {
  using Options = GPTOptions;
  explicit GPTImpl(const GPTOptions& options);
  Tensor forward(const Tensor& tokens, SourceLocation where = SourceLocation::current());

  GPTOptions options;
  Embedding wte{nullptr}, wpe{nullptr};
  Dropout drop{nullptr};
  ModuleList<GPTBlock> h{nullptr};
  LayerNorm ln_f{nullptr};
  Linear lm_head{nullptr};
};

//   nn::GPT model({.vocab_size = 256, .block_size = 64, .n_layer = 2, .n_head = 4, .n_embd = 64});
BRIGADE_MODULE(GPT);

}  // namespace brigade::nn
