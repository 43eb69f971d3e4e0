// brigade bench diagnosis: the cost of the diagnosis when nothing is wrong: a transformer wrapped with
// DDPOptions::diagnosis on (the tape records every operation, each gradient is measured before it is sent, ranks
// agree on steps) and off. "off again" shows the noise.
#include <brigade/autograd/tape.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/bench/steps.h>
#include <brigade/lab/bench/transformer.h>
#include <brigade/optim/optim.h>

#include <optional>

namespace brigade::lab::bench {
namespace {

Way way(const std::string& name, const dist::ProcessGroupPtr& group, const StepsOptions& options, bool diagnosis,
        const Tensor& x) {
  struct Setup {
    Transformer net;
    dist::DistributedDataParallel<Transformer> ddp;
    optim::SGD optimizer;
  };
  manual_seed(1);
  const Transformer net(options.layers, options.width);
  auto setup = std::shared_ptr<Setup>(new Setup{
      net, {net, group, {.diagnosis = diagnosis, .check_steps = diagnosis}}, {net->parameters(), {.lr = 1e-4}}});
  Setup* raw = setup.get();
  return {.name = name, .owns = std::move(setup), .step = [raw, diagnosis, x] {
            raw->optimizer.zero_grad();
            // The tape belongs to the thread; it must not run without diagnosis.
            std::optional<autograd::Tape::Pause> pause;
            if (!diagnosis) pause.emplace();
            mean(square(raw->ddp(x))).backward();
            raw->optimizer.step();
          }};
}

std::vector<Way> ways_of(const dist::ProcessGroupPtr& group, const StepsOptions& options) {
  RandomGenerator generator(static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({4, 64, options.width}, kFloat32, &generator);
  std::vector<Way> ways;
  ways.push_back(way("off", group, options, false, x));
  ways.push_back(way("on", group, options, true, x));
  ways.push_back(way("off again", group, options, false, x));
  ways[1].compared_with = ways[2].compared_with = {0};
  return ways;
}

const AddStepsBenchmark add({.name = "diagnosis",
                             .about = "What the diagnosis costs when nothing is wrong",
                             .footer = "Blocks of a transformer with four heads: the width is a multiple of 4.",
                             .usual = {.layers = 4, .width = 256},
                             .steps = 60,
                             .width_multiple_of = 4,
                             .ways = &ways_of});

}  // namespace
}  // namespace brigade::lab::bench
