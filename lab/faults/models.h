// Modules and steps that several faults share.
#pragma once

#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

namespace brigade::lab {

// Two layers, a and b, without bias.
struct PairImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  PairImpl() {
    a = register_module("a", nn::Linear(4, 4, false));
    b = register_module("b", nn::Linear(4, 4, false));
  }
};

// The two in a chain; b may be left out.
struct ChainImpl : PairImpl {
  bool skip_b = false;
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const Tensor features = relu(a(x, where), where);
    return skip_b ? features : b(features, where);
  }
};
BRIGADE_MODULE(Chain);

// A trunk with two heads.
struct HeadsImpl : nn::Module {
  nn::Linear t{nullptr}, h1{nullptr}, h2{nullptr};
  HeadsImpl() {
    t = register_module("t", nn::Linear(4, 4, false));
    h1 = register_module("h1", nn::Linear(4, 4, false));
    h2 = register_module("h2", nn::Linear(4, 4, false));
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    const Tensor features = brigade::tanh(t(x, where), where);
    return {h1(features, where), h2(features, where)};
  }
};
BRIGADE_MODULE(Heads);

// A generator and a discriminator under one root.
struct GanImpl : nn::Module {
  nn::Linear generator{nullptr}, discriminator{nullptr};
  GanImpl() {
    generator = register_module("generator", nn::Linear(4, 4, false));
    discriminator = register_module("discriminator", nn::Linear(4, 1, false));
  }
};

// Both in one forward; the generator is left out of backward where its result is detached.
struct OneGanImpl : GanImpl {
  Tensor forward(const Tensor& noise, bool detach) {
    const Tensor fake = brigade::tanh(generator(noise));
    return discriminator(detach ? fake.detach() : fake);
  }
};
BRIGADE_MODULE(OneGan);

// A layer and a batch norm.
struct NormedImpl : nn::Module {
  nn::Linear layer{nullptr};
  nn::BatchNorm1d norm{nullptr};
  NormedImpl() {
    layer = register_module("layer", nn::Linear(4, 4, false));
    norm = register_module("norm", nn::BatchNorm1d(4));
  }
  Tensor forward(const Tensor& x, SourceLocation where = SourceLocation::current()) {
    return norm(layer(x, where), where);
  }
};
BRIGADE_MODULE(Normed);

// A layer whose inputs are divided by a buffer.
struct ScaledInputsImpl : nn::Module {
  nn::Linear layer{nullptr};
  Tensor spread;
  ScaledInputsImpl() {
    layer = register_module("layer", nn::Linear(4, 4, false));
    spread = register_buffer("spread", ones({4}));
  }
  Tensor forward(const Tensor& x) { return layer(x / spread); }
};
BRIGADE_MODULE(ScaledInputs);

// A frozen teacher beside a student.
struct DistillationImpl : nn::Module {
  nn::Linear teacher{nullptr}, student{nullptr};
  explicit DistillationImpl(bool frozen = true) {
    teacher = register_module("teacher", nn::Linear(4, 4, false));
    student = register_module("student", nn::Linear(4, 4, false));
    teacher->requires_grad_(!frozen);
  }
  Tensor forward(const Tensor& x) { return mean(square(student(x) - teacher(x))); }
};
BRIGADE_MODULE(Distillation);

// A batch [rows, 4] that differs between ranks.
inline Tensor rank_batch(const FaultContext& context, int64_t rows = 8) {
  RandomGenerator generator(100 + static_cast<uint64_t>(context.rank()));
  return randn({rows, 4}, {kFloat32, context.device}, &generator);
}

inline Tensor loss_of(const Tensor& output, SourceLocation where = SourceLocation::current()) {
  return square(output, where).mean(where);
}

inline Tensor real_or_fake(const Tensor& opinion, bool real, SourceLocation where = SourceLocation::current()) {
  return binary_cross_entropy_with_logits(opinion, real ? ones_like(opinion) : zeros_like(opinion), Reduction::Mean,
                                          where);
}

// One optimizer step of plain SGD; gradients are cleared after it.
inline void sgd_step(const std::vector<Tensor>& parameters, SourceLocation where = SourceLocation::current()) {
  optim::SGD optimizer(parameters, {.lr = 0.1});
  optimizer.step(where);
  optimizer.zero_grad(true, where);
}

}  // namespace brigade::lab
