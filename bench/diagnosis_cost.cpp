// What the diagnosis costs when nothing is wrong: two ranks (threads), a transformer wrapped with
// DDPOptions::diagnosis on and off, steps interleaved in one run.
//
// On: the tape records every operation, each gradient is measured before it is sent, steps are agreed on. Printed: step
// times, the ratio (median of the ratios of neighbouring steps) with its noise (the same between two wrappers with it
// off). Usage: bench_diagnosis_cost [blocks] [width] [steps]
#include "interleaved.h"
#include "transformer.h"

#include <brigade/autograd/tape.h>
#include <brigade/dist/distributed_data_parallel.h>
#include <brigade/dist/launch/launcher.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

using namespace brigade;

namespace {

bench::Way way(const std::string& name, const dist::ProcessGroupPtr& group, int blocks, int64_t width, bool diagnosis,
               const Tensor& x) {
  struct Setup {
    bench::Transformer net;
    dist::DistributedDataParallel<bench::Transformer> ddp;
    optim::SGD optimizer;
  };
  manual_seed(1);
  const bench::Transformer net(blocks, width);
  auto setup = std::shared_ptr<Setup>(new Setup{
      net, {net, group, {.diagnosis = diagnosis, .check_steps = diagnosis}}, {net->parameters(), {.lr = 1e-4}}});
  Setup* raw = setup.get();
  return {.name = name, .owns = std::move(setup), .step = [raw, diagnosis, x] {
            raw->optimizer.zero_grad();
            // The tape belongs to the thread: without diagnosis it must not run.
            std::optional<autograd::Tape::Pause> pause;
            if (!diagnosis) pause.emplace();
            mean(square(raw->ddp(x))).backward();
            raw->optimizer.step();
          }};
}

}  // namespace

int main(int argc, char** argv) {
  const int blocks = argc > 1 ? std::atoi(argv[1]) : 4;
  const int64_t width = argc > 2 ? std::atoi(argv[2]) : 256;
  const int steps = argc > 3 ? std::atoi(argv[3]) : 60;
  dist::run_threads(2, [&](dist::ProcessGroupPtr group) {
    Generator generator(static_cast<uint64_t>(group->rank()));
    const Tensor x = randn({4, 64, width}, kFloat32, &generator);
    std::vector<bench::Way> ways;
    ways.push_back(way("off", group, blocks, width, false, x));
    ways.push_back(way("on", group, blocks, width, true, x));
    ways.push_back(way("off again", group, blocks, width, false, x));
    bench::interleave(*group, ways, 6, steps);
    if (group->rank() != 0) return;
    fmt::print("{} blocks of width {}, {} steps of each way, interleaved; rank 0 of 2\n", blocks, width, steps);
    for (const bench::Way& one : ways)
      fmt::print("{:>10}: {:.3f} ms median, {:.3f} min\n", one.name, bench::quantile(one.ms, 0.5),
                 bench::quantile(one.ms, 0));
    bench::print_ratio("on / off", ways[1], ways[0]);
    bench::print_ratio("off / off", ways[2], ways[0]);
  });
}
