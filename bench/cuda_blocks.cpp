// Benchmarks network blocks on a device: forward and backward of a GPT block and of a ResNet basic block, eagerly and
// as one CUDA graph, and one step of SGD and of AdamW over the block's parameters. Each block has a compute-bound and a
// launch-bound size.
//
// A forward and backward clears the gradients of the last step, runs forward, and runs backward from a given gradient
// down to the input. Times are between events around one call (large block) or ten calls (small block), medians of
// repeats, without host synchronization in between, as in a training loop. float32 is exact; "tf32" lets matrix
// products and convolutions round to TF32; in bfloat16 the parameters and the optimizer state are bfloat16, too.
//
// Also reports the number of kernels, copies and fills in the graph; whether a replay on an input that the capture has
// not seen gives bitwise the same gradients as the eager step; and the norms of the gradients, which
// bench/cuda_blocks_torch.py compares with PyTorch's for the same parameters.
//
// Usage: bench_cuda_blocks [--json] [--smoke] [REPEATS]; --smoke fails (exit status 1) if the bits differ.
#include "cuda_timing.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/device.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <string>

using namespace brigade;

namespace {

const Device kGpu(kCUDA, 0);

// The block of GPT-2 (Radford et al., 2019), without dropout.
struct GptBlockImpl : nn::Module {
  int64_t heads;
  nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  GptBlockImpl(int64_t width, int64_t head_count) : heads(head_count) {
    norm1 = register_module("norm1", nn::LayerNorm(width));
    qkv = register_module("qkv", nn::Linear(width, 3 * width));
    out = register_module("out", nn::Linear(width, width));
    norm2 = register_module("norm2", nn::LayerNorm(width));
    up = register_module("up", nn::Linear(width, 4 * width));
    down = register_module("down", nn::Linear(4 * width, width));
  }
  // Input and result are [batch, length, width].
  Tensor forward(const Tensor& x) {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2);
    std::vector<Tensor> parts = split(qkv(norm1(x)), width, 2);
    for (Tensor& part : parts)
      part = part.reshape({batch, length, heads, width / heads}).transpose(1, 2);
    const Tensor mixed = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, true);
    const Tensor y = x + out(mixed.transpose(1, 2).reshape({batch, length, width}));
    return y + down(gelu(up(norm2(y)), GeluApproximation::Tanh));
  }
};
BRIGADE_MODULE(GptBlock);

// He, Zhang, Ren and Sun, arXiv 1512.03385; with as many output channels as input channels.
struct BasicBlockImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
  explicit BasicBlockImpl(int64_t channels) {
    const auto conv = [&] { return nn::Conv2d(channels, channels, 3, {.padding = 1, .bias = false}); };
    conv1 = register_module("conv1", conv());
    norm1 = register_module("norm1", nn::BatchNorm2d(channels));
    conv2 = register_module("conv2", conv());
    norm2 = register_module("norm2", nn::BatchNorm2d(channels));
  }
  Tensor forward(const Tensor& x) { return relu(norm2(conv2(relu(norm1(conv1(x))))) + x); }
};
BRIGADE_MODULE(BasicBlock);

struct Problem {
  const char* block;
  Shape sizes;  // of the input
  int64_t heads;
  bool small;

  nn::AnyModule make() const { return heads > 0 ? nn::AnyModule(GptBlock(sizes[2], heads)) : BasicBlock(sizes[1]); }
  std::string shape() const { return fmt::format("{}", fmt::join(sizes.begin(), sizes.end(), "x")); }
};

std::vector<Problem> problems(bool smoke) {
  if (smoke) return {{"gpt", {2, 5, 8}, 2, true}, {"resnet", {2, 4, 5, 5}, 0, true}};
  return {{"gpt", {8, 512, 768}, 12, false},
          {"gpt", {1, 64, 256}, 4, true},
          {"resnet", {32, 64, 56, 56}, 0, false},
          {"resnet", {1, 32, 14, 14}, 0, true}};
}

// Deterministic numbers within +-bound around `center`, the same here and in bench/cuda_blocks_torch.py.
Tensor numbers(const Shape& sizes, uint32_t stream, double bound, double center = 0) {
  const Tensor x = empty(sizes);
  auto* const values = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    uint32_t h = static_cast<uint32_t>(i) * 2654435761U + stream * 0x85ebca6bU;
    h = (h ^ (h >> 16)) * 0x45d9f3bU;
    h ^= h >> 16;
    values[i] = static_cast<float>(center + bound * (h / 2147483648.0 - 1));
  }
  return x;
}

// Weights in the range of PyTorch's initialization; weights of norms around 1; nonzero biases.
void set_parameters(nn::Module& block) {
  uint32_t stream = 0;
  for (const auto& [path, parameter] : block.named_parameters()) {
    const bool matrix = parameter.dim() > 1;
    const double inputs = static_cast<double>(parameter.numel() / parameter.size(0));
    kernels::copy(parameter, numbers(parameter.sizes(), stream++, matrix ? 1 / std::sqrt(inputs) : 0.1,
                                     !matrix && path.ends_with("weight") ? 1 : 0));
  }
}

struct Precision {
  const char* name;
  DType dtype;
  bool tf32;
};

struct Step {
  nn::AnyModule block;
  Tensor x, gradient;

  Step(const Problem& problem, DType dtype) : block(problem.make()) {
    set_parameters(*block);
    block->to(dtype);
    block->cuda();
    x = input(problem, dtype, 1000);
    x.requires_grad_();
    gradient = input(problem, dtype, 1001);
  }
  static Tensor input(const Problem& problem, DType dtype, uint32_t stream) {
    return numbers(problem.sizes, stream, 2).to(dtype).to(kGpu);
  }
  void operator()() const {
    block->zero_grad();
    x.set_grad({});
    block(x).backward({.gradient = gradient});
  }
  // CPU copies of the gradients: of the input, then of the parameters in order.
  std::vector<Tensor> gradients() const {
    std::vector<Tensor> all{kernels::contiguous(x.grad()).cpu()};
    for (const Tensor& parameter : block->parameters())
      all.push_back(kernels::contiguous(parameter.grad()).cpu());
    return all;
  }
};

std::vector<double> norms(const std::vector<Tensor>& tensors) {
  std::vector<double> result;
  for (const Tensor& tensor : tensors) {
    double sum = 0;
    for (const double value : tensor.to_vector<double>())
      sum += value * value;
    result.push_back(std::sqrt(sum));
  }
  return result;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (size_t i = 0; same && i < a.size(); ++i)
    same = a[i].nbytes() == b[i].nbytes() && std::memcmp(a[i].raw_data(), b[i].raw_data(), a[i].nbytes()) == 0;
  return same;
}

struct Row {
  std::string block, shape, precision;
  bool small;
  size_t nodes;         // of the graph
  bool same_gradients;  // step and replay agree bitwise
  std::vector<double> norms;
  std::vector<std::pair<std::string, bench::Times>> times;
};

Row measure(const Problem& problem, const Precision& precision, const bench::Timing& timing) {
  cuda::set_allow_tf32(precision.tf32);
  Row row{problem.block, problem.shape(), precision.name, problem.small, 0, false, {}, {}};
  const auto add = [&](const char* what, const std::function<void()>& call) {
    row.times.emplace_back(what, bench::device_times(call, timing));
  };
  const Step step(problem, precision.dtype);
  step();
  row.norms = norms(step.gradients());
  add("eager", step);

  cuda::Graph graph;
  graph.capture(step);
  row.nodes = graph.nodes();
  kernels::copy(step.x, Step::input(problem, precision.dtype, 1002));
  graph.replay();
  const std::vector<Tensor> replayed = step.gradients();
  add("graph", [&] { graph.replay(); });
  step();
  row.same_gradients = same_bits(replayed, step.gradients());

  if (precision.tf32) return row;  // the optimizer steps do not depend on it
  optim::SGD sgd(step.block->parameters(), {.lr = 1e-4, .momentum = 0.9});
  add("sgd", [&] { sgd.step(); });
  optim::AdamW adamw(step.block->parameters(), {.lr = 1e-4});
  add("adamw", [&] { adamw.step(); });
  return row;
}

void print_table(const std::vector<Row>& rows) {
  fmt::print("| block | input | dtype | what | µs [least] |\n|---|---|---|---|---|\n");
  for (const Row& row : rows) {
    for (const auto& [what, times] : row.times) {
      const std::string name = what == "graph" ? fmt::format("graph of {}", row.nodes) : what;
      fmt::print("| {} | {} | {} | {} | {:.1f} [{:.1f}] |\n", row.block, row.shape, row.precision, name, times.median,
                 times.least);
    }
  }
}

void print_json(const std::vector<Row>& rows) {
  fmt::print("[\n");
  for (const Row& row : rows) {
    fmt::print(R"(  {{"block": "{}", "shape": "{}", "dtype": "{}", "small": {}, "nodes": {}, "same_gradients": {},)",
               row.block, row.shape, row.precision, row.small, row.nodes, row.same_gradients);
    fmt::print("\n   \"norms\": [{:.9e}],\n   ", fmt::join(row.norms, ", "));
    for (const auto& [what, times] : row.times)
      fmt::print(R"("{}": {{"us": {:.3f}, "least_us": {:.3f}}}{})", what, times.median, times.least,
                 what == row.times.back().first ? "" : ", ");
    fmt::print("}}{}\n", &row == &rows.back() ? "" : ",");
  }
  fmt::print("]\n");
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments arguments(argc, argv, 20);
  if (cuda::device_count() == 0) {
    fmt::print(stderr, "bench_cuda_blocks: {}\n", cuda::why_not_available());
    return 77;
  }
  bench::Timing timing{.repeats = arguments.repeats, .warm_up_ms = 100};
  if (arguments.smoke) timing = {.repeats = 1, .warm_up = 1};
  std::vector<Row> rows;
  for (const Problem& problem : problems(arguments.smoke)) {
    if (!arguments.smoke) timing.calls = problem.small ? 10 : 1;
    for (const Precision& precision :
         {Precision{"float32", kFloat32, false}, {"tf32", kFloat32, true}, {"bfloat16", kBFloat16, false}})
      rows.push_back(measure(problem, precision, timing));
  }
  if (arguments.json) {
    print_json(rows);
  } else {
    fmt::print("{}, medians of {}\n\n", cuda::properties(0).name, arguments.repeats);
    print_table(rows);
  }
  bool same = true;
  for (const Row& row : rows) {
    same = same && row.same_gradients;
    if (!row.same_gradients)
      fmt::print(stderr, "{} {} {}: a replay's gradients are not those of the step\n", row.block, row.shape,
                 row.precision);
  }
  return arguments.smoke && !same ? 1 : 0;
}
