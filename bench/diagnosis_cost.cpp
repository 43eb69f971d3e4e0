// What the diagnosis costs when nothing is wrong: two ranks (threads), a transformer-like model (attention and MLP
// blocks with residuals), wrapped with DDPOptions::diagnosis on and off, steps interleaved in one run.
//
// On: the tape records every operation, each gradient is measured before it is sent, steps are agreed on. Printed: step
// times, the ratio (median of the ratios of neighbouring steps) with its noise (the same between two wrappers with it
// off). Usage: bench_diagnosis_cost [blocks] [width] [steps]
#include <brigade/autograd/functional.h>
#include <brigade/autograd/tape.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/launch/launcher.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

using namespace brigade;

namespace {

struct BlockImpl : nn::Module {
  int64_t heads, width;
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  BlockImpl(int64_t w, int64_t h) : heads(h), width(w) {
    qkv = register_module("qkv", nn::Linear(w, 3 * w));
    out = register_module("out", nn::Linear(w, w));
    up = register_module("up", nn::Linear(w, 4 * w));
    down = register_module("down", nn::Linear(4 * w, w));
  }
  Tensor forward(const Tensor& x) {
    const int64_t batch = x.size(0);
    const int64_t length = x.size(1);
    const int64_t each = width / heads;
    const Tensor all = qkv(x);
    const auto part = [&](int64_t i) {
      return all.narrow(2, i * width, width)
          .reshape({batch, length, heads, each})
          .permute({0, 2, 1, 3})
          .reshape({batch * heads, length, each});
    };
    const Tensor scores =
        softmax(bmm(part(0), part(1).transpose(1, 2)) * (1 / std::sqrt(static_cast<double>(each))), -1);
    const Tensor mixed = bmm(scores, part(2))
                             .reshape({batch, heads, length, each})
                             .permute({0, 2, 1, 3})
                             .reshape({batch, length, width});
    const Tensor y = x + out(mixed);
    return y + down(gelu(up(y)));
  }
};
BRIGADE_MODULE(Block);

struct TransformerImpl : nn::Module {
  nn::ModuleList<Block> blocks;
  TransformerImpl(int count, int64_t width) {
    register_module("blocks", blocks);
    for (int i = 0; i < count; ++i)
      blocks->push_back(Block(width, 4));
  }
  Tensor forward(Tensor x) {
    for (Block& block : *blocks)
      x = block(x);
    return x;
  }
};
BRIGADE_MODULE(Transformer);

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 4;
  const int64_t width = argc > 2 ? std::atoi(argv[2]) : 256;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 60;
  dist::run_threads(2, [&](dist::ProcessGroupPtr group) {
    using Clock = std::chrono::steady_clock;
    struct Way {
      const char* name;
      bool diagnosis;
      Transformer net;
      std::unique_ptr<dist::DistributedDataParallel<Transformer>> ddp;
      std::unique_ptr<optim::SGD> optimizer;
      std::vector<double> ms;
    };
    std::vector<Way> ways;
    for (const char* name : {"off", "on", "off again"}) {
      manual_seed(1);
      const bool diagnosis = std::string(name) == "on";
      Transformer net(blocks, width);
      auto ddp = std::make_unique<dist::DistributedDataParallel<Transformer>>(
          net, group, dist::DDPOptions{.diagnosis = diagnosis, .check_steps = diagnosis});
      auto optimizer = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 1e-4});
      ways.push_back({name, diagnosis, net, std::move(ddp), std::move(optimizer), {}});
    }
    Generator generator(static_cast<uint64_t>(group->rank()));
    const Tensor x = randn({4, 64, width}, kFloat32, &generator);
    for (int step = -6; step < steps; ++step) {
      for (size_t k = 0; k < ways.size(); ++k) {
        Way& way = ways[(k + static_cast<size_t>(step + 6)) % ways.size()];
        way.optimizer->zero_grad();
        // The tape belongs to the thread: without diagnosis it must not run.
        std::optional<autograd::Tape::Pause> pause;
        if (!way.diagnosis) pause.emplace();
        group->barrier();
        const auto begin = Clock::now();
        mean(square((*way.ddp)(x))).backward();
        way.optimizer->step();
        const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        if (step >= 0) way.ms.push_back(ms);
      }
    }
    if (group->rank() != 0) return;
    fmt::print("{} blocks of width {}, {} steps of each way, interleaved; rank 0 of 2\n", blocks, width, steps);
    for (const Way& way : ways) {
      fmt::print("{:>10}: {:.3f} ms median, {:.3f} min\n", way.name, quantile(way.ms, 0.5), quantile(way.ms, 0));
    }
    const auto print_ratio = [&](const char* what, size_t a, size_t b) {
      std::vector<double> ratios;
      for (size_t i = 0; i < ways[a].ms.size(); ++i)
        ratios.push_back(ways[a].ms[i] / ways[b].ms[i]);
      fmt::print("{:<10}: {:.3f}  (middle half {:.3f} - {:.3f}); of the minima {:.3f}\n", what, quantile(ratios, 0.5),
                 quantile(ratios, 0.25), quantile(ratios, 0.75), quantile(ways[a].ms, 0) / quantile(ways[b].ms, 0));
    };
    print_ratio("on / off", 1, 0);
    print_ratio("off / off", 2, 0);
  });
}
