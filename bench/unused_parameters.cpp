// What find_unused_parameters=true costs: two ranks (threads), the same model wrapped strictly and with detection,
// steps interleaved in one run; and the same with every tenth layer left out, against a strict wrapper of a model in
// which these layers are frozen.
//
// Printed: step times, the ratio (median of the ratios of neighbouring steps) with its noise (the same ratio between
// two strict wrappers), and the collectives per step of each, which are exact. Usage: bench_unused_parameters [layers]
// [width] [steps]
#include <brigade/autograd/functional.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/launch/launcher.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

using namespace brigade;

namespace {

struct ChainImpl : nn::Module {
  nn::ModuleList<nn::Linear> layers;
  ChainImpl(int count, int64_t width) {
    register_module("layers", layers);
    for (int i = 0; i < count; ++i)
      layers->push_back(nn::Linear(width, width));
  }
  bool skip_tenth = false;
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const int layers = argc > 1 ? std::atoi(argv[1]) : 100;
  const int64_t width = argc > 2 ? std::atoi(argv[2]) : 32;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 400;
  dist::run_threads(2, [&](dist::ProcessGroupPtr group) {
    using Clock = std::chrono::steady_clock;
    struct Way {
      const char* name;
      Chain net;
      std::unique_ptr<dist::DistributedDataParallel<Chain>> ddp;
      std::vector<double> ms;
    };
    std::vector<Way> ways;
    for (const char* name : {"strict", "find_unused", "strict again", "10 % unused", "10 % frozen"}) {
      manual_seed(1);
      Chain net(layers, width);
      net->skip_tenth = name[0] == '1';
      for (size_t i = 9; std::string(name) == "10 % frozen" && i < net->layers->size(); i += 10)
        (*net->layers)[i]->requires_grad_(false);
      auto ddp = std::make_unique<dist::DistributedDataParallel<Chain>>(
          net, group,
          dist::DDPOptions{.find_unused_parameters =
                               std::string(name) == "find_unused" || std::string(name) == "10 % unused"});
      ways.push_back({name, net, std::move(ddp), {}});
    }
    Generator generator(static_cast<uint64_t>(group->rank()));
    const Tensor x = randn({16, width}, kFloat32, &generator);
    for (int step = -20; step < steps; ++step) {
      // The order turns, so that no way always comes first.
      for (size_t k = 0; k < ways.size(); ++k) {
        Way& way = ways[(k + static_cast<size_t>(step + 20)) % ways.size()];
        way.net->zero_grad();
        group->barrier();
        const auto begin = Clock::now();
        mean(square((*way.ddp)(x))).backward();
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        if (step >= 0) way.ms.push_back(ms);
      }
    }
    if (group->rank() != 0) return;
    fmt::print("{} layers of {} x {}, {} parameters, {} steps of each way, interleaved; rank 0 of 2\n", layers, width,
               width, 2 * layers, steps);
    for (Way& way : ways) {
      fmt::print(
          "{:>14}: {:.3f} ms median, {:.3f} min; collectives per step {:.2f}\n", way.name, median(way.ms),
          *std::min_element(way.ms.begin(), way.ms.end()),
          static_cast<double>(way.ddp->reducer().collectives()) / static_cast<double>(way.ddp->reducer().rounds()));
    }
    const auto ratios = [&](size_t a, size_t b) {
      std::vector<double> result;
      for (size_t i = 0; i < ways[a].ms.size(); ++i)
        result.push_back(ways[a].ms[i] / ways[b].ms[i]);
      return result;
    };
    const auto cost = ratios(1, 0);
    const auto noise = ratios(2, 0);
    const auto unused = ratios(3, 4);
    fmt::print("find_unused / strict : {:.3f}  (middle half of the steps {:.3f} - {:.3f})\n", median(cost),
               quantile(cost, 0.25), quantile(cost, 0.75));
    fmt::print("strict / strict      : {:.3f}  (middle half of the steps {:.3f} - {:.3f}): the noise\n", median(noise),
               quantile(noise, 0.25), quantile(noise, 0.75));
    fmt::print("10 % unused / frozen : {:.3f}  (middle half of the steps {:.3f} - {:.3f})\n", median(unused),
               quantile(unused, 0.25), quantile(unused, 0.75));
  });
}
