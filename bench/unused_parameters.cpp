// What find_unused_parameters=true costs: two ranks (threads), the same model wrapped strictly and with detection,
// steps interleaved in one run; and the same with every tenth layer left out, against static_graph (which knows the set
// and looks for nothing) and against a strict wrapper of a model in which these layers are frozen (and not sent).
//
// Printed: step times, the ratio (median of the ratios of neighbouring steps) with its noise (the same ratio between
// two strict wrappers), and the collectives per step of each, which are exact. Usage: bench_unused_parameters [layers]
// [width] [steps]
#include "interleaved.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/launch/launcher.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <fmt/format.h>

#include <cstdlib>

using namespace brigade;

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

}  // namespace

int main(int argc, char** argv) {
  const int layers = argc > 1 ? std::atoi(argv[1]) : 100;
  const int64_t width = argc > 2 ? std::atoi(argv[2]) : 32;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 400;
  dist::run_threads(2, [&](dist::ProcessGroupPtr group) {
    Generator generator(static_cast<uint64_t>(group->rank()));
    const Tensor x = randn({16, width}, kFloat32, &generator);
    std::vector<bench::Way> ways;
    const auto add = [&](const std::string& name, const dist::DDPOptions& options, bool skip_tenth, bool freeze_tenth) {
      manual_seed(1);
      Chain net(layers, width);
      net->skip_tenth = skip_tenth;
      for (size_t i = 9; freeze_tenth && i < net->layers->size(); i += 10)
        (*net->layers)[i]->requires_grad_(false);
      auto ddp = std::make_shared<dist::DistributedDataParallel<Chain>>(net, group, options);
      auto* raw = ddp.get();
      ways.push_back({.name = name, .owns = std::move(ddp), .step = [raw, x] {
                        raw->module()->zero_grad();
                        mean(square((*raw)(x))).backward();
                      }});
    };
    const dist::DDPOptions detecting{.find_unused_parameters = true};
    add("strict", {}, false, false);
    add("find_unused", detecting, false, false);
    add("strict again", {}, false, false);
    add("10 % unused", detecting, true, false);
    add("10 % static", {.static_graph = true}, true, false);
    add("10 % frozen", {}, true, true);
    bench::interleave(*group, ways, 20, steps);
    if (group->rank() != 0) return;
    fmt::print("{} layers of {} x {}, {} parameters, {} steps of each way, interleaved; rank 0 of 2\n", layers, width,
               width, 2 * layers, steps);
    for (const bench::Way& way : ways)
      fmt::print("{:>14}: {:.3f} ms median, {:.3f} min; collectives per step {:.2f}\n", way.name,
                 bench::quantile(way.ms, 0.5), bench::quantile(way.ms, 0),
                 static_cast<double>(way.collectives) / static_cast<double>(steps));
    bench::print_ratio("find_unused / strict", ways[1], ways[0]);
    bench::print_ratio("strict / strict (noise)", ways[2], ways[0]);
    bench::print_ratio("10 % unused / static", ways[3], ways[4]);
    bench::print_ratio("10 % unused / frozen", ways[3], ways[5]);
  });
}
