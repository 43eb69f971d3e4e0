// brigade bench unused: the cost of find_unused_parameters=true. Compares the same model wrapped strictly and with
// detection; and the model with every tenth layer skipped against static_graph (which knows the unused set and does
// not search) and against a strict wrapper with these layers frozen (and not sent). "strict again" shows the noise.
#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/bench/steps.h>
#include <brigade/nn/nn.h>

namespace brigade::lab::bench {
namespace {

struct ChainImpl : nn::Module {
  nn::ModuleList<nn::Linear> layers;
  bool skip_tenth = false;
  ChainImpl(int count, int64_t width) {
    register_module("layers", layers);
    for (int i = 0; i < count; ++i)
      layers->push_back(nn::Linear(width, width));
  }
  Tensor forward(Tensor x) {
    int number = 0;
    for (nn::Linear& layer : *layers) {
      if (skip_tenth && ++number % 10 == 0) continue;
      x = brigade::tanh(layer(x));
    }
    return x;
  }
};
BRIGADE_MODULE(Chain);

std::vector<Way> ways_of(const dist::ProcessGroupPtr& group, const StepsOptions& options) {
  RandomGenerator generator(static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({16, options.width}, kFloat32, &generator);
  std::vector<Way> ways;
  const auto add = [&](const std::string& name, const dist::DDPOptions& ddp_options, bool skip_tenth,
                       bool freeze_tenth) {
    manual_seed(1);
    Chain net(options.layers, options.width);
    net->skip_tenth = skip_tenth;
    for (size_t i = 9; freeze_tenth && i < net->layers->size(); i += 10)
      (*net->layers)[i]->requires_grad_(false);
    auto ddp = std::make_shared<dist::DistributedDataParallel<Chain>>(net, group, ddp_options);
    auto* raw = ddp.get();
    ways.push_back({.name = name, .owns = std::move(ddp), .step = [raw, x] {
                      raw->module()->zero_grad();
                      mean(square((*raw)(x))).backward();
                    }});
    return ways.size() - 1;
  };
  const dist::DDPOptions detecting{.find_unused_parameters = true};
  const size_t strict = add("strict", {}, false, false);
  const size_t finds = add("find_unused", detecting, false, false);
  const size_t again = add("strict again", {}, false, false);
  const size_t unused = add("10 % unused", detecting, true, false);
  const size_t known = add("10 % static", {.static_graph = true}, true, false);
  const size_t frozen = add("10 % frozen", {}, true, true);
  ways[finds].compared_with = ways[again].compared_with = {strict};
  ways[unused].compared_with = {known, frozen};
  return ways;
}

const AddStepsBenchmark add({.name = "unused",
                             .about = "What find_unused_parameters costs, beside strict mode and static_graph",
                             .footer = "Every tenth layer is left out in \"10 % unused\".",
                             .usual = {.layers = 100, .width = 32},
                             .steps = 400,
                             .least_layers = 10,
                             .warm_up = 20,
                             .ways = &ways_of});

}  // namespace
}  // namespace brigade::lab::bench
