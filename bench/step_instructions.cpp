// Runs training steps of 52 small layers with and without a wrapper, for scripts/count-instructions.py, which counts
// instructions with callgrind.
//
//   bench_step_instructions WRAPPER STEPS     alone | off | on: no wrapper, one without diagnosis and checks, one with both
#include "number_in.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/sgd.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

using namespace brigade;

namespace {

// 104 parameters, 15 KB.
struct NetImpl : nn::Module {
  NetImpl() {
    layers.push_back(register_module("first", nn::Linear(5, 8)));
    for (int i = 0; i < 50; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), nn::Linear(8, 8)));
    layers.push_back(register_module("last", nn::Linear(8, 1)));
  }
  Tensor forward(const Tensor& x) {
    Tensor h = relu(layers.front()(x));
    for (size_t i = 1; i + 1 < layers.size(); ++i)
      h = h + relu(layers[i](h)) * 0.05;
    return layers.back()(h);
  }
  std::vector<nn::Linear> layers;
};
BRIGADE_MODULE(Net);

int usage(std::FILE* out, const char* program, int status) {
  std::fprintf(
      out,
      "usage: %s alone|off|on STEPS\n"
      "Runs STEPS training steps of 104 parameters: without a wrapper, or in a DDP wrapper without or with diagnosis "
      "and checks.\n"
      "Example:\n  valgrind --tool=callgrind %s off 10\n",
      program, program);
  return status;
}

void train(const dist::ProcessGroupPtr& group, const std::string& wrapper, int steps) {
  manual_seed(1);
  Net net;
  std::optional<dist::DistributedDataParallel<Net>> ddp;
  const bool on = wrapper == "on";
  // Several buckets, as large models have.
  if (wrapper != "alone")
    ddp.emplace(net, group,
                dist::DDPOptions{.bucket_cap_mb = 0.004, .first_bucket_mb = 0.001, .diagnosis = on, .check_steps = on});
  optim::SGD optimizer(net->parameters(), {.lr = 0.01, .momentum = 0.9});
  const Tensor x = randn({8, 5});
  const Tensor target = x.sum({1}, true) * 0.3;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    mse_loss(ddp ? (*ddp)(x) : net(x), target).backward();
    optimizer.step();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (argv[1] == std::string("--help") || argv[1] == std::string("-h"))) return usage(stdout, argv[0], 0);
  if (argc != 3) return usage(stderr, argv[0], 2);
  const std::string wrapper = argv[1];
  const int steps = number_in(argv[2]);
  if ((wrapper != "alone" && wrapper != "off" && wrapper != "on") || steps == 0) return usage(stderr, argv[0], 2);
  dist::run_threads(1, [&](const dist::ProcessGroupPtr& group) { train(group, wrapper, steps); });
}
