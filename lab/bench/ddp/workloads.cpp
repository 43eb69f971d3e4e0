// The networks, their batches and losses.
#include <brigade/lab/bench/ddp/workloads.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/error.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/resnet18.h>

#include <algorithm>
#include <utility>

namespace brigade::lab::bench {

void NetworkImpl::add_unused_tenth() {
  const std::vector<Tensor> used = parameters();
  int64_t numel = 0;
  for (const Tensor& parameter : used)
    numel += parameter.numel();
  const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(used.size()) / 10);
  unused = register_module("unused", nn::ParameterList());
  for (int64_t i = 0; i < count; ++i)
    unused->push_back(zeros({std::max<int64_t>(1, numel / 10 / count)}));
}

namespace {

// Wraps a module as a Network.
template <class H>
Network over(H module) {
  Network network;
  H net = network->inner(std::move(module));
  network->run = [net](const Tensor& x) mutable { return net(x); };
  return network;
}

Network mlp() {
  return over(
      nn::Sequential(nn::Linear(784, 1024), nn::ReLU(), nn::Linear(1024, 1024), nn::ReLU(), nn::Linear(1024, 10)));
}

Network cnn() {
  return over(nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),
                             nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(), nn::Linear(128, 10)));
}

struct EncoderImpl : nn::Module {
  nn::Embedding embed{nullptr};
  nn::TransformerEncoder encoder{nullptr};
  nn::Linear head{nullptr};
  EncoderImpl(int64_t vocabulary, int64_t width, int64_t depth, int64_t heads) {
    embed = register_module("embed", nn::Embedding(vocabulary, width));
    const nn::TransformerEncoderLayerOptions layer{.d_model = width,
                                                   .nhead = heads,
                                                   .dim_feedforward = 4 * width,
                                                   .dropout = 0,
                                                   .activation = nn::TransformerActivation::GELU,
                                                   .batch_first = true,
                                                   .norm_first = true};
    encoder = register_module("encoder", nn::TransformerEncoder(layer, depth, true));
    head = register_module("head", nn::Linear(width, vocabulary));
  }
  Tensor forward(const Tensor& tokens) { return head(encoder(embed(tokens))); }
};
BRIGADE_MODULE(Encoder);

struct ManyImpl : nn::Module {
  nn::ModuleList<nn::Linear> layers;
  ManyImpl(int count, int64_t width) {
    register_module("layers", layers);
    for (int i = 0; i < count; ++i)
      layers->push_back(nn::Linear(width, width));
  }
  Tensor forward(Tensor x) {
    for (nn::Linear& layer : *layers)
      x = x + relu(layer(x)) * 0.1;
    return x;
  }
};
BRIGADE_MODULE(Many);

Network gpt() { return over(nn::GPT({.vocab_size = 65, .block_size = 128, .n_layer = 6, .n_head = 6, .n_embd = 384})); }

std::function<Batch(uint64_t)> images(Shape shape, int64_t classes) {
  return [shape = std::move(shape), classes](uint64_t seed) {
    RandomGenerator generator(seed);
    const Tensor x = randn(shape, kFloat32, &generator);
    return Batch{x, randint(0, classes, {shape[0]}, {kInt64}, &generator)};
  };
}

std::function<Batch(uint64_t)> tokens(int64_t vocabulary, int64_t batch, int64_t length) {
  return [=](uint64_t seed) {
    RandomGenerator generator(seed);
    const Tensor all = randint(0, vocabulary, {batch, length + 1}, {kInt64}, &generator);
    return Batch{all.narrow(1, 0, length).contiguous(), all.narrow(1, 1, length).contiguous()};
  };
}

std::function<Batch(uint64_t)> vectors(int64_t batch, int64_t width) {
  return [=](uint64_t seed) {
    RandomGenerator generator(seed);
    const Tensor x = randn({batch, width}, kFloat32, &generator);
    return Batch{x, randn({batch, width}, kFloat32, &generator)};
  };
}

// Cross-entropy over classes, for one label per row or one per position.
Tensor classes_loss(const Tensor& y, const Tensor& target) {
  return cross_entropy(y.reshape({-1, y.size(-1)}), target.flatten());
}
Tensor squares_loss(const Tensor& y, const Tensor& target) { return mse_loss(y, target); }

const std::vector<Workload>& all() {
  static const std::vector<Workload> workloads{
      {"mlp", "784-1024-1024-10, batch 64", &mlp, images({64, 784}, 10), &classes_loss},
      {"cnn", "convolutions 1-32-64 of 3 x 3, 9216-128-10, batch 64 of 28 x 28", &cnn, images({64, 1, 28, 28}, 10),
       &classes_loss},
      {"transformer", "4 encoder layers of width 256, 1,000 words, batch 8 of 128",
       [] { return over(Encoder(1000, 256, 4, 4)); }, tokens(1000, 8, 128), &classes_loss},
      {"many", "200 residual layers of width 64, batch 32", [] { return over(Many(200, 64)); }, vectors(32, 64),
       &squares_loss},
      {"big", "one matrix of 64 MiB, batch 16", [] { return over(nn::Linear(4096, 4096, false)); }, vectors(16, 4096),
       &squares_loss},
      {"resnet18", "ResNet-18 for 1,000 classes, batch 4 of 64 x 64", [] { return over(ResNet18(ResNet18Options{})); },
       images({4, 3, 64, 64}, 1000), &classes_loss},
      {"gpt", "GPT, 6 blocks of width 384, 65 characters, batch 2 of 128", &gpt, tokens(65, 2, 128), &classes_loss},
  };
  return workloads;
}

}  // namespace

std::span<const Workload> workloads() { return all(); }

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const Workload& each : all())
    names.push_back(each.name);
  return names;
}

const Workload& find_workload(const std::string& name) {
  for (const Workload& each : all()) {
    if (each.name == name) return each;
  }
  std::string known;
  for (const Workload& each : all())
    known += (known.empty() ? "" : ", ") + each.name;
  throw ValueError("unknown model '{}'; known are {}", name, known);
}

}  // namespace brigade::lab::bench
